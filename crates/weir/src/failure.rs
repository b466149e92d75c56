//! How a command fails: a message, a suggestion, and the exit status.

use crate::say;
use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;
use weir_engine::{EngineError, FolderError, ResultsError};
use weir_plan::Diagnostics;
use weir_session::SessionError;

/// Why a command fails, and with which status.
#[derive(Debug)]
pub(crate) struct Failure(weir_daemon::Failure);

impl Failure {
    /// Something went wrong: status 1.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure(weir_daemon::Failure::failed(message))
    }

    /// Something went wrong, and this may help: status 1.
    pub(crate) fn failed_with(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure(weir_daemon::Failure::failed_with(message, help))
    }

    /// The input is wrong, or asks for something that cannot be done: status 2.
    pub(crate) fn bad_input(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure(weir_daemon::Failure::bad_input(message, help))
    }

    /// Interrupted: status 130.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure(weir_daemon::Failure::interrupted(message))
    }

    /// A status alone: the message was printed already.
    pub(crate) fn quiet(status: u8) -> Failure {
        Failure(weir_daemon::Failure { status, message: String::new(), help: None })
    }

    /// Prints message and suggestion, and returns the exit status.
    pub(crate) fn tell(self) -> ExitCode {
        let weir_daemon::Failure { status, message, help } = self.0;
        if !message.is_empty() {
            say(&format!("weir: {message}"));
        }
        if let Some(help) = help {
            say(&format!("  help: {help}"));
        }
        ExitCode::from(status)
    }
}

impl fmt::Display for Failure {
    /// The message and the suggestion, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weir_daemon::Failure { message, help, .. } = &self.0;
        write!(f, "{message}")?;
        help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

impl From<weir_daemon::Failure> for Failure {
    fn from(failure: weir_daemon::Failure) -> Failure {
        Failure(failure)
    }
}

/// Whether diagnostics have colours: on a terminal that has them, unless NO_COLOR is set to anything (no-color.org).
fn colours() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    std::io::stderr().is_terminal()
        && set("NO_COLOR").is_none()
        && set("TERM").is_none_or(|term| term != "dumb")
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        // The text is escaped already; escaping it again would remove the colours.
        eprint!("{}", diagnostics.render(colours(), terminal_width()));
        Failure::quiet(2)
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        Failure::bad_input(error.to_string(), error.help())
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Failure {
        Failure::bad_input(error.to_string(), error.help())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        match error {
            SessionError::Asked { message, help } => Failure::bad_input(message, help),
            SessionError::Interrupted { .. } => {
                Failure::interrupted(format!("{error}; the same command resumes the run"))
            }
            SessionError::Engine(error) => error.into(),
            SessionError::Folder(error) => error.into(),
            SessionError::Results(error) => error.into(),
            SessionError::Report(error) => error.into(),
        }
    }
}

impl From<weir_study::Missing> for Failure {
    fn from(missing: weir_study::Missing) -> Failure {
        Failure::bad_input(missing.message, missing.help)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::Cancelled => Failure::interrupted("interrupted"),
            EngineError::Unable { what, help } => Failure::bad_input(what, help),
            EngineError::Failed(message) | EngineError::Command(message) | EngineError::Endless(message) => {
                Failure::failed(message)
            }
            EngineError::Raised(raised) => Failure::failed(raised.to_string()),
        }
    }
}

impl From<weir_kernel::Problem> for Failure {
    fn from(problem: weir_kernel::Problem) -> Failure {
        Failure(problem.into())
    }
}

impl From<weir_shaper::Problem> for Failure {
    fn from(problem: weir_shaper::Problem) -> Failure {
        Failure(problem.into())
    }
}

impl From<weir_report::ReportError> for Failure {
    fn from(error: weir_report::ReportError) -> Failure {
        Failure::failed(error.to_string())
    }
}

/// Width of the terminal, from 40 to 200 characters; 100 if there is none.
pub(crate) fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).clamp(40, 200))
}
