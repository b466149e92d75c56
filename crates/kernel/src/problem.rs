//! Why a control cannot be loaded, changed or unloaded, and what to do about it.

use crate::holder::{self, Holder};
use std::io;

/// Why a control cannot be loaded, changed or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Weir was built without the feature `bpf`.
    #[error("weir was built without its kernel controls")]
    NotBuilt,
    /// The controller has no kernel form.
    #[error("{0} has no kernel form; these have one: {list}", list = names())]
    Unknown(String),
    /// The kernel is too old, or was built without a feature.
    #[error("this kernel lacks {what}; {since}")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// Which kernels have it.
        since: &'static str,
    },
    /// The process may not load programs into the kernel.
    #[error("this process may not load programs into the kernel: {0}")]
    Forbidden(io::Error),
    /// The kernel refuses the control.
    #[error("the kernel refuses {control}: {reason}\n{log}")]
    Refused {
        /// Its name in the kernel.
        control: &'static str,
        /// The kernel's error.
        reason: String,
        /// The messages of libbpf and the verifier.
        log: String,
    },
    /// The control is loaded already.
    #[error("{0} is loaded already")]
    Loaded(&'static str),
    /// The control is loaded already, with other parameters.
    #[error("{control} is loaded already, with {parameter} = {has} instead of the requested {wanted}{by}", by = by(holders))]
    Differs {
        /// Its name in the kernel.
        control: &'static str,
        /// The parameter.
        parameter: String,
        /// Its present value.
        has: String,
        /// The wanted value.
        wanted: String,
        /// The processes that use the control.
        holders: Vec<Holder>,
    },
    /// The control's parameters are to be changed, but processes use it.
    #[error("the parameters of {control} cannot be changed while other processes use it: {names}", names = holder::names(holders))]
    InUse {
        /// Its name in the kernel.
        control: &'static str,
        /// The processes that use it.
        holders: Vec<Holder>,
    },
    /// The controller does not have these parameters or values.
    #[error("{reason}")]
    Unfit {
        /// Its name in labs.
        control: &'static str,
        /// What is wrong with them.
        reason: String,
    },
    /// The control is not loaded.
    #[error("{0} is not loaded")]
    NotLoaded(&'static str),
    /// The control is not pinned here; processes hold it, and it disappears with the last of them.
    #[error("{control} is not loaded permanently; it is unloaded when the last process that uses it ends: {names}", names = holder::names(holders))]
    HeldElsewhere {
        /// Its name in the kernel.
        control: &'static str,
        /// The processes that use it.
        holders: Vec<Holder>,
    },
    /// The kernel form has no such parameter, or another type or range of it.
    #[error("the kernel form of {control} does not take {parameter} = {value}")]
    Parameter {
        /// Its name in labs.
        control: &'static str,
        /// The parameter.
        parameter: String,
        /// The wanted value.
        value: String,
    },
    /// The control is not scalable: its congestion signal is not ECN marks.
    #[error("{0} does not respond to marks as L4S requires, so its packets must not be ECT(1)")]
    NoMarks(&'static str),
    /// The command cannot be run.
    #[error("cannot run {program}: {error}")]
    Command {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system reports another error.
    #[error("{what}: {error}")]
    Failed {
        /// What failed.
        what: String,
        /// The system's error.
        error: io::Error,
    },
}

/// The end of an error message: the processes that use the control.
fn by(holders: &[Holder]) -> String {
    if holders.is_empty() { String::new() } else { format!("; it is used by {}", holder::names(holders)) }
}

fn names() -> String {
    crate::CONTROLS.iter().map(|control| control.name).collect::<Vec<_>>().join(", ")
}

impl Problem {
    /// What a person can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Problem::NotBuilt => {
                "`make deps` installs clang and the headers of libelf and zlib, with which `make build` makes a program `weir` \
                 that has them"
            }
            Problem::Unknown(_) => "`weir kernel list` names them",
            Problem::Missing { .. } => "use a newer kernel, or run on the simulator (`--on sim`)",
            Problem::Forbidden(_) => {
                "run as root: it needs CAP_SYS_ADMIN, CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON outside any user namespace"
            }
            Problem::Refused { .. } => {
                "the log above shows where; docs/kernel.md names the kernels that were tried"
            }
            Problem::Loaded(_) => "`weir kernel load NAME --set PARAMETER=VALUE` changes it while it runs",
            Problem::Differs { .. } => {
                "request the same parameters, or unload it first (`weir kernel unload NAME`) and wait for the processes that use it"
            }
            Problem::InUse { .. } => "wait until these processes end, or end them",
            Problem::Unfit { .. } => "`weir describe NAME` names the parameters of a controller",
            Problem::NotLoaded(_) => "`weir kernel list` shows what is loaded",
            Problem::HeldElsewhere { .. } => "end these processes: live runs, or `weir kernel use`",
            Problem::Parameter { .. } => "`weir kernel list` names its parameters",
            Problem::NoMarks(_) => "leave --ect1 out",
            Problem::Command { .. } => "name a program that is installed; its path, if it is not in PATH",
            Problem::Failed { .. } => "`weir doctor` shows what this machine supports",
        }
    }

    /// Why weir's folder cannot be locked.
    #[cfg(feature = "bpf")]
    pub(crate) fn forbidden(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Problem::Forbidden(error),
            _ => Problem::failed(format!("cannot lock {}", crate::pinned::LOCKED))(error),
        }
    }

    #[cfg(feature = "bpf")]
    pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Problem {
        let what = what.into();
        move |error| Problem::Failed { what, error }
    }
}
