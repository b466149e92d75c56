//! What the user is told while the other host of a transfer is silent.

use crate::frame::log;
use std::fmt::Display;
use weir_base::Span;

/// Time without a word of the other host after which the user is told.
pub(crate) const QUIET: Span = Span::from_secs(2);
/// How often the user is told then.
pub(crate) const EACH: Span = Span::from_secs(1);

/// Tells that a host has been silent for so many seconds.
pub(crate) fn tell(host: impl Display, seconds: f64) {
    log::info(&format!("{host} has been silent for {seconds:.0} s"));
}
