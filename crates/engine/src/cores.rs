//! All cores of the machine, and threads that help where the system grants them.

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Number of threads that this process may run side by side; 1 if the system does not tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Starts a thread that shares work with its caller. `None` if the system grants no further thread.
pub fn helper<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

/// Calls both closures, side by side if the system grants a thread. A panic of either is resumed here.
pub fn both<A: Send, B>(there: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    // The closure stays here until the thread takes it: a thread that cannot be started would drop it.
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

/// Calls `each` for every item, on all cores, each core for a share of neighbouring items. The results have the order of the items.
pub(crate) fn map_on_all_cores<T: Sync, U: Send>(items: &[T], each: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let of_share = |share: &[T]| share.iter().map(&each).collect::<Vec<_>>();
    let (mine, others) = items.split_at(items.len().div_ceil(cores()));
    std::thread::scope(|scope| {
        let others = others.chunks(mine.len().max(1));
        let started = others.map(|share| (share, helper(scope, move || of_share(share))));
        let started: Vec<_> = started.collect();
        let mut results = of_share(mine);
        for (share, helper) in started {
            results.extend(match helper {
                Some(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => of_share(share),
            });
        }
        results
    })
}
