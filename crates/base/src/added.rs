//! Members that a program adds to a registry while it runs, such as a controller that is a Python class.
//!
//! A registry with a section for them ([`registry!`](crate::registry)) looks for a name that is not its own among them. What a member
//! is ([`Prototype`]) is plain data, which results keep; how it is made is known only to the program that added it. So every program
//! reads such results, and only that one does the runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::sync::{Arc, PoisonError, RwLock};

/// The parameters of a member by name.
pub type Parameters = Map<String, Value>;

/// What a member is that a program adds to a registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prototype {
    /// The kind of the registry's members, in one word: `controller`, `queue`.
    pub what: String,
    /// The name by which labs use it.
    pub name: String,
    /// What it is and where, such as `a Python class (reno.py:12)`.
    pub origin: String,
    /// Its source: all from which its behaviour follows.
    pub source: String,
    /// Its parameters, each with its schema and, unless it must be given, its `default`.
    pub parameters: Parameters,
    /// What the registry asks of it before it is made, by the names of the registry.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Parameters,
}

impl Display for Prototype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is {}", self.what, self.name, self.origin)
    }
}

impl Prototype {
    /// All its parameters: those given, and the defaults of the others.
    fn with(&self, mut given: Parameters) -> Result<Parameters, String> {
        let refused = |why: String| format!("{} {}: {why}", self.what, self.name);
        if let Some(unknown) = given.keys().find(|key| !self.parameters.contains_key(*key)) {
            let known: Vec<String> = self.parameters.keys().map(|key| format!("`{key}`")).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(refused(format!("unknown parameter `{unknown}`, expected {known}")));
        }
        let one = |(key, schema): (&String, &Value)| {
            let value = given.remove(key).or_else(|| schema.get("default").cloned());
            Ok((key.clone(), value.ok_or_else(|| refused(format!("parameter `{key}` is missing")))?))
        };
        self.parameters.iter().map(one).collect()
    }
}

/// A member that was added, with its parameters. `M` makes what the registry is about.
pub struct Added<M: ?Sized> {
    prototype: Arc<Prototype>,
    parameters: Parameters,
    maker: Option<Arc<M>>,
}

impl<M: ?Sized> Added<M> {
    /// What it is.
    pub fn prototype(&self) -> &Arc<Prototype> {
        &self.prototype
    }

    /// All its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// What makes it; `None` if this program knows it only from results.
    pub fn maker(&self) -> Option<&M> {
        self.maker.as_deref()
    }

    /// A property of it; `None` if it has none of this name and type.
    pub fn property<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        T::deserialize(self.prototype.properties.get(name)?).ok()
    }
}

// The derived impls would ask the same of `M`.
impl<M: ?Sized> Clone for Added<M> {
    fn clone(&self) -> Self {
        let Added { prototype, parameters, maker } = self;
        Added { prototype: Arc::clone(prototype), parameters: parameters.clone(), maker: maker.clone() }
    }
}

/// Two are equal if a lab names them in the same way, as two members of the registry itself are.
impl<M: ?Sized> PartialEq for Added<M> {
    fn eq(&self, other: &Self) -> bool {
        self.prototype.name == other.prototype.name && self.parameters == other.parameters
    }
}

impl<M: ?Sized> Debug for Added<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Added").field(&self.prototype.name).field(&self.parameters).finish()
    }
}

/// The members that were added to a registry.
pub struct Additions<M: ?Sized>(RwLock<Vec<Addition<M>>>);

struct Addition<M: ?Sized> {
    prototype: Arc<Prototype>,
    maker: Option<Arc<M>>,
}

/// Longest name of a member.
const LONGEST_NAME: usize = 40;

impl<M: ?Sized> Additions<M> {
    /// None.
    #[expect(clippy::new_without_default, reason = "a registry's section makes the only ones")]
    pub const fn new() -> Additions<M> {
        Additions(RwLock::new(Vec::new()))
    }

    /// Adds a member with what makes it, in place of an earlier one of its name; or, without a maker, one that is known from results.
    ///
    /// # Errors
    /// The name is not one.
    pub fn add(&self, prototype: Prototype, maker: Option<Arc<M>>) -> Result<(), String> {
        let Prototype { what, name, .. } = &prototype;
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fine) {
            return Err(format!(
                "\"{name}\" cannot be the name of a {what}; write up to {LONGEST_NAME} lower-case letters, digits, - and _"
            ));
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if maker.is_some() {
            all.retain(|other| other.maker.is_none() || other.prototype.name != prototype.name);
            all.insert(0, Addition { prototype: Arc::new(prototype), maker });
        } else if !all.iter().any(|other| *other.prototype == prototype) {
            all.push(Addition { prototype: Arc::new(prototype), maker });
        }
        Ok(())
    }

    /// The member of this name with these parameters over its defaults; `None` if none was added by this name. Results of earlier forms
    /// of a member may give other parameters, so that any form that takes them will do.
    pub fn find(&self, name: &str, parameters: &Parameters) -> Option<Result<Added<M>, String>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_name = all.iter().filter(|addition| addition.prototype.name == name);
        let mut forms = of_name.map(|Addition { prototype, maker }| {
            let parameters = prototype.with(parameters.clone())?;
            Ok(Added { prototype: Arc::clone(prototype), parameters, maker: maker.clone() })
        });
        let first = forms.next()?;
        Some(first.or_else(|refused| forms.find_map(Result::ok).ok_or(refused)))
    }

    /// What the added members are, those that can be made first.
    pub fn prototypes(&self) -> Vec<Arc<Prototype>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|addition| Arc::clone(&addition.prototype)).collect()
    }
}

/// An error of an added member, which ends its run. The hooks of controllers and queues return no errors, since those of weir have none: this
/// one unwinds the run's stack.
#[derive(Debug)]
pub struct Raised(pub Box<dyn Error + Send + Sync>);

impl Raised {
    /// Ends the run with this error.
    pub fn raise(error: impl Into<Box<dyn Error + Send + Sync>>) -> ! {
        std::panic::resume_unwind(Box::new(Raised(error.into())))
    }
}

impl Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}
