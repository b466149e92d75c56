//! Tells the user each second that the receiver is silent: the receiver says each second how much it has.

use crate::frame::log;
use crate::transfer::guard;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without a message after which the user is told, and how often.
const QUIET: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

/// When the receiver was last heard; `None` when the transfer has ended.
pub(super) struct Silence {
    host: SocketAddr,
    last: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Silence {
    pub(super) fn new(host: SocketAddr) -> Silence {
        Silence { host, last: Mutex::new(Some(Instant::now())), changed: Condvar::new() }
    }

    /// The receiver has said something.
    pub(super) fn heard(&self) {
        if let Some(last) = &mut *guard(&self.last) {
            *last = Instant::now();
        }
    }

    /// The transfer has ended.
    pub(super) fn end(&self) {
        *guard(&self.last) = None;
        self.changed.notify_all();
    }

    /// Tells the user until the transfer has ended.
    pub(super) fn watch(&self) {
        let mut last = guard(&self.last);
        while let Some(heard) = *last {
            let silent = heard.elapsed();
            if silent >= QUIET {
                log::info(&format!("{} has been silent for {} s", self.host, silent.as_secs()));
            }
            last = self.changed.wait_timeout(last, SECOND).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
