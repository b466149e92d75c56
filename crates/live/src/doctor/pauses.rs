//! Measures how long this machine keeps an ordinary thread from its processor although the thread never waits. The kernel's transport
//! and applications wait as long. A queue that is shorter than such a pause then overflows in live runs and not in simulated ones.

use super::{Check, Status, check};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::time::{Duration, Instant};

/// How long each processor is watched: periodic work of a kernel thread each half second is seen twice.
const LASTS: Duration = Duration::from_millis(1100);
/// A shorter time between two readings of the clock is no pause.
const SHORTEST: Duration = Duration::from_micros(100);
/// A pause from which on a warning is given: the buffers of many labs hold a millisecond or less.
const LONG: Duration = Duration::from_millis(1);

/// The pauses on all processors together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pauses {
    longest: Duration,
    /// Number of those of [`LONG`] or more.
    long: u32,
    total: Duration,
    watched: Duration,
}

impl Pauses {
    fn add(&mut self, pause: Duration) {
        if pause >= SHORTEST {
            self.longest = self.longest.max(pause);
            self.total += pause;
            self.long += u32::from(pause >= LONG);
        }
    }

    fn merge(self, other: Pauses) -> Pauses {
        Pauses {
            longest: self.longest.max(other.longest),
            long: self.long + other.long,
            total: self.total + other.total,
            watched: self.watched + other.watched,
        }
    }

    fn check(self) -> Check {
        let share = 100.0 * self.total.as_secs_f64() / self.watched.as_secs_f64().max(1e-9);
        let finding = format!(
            "an ordinary thread is kept from its processor for {:.1} ms at most, {share:.2} % of the time",
            self.longest.as_secs_f64() * 1e3
        );
        let name = "pauses";
        if self.long == 0 {
            return check(name, Status::Ok, finding, "");
        }
        let advice = "in live runs a queue that holds less than such a pause overflows more often; \
                      stop other work, or use larger queues or another machine";
        check(name, Status::Warn, format!("{finding}; {} pauses of 1 ms or more", self.long), advice)
    }
}

/// Watches all processors that this process may use, side by side.
pub(super) fn pauses() -> Check {
    let Ok(usable) = sched_getaffinity(None) else {
        return check("pauses", Status::Warn, "the processors cannot be told apart", "");
    };
    let processors = (0..CpuSet::MAX_CPU).filter(|processor| usable.is_set(*processor));
    let watched = std::thread::scope(|scope| {
        let threads: Vec<_> = processors.map(|processor| scope.spawn(move || watch(processor))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(Pauses::default(), Pauses::merge)
    });
    watched.check()
}

/// Reads the clock on this processor again and again.
fn watch(processor: usize) -> Pauses {
    let mut only = CpuSet::new();
    only.set(processor);
    // Where it fails, the thread is watched wherever it runs.
    let _ = sched_setaffinity(None, &only);
    let mut pauses = Pauses::default();
    let start = Instant::now();
    let mut last = start;
    while last < start + LASTS {
        let now = Instant::now();
        pauses.add(now - last);
        last = now;
    }
    Pauses { watched: last - start, ..pauses }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_a_millisecond_are_a_warning_and_shorter_ones_are_not() {
        let of = |micros: &[u64]| {
            let mut pauses = Pauses { watched: Duration::from_secs(1), ..Pauses::default() };
            micros.iter().for_each(|pause| pauses.add(Duration::from_micros(*pause)));
            pauses
        };
        let quiet = of(&[1, 99, 400]).check();
        assert_eq!(quiet.status, Status::Ok);
        assert!(quiet.finding.contains("for 0.4 ms at most, 0.04 % of the time"), "{}", quiet.finding);
        let busy = of(&[400, 3_100]).merge(of(&[1_500])).check();
        assert_eq!(busy.status, Status::Warn);
        assert!(busy.finding.contains("3.1 ms at most, 0.25 %"), "{}", busy.finding);
        assert!(busy.finding.contains("2 pauses of 1 ms or more"), "{}", busy.finding);
    }
}
