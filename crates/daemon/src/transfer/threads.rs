//! The threads of a receiver, one for each connection or session: no more than a bound, and waited for at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Most threads at a time.
const MOST: usize = 256;
/// How long they may take to end when the receiver is to stop.
const ENDING: Duration = Duration::from_secs(1);

/// Threads that are at work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Threads(Arc<AtomicUsize>);

impl Threads {
    /// Does work on a thread. Returns false if there are too many.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let here = self.clone();
        let is_one_too_many = self.0.fetch_add(1, Ordering::Relaxed) >= MOST;
        let work = move || {
            work();
            here.0.fetch_sub(1, Ordering::Relaxed);
        };
        let is_spawned = !is_one_too_many && std::thread::Builder::new().spawn(work).is_ok();
        if !is_spawned {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
        is_spawned
    }

    /// Waits a while for all of them to end.
    pub(crate) fn wait(&self) {
        let until = Instant::now() + ENDING;
        while self.0.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
