//! A search that is stopped from outside, at any point: what it has proved by then holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// A flag that stops searches. Searches look at it often, also within a round; it stays set.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_set: AtomicBool,
    /// Threads that wait, and are to be woken.
    waiting: Mutex<Vec<Thread>>,
}

impl Stop {
    /// Stops all searches that were given this flag or a clone of it.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.waiting().iter().for_each(Thread::unpark);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a long step gives, or `None` as soon as the flag is set. The step runs on a thread of its own, which goes on for as long as it
    /// does not look at the flag itself, and whose result is then lost.
    pub(crate) fn or<T: Send + 'static>(
        &self,
        step: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let own = thread::current();
        let (tell, told) = channel();
        self.waiting().push(own.clone());
        let wake = Wake(own.clone());
        let worker = thread::Builder::new().spawn(move || {
            // Dropped in this order, also by a panic: first the end that tells, then what wakes the thread that listens.
            let (_wake, tell) = (wake, tell);
            // Nobody listens any more if the flag was set.
            let _ = tell.send(step());
        });
        let found = worker.ok().and_then(|_| {
            loop {
                match told.try_recv() {
                    Ok(found) => break found,
                    Err(TryRecvError::Disconnected) => break None,
                    Err(TryRecvError::Empty) if self.is_set() => break None,
                    Err(TryRecvError::Empty) => thread::park(),
                }
            }
        });
        self.waiting().retain(|thread| thread.id() != own.id());
        found.filter(|_| !self.is_set())
    }
}

/// Wakes a thread when it is dropped.
struct Wake(Thread);

impl Drop for Wake {
    fn drop(&mut self) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_gives_its_result_unless_it_is_stopped() {
        let stop = Stop::default();
        assert_eq!(stop.or(|| Some(7)), Some(7));
        assert_eq!(stop.or(|| None::<u8>), None);
        let (hold, held) = channel::<()>();
        let held = Mutex::new(held);
        let other = stop.clone();
        thread::spawn(move || other.set());
        // The step would last for as long as this thread holds the other end.
        let found = stop.or(move || held.lock().ok()?.recv().ok().map(|()| 7));
        assert_eq!(found, None);
        drop(hold);
        assert_eq!(stop.or(|| Some(7)), None, "it stays stopped");
    }
}
