//! Why a session fails.

use weir_engine::{EngineError, FolderError, ResultsError};
use weir_report::ReportError;

/// Why a session fails.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It asks for something that the lab does not have.
    #[error("{message}")]
    Asked {
        /// What is wrong.
        message: String,
        /// What it may ask for.
        help: String,
    },
    /// It was cancelled. The finished runs are kept, and another session goes on with the others.
    #[error("interrupted; {done} of {all} runs are kept in {folder}")]
    Interrupted {
        /// Number of runs that the folder holds.
        done: usize,
        /// Number of runs that were asked for.
        all: usize,
        /// The result folder.
        folder: String,
    },
    /// An engine cannot do the runs.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The result folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The results cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl SessionError {
    pub(crate) fn asked(message: impl Into<String>, help: impl Into<String>) -> SessionError {
        SessionError::Asked { message: message.into(), help: help.into() }
    }
}
