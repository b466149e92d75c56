//! One-way delay without synchronised clocks. Each packet carries its sender's time; arrival time minus sending time is the delay plus the
//! offset of the clocks. In the sum over both directions the offsets cancel: the smallest differences add up to the smallest round trip.
//! Half of that counts as the smallest delay of each direction; a packet's excess over the smallest difference is added.

use weir_base::{Span, Time, WindowedMax, WindowedMin};

/// A period for the search of the smallest difference lasts at least this long and this many packets (the GNAT software).
const PERIOD: Span = Span::from_secs(10);
const SAMPLES: u32 = 1000;
/// The smallest difference of late, by which queueing on the way back is told, is that of so many smallest round trips, or of this time
/// (digest A 4.2).
const BACK_RTTS: u64 = 7;
const BACK_LEAST: Span = Span::from_millis(200);
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

/// How far `a` is above `b`, in microseconds modulo 2^32; zero if it is below.
pub(crate) fn above(a: u32, b: u32) -> Span {
    Span::from_micros((a.wrapping_sub(b) as i32).max(0) as u64)
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
        above(difference, self.smallest.unwrap_or(difference))
    }
}

/// What packets of the peer have waited in queues lately.
#[derive(Debug, Clone, Default)]
struct Queued {
    /// The first difference; those below are above or below it.
    first: u32,
    smallest: WindowedMin<i32>,
    newest: Span,
}

impl Queued {
    fn take(&mut self, difference: u32, smallest_rtt: Span, now: Time) {
        if self.smallest.value().is_none() {
            self.first = difference;
        }
        let way = difference.wrapping_sub(self.first) as i32;
        let smallest = self.smallest.update(BACK_LEAST.max(smallest_rtt * BACK_RTTS), now, way);
        self.newest = above(way as u32, smallest as u32);
    }
}

/// The one-way delay to the peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delay {
    there: Difference,
    back: Difference,
    queued_back: Queued,
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
        let smallest_rtt = self.smallest_rtt().unwrap_or(Span::ZERO);
        self.queued_back.take(back, smallest_rtt, now);
    }

    /// How long the newest packet of the peer has waited in queues, by the smallest delay of late.
    pub(crate) fn queued_back(&self) -> Span {
        self.queued_back.newest
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
    fn queueing_on_the_way_back_is_what_exceeds_the_smallest_delay_of_late() {
        let mut delay = Delay::default();
        let mut queued = |back: u32, millis: u64| {
            // The peer's clock is 5 s behind ours.
            let (there, back) = (10_000u32.wrapping_sub(5_000_000), back + 5_000_000);
            delay.take(there, back, Time::ZERO + Span::from_millis(millis));
            delay.queued_back()
        };
        // The smallest round trip is 20 ms, so that the smallest delay of late is that of 200 ms.
        assert_eq!(queued(10_000, 0), Span::ZERO);
        assert_eq!(queued(13_000, 10), Span::from_millis(3));
        assert_eq!(queued(13_000, 150), Span::from_millis(3));
        assert_eq!(queued(14_000, 250), Span::from_millis(1));
        assert_eq!(queued(9_000, 260), Span::ZERO);
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
