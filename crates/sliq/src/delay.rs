//! One-way delay without synchronised clocks. Each packet carries its sender's time; arrival time minus sending time is the delay plus the
//! offset of the clocks. In the sum over both directions the offsets cancel: the smallest differences add up to the smallest round trip.
//! Half of that counts as the smallest delay of each direction; a packet's excess over the smallest difference is added.

use weir_base::{Span, Time, WindowedMax};

/// A period for the search of the smallest difference lasts at least this long and this many packets (the GNAT software).
const PERIOD: Span = Span::from_secs(10);
const SAMPLES: u32 = 1000;
/// Window of the maximum of the delay.
const LARGEST_OVER: Span = Span::from_secs(2);

/// The difference of arrival and sending time in one direction, in microseconds modulo 2^32.
#[derive(Debug, Clone, Default)]
pub(crate) struct Difference {
    smallest: Option<u32>,
    /// This period: the smallest difference, the number of samples, and when it began.
    period: Option<(u32, u32, Time)>,
}

/// Whether `a` is below `b`, modulo 2^32.
fn below(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Difference {
    /// The smallest difference; `None` before the first sample.
    pub(crate) fn smallest(&self) -> Option<u32> {
        self.smallest
    }

    /// Takes a sample; returns its excess over the smallest.
    pub(crate) fn take(&mut self, difference: u32, now: Time) -> Span {
        let (least, samples, begin) = self.period.unwrap_or((difference, 0, now));
        let (least, samples) = (if below(difference, least) { difference } else { least }, samples + 1);
        if self.smallest.is_none_or(|smallest| below(difference, smallest)) {
            self.smallest = Some(difference);
        }
        if samples >= SAMPLES && now.since(begin) >= PERIOD {
            (self.smallest, self.period) = (Some(least), None);
        } else {
            self.period = Some((least, samples, begin));
        }
        let above = difference.wrapping_sub(self.smallest.unwrap_or(difference)) as i32;
        Span::from_micros(above.max(0) as u64)
    }
}

/// The one-way delay to the peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delay {
    there: Difference,
    back: Difference,
    /// The largest excess over the smallest delay, and the newest one.
    excess: WindowedMax<Span>,
    newest: Span,
}

impl Delay {
    /// A packet of the peer has arrived with the difference `back`; it reports the difference `there` of a packet of this end.
    pub(crate) fn take(&mut self, there: u32, back: u32, now: Time) {
        self.back.take(back, now);
        let excess = self.there.take(there, now);
        self.excess.update(LARGEST_OVER, now, excess);
        self.newest = excess;
    }

    /// The smallest round trip; `None` before the first sample.
    pub(crate) fn smallest_rtt(&self) -> Option<Span> {
        let sum = self.there.smallest?.wrapping_add(self.back.smallest?) as i32;
        Some(Span::from_micros(sum.max(0) as u64))
    }

    /// The delay of the newest packet whose arrival the peer has reported; `None` before the first sample.
    pub(crate) fn newest(&self) -> Option<Span> {
        Some(self.smallest_rtt()? / 2 + self.newest)
    }

    /// The longest delay to the peer in the last 2 s; `None` before the first sample.
    pub(crate) fn longest(&self) -> Option<Span> {
        Some(self.smallest_rtt()? / 2 + self.excess.value()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_offsets_cancel_out() {
        // The peer's clock is 5 s behind ours; 10 ms there and 10 ms back, once 3 ms more there.
        let mut delay = Delay::default();
        let behind = 5_000_000u32;
        for queued in [0, 3_000, 0] {
            let there = (10_000 + queued as u32).wrapping_sub(behind);
            delay.take(there, 10_000 + behind, Time::ZERO);
        }
        assert_eq!(delay.smallest_rtt(), Some(Span::from_millis(20)));
        assert_eq!(delay.longest(), Some(Span::from_millis(13)));
    }

    #[test]
    fn a_longer_path_delay_is_learnt_after_a_period() {
        let mut delay = Delay::default();
        let mut now = Time::ZERO;
        for n in 0..2_200u32 {
            let way = if n < 100 { 10_000 } else { 50_000 };
            delay.take(way, way, now);
            now += Span::from_millis(10);
        }
        assert_eq!(delay.smallest_rtt(), Some(Span::from_millis(100)));
    }
}
