//! Why a command fails: a message, a suggestion, and the exit status.

use weir_circuit::{Refusal, StoreError};

/// Why a command fails, and with which status.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: u8,
    /// What went wrong; empty if it was printed already.
    pub message: String,
    /// What may help.
    pub help: Option<String>,
}

impl Failure {
    /// Something went wrong: status 1.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure { status: 1, message: message.into(), help: None }
    }

    /// Something went wrong, and this may help: status 1.
    pub fn failed_with(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { help: Some(help.into()), ..Failure::failed(message) }
    }

    /// The input is wrong, or asks for something that cannot be done: status 2.
    pub fn bad_input(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { status: 2, message: message.into(), help: Some(help.into()) }
    }

    /// Interrupted: status 130.
    pub fn interrupted(message: impl Into<String>) -> Failure {
        Failure { status: 130, message: message.into(), help: None }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::bad_input(refusal.to_string(), refusal.help())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::bad_input(error.to_string(), error.help())
    }
}

impl From<weir_kernel::Problem> for Failure {
    fn from(problem: weir_kernel::Problem) -> Failure {
        use weir_kernel::Problem::{Parameter, Unfit, Unknown};
        let status = if matches!(problem, Unknown(_) | Parameter { .. } | Unfit { .. }) { 2 } else { 1 };
        Failure { status, message: problem.to_string(), help: Some(problem.help().to_owned()) }
    }
}

impl From<weir_shaper::Problem> for Failure {
    fn from(problem: weir_shaper::Problem) -> Failure {
        use weir_shaper::Problem::{Failed, NotRestored};
        let status = if matches!(problem, Failed { .. } | NotRestored(_)) { 1 } else { 2 };
        Failure { status, message: problem.to_string(), help: Some(problem.help()) }
    }
}
