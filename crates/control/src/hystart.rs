//! HyStart: ends slow start before the queue overflows, when the train of a round's acknowledgements is too long, or the round's
//! delay has grown. Source: Ha and Rhee, "Taming the elephants" (2011), as in Linux 6.18 `net/ipv4/tcp_cubic.c`
//! (`hystart_update`, `bictcp_hystart_reset`), in microseconds.

use crate::{Ack, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Span, Time};

/// What HyStart measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detect {
    /// The length of the train of closely spaced acknowledgements (Linux: 1).
    AckTrain,
    /// The growth of the round's smallest delay (Linux: 2).
    Delay,
    /// Both (Linux: 3).
    Both,
}

/// Number of RTT samples before a round's delay counts (Linux `HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the delay growth that ends slow start, in microseconds (Linux `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_BOUNDS: (u64, u64) = (4_000, 16_000);
/// Longest time that bursts may add to a train, in microseconds (Linux `hystart_ack_delay`).
const MAX_BURST_DELAY: u64 = 1_000;
/// Largest burst that the kernel passes to a device: 64 KiB less `MAX_TCP_HEADER + 1` (Linux `sk_dst_gso_max_size`).
const GSO_MAX_SIZE: u64 = 65_536 - 321;
/// TCP's pacing rate in percent of a window per RTT: early in slow start, and later (Linux `tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`). TCP computes it with and without pacing.
const PACING_PERCENT: (u64, u64) = (200, 120);

/// The state of HyStart and of its current round.
#[derive(Debug)]
pub(crate) struct HyStart {
    detect: Detect,
    ack_delta: u64,
    /// Smallest window, in segments, at which HyStart may end slow start.
    low_window: u32,
    paced: bool,
    found: bool,
    round_start: u64,
    last_ack: u64,
    /// The round ends when an acknowledgement passes this offset.
    end: u64,
    /// Smallest RTT of the round in microseconds.
    rtt: u64,
    samples: u32,
    /// Smoothed RTT after the last acknowledgement.
    srtt: Option<Span>,
}

impl HyStart {
    pub(crate) fn new(detect: Detect, ack_delta: Span, low_window: u32, start: &Start) -> HyStart {
        let now = start.now.since(Time::ZERO).as_micros();
        HyStart {
            detect,
            ack_delta: ack_delta.as_micros(),
            low_window,
            paced: start.paced,
            found: false,
            round_start: now,
            last_ack: now,
            end: 0,
            rtt: u64::MAX,
            samples: 0,
            srtt: None,
        }
    }

    /// Whether HyStart has ended slow start.
    pub(crate) fn found(&self) -> bool {
        self.found
    }

    /// Starts over, as after a timeout.
    pub(crate) fn reset(&mut self, now: Time, next_sequence: u64) {
        self.found = false;
        self.begin_round(now.since(Time::ZERO).as_micros(), next_sequence);
    }

    fn begin_round(&mut self, now: u64, next_sequence: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.end = next_sequence;
        self.rtt = u64::MAX;
        self.samples = 0;
    }

    /// Takes an RTT sample in microseconds; true if slow start ends here. `delay_min` is the smallest RTT so far. Rounds also pass
    /// while the window is too small for HyStart.
    pub(crate) fn update(&mut self, ack: &Ack, rtt: u64, delay_min: u64, window: &Window) -> bool {
        let now = ack.now.since(Time::ZERO).as_micros();
        if ack.acknowledged > self.end {
            self.begin_round(now, ack.next_sequence);
        }
        if window.cwnd < self.low_window {
            return false;
        }
        if self.detect != Detect::Delay && self.train_is_long(now, delay_min, window) {
            self.found = true;
        }
        if self.detect != Detect::AckTrain && self.delay_has_grown(rtt, delay_min) {
            self.found = true;
        }
        self.found
    }

    /// Called at the end of each acknowledgement: keeps the smoothed RTT, from which the kernel computes its pacing rate.
    pub(crate) fn after_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
    }

    fn train_is_long(&mut self, now: u64, delay_min: u64, window: &Window) -> bool {
        if now.saturating_sub(self.last_ack) > self.ack_delta {
            return false;
        }
        self.last_ack = now;
        let threshold = delay_min + self.burst_delay(window);
        // Pacing alone spreads a flight over up to half an RTT.
        now.saturating_sub(self.round_start) > if self.paced { threshold } else { threshold / 2 }
    }

    fn delay_has_grown(&mut self, rtt: u64, delay_min: u64) -> bool {
        self.rtt = self.rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.rtt > delay_min + (delay_min / 8).clamp(DELAY_BOUNDS.0, DELAY_BOUNDS.1)
    }

    /// The time of four of the largest bursts at the kernel's pacing rate, in microseconds, at most `MAX_BURST_DELAY` (Linux
    /// `hystart_ack_delay`, `tcp_update_pacing_rate`).
    fn burst_delay(&self, window: &Window) -> u64 {
        let Some(srtt) = self.srtt.map(|s| s.as_micros()) else { return 0 };
        let percent = if window.cwnd < window.ssthresh / 2 { PACING_PERCENT.0 } else { PACING_PERCENT.1 };
        let window = window.bytes().get().saturating_mul(10_000 * percent);
        let bytes_per_second = window / srtt.max(1);
        match bytes_per_second {
            0 => 0,
            rate => MAX_BURST_DELAY.min(GSO_MAX_SIZE * 4 * 1_000_000 / rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack_with_rtt, ms, start};

    const SEGMENT: u64 = 1000;

    fn window_of(cwnd: u32) -> Window {
        Window::new(&Start { initial_window: cwnd, ..start() })
    }
    fn hystart(detect: Detect, paced: bool) -> HyStart {
        HyStart::new(detect, Span::from_millis(2), 16, &Start { paced, ..start() })
    }
    /// An acknowledgement within the round that ends at `end` segments.
    fn ack_of(now: Time, acknowledged: u64, end: u64) -> Ack {
        let (acknowledged, next_sequence) = (acknowledged * SEGMENT, end * SEGMENT);
        Ack { acknowledged, next_sequence, ..ack_with_rtt(now, 1, Span::from_millis(40)) }
    }
    /// The number of samples of `rtt` after which slow start ends; `None` if 20 in one round are not enough. Times in microseconds.
    fn samples_until_found(rtt: u64, delay_min: u64) -> Option<u64> {
        let mut hystart = hystart(Detect::Delay, false);
        (1..=20).find(|&n| hystart.update(&ack_of(ms(n), n, 100), rtt, delay_min, &window_of(16)))
    }

    #[test]
    fn a_delay_increased_by_more_than_an_eighth_ends_slow_start_after_eight_samples() {
        assert_eq!(samples_until_found(45_000, 40_000), None);
        assert_eq!(samples_until_found(45_001, 40_000), Some(9));
    }

    #[test]
    fn the_delay_threshold_is_at_least_4_ms_and_at_most_16_ms() {
        assert_eq!(samples_until_found(12_000, 8_000), None);
        assert_eq!(samples_until_found(12_001, 8_000), Some(9));
        assert_eq!(samples_until_found(416_000, 400_000), None);
        assert_eq!(samples_until_found(416_001, 400_000), Some(9));
    }

    #[test]
    fn one_low_sample_clears_a_round_and_the_next_round_counts_from_zero() {
        let mut hystart = hystart(Detect::Delay, false);
        let window = window_of(16);
        let mut sample = |n: u64, rtt: u64| hystart.update(&ack_of(ms(n), n, n + 19), rtt, 40_000, &window);
        assert!(!sample(1, 41_000));
        // The round ends when an acknowledgement passes the 20 segments that were sent at its start.
        assert!((2..=20).all(|n| !sample(n, 60_000)));
        assert!((21..=28).all(|n| !sample(n, 60_000)));
        assert!(sample(29, 60_000));
    }

    /// The first millisecond after the round's start at which a train of acknowledgements, one each `step` ms, is too long.
    fn train_is_found_at(paced: bool, step: u64) -> Option<u64> {
        let mut hystart = hystart(Detect::AckTrain, paced);
        hystart.after_ack(&ack_of(ms(0), 0, 0));
        (0..100)
            .step_by(step as usize)
            .find(|&n| hystart.update(&ack_of(ms(100 + n), n + 1, 1000), 40_000, 40_000, &window_of(16)))
    }

    #[test]
    fn a_train_longer_than_half_the_delay_ends_slow_start() {
        // (40 ms and 1 ms for bursts) / 2; all of it if segments are paced.
        assert_eq!(train_is_found_at(false, 1), Some(21));
        assert_eq!(train_is_found_at(true, 1), Some(42));
    }

    #[test]
    fn a_train_is_measured_from_the_start_of_a_round_that_began_with_a_small_window() {
        let mut hystart = hystart(Detect::AckTrain, false);
        hystart.after_ack(&ack_of(ms(0), 0, 0));
        let mut update =
            |at, n, end, cwnd| hystart.update(&ack_of(ms(at), n, end), 40_000, 40_000, &window_of(cwnd));
        assert!(!update(0, 1, 10, 10));
        assert!(!update(100, 11, 30, 14));
        assert!(!update(101, 12, 32, 15));
        assert_eq!((102..200).find(|&at| update(at, 13, 34, 16)), Some(121));
    }

    #[test]
    fn acknowledgements_further_apart_than_the_delta_are_no_train() {
        assert_eq!(train_is_found_at(false, 2), Some(22));
        assert_eq!(train_is_found_at(false, 3), None);
    }

    #[test]
    fn the_train_threshold_includes_the_time_of_four_bursts_up_to_1_ms() {
        let mut hystart = hystart(Detect::AckTrain, false);
        assert_eq!(hystart.burst_delay(&window_of(16)), 0);
        hystart.after_ack(&ack_of(ms(0), 0, 0));
        assert_eq!(hystart.burst_delay(&window_of(16)), 1_000);
        // 40,000 segments of 1000 bytes each 40 ms are 1 GB/s, twice that in slow start: 260,860 bytes in 130 us.
        assert_eq!(hystart.burst_delay(&window_of(40_000)), 130);
    }
}
