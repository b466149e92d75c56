//! The queuing delay of LEDBAT: the smallest of the newest one-way delays, less the smallest of the last minutes.
//! Source: RFC 6817, section 2.4.2 (`update_base_delay`, `update_current_delay`).

use crate::one_way_delay::OneWayDelay;
use crate::{Ack, Timestamps};
use std::collections::VecDeque;
use weir_base::{Span, Time};

/// How long one entry of the base history covers (RFC 6817: a minute).
const MINUTE: Span = Span::from_secs(60);

/// The filters of the base and the current delay, in any unit.
#[derive(Debug)]
pub(crate) struct DelayFilter {
    /// Smallest delay of each of the last minutes, the newest last.
    base: VecDeque<i64>,
    history: usize,
    /// The newest delays.
    current: VecDeque<i64>,
    filter: usize,
    /// When the newest minute began.
    minute: Time,
}

impl DelayFilter {
    /// Filters over `history` minutes and `filter` samples; 0 counts as 1.
    pub(crate) fn new(history: u32, filter: u32) -> DelayFilter {
        let (history, filter) = (history.max(1) as usize, filter.max(1) as usize);
        // Room for one more: an entry is added before the oldest is removed.
        let base = VecDeque::with_capacity(history + 1);
        let current = VecDeque::with_capacity(filter + 1);
        DelayFilter { base, history, current, filter, minute: Time::ZERO }
    }

    /// Takes a delay.
    pub(crate) fn update(&mut self, delay: i64, now: Time) {
        self.current.push_back(delay);
        if self.current.len() > self.filter {
            self.current.pop_front();
        }
        if now.since(self.minute) >= MINUTE || self.base.is_empty() {
            self.minute = now;
            self.base.push_back(delay);
            if self.base.len() > self.history {
                self.base.pop_front();
            }
        } else if let Some(least) = self.base.back_mut() {
            *least = delay.min(*least);
        }
    }

    /// The smallest delay of the last minutes; 0 before the first sample.
    pub(crate) fn base(&self) -> i64 {
        self.base.iter().min().copied().unwrap_or(0)
    }

    /// The queuing delay: the smallest of the newest delays, less the base delay.
    pub(crate) fn queuing(&self) -> i64 {
        self.current.iter().min().copied().unwrap_or(0) - self.base()
    }
}

/// The queuing delay in milliseconds, from timestamps.
#[derive(Debug)]
pub(crate) struct QueuingDelay {
    owd: OneWayDelay,
    filter: DelayFilter,
}

impl QueuingDelay {
    pub(crate) fn new(history: u32, filter: u32) -> QueuingDelay {
        QueuingDelay { owd: OneWayDelay::default(), filter: DelayFilter::new(history, filter) }
    }

    /// Takes the timestamps of an acknowledgement. A delay below the first one counts as zero, as in the modules.
    pub(crate) fn update(&mut self, ack: &Ack) {
        if let Some(timestamps) = &ack.timestamps {
            self.take(timestamps, ack.now);
        }
    }
    fn take(&mut self, timestamps: &Timestamps, now: Time) {
        let delay = self.owd.sample(timestamps).max(0);
        self.filter.update(delay, now);
    }

    /// The queuing delay in milliseconds.
    pub(crate) fn millis(&self) -> i64 {
        self.filter.queuing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn the_queuing_delay_is_the_current_minimum_minus_the_base_delay() {
        let mut filter = DelayFilter::new(2, 2);
        for delay in [20, 50, 70] {
            filter.update(delay, ms(0));
        }
        // The smaller of 50 and 70, less 20.
        assert_eq!(filter.queuing(), 30);
    }

    #[test]
    fn the_base_delay_forgets_old_minutes() {
        let mut filter = DelayFilter::new(2, 1);
        for (seconds, delay, expected) in [(0, 20, 0), (60, 60, 40), (119, 60, 40), (120, 60, 0)] {
            filter.update(delay, ms(seconds * 1000));
            assert_eq!(filter.queuing(), expected, "after {seconds} s");
        }
    }
}
