//! Times in which a host sends nothing, since other work holds its processor.

use crate::config::Outage;
use std::sync::Arc;
use weir_base::Time;

/// The pauses of a host.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// In order, none within another.
    all: Arc<[Outage]>,
    /// The first that was not over when a packet left.
    next: usize,
}

impl Pauses {
    pub(crate) fn new(all: Arc<[Outage]>) -> Pauses {
        Pauses { all, next: 0 }
    }

    /// When a packet leaves that the host would send at `at`: then, or at the end of the pause. Calls must not go back in time.
    pub(crate) fn leaves(&mut self, at: Time) -> Time {
        while let Some(pause) = self.all.get(self.next) {
            let (begin, end) = (Time::ZERO + pause.at, Time::ZERO + pause.at + pause.length);
            if at < end {
                return if at < begin { at } else { end };
            }
            self.next += 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    #[test]
    fn what_a_host_would_send_in_a_pause_leaves_at_its_end() {
        let pause = |at, length| Outage { at: Span::from_millis(at), length: Span::from_millis(length) };
        let mut pauses = Pauses::new([pause(100, 2), pause(500, 20), pause(521, 4)].into());
        let mut leaves = |micros: u64| pauses.leaves(Time::from_nanos(1_000 * micros)).as_nanos() / 1_000;
        for (sent, left) in [
            (0, 0),
            (99_999, 99_999),
            (100_000, 102_000),
            (101_999, 102_000),
            (102_000, 102_000),
            (519_999, 520_000),
            (520_000, 520_000),
            (523_000, 525_000),
            (900_000, 900_000),
        ] {
            assert_eq!(leaves(sent), left, "{sent}");
        }
    }
}
