//! Tells the user each second that the receiver is silent: the receiver says each second how much it has.

use crate::transfer::guard;
use crate::transfer::silence::{EACH, QUIET, tell};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_base::Span;

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
            if silent >= duration(QUIET) {
                tell(self.host, silent.as_secs() as f64);
            }
            last = self.changed.wait_timeout(last, duration(EACH)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
