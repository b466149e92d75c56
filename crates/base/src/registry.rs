//! The registry of a crate's members, one line each. That line gives the names in lab files, `weir list`, `weir describe`, the JSON
//! schema and the diagnostics.

/// Declares a registry's `Config` enum: one variant for each member, with its parameters.
///
/// In a lab file a member is written as its name (`"cubic"`, all defaults) or as a table (`{ kind = "cubic", beta = 0.7 }`).
/// The serialized form has every parameter. Each member's `Config` is a serde struct with `Default`, a JSON schema and
/// `deny_unknown_fields`.
///
/// With a last section `+ Added(M)` a program may add members while it runs: `Config::add` takes what a member is and an `M` that makes
/// it, and the variant `Added` holds one with its parameters (see [`Prototype`](crate::Prototype)).
///
/// ```
/// mod reno {
///     /// Parameters of Reno.
///     #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
///     #[serde(default, deny_unknown_fields)]
///     pub struct Config {
///         /// Segments added for each round.
///         pub step: u32,
///     }
/// }
/// weir_base::registry! {
///     /// Controllers that a lab can name.
///     pub enum Config: "controller" {
///         NewReno(reno::Config) = "newreno" | "reno": "AIMD with NewReno recovery (RFC 5681, RFC 6582)";
///     }
/// }
/// assert_eq!("reno".parse::<Config>().unwrap().name(), "newreno");
/// let config: Config = serde_json::from_str(r#"{ "kind": "reno", "step": 2 }"#).unwrap();
/// assert_eq!(config, Config::NewReno(reno::Config { step: 2 }));
/// ```
///
/// With members that are added:
///
/// ```
/// # mod reno {
/// #     #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// #     pub struct Config {}
/// # }
/// # use std::sync::Arc;
/// weir_base::registry! {
///     /// Controllers that a lab can name.
///     pub enum Config: "controller" {
///         NewReno(reno::Config) = "newreno": "AIMD with NewReno recovery (RFC 5681, RFC 6582)";
///     }
///     + Added(fn() -> u32)
/// }
/// let prototype: weir_base::Prototype = serde_json::from_str(
///     r#"{ "what": "controller", "name": "mine", "origin": "an example", "source": "", "parameters": { "x": { "default": 3 } } }"#,
/// ).unwrap();
/// assert!("mine".parse::<Config>().is_err());
/// Config::add(prototype, Some(Arc::new(|| 7))).unwrap();
/// let Config::Added(mine) = "mine".parse().unwrap() else { panic!("it is not of the registry itself") };
/// assert_eq!((mine.maker().map(|make| make()), mine.parameters()["x"].as_u64()), (Some(7), Some(3)));
/// ```
#[macro_export]
macro_rules! registry {
    ($(#[$doc:meta])* pub enum $Config:ident : $what:literal {
        $($Variant:ident($($path:ident)::+) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+
    } $(+ $Added:ident($Maker:ty))?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $Config {
            $(#[doc = $summary] $Variant($($path)::+),)+
            $(
                /// A member that a program has added.
                $Added($crate::Added<$Maker>),
            )?
        }

        impl $Config {
            /// The kind of this registry's members, in one word.
            pub const WHAT: &'static str = $what;

            /// Every member's name and its aliases.
            pub const NAMES: &'static [(&'static str, &'static [&'static str])] = &[$(($name, &[$($alias),*]),)+];

            /// The member's name, as the registry writes it.
            pub fn name(&self) -> &str {
                match self {
                    $($Config::$Variant(_) => $name,)+
                    $($Config::$Added(added) => &added.prototype().name,)?
                }
            }

            $(
                fn additions() -> &'static $crate::Additions<$Maker> {
                    static ADDITIONS: $crate::Additions<$Maker> = $crate::Additions::new();
                    &ADDITIONS
                }

                /// Adds a member with what makes it, in place of an earlier one of its name; or, without a maker, one that is known from
                /// results, whose runs cannot be done here.
                ///
                /// # Errors
                /// The name is not one, or it is that of a member of the registry itself.
                pub fn add(
                    prototype: $crate::Prototype,
                    maker: Option<::std::sync::Arc<$Maker>>,
                ) -> Result<(), String> {
                    match $Config::title_of(&prototype.name) {
                        None => $Config::additions().add(prototype, maker),
                        Some(_) => Err(format!("weir has a {} `{}` of its own", $what, prototype.name)),
                    }
                }

                /// What the added members are, those that can be made first.
                pub fn added() -> Vec<::std::sync::Arc<$crate::Prototype>> {
                    $Config::additions().prototypes()
                }

                /// What it is, if it was added.
                pub fn prototype(&self) -> Option<&::std::sync::Arc<$crate::Prototype>> {
                    match self {
                        $Config::$Added(added) => Some(added.prototype()),
                        _ => None,
                    }
                }
            )?

            /// The literature's spelling of the member with this name or alias, which may be the name itself; `None` if the registry
            /// has no such member.
            pub fn title_of(name: &str) -> Option<&'static str> {
                match name {
                    $($name $(| $alias)* => {
                        let title: &'static str = $name;
                        $(let title: &'static str = $title;)?
                        Some(title)
                    })+
                    _ => None,
                }
            }

            /// Every member with its aliases, summary and the schema of its parameters.
            pub fn members() -> Vec<$crate::Named> {
                vec![$($crate::Named {
                    name: $name,
                    aliases: &[$($alias),*],
                    summary: $summary,
                    parameters: $crate::__private::schemars::schema_for!($($path)::+),
                },)+]
            }

            /// The member of this name with the parameters in `parameters` (an object without `kind`) over its defaults.
            ///
            /// # Errors
            /// An unknown name, an unknown parameter or an invalid value; the message names it.
            pub fn with_parameters(
                name: &str,
                parameters: $crate::__private::serde_json::Value,
            ) -> Result<$Config, String> {
                match name {
                    $($name $(| $alias)* => $crate::__private::serde_json::from_value(parameters)
                        .map($Config::$Variant)
                        .map_err(|error| format!("{} {}: {error}", $what, $name)),)+
                    _ => {
                        $(
                            let find = |given| $Config::additions().find(name, given);
                            if let Some(found) = parameters.as_object().and_then(find) {
                                return found.map($Config::$Added);
                            }
                        )?
                        Err(format!("unknown {} `{name}`, expected one of {}", $what, [$(concat!("`", $name, "`")),+].join(", ")))
                    }
                }
            }
        }

        impl ::std::str::FromStr for $Config {
            type Err = String;
            fn from_str(name: &str) -> Result<$Config, String> {
                $Config::with_parameters(name, $crate::__private::serde_json::Value::Object(Default::default()))
            }
        }

        impl $crate::__private::serde::Serialize for $Config {
            fn serialize<S: $crate::__private::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($Config::$Variant(parameters) => {
                        let member = $crate::__private::Member { kind: $name, parameters };
                        $crate::__private::serde::Serialize::serialize(&member, serializer)
                    })+
                    $($Config::$Added(added) => {
                        let (kind, parameters) = (added.prototype().name.as_str(), added.parameters());
                        let member = $crate::__private::Member { kind, parameters };
                        $crate::__private::serde::Serialize::serialize(&member, serializer)
                    })?
                }
            }
        }

        impl<'de> $crate::__private::serde::Deserialize<'de> for $Config {
            fn deserialize<D: $crate::__private::serde::Deserializer<'de>>(deserializer: D) -> Result<$Config, D::Error> {
                use $crate::__private::serde::de::Error;
                use $crate::__private::serde_json::Value;
                let value: Value = $crate::__private::serde::Deserialize::deserialize(deserializer)?;
                match value {
                    Value::String(name) => name.parse().map_err(D::Error::custom),
                    Value::Object(mut fields) => match fields.remove("kind") {
                        Some(Value::String(name)) => {
                            $Config::with_parameters(&name, Value::Object(fields)).map_err(D::Error::custom)
                        }
                        _ => Err(D::Error::missing_field("kind")),
                    },
                    _ => Err(D::Error::custom(format!(
                        "expected the {} by name, or a table with its `kind` and parameters", $what
                    ))),
                }
            }
        }

        impl $crate::__private::schemars::JsonSchema for $Config {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $what.into()
            }
            fn json_schema(_: &mut $crate::__private::schemars::SchemaGenerator) -> $crate::__private::schemars::Schema {
                $crate::__private::registry_schema($what, $Config::members())
            }
        }
    };
}

/// A member in its serialized form: its name, then its parameters.
#[derive(serde::Serialize)]
pub struct Member<'a, P> {
    /// The name.
    pub kind: &'a str,
    /// The parameters.
    #[serde(flatten)]
    pub parameters: &'a P,
}

/// The schema of a registry: a name, or a table with `kind` and that member's parameters. Its parts are moved, not copied, since
/// many commands build these schemas.
pub fn registry_schema(what: &str, members: Vec<crate::Named>) -> schemars::Schema {
    use serde_json::{Map, Value, json};
    let names: Vec<&str> =
        members.iter().flat_map(|m| std::iter::once(m.name).chain(m.aliases.iter().copied())).collect();
    let mut forms = vec![json!({ "type": "string", "enum": names })];
    for member in members {
        let mut form = member.parameters.to_value();
        if let Some(object) = form.as_object_mut() {
            object.remove("$schema");
            object.insert("title".into(), member.name.into());
            object.insert("description".into(), member.summary.into());
            let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let kinds: Vec<&str> =
                std::iter::once(member.name).chain(member.aliases.iter().copied()).collect();
            properties["kind"] = json!({ "enum": kinds });
            object.insert("required".into(), json!(["kind"]));
        }
        forms.push(form);
    }
    let mut schema = Map::new();
    let description = format!("The {what}: its name, or a table of kind and parameters.");
    schema.insert("description".into(), description.into());
    schema.insert("anyOf".into(), Value::Array(forms));
    schema.into()
}
