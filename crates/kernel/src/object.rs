//! A control's object: opened, given its parameters, loaded and linked.

use crate::parameters::{parameters, write_all};
use crate::pinned::LOCKED;
use crate::running::{self, is_registered};
use crate::{Control, Problem, capability, configure, control, links};
use libbpf_rs::btf::Btf;
use libbpf_rs::{ErrorKind, MapCore, MapType, Object, ObjectBuilder, PrintLevel};
use serde_json::Map;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_control::Config;
use weir_linux::lock::FolderLock;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// How long the kernel may take to unregister a control, which it does in the background.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before the kernel is asked again.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);

/// What libbpf writes before the log of the verifier (`libbpf.c`).
const VERIFIER_LOG: &str = "BEGIN PROG LOAD LOG";

/// Messages of libbpf and the verifier during a load: libbpf passes them to one function for the whole process.
static SAID: Mutex<String> = Mutex::new(String::new());
/// Allows one load at a time, so that the messages belong to it.
static LOADING: Mutex<()> = Mutex::new(());

fn said() -> MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens and loads an object; `prepare` may change its `.data` before. An error has the kernel's messages.
pub(crate) fn load_object(
    short: &'static str,
    prepare: impl FnOnce(&Btf<'_>, &mut [u8]) -> Result<(), Problem>,
) -> Result<Object, Problem> {
    let bytes = OBJECTS.iter().find(|(name, _)| *name == short).map(|(_, bytes)| *bytes).unwrap_or_default();
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    said().clear();
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| said().push_str(&text))));
    let refused = |error: libbpf_rs::Error| match error.kind() {
        // EACCES is also what the verifier says of a program, and then there is a log of it.
        ErrorKind::PermissionDenied if !said().contains(VERIFIER_LOG) => {
            Problem::Forbidden(std::io::Error::other(error))
        }
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

/// A reference to a control in the kernel. The control stays as long as there is a reference; connections that use it keep it until they
/// end.
#[derive(Debug)]
pub struct Held {
    pub(crate) control: &'static Control,
    pub(crate) link: OwnedFd,
    /// References to the controls to which it hands connections over.
    pub(crate) beside: Vec<Held>,
}

impl Held {
    /// The control.
    pub fn control(&self) -> &'static Control {
        self.control
    }

    /// Another reference to a control that is in the kernel; `None` if it is not there.
    pub(crate) fn find(control: &'static Control) -> Result<Option<Held>, Problem> {
        Ok(links::find(control)?.map(|link| Held { control, link, beside: vec![] }))
    }

    /// The links of this control and of those beside it.
    pub(crate) fn links(&self) -> Vec<BorrowedFd<'_>> {
        std::iter::once(&self.link)
            .chain(self.beside.iter().map(|held| &held.link))
            .map(AsFd::as_fd)
            .collect()
    }

    /// Adds references to the controls to which it hands connections over, whatever their parameters.
    fn with_others(mut self) -> Result<Held, Problem> {
        for name in self.control.beside {
            let other = control(name).ok_or_else(|| Problem::Unknown((*name).to_owned()))?;
            self.beside.push(find_or_load(other, || configure(other, Map::new()))?.0);
        }
        Ok(self)
    }
}

/// Loads a controller's kernel form with these parameters. `None` if the kernel already has one of its name.
fn attach(control: &'static Control, config: &Config) -> Result<Option<Held>, Problem> {
    let prepare = |types: &Btf<'_>, values: &mut [u8]| write_all(control, config, &parameters(types), values);
    let mut object = load_object(control.short, prepare)?;
    let refused = |reason: String, log: String| Problem::Refused { control: control.kernel, reason, log };
    let Some(mut map) = object.maps_mut().find(|map| map.map_type() == MapType::StructOps) else {
        return Err(refused("its object file contains no congestion control".to_owned(), String::new()));
    };
    match map.attach_struct_ops() {
        // The link holds the map and its programs; the object may be dropped.
        Ok(link) => {
            let link = link.as_fd().try_clone_to_owned();
            let link = link.map_err(Problem::failed(format!("cannot keep {}", control.kernel)))?;
            Ok(Some(Held { control, link, beside: vec![] }))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(refused(format!("{error:#}"), said().clone())),
    }
}

/// A reference to a controller's kernel form, and whether it was loaded: the one in the kernel, whatever its parameters, or else one that
/// is loaded with these.
pub(crate) fn find_or_load(
    control: &'static Control,
    config: impl Fn() -> Result<Config, Problem>,
) -> Result<(Held, bool), Problem> {
    let start = Instant::now();
    loop {
        if let Some(held) = Held::find(control)? {
            return Ok((held.with_others()?, false));
        }
        // A control without references may still be registered: the kernel unregisters it in the background.
        if !is_registered(control)
            && let Some(held) = attach(control, &config()?)?
        {
            return Ok((held.with_others()?, true));
        }
        if start.elapsed() > PATIENCE {
            return Err(Problem::HeldElsewhere { control: control.kernel, holders: vec![] });
        }
        std::thread::sleep(MOMENT);
    }
}

/// Keeps a controller's kernel form with these parameters in the kernel, as long as the returned reference lives: loads it, or takes
/// another reference to the one that is there, whoever loaded it.
///
/// # Errors
/// It has no kernel form, the kernel refuses it, or it is there with other parameters ([`Problem::Differs`]).
pub fn hold(config: &Config) -> Result<Held, Problem> {
    let control = control(config.name()).ok_or_else(|| Problem::Unknown(config.name().to_owned()))?;
    capability::check()?;
    // The lock keeps other processes from changing its parameters meanwhile.
    let _lock = FolderLock::shared(Path::new(LOCKED)).map_err(Problem::forbidden)?;
    let (held, loaded) = find_or_load(control, || Ok(config.clone()))?;
    if loaded {
        return Ok(held);
    }
    running::compare(control, config)?;
    Ok(held)
}
