//! A control's object: opened, given its parameters, loaded and linked.

use crate::parameters::{parameters, write_all};
use crate::running::{is_registered, parameters_of};
use crate::{Control, Problem, capability, control};
use libbpf_rs::btf::Btf;
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object, ObjectBuilder, PrintLevel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_control::Config;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// What libbpf and the verifier say while something is loaded: libbpf tells it to one function for the whole process.
static SAID: Mutex<String> = Mutex::new(String::new());
/// One load at a time, so that what was said belongs to it.
static LOADING: Mutex<()> = Mutex::new(());

fn said() -> MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens and loads an object; `prepare` is given its `.data` before. What fails says what the kernel said.
pub(crate) fn load_object(
    short: &'static str,
    prepare: impl FnOnce(&Btf<'_>, &mut [u8]) -> Result<(), Problem>,
) -> Result<Object, Problem> {
    let bytes = OBJECTS.iter().find(|(name, _)| *name == short).map(|(_, bytes)| *bytes).unwrap_or_default();
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    said().clear();
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| said().push_str(&text))));
    let refused = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied => Problem::Forbidden(std::io::Error::other(error)),
        _ => Problem::Refused { control: short, reason: format!("{error:#}"), log: said().clone() },
    };
    let mut builder = ObjectBuilder::default();
    let mut opened = builder.name(short).and_then(|builder| builder.open_memory(bytes)).map_err(refused)?;
    let section = opened.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".data"));
    if let Some(mut section) = section {
        let types = Btf::from_raw(short, bytes).map_err(refused)?;
        if let (Some(types), Some(values)) = (types, section.initial_value_mut()) {
            prepare(&types, values)?;
        }
    }
    opened.load().map_err(refused)
}

/// A control that is in the kernel for as long as this lives.
#[derive(Debug)]
pub struct Held {
    pub(crate) control: &'static Control,
    pub(crate) link: Link,
}

impl Held {
    /// Which it is.
    pub fn control(&self) -> &'static Control {
        self.control
    }
}

/// Loads a controller's kernel form with these parameters.
///
/// # Errors
/// It has none, it is there already, or the kernel does not take it.
pub fn load(config: &Config) -> Result<Held, Problem> {
    let control = control(config.name()).ok_or_else(|| Problem::Unknown(config.name().to_owned()))?;
    capability::check()?;
    if is_registered(control) {
        return Err(Problem::Loaded(control.kernel));
    }
    let prepare = |types: &Btf<'_>, values: &mut [u8]| write_all(control, config, &parameters(types), values);
    let mut object = load_object(control.short, prepare)?;
    let map = object.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    // The link holds the map and its programs; the object may go.
    match map.map(|mut map| map.attach_struct_ops()) {
        Some(Ok(link)) => Ok(Held { control, link }),
        Some(Err(error)) => Err(Problem::Refused {
            control: control.kernel,
            reason: format!("{error:#}"),
            log: said().clone(),
        }),
        None => {
            let reason = "its object holds no control".to_owned();
            Err(Problem::Refused { control: control.kernel, reason, log: String::new() })
        }
    }
}

/// Sees to it that a controller's kernel form is there with these parameters: `None` if it was already.
///
/// # Errors
/// As [`load`]; [`Problem::Differs`] if it is there with other parameters.
pub fn hold(config: &Config) -> Result<Option<Held>, Problem> {
    let control = control(config.name()).ok_or_else(|| Problem::Unknown(config.name().to_owned()))?;
    if !is_registered(control) {
        return load(config).map(Some);
    }
    let has = parameters_of(control)?;
    for (parameter, wanted) in crate::parameters::spelled_out(config) {
        if let Some(has) = has.get(&parameter).filter(|has| **has != wanted) {
            let (has, wanted) = (has.to_string(), wanted.to_string());
            return Err(Problem::Differs { control: control.kernel, parameter, has, wanted });
        }
    }
    Ok(None)
}
