//! Why a device cannot be shaped, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a device cannot be shaped.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no such device in this network namespace.
    #[error("there is no device {0}")]
    NoDevice(String),
    /// The process lacks the privilege.
    #[error("this process may not change the shapers of {0}")]
    Forbidden(String),
    /// The root discipline is not weir's.
    #[error("{device} has a root discipline that is not weir's: {kind} {handle}")]
    Foreign {
        /// The device.
        device: String,
        /// Its discipline.
        kind: String,
        /// The discipline's handle.
        handle: String,
    },
    /// A foreign root discipline could not be restored exactly on a scratch device.
    #[error("the root discipline of {device}, {kind}, could not be restored exactly, so it is not replaced")]
    Irreplaceable {
        /// The device.
        device: String,
        /// Its discipline.
        kind: String,
    },
    /// The device's shapers differ from those before.
    #[error("the shapers of {0} were not restored to their earlier state")]
    NotRestored(String),
    /// The journal cannot be read.
    #[error("{path} is damaged: {why}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
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

impl Problem {
    /// What a person can do about it.
    pub fn help(&self) -> String {
        match self {
            Problem::NoDevice(_) => "`ip link` lists the devices".into(),
            Problem::Forbidden(_) => "run as root: shapers need CAP_NET_ADMIN".into(),
            Problem::Foreign { device, .. } => format!(
                "`tc qdisc show dev {device}` shows it; --replace installs weir's in its place, and restores the original afterwards"
            ),
            Problem::Irreplaceable { device, .. } => {
                format!("remove it yourself: `tc qdisc delete dev {device} root`")
            }
            Problem::NotRestored(device) => {
                format!("check `tc qdisc show dev {device}`; net.core.default_qdisc may have been changed meanwhile")
            }
            Problem::Journal { path, .. } => format!(
                "check `tc qdisc show`, delete unwanted disciplines, and remove {}",
                path.display()
            ),
            Problem::Failed { .. } => {
                "the kernel needs CONFIG_NET_SCH_HTB, CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_FIFO and CONFIG_NET_CLS_U32".into()
            }
        }
    }
}
