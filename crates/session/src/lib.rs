//! A session: the runs of a lab that its result folder does not hold yet are done, then the folder's summary and report are written.
//! The command line and the Python package run labs through it. `execute.rs` is the file to open first.
#![forbid(unsafe_code)]

mod build;
mod commands;
mod completion;
mod digest;
mod error;
mod execute;
mod only;
mod show;
mod sweep;
mod watch;

pub use build::build_of;
pub use commands::{NOT_PERMITTED, PERMIT, commands_of};
pub use completion::Completion;
pub use digest::run_part;
pub use error::SessionError;
pub use execute::{Caller, Done, Execution, execute};
pub use only::Only;
pub use show::Show;
pub use sweep::{Plan, Sweep};
