//! All cores of the machine, and threads that help where the system grants them.

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// How many threads run side by side here; 1 where the machine does not tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Starts a thread that helps with work which goes on without it too. None where the system grants no further thread.
pub fn helper<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

/// Does both, side by side where the system grants a thread; a panic of either goes on here.
pub fn both<A: Send, B>(there: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    // A thread that cannot be started would take its work with it.
    let there = Mutex::new(Some(there));
    let take = || there.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let started = helper(scope, || take().map(|work| work()));
        let here = here();
        let done =
            started.and_then(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        match done.or_else(|| take().map(|work| work())) {
            Some(done) => (done, here),
            None => unreachable!("the work is taken once, and what takes it answers"),
        }
    })
}

/// Calls `work` on a thread for each core, but on no more threads than there are pieces of work; waits until all have ended.
pub fn on_all_cores(pieces: usize, work: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        (1..cores().min(pieces)).for_each(|_| drop(helper(scope, work)));
        work();
    });
}
