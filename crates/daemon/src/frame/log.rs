//! Messages for the user on standard error, by their weight.

use crate::output::say;
use clap::ValueEnum;
use std::sync::atomic::{AtomicU8, Ordering};

/// The weight of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Failures alone
    Error,
    /// What was done, too
    Info,
    /// Each connection, too
    Debug,
}

/// The least weight that is shown.
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Sets the least weight that is shown.
pub(super) fn set(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

fn tell(level: Level, text: &str) {
    if level as u8 <= LEAST.load(Ordering::Relaxed) {
        say(text);
    }
}

/// Tells of a failure after which the daemon goes on.
pub fn error(text: &str) {
    tell(Level::Error, text);
}

/// Tells what was done.
pub fn info(text: &str) {
    tell(Level::Info, text);
}

/// Tells of a connection.
pub fn debug(text: &str) {
    tell(Level::Debug, text);
}
