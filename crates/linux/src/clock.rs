//! The live engine's clock, and how a thread makes sure of the processor.
//!
//! Runs are timed by `CLOCK_MONOTONIC`. The kernel stamps packets with `CLOCK_REALTIME`, which can be set and stepped; each
//! batch of stamps is therefore converted with the offset between the two clocks at that moment.

use rustix::time::{ClockId, Timespec};
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use weir_base::{Span, Time};

/// Priority among real-time threads: above ordinary programs, below what the kernel's own threads use (50).
const PRIORITY: libc::c_int = 10;
/// Priority of programs that a thread with [`PRIORITY`] waits for, and that must not hold it up.
const LOWER: libc::c_int = 5;

/// Three readings of clocks that take longer than this were interrupted: undisturbed they take a tenth of it.
const UNDISTURBED: Span = Span::from_micros(2);
/// How often the offset between two clocks is measured at most.
const ATTEMPTS: usize = 8;

/// A time in seconds and nanoseconds, as nanoseconds.
pub const fn nanos_of(seconds: i64, nanos: i64) -> u64 {
    seconds as u64 * 1_000_000_000 + nanos as u64
}

/// A span as the kernel's `timespec`.
pub fn timespec_of(span: Span) -> Timespec {
    Timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    }
}

fn read(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    nanos_of(now.tv_sec, now.tv_nsec)
}

/// Processor time that this whole process has used.
pub fn process_time() -> Span {
    Span::from_nanos(read(ClockId::ProcessCPUTime))
}

/// Processor time that the calling thread has used.
pub fn thread_time() -> Span {
    Span::from_nanos(read(ClockId::ThreadCPUTime))
}

/// Time that the calling thread was ready to run and had no processor (`/proc/thread-self/schedstat`, Documentation/scheduler/sched-stats.rst);
/// `None` if the kernel does not count it.
pub fn thread_wait() -> Option<Span> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Span::from_nanos)
}

/// The time of `CLOCK_MONOTONIC`, by which the kernel stamps what programs in it tell.
pub fn monotonic() -> Time {
    Time::from_nanos(read(ClockId::Monotonic))
}

/// Tells the time since the start of a run.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: u64,
}

impl Clock {
    /// A clock whose run starts `span` from now; until then it shows zero.
    pub fn starting_in(span: Span) -> Clock {
        Clock { zero: read(ClockId::Monotonic) + span.as_nanos() }
    }

    /// Time since the start of the run; zero before it.
    pub fn now(&self) -> Time {
        Time::from_nanos(read(ClockId::Monotonic).saturating_sub(self.zero))
    }

    /// The time of `CLOCK_MONOTONIC` at a time of the run.
    pub fn monotonic(&self, at: Time) -> Time {
        Time::from_nanos(self.zero.saturating_add(at.as_nanos()))
    }

    /// How long it is until the run starts.
    pub fn until_start(&self) -> Span {
        Span::from_nanos(self.zero.saturating_sub(read(ClockId::Monotonic)))
    }

    /// Measures the offset to the clock of the kernel's packet stamps.
    pub fn stamps(&self) -> Stamps {
        // An interruption between the readings moves the offset by half its length, so that an interrupted measurement is
        // repeated.
        let mut closest = self.offset();
        for _ in 1..ATTEMPTS {
            if closest.0 <= UNDISTURBED {
                break;
            }
            closest = closest.min(self.offset());
        }
        Stamps { zero: closest.1 }
    }

    /// The run's zero in nanoseconds of `CLOCK_REALTIME`, after the time that its measurement took.
    fn offset(&self) -> (Span, i64) {
        let (before, real, after) =
            (read(ClockId::Monotonic), read(ClockId::Realtime), read(ClockId::Monotonic));
        let zero = i128::from(self.zero) + i128::from(real) - (i128::from(before) + i128::from(after)) / 2;
        (Span::from_nanos(after.saturating_sub(before)), zero as i64)
    }
}

/// The offset between the two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// The run's zero in nanoseconds of `CLOCK_REALTIME`.
    zero: i64,
}

impl Stamps {
    /// The run's time at a stamp (nanoseconds of `CLOCK_REALTIME`); zero if the stamp is before the run.
    pub fn time(&self, stamp: u64) -> Time {
        Time::from_nanos(u64::try_from(stamp as i64 - self.zero).unwrap_or(0))
    }

    /// How far `CLOCK_REALTIME` was moved against `CLOCK_MONOTONIC` since an earlier reading.
    pub fn step_since(&self, earlier: Stamps) -> Span {
        Span::from_nanos(self.zero.abs_diff(earlier.zero))
    }
}

/// How a thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO`: before every ordinary program.
    RealTime,
    /// Like any other thread.
    Ordinary,
}

impl Scheduling {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::RealTime => "SCHED_FIFO",
            Scheduling::Ordinary => "SCHED_OTHER",
        }
    }
}

/// Gives the calling thread real-time scheduling if the system permits it, and exact timers. Returns its scheduling.
pub fn claim_processor() -> Scheduling {
    claim(PRIORITY)
}

/// The same with a lower priority, at which the thread waits for those that have claimed a processor by [`claim_processor`]. It allocates
/// nothing, so that a process that was just forked may call it.
pub(crate) fn claim_lower() -> Scheduling {
    claim(LOWER)
}

fn claim(priority: libc::c_int) -> Scheduling {
    // The timer slack of ordinary threads is 50 us by default (prctl(2), PR_SET_TIMERSLACK). Cannot fail with this argument.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer names a sched_param that lives until the call returns; 0 is the calling thread.
    if unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    } == 0
    {
        Scheduling::RealTime
    } else {
        Scheduling::Ordinary
    }
}

/// Keeps the process's pages in memory from their first use on, until it is dropped.
#[derive(Debug)]
pub struct MemoryLock {
    held: bool,
}

/// How many runs have the process's memory locked.
static LOCKING: Mutex<usize> = Mutex::new(0);

impl MemoryLock {
    /// Locks the memory if the system permits it.
    pub fn take() -> MemoryLock {
        use rustix::mm::MlockAllFlags;
        let mut locking = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        // On fault only: without it, every thread's whole stack would be filled at once.
        let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
        let held = rustix::mm::mlockall(flags).is_ok();
        *locking += usize::from(held);
        MemoryLock { held }
    }

    /// Whether the memory is locked.
    pub fn held(&self) -> bool {
        self.held
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        if self.held {
            let mut locking = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
            *locking -= 1;
            if *locking == 0 {
                let _ = rustix::mm::munlockall();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_taken_now_is_the_time_now() {
        let clock = Clock::starting_in(Span::ZERO);
        let before = clock.now();
        let stamp = read(ClockId::Realtime);
        let after = clock.now();
        let time = clock.stamps().time(stamp);
        // The two readings behind the offset are a microsecond apart; an interruption between them may take milliseconds.
        let slack = Span::from_millis(50);
        assert!(before - slack <= time && time <= after + slack, "{before} <= {time} <= {after}");
    }

    #[test]
    fn a_stamp_from_before_the_run_is_its_start() {
        let clock = Clock::starting_in(Span::from_secs(100));
        assert_eq!(clock.stamps().time(read(ClockId::Realtime)), Time::ZERO);
    }
}
