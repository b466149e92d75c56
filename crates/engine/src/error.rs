//! Why a result folder cannot be used, and what to do about it.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;
use weir_record::RecordError;

/// Why a result folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds files or results that must not be mixed with the new runs.
    #[error("{folder} {what}")]
    InTheWay {
        /// The folder.
        folder: String,
        /// What it holds, as the rest of a sentence about the folder.
        what: String,
    },
    /// Another process writes into it.
    #[error("{folder} is being written by {holder}")]
    Held {
        /// The folder.
        folder: String,
        /// The process that writes.
        holder: Holder,
    },
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// Records cannot be read or written.
    #[error(transparent)]
    Records(#[from] RecordError),
}

impl FolderError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            FolderError::InTheWay { .. } => {
                "--rerun replaces the old results once the new ones are complete; --out DIR writes elsewhere"
            }
            FolderError::Held { .. } => "wait until it ends, or interrupt it; --out DIR writes elsewhere",
            FolderError::Io { .. } => {
                "check that the folder exists, is writable and has space; --out DIR writes elsewhere"
            }
            FolderError::Records(_) => {
                "restore the file from a copy, or remove its folder: the same command then repeats the missing runs; --rerun repeats all \
                 runs"
            }
        }
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError + '_ {
    move |error| FolderError::Io { path: path.display().to_string(), error }
}

/// The process that holds a lock; each part is `None` if it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holder {
    /// Its process id.
    pub process: Option<u32>,
    /// Its command line.
    pub command: Option<String>,
    /// How long it has held the lock.
    pub held: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            None => write!(f, "another process")?,
            Some(process) => write!(f, "process {process}")?,
        }
        if let Some(command) = &self.command {
            write!(f, " (`{command}`)")?;
        }
        match self.held {
            None => Ok(()),
            Some(held) => write!(f, ", for {}", spoken(held.as_secs())),
        }
    }
}

/// A length of time in whole units.
fn spoken(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
