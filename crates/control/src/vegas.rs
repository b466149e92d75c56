//! Vegas: keeps a few segments in the queue, whose length it computes from the window, the RTT and the smallest RTT. Source: Brakmo
//! and Peterson, "TCP Vegas" (IEEE JSAC 13(8), 1995), in the integers of Linux 6.18 `net/ipv4/tcp_vegas.c`. As there, slow start
//! grows each round, not every second one, and the detection of losses and the response to them are Reno's.

use crate::rtt_rounds::RttRounds;
use crate::{Ack, Congestion, Restart, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Time};

/// Parameters of Vegas, named as the module parameters of `tcp_vegas`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The window grows while fewer segments than this are in the queue.
    pub alpha: u32,
    /// The window shrinks while more segments than this are in the queue.
    pub beta: u32,
    /// Slow start ends when more segments than this are in the queue.
    pub gamma: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { alpha: 2, beta: 4, gamma: 1 }
    }
}

/// The smallest window, in segments.
const MIN_WINDOW: u32 = 2;

/// A connection under Vegas.
#[derive(Debug)]
pub(crate) struct Vegas {
    config: Config,
    window: Window,
    rounds: RttRounds,
    /// Segments in the queue at the last decision.
    queued: u32,
}

impl Vegas {
    pub(crate) fn new(config: &Config, start: &Start) -> Vegas {
        Vegas { config: config.clone(), window: Window::new(start), rounds: RttRounds::new(), queued: 0 }
    }

    /// The decision of a round (Linux `tcp_vegas_cong_avoid`).
    fn judge(&mut self, ack: &Ack) {
        let window = &mut self.window;
        let (target, queued) = self.rounds.target_and_queue(window.cwnd);
        self.queued = queued;
        if window.in_slow_start() {
            if queued > self.config.gamma {
                window.cwnd = window.cwnd.min(target.saturating_add(1));
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else {
                window.slow_start(ack.delivered_segments);
            }
        } else if queued > self.config.beta {
            window.cwnd = window.cwnd.saturating_sub(1);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if queued < self.config.alpha {
            window.cwnd = window.cwnd.saturating_add(1);
        }
        window.cwnd = window.cwnd.max(MIN_WINDOW);
        window.ssthresh = window.remembered_threshold();
    }
}

impl crate::windowed::Windowed for Vegas {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn keeps_queues_short(&self) -> bool {
        true
    }
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        self.rounds.sample(ack);
        let judging = self.rounds.judging(ack);
        if !ack.may_grow {
            return;
        }
        if !judging {
            self.window.reno(ack);
        } else if self.rounds.ends(ack) {
            if self.rounds.few() {
                self.window.reno(ack);
            } else {
                self.judge(ack);
            }
            self.rounds.begin(ack);
        } else if self.window.in_slow_start() {
            self.window.slow_start(ack.delivered_segments);
        }
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }
    fn on_enter_recovery(&mut self, _: &Congestion) {
        self.rounds.disturbed();
    }
    fn on_timeout(&mut self, _: &Timeout) {
        self.rounds.disturbed();
    }
    fn on_restart(&mut self, restart: &Restart) {
        self.rounds.restart(restart);
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rtt_base_ms", self.rounds.base_millis());
        report("queued_segments", f64::from(self.queued));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, Path, ack, ack_with_rtt, loss, ms};
    use crate::{Controller, NO_THRESHOLD, Phase};
    use weir_base::{Rate, Span};

    fn vegas(cwnd: u32, ssthresh: u32) -> (Vegas, Random) {
        let mut vegas = Vegas::new(&Config::default(), &crate::testing::start());
        (vegas.window.cwnd, vegas.window.ssthresh) = (cwnd, ssthresh);
        // An RTT of 99,999 microseconds; the base is one more.
        vegas.rounds.base = 100_000;
        (vegas, Random::stream(1, "vegas"))
    }
    /// A round of three samples, the last of which ends it.
    fn round(vegas: &mut Vegas, random: &mut Random, rtt: u64) {
        let rtt = Span::from_micros(rtt - 1);
        let end = vegas.rounds.end_for_test();
        for acknowledged in [end, end, end + 1] {
            let ack = Ack { acknowledged, next_sequence: end + 100, ..ack_with_rtt(ms(0), 1, rtt) };
            vegas.on_ack(&ack, random);
        }
    }

    #[test]
    fn the_window_holds_two_to_four_segments_in_the_queue() {
        // With a window of 50 and a base of 100 ms, 102 ms mean one segment in the queue, 104 two, 108 four, 110 five.
        for (rtt, expected) in [(102_000, 51), (104_000, 50), (108_000, 50), (110_000, 49)] {
            let (mut vegas, mut random) = vegas(50, 10);
            round(&mut vegas, &mut random, rtt);
            assert_eq!(vegas.window.cwnd, expected, "{rtt} us");
        }
    }

    #[test]
    fn slow_start_ends_with_more_than_one_queued_segment_at_the_window_of_the_measured_rate() {
        // Two samples of slow start grow the window from 50 to 52; 52 * 4 / 100 = 2 segments wait; 52 * 100 / 104 = 50, plus one.
        let (mut vegas, mut random) = vegas(50, NO_THRESHOLD);
        round(&mut vegas, &mut random, 104_000);
        assert_eq!((vegas.window.cwnd, vegas.window.ssthresh), (51, 51));
    }

    #[test]
    fn two_samples_are_too_few_and_the_window_grows_as_in_reno() {
        let (mut vegas, mut random) = vegas(50, 10);
        let rtt = Span::from_millis(200);
        for acknowledged in [0, 1] {
            vegas.on_ack(&Ack { acknowledged, ..ack_with_rtt(ms(0), 50, rtt) }, &mut random);
        }
        // The first acknowledgement ends no round; the second covers a window.
        assert_eq!(vegas.window.cwnd, 51);
    }

    #[test]
    fn the_window_never_falls_below_two_segments() {
        let (mut vegas, mut random) = vegas(2, 2);
        round(&mut vegas, &mut random, 1_000_000);
        assert_eq!(vegas.window.cwnd, 2);
    }

    #[test]
    fn a_round_after_recovery_starts_without_the_old_samples() {
        let (mut vegas, mut random) = vegas(50, 10);
        vegas.on_enter_recovery(&loss(ms(0)));
        let held = Ack { phase: Phase::Recovery, may_grow: false, ..ack(ms(0), 1) };
        for _ in 0..5 {
            vegas.on_ack(
                &Ack { rtt: ack_with_rtt(ms(0), 1, Span::from_millis(300)).rtt, ..held.clone() },
                &mut random,
            );
        }
        assert_eq!(vegas.rounds.count, 5);
        vegas.on_exit_recovery(ms(1));
        vegas.on_ack(&Ack { next_sequence: 1000, ..ack(ms(1), 1) }, &mut random);
        assert_eq!((vegas.rounds.count, vegas.window.cwnd), (0, 25));
    }

    #[test]
    fn a_restart_resets_the_base_rtt_and_its_shortened_round_grows_as_in_reno() {
        let (mut vegas, mut random) = vegas(1, 1);
        round(&mut vegas, &mut random, 100_000);
        let idle = Span::from_secs(1);
        vegas.on_restart(&Restart::Transmit { now: ms(0), idle, app_limited: false });
        let end = vegas.rounds.end_for_test();
        let before = vegas.window.cwnd;
        let first =
            Ack { acknowledged: end + 1, next_sequence: end + 9, ..ack_with_rtt(ms(0), before, idle) };
        vegas.on_ack(&first, &mut random);
        assert_eq!((vegas.window.cwnd, vegas.rounds.base), (before + 1, 1_000_001));
    }

    #[test]
    fn a_single_vegas_flow_fills_the_link_with_two_to_four_queued_segments() {
        // 20 Mbit/s and 40 ms hold 100 segments of 1000 bytes.
        let link =
            Link { rate: Rate::from_mbit_per_sec(20), rtt: Span::from_millis(40), buffer: 100, mark: None };
        let mut path = Path::new("vegas", link);
        // Slow start overshoots: a round's smallest RTT is that of its first segments, which found no queue yet.
        path.trace(Span::from_secs(10), 1);
        let drops = path.drops;
        for window in path.trace(Span::from_millis(500), 10) {
            assert!((102..=106).contains(&window), "{window}");
        }
        assert_eq!(path.drops, drops);
    }
}
