//! Errors that say what to do about a limit of the system.

use std::io::{Error, ErrorKind};

/// The error of starting a thread or a process; if a limit is its cause (EAGAIN of clone(2)), the message says what to do.
pub fn not_started(error: Error) -> Error {
    if error.kind() != ErrorKind::WouldBlock {
        return error;
    }
    Error::new(
        ErrorKind::WouldBlock,
        "no further thread or process can be started: the user's limit (`ulimit -u`) or the control group's (pids.max) is \
         reached; end some processes, raise the limit, or give fewer --jobs",
    )
}
