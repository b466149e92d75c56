//! All cores of the machine.

/// How many threads run side by side here; 1 where the machine does not tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Calls `work` on a thread for each core, but on no more threads than there are pieces of work; waits until all have ended.
pub fn on_all_cores(pieces: usize, work: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        (1..cores().min(pieces)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}
