//! Errors of reading and writing records on disk.

use std::path::{Path, PathBuf};

/// Why records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder holds no finished records.
    #[error("{}: no records here; the run was not finished", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// A file is truncated, was changed, or is of another version of weir.
    #[error("{}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl RecordError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RecordError + '_ {
        move |source| RecordError::Io { path: path.into(), source }
    }

    pub(crate) fn corrupt(path: &Path, what: impl ToString) -> RecordError {
        RecordError::Corrupt { path: path.into(), what: what.to_string() }
    }
}
