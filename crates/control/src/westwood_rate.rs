//! Westwood+'s estimate of a path's rate: the bytes acknowledged over each round trip, at least 50 ms, through two low-pass filters.
//! Rate times smallest RTT is the estimated BDP. Source: Linux 6.18 `net/ipv4/tcp_westwood.c`, in its units: bytes per tick of the
//! kernel's clock.

use crate::jiffies::{ticks_at, ticks_of_at};
use crate::{Delivered, Start};
use weir_base::{Bytes, Time};

/// The RTT before the first measurement, in seconds (Linux `TCP_WESTWOOD_INIT_RTT`).
const FIRST_RTT_SECONDS: u64 = 20;
/// The shortest round is a second divided by this (Linux `TCP_WESTWOOD_RTT_MIN`).
const LEAST_ROUND: u64 = 20;
/// Length of the timestamp option in bytes (RFC 7323).
const OPTIONS: u64 = 12;
/// The smallest estimated BDP in segments.
const LEAST_SEGMENTS: u32 = 2;

/// The estimate of the path's rate, and its RTTs.
#[derive(Debug)]
pub(crate) struct PathRate {
    hz: u64,
    mss: u64,
    /// The rate in bytes per tick after the first and after both filters (Linux `bw_ns_est`, `bw_est`).
    filtered: (u64, u64),
    /// The tick in which the round began, and the bytes acknowledged in it.
    round_start: u64,
    bytes: u64,
    /// The offset up to which bytes have been counted; `None` before the first acknowledgement.
    counted: Option<u64>,
    /// Bytes counted for duplicate acknowledgements, ahead of the cumulative number (Linux `accounted`).
    ahead: u64,
    /// The newest RTT and the smallest, in ticks.
    rtt: u64,
    rtt_min: u64,
    /// Whether the next RTT sample becomes the smallest, whatever it is.
    forget_min: bool,
}

fn low_pass(average: u64, sample: u64) -> u64 {
    (7 * average + sample) / 8
}

impl PathRate {
    /// An estimate with a clock of `hz` ticks per second.
    pub(crate) fn new(hz: u32, start: &Start) -> PathRate {
        let hz = u64::from(hz.max(1));
        PathRate {
            hz,
            mss: start.mss.get().max(1),
            filtered: (0, 0),
            round_start: ticks_at(hz, start.now),
            bytes: 0,
            counted: None,
            ahead: 0,
            rtt: FIRST_RTT_SECONDS * hz,
            rtt_min: FIRST_RTT_SECONDS * hz,
            forget_min: true,
        }
    }

    /// Takes the delivery of an acknowledgement (Linux `tcp_westwood_pkts_acked`, `tcp_westwood_ack`).
    pub(crate) fn update(&mut self, delivered: &Delivered) {
        if let Some(sample) = delivered.rtt.filter(|sample| !sample.rtt.is_zero()) {
            self.rtt = ticks_of_at(self.hz, sample.rtt);
        }
        let counted = *self.counted.get_or_insert(delivered.acknowledged);
        self.end_round(delivered.now);
        let advance = delivered.acknowledged.saturating_sub(counted);
        self.bytes += if delivered.predicted { advance } else { self.count(advance) };
        self.counted = Some(delivered.acknowledged);
        if self.forget_min {
            self.rtt_min = self.rtt;
            self.forget_min = false;
        }
        self.rtt_min = self.rtt_min.min(self.rtt);
    }

    /// Changes the payload of a full segment.
    pub(crate) fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.get().max(1);
    }

    /// Filters the rate of the round if it has lasted longer than an RTT and the shortest round (Linux `westwood_update_window`).
    fn end_round(&mut self, now: Time) {
        let now = ticks_at(self.hz, now);
        let lasted = now.saturating_sub(self.round_start);
        if lasted <= self.rtt.max(self.hz / LEAST_ROUND) {
            return;
        }
        let sample = self.bytes / lasted;
        let (once, twice) = self.filtered;
        self.filtered = if (once, twice) == (0, 0) {
            (sample, sample)
        } else {
            let once = low_pass(once, sample);
            (once, low_pass(twice, once))
        };
        self.bytes = 0;
        self.round_start = now;
    }

    /// The bytes that count for an advance of the cumulative number. A duplicate counts as a segment that has left the network; its
    /// bytes are not counted again when the cumulative number passes them (Linux `westwood_acked_count`).
    fn count(&mut self, advance: u64) -> u64 {
        if advance == 0 {
            self.ahead += self.mss;
            return self.mss;
        }
        if advance <= self.mss {
            return advance;
        }
        if self.ahead >= advance {
            self.ahead -= advance;
            return self.mss;
        }
        advance - std::mem::take(&mut self.ahead)
    }

    /// The estimated BDP in segments, rate times smallest RTT; at least two (Linux `tcp_westwood_bw_rttmin`).
    pub(crate) fn segments(&self) -> u32 {
        u32::try_from(self.bytes_held() / self.mss).unwrap_or(u32::MAX).max(LEAST_SEGMENTS)
    }
    /// The estimated BDP in segments that include the timestamp option (Linux `advmss`); may be zero.
    pub(crate) fn segments_with_options(&self) -> u64 {
        self.bytes_held() / (self.mss + OPTIONS)
    }
    /// The estimated BDP in segments, not rounded.
    pub(crate) fn exact_segments(&self) -> f64 {
        self.bytes_held() as f64 / self.mss as f64
    }
    fn bytes_held(&self) -> u64 {
        self.filtered.1.saturating_mul(self.rtt_min)
    }

    /// The newest RTT in ticks.
    pub(crate) fn rtt(&self) -> u64 {
        self.rtt
    }
    /// Whether an RTT has been measured.
    pub(crate) fn knows_rtt(&self) -> bool {
        self.rtt != FIRST_RTT_SECONDS * self.hz
    }
    /// The newest RTT less the smallest, in ticks.
    pub(crate) fn queued_ticks(&self) -> u32 {
        u32::try_from(self.rtt.saturating_sub(self.rtt_min)).unwrap_or(u32::MAX)
    }

    /// Resets the smallest RTT: the route may have changed.
    pub(crate) fn forget_min(&mut self) {
        self.forget_min = true;
    }

    /// For the records: the rate in Mbit/s, the newest RTT and the smallest in milliseconds.
    pub(crate) fn describe(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let millis = |ticks: u64| ticks as f64 * 1_000.0 / self.hz as f64;
        report("rate_mbit", self.filtered.1 as f64 * self.hz as f64 * 8.0 / 1e6);
        report("rtt_ms", millis(self.rtt));
        report("rtt_min_ms", millis(self.rtt_min));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RttSample;
    use crate::testing::{delivered, ms, start};
    use weir_base::Span;

    /// Gives an acknowledgement up to `segments` segments of 1000 bytes, with an RTT of 40 ms.
    fn acknowledge(rate: &mut PathRate, now: u64, segments: u64) {
        let rtt = Some(RttSample { rtt: Span::from_millis(40), delayed: false, queued_back: Span::ZERO });
        rate.update(&Delivered { rtt, acknowledged: segments * 1000, ..delivered(ms(now), 1) });
    }

    #[test]
    fn a_round_is_longer_than_fifty_milliseconds_and_than_the_rtt() {
        // 1000 ticks per second. The first acknowledgement only sets the offset to count from.
        let mut rate = PathRate::new(1000, &start());
        for (now, segments) in [(40, 0), (45, 10), (50, 20)] {
            acknowledge(&mut rate, now, segments);
            assert_eq!(rate.filtered, (0, 0), "at {now} ms");
        }
        // After 51 ms, without the acknowledgement that ends the round: 20,000 / 51 = 392 bytes per tick.
        acknowledge(&mut rate, 51, 30);
        assert_eq!(rate.filtered, (392, 392));
        // 392 bytes over the smallest RTT of 40 ticks are 15 segments.
        assert_eq!(rate.segments(), 15);
    }

    #[test]
    fn later_rounds_pass_two_filters_with_a_weight_of_an_eighth() {
        let mut rate = PathRate::new(1000, &start());
        (rate.filtered, rate.counted) = ((800, 800), Some(0));
        acknowledge(&mut rate, 51, 0);
        rate.bytes = 81_600;
        // 81,600 / 51 = 1600; (7 * 700 + 1600) / 8 = 812; (7 * 787 + 812) / 8 = 790.
        assert_eq!(rate.filtered, (700, 787));
        acknowledge(&mut rate, 102, 0);
        assert_eq!(rate.filtered, (812, 790));
    }

    #[test]
    fn duplicate_acknowledgements_count_one_segment_each_and_a_filled_hole_counts_only_the_rest() {
        let mut rate = PathRate::new(1000, &start());
        rate.counted = Some(0);
        for expected in [1_000, 2_000, 3_000] {
            acknowledge(&mut rate, 1, 0);
            assert_eq!(rate.bytes, expected);
        }
        // Five segments at once, three of which are counted.
        acknowledge(&mut rate, 1, 5);
        assert_eq!((rate.bytes, rate.ahead), (5_000, 0));
        // More bytes were counted ahead than the advance: a segment each time, as in the kernel.
        rate.ahead = 4_000;
        acknowledge(&mut rate, 1, 8);
        assert_eq!((rate.bytes, rate.ahead), (6_000, 1_000));
    }

    #[test]
    fn a_predicted_acknowledgement_counts_the_bytes_that_it_acknowledges() {
        let mut rate = PathRate::new(1000, &start());
        (rate.counted, rate.ahead) = (Some(0), 3_000);
        rate.update(&Delivered { predicted: true, acknowledged: 5_000, ..delivered(ms(1), 5) });
        assert_eq!((rate.bytes, rate.ahead), (5_000, 3_000));
    }

    #[test]
    fn the_smallest_rtt_is_measured_again_after_a_reset() {
        let mut rate = PathRate::new(250, &start());
        let sample = |rate: &mut PathRate, millis| {
            let rtt =
                Some(RttSample { rtt: Span::from_millis(millis), delayed: false, queued_back: Span::ZERO });
            rate.update(&Delivered { rtt, ..delivered(ms(0), 1) });
            rate.rtt_min
        };
        // In ticks of 4 ms, rounded up.
        assert_eq!(sample(&mut rate, 41), 11);
        assert_eq!(sample(&mut rate, 80), 11);
        rate.forget_min();
        assert_eq!(sample(&mut rate, 80), 20);
    }
}
