//! The path's capacity: the highest rate at which bytes arrived at the peer over the last second, by the peer's clock, since
//! acknowledgements gather in queues on their way back. A rate that was limited by the application raises the estimate, but does not
//! replace a higher one or keep it valid for longer.

use crate::delay::above;
use weir_base::{Bytes, Rate, Span, Time};

/// A measurement lasts for a smoothed RTT within these limits. Two of the longest fit into the time for which measurements count.
const LEAST: Span = Span::from_millis(50);
const MOST: Span = Span::from_millis(500);
/// Measurements count for this long, so that a step down is followed within that time.
const COUNTS_FOR: Span = Span::from_secs(1);
/// Maximum number of remembered measurements: as many of the shortest as fit into that time.
const REMEMBERED: usize = 20;

/// An estimate of a path's rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capacity {
    /// When this measurement began at the peer, in microseconds modulo 2^32 (the clocks differ by a constant), the bytes delivered since,
    /// and whether the path limited the rate.
    from: Option<u32>,
    bytes: u64,
    limited: bool,
    measured: [(Time, Rate); REMEMBERED],
    next: usize,
    /// The estimate while no measurement is recent.
    last: Option<Rate>,
    /// The rate of packet pairs, until the path has limited a measurement.
    pairs: Option<Rate>,
}

impl Capacity {
    /// Records that `bytes` were delivered, headers included. `limited`: more data was waiting for the path. `arrived` is when the newest
    /// of them arrived at the peer; `None` if that is not known.
    pub(crate) fn delivered(
        &mut self,
        bytes: u64,
        limited: bool,
        srtt: Span,
        arrived: Option<u32>,
        now: Time,
    ) {
        // Control packets carry no data and are no measurement: a rate of zero would stop the sender for good.
        if bytes == 0 {
            return;
        }
        let Some(from) = self.from else {
            self.from = arrived;
            return;
        };
        self.bytes += bytes;
        self.limited |= limited;
        let Some(arrived) = arrived else { return };
        // A packet that was overtaken arrived before the newest one so far.
        let time = above(arrived, from);
        if time < srtt.clamp(LEAST, MOST) {
            return;
        }
        let rate = Rate::from_bytes_in(Bytes::new(self.bytes), time);
        self.pairs = self.pairs.filter(|_| !self.limited);
        let estimate = self.estimate(now);
        if self.limited || estimate.is_none_or(|estimate| rate > estimate) {
            self.measured[self.next] = (now, rate);
            self.next = (self.next + 1) % REMEMBERED;
            self.last = self.estimate(now);
        }
        (self.from, self.bytes, self.limited) = (Some(arrived), 0, false);
    }

    /// Packet pairs have measured the path's rate.
    pub(crate) fn begin(&mut self, rate: Rate) {
        self.pairs = Some(rate);
    }

    /// The estimate, or the rate of packet pairs as long as no data has been delivered at the path's limit, if it is higher.
    pub(crate) fn path(&self, now: Time) -> Option<Rate> {
        self.estimate(now).max(self.pairs)
    }

    /// Nothing was delivered for a while, although data was sent: the next measurement begins anew.
    pub(crate) fn pause(&mut self) {
        (self.from, self.bytes, self.limited) = (None, 0, false);
    }

    /// The estimate; `None` before the first measurement.
    pub(crate) fn estimate(&self, now: Time) -> Option<Rate> {
        let recent = self.measured.iter().filter(|(at, _)| *at != Time::ZERO && now.since(*at) <= COUNTS_FOR);
        recent.map(|(_, rate)| *rate).max().or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::due::micros;

    /// Delivers 1,250 bytes every `gap` microseconds for `ms` milliseconds; returns the estimate in Mbit/s.
    fn carry(capacity: &mut Capacity, now: &mut Time, gap: u64, ms: u64, limited: bool) -> f64 {
        for _ in 0..ms * 1000 / gap {
            *now += Span::from_micros(gap);
            // The peer's clock is a second before its end.
            let arrived = micros(*now).wrapping_sub(1_000_000);
            capacity.delivered(1250, limited, Span::from_millis(20), Some(arrived), *now);
        }
        capacity.estimate(*now).unwrap().mbit_per_sec()
    }

    #[test]
    fn the_estimate_follows_a_rise_at_once_and_a_fall_within_a_second() {
        let (mut capacity, mut now) = (Capacity::default(), Time::ZERO);
        assert!((carry(&mut capacity, &mut now, 1000, 500, true) - 10.0).abs() < 0.2);
        assert!((carry(&mut capacity, &mut now, 100, 150, true) - 100.0).abs() < 2.0);
        assert!((carry(&mut capacity, &mut now, 10_000, 1100, true) - 1.0).abs() < 0.1);
    }

    #[test]
    fn empty_deliveries_give_no_estimate() {
        let (mut capacity, mut now) = (Capacity::default(), Time::ZERO);
        for _ in 0..100 {
            now += Span::from_millis(100);
            capacity.delivered(0, true, Span::from_millis(20), Some(0), now);
        }
        assert_eq!(capacity.estimate(now), None);
    }

    #[test]
    fn acknowledgements_that_gather_on_their_way_do_not_raise_the_estimate() {
        let mut capacity = Capacity::default();
        // 10 Mbit/s for a second; acknowledgements of 40 ms come at once.
        for packet in 0..1000u32 {
            let now = Time::ZERO + Span::from_millis(20 + u64::from(packet / 40 * 40));
            capacity.delivered(1250, true, Span::from_millis(20), Some(1000 * packet), now);
        }
        let estimate = capacity.estimate(Time::ZERO + Span::from_secs(1)).unwrap().mbit_per_sec();
        assert!((estimate - 10.0).abs() < 1e-6, "{estimate}");
    }

    #[test]
    fn an_application_limited_period_leaves_the_estimate_unchanged() {
        let (mut capacity, mut now) = (Capacity::default(), Time::ZERO);
        carry(&mut capacity, &mut now, 1000, 500, true);
        assert!((carry(&mut capacity, &mut now, 10_000, 5000, false) - 10.0).abs() < 0.2);
    }
}
