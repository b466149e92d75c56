//! What the user is told while the other host of a transfer is silent.

use super::same_command;
use crate::failure::Failure;
use crate::frame::log;
use std::fmt::Display;
use weir_base::{Span, Time};

/// Time without a word of the other host after which the user is told.
pub(crate) const QUIET: Span = Span::from_secs(2);
/// How often the user is told then.
pub(crate) const EACH: Span = Span::from_secs(1);

/// Tells that a host has been silent for so many seconds.
pub(crate) fn tell(host: impl Display, seconds: f64) {
    log::info(&format!("{host} has been silent for {seconds:.0} s"));
}

/// Tells the user each second of a silence that goes on.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    next: Time,
}

impl Teller {
    /// The host has been silent for this time until now.
    pub(crate) fn look(&mut self, host: impl Display, silent: Span, now: Time) {
        if silent >= QUIET && now >= self.next {
            self.next = now + EACH;
            tell(host, silent.as_secs_f64());
        }
    }
}

/// The failure of a transfer whose other host is given up.
pub(crate) fn too_long(host: impl Display) -> Failure {
    let message = format!("{host} has been silent for too long; the same command resumes the transfer");
    Failure::failed_with(message, same_command())
}
