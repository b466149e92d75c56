//! Apple's LEDBAT: the window grows as Reno's while the queuing delay is at most LEDBAT's target, and is cut by an eighth above it.
//! Source: K. Ong, "Evaluation and Optimisation of Less-than-Best-Effort TCP Congestion Control Mechanisms" (Murdoch University,
//! 2020), section 3.6.3 and appendix A.4, which put the rule of XNU's `tcp_ledbat` (the cut, eight segments of allowed increase)
//! into the Linux module of LEDBAT: milliseconds, segments, the one-way delay, and Reno's response to losses.

use crate::ledbat::{bound, slow_start};
use crate::ledbat_delay::QueuingDelay;
use crate::ranges::within;
use crate::{Ack, Signal, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Random, Span, Time};

/// How often the window may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// At each acknowledgement while the delay is above the target.
    Ack,
    /// Once a round trip.
    Rtt,
}

/// Parameters of Apple's LEDBAT, named as those of LEDBAT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queuing delay above which the window is cut.
    pub target: Span,
    /// Size of a cut: the window divided by 2 to this power (1 to 31).
    #[serde(deserialize_with = "decrease_shift")]
    #[schemars(range(min = 1, max = 31))]
    pub decrease_shift: u32,
    /// How often the window may be cut. The module that the thesis measured has no limit: a standing queue takes the window to seven
    /// segments, of which an eighth is zero, within one round trip. XNU cuts once a window.
    pub md_gate: Gate,
    /// Segments by which the window may exceed the flight size.
    pub allowed_increase: u32,
    /// The smallest window, in segments; 0 counts as 1.
    pub min_cwnd: u32,
    /// Number of minutes whose smallest delay is the base delay; 0 counts as 1.
    pub base_history: u32,
    /// Number of newest samples whose smallest is the current delay; 0 counts as 1.
    pub current_filter: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            target: Span::from_millis(100),
            decrease_shift: 3,
            md_gate: Gate::Ack,
            allowed_increase: 8,
            min_cwnd: 2,
            base_history: 2,
            current_filter: 2,
        }
    }
}

fn decrease_shift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "decrease_shift", 1..=31)
}

/// A connection under Apple's LEDBAT.
#[derive(Debug)]
pub(crate) struct AppleLedbat {
    config: Config,
    window: Window,
    delay: QueuingDelay,
    /// With [`Gate::Rtt`], the next cut waits until an acknowledgement passes this offset.
    cut_until: u64,
}

impl AppleLedbat {
    pub(crate) fn new(config: &Config, start: &Start) -> AppleLedbat {
        let delay = QueuingDelay::new(config.base_history, config.current_filter);
        AppleLedbat { config: config.clone(), window: Window::new(start), delay, cut_until: 0 }
    }

    fn cut(&mut self, ack: &Ack) {
        if self.config.md_gate == Gate::Rtt {
            if ack.acknowledged <= self.cut_until {
                return;
            }
            self.cut_until = ack.next_sequence;
        }
        self.window.cwnd -= self.window.cwnd >> self.config.decrease_shift;
    }
}

impl crate::windowed::Windowed for AppleLedbat {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if !ack.may_grow {
            return;
        }
        self.delay.update(ack);
        if !ack.cwnd_limited {
            return;
        }
        let delivered = slow_start(&mut self.window, ack);
        if delivered == 0 {
            return;
        }
        if i128::from(self.delay.millis()) <= i128::from(self.config.target.as_millis()) {
            self.window.additive_increase(self.window.cwnd, delivered);
        } else {
            self.cut(ack);
        }
        bound(&mut self.window, ack, self.config.allowed_increase, self.config.min_cwnd);
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("queuing_delay_ms", self.delay.millis() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, Path, ack, loss, ms, stamped, start};
    use crate::{Controller, NO_THRESHOLD};
    use weir_base::{Bytes, Rate};

    /// A connection after slow start, with a queuing delay measured.
    fn ledbat(md_gate: Gate, cwnd: u32, delay: u32) -> (AppleLedbat, Random) {
        let mut ledbat = AppleLedbat::new(&Config { md_gate, ..Config::default() }, &start());
        (ledbat.window.cwnd, ledbat.window.ssthresh) = (cwnd, cwnd - 1);
        let mut random = Random::stream(1, "ledbat");
        // The sample that defines delay zero, and the two samples of which the smaller counts.
        for delay in [0, delay, delay] {
            ledbat.on_ack(&Ack { cwnd_limited: false, ..stamped(ack(ms(0), 1), delay) }, &mut random);
        }
        (ledbat, random)
    }
    fn acknowledge(ledbat: &mut AppleLedbat, random: &mut Random, acknowledged: u64, delay: u32) {
        let in_flight = Bytes::new(1000 * MSS.get());
        let ack = Ack { in_flight, acknowledged, next_sequence: 1_000, ..ack(ms(0), 1) };
        ledbat.on_ack(&stamped(ack, delay), random);
    }

    #[test]
    fn the_window_grows_by_one_segment_per_window_up_to_the_target() {
        for delay in [0, 100] {
            let (mut ledbat, mut random) = ledbat(Gate::Ack, 20, delay);
            for _ in 0..19 {
                acknowledge(&mut ledbat, &mut random, 0, delay);
            }
            assert_eq!(ledbat.window.cwnd, 20, "{delay} ms");
            acknowledge(&mut ledbat, &mut random, 0, delay);
            assert_eq!(ledbat.window.cwnd, 21, "{delay} ms");
        }
    }

    #[test]
    fn each_acknowledgement_above_the_target_takes_an_eighth_down_to_seven_segments() {
        let (mut ledbat, mut random) = ledbat(Gate::Ack, 64, 101);
        let windows = (0..20).map(|_| {
            acknowledge(&mut ledbat, &mut random, 0, 101);
            ledbat.window.cwnd
        });
        let windows: Vec<u32> = windows.collect();
        // 64 - 8, 56 - 7, 49 - 6, 43 - 5, 38 - 4, 34 - 4, ...; an eighth of seven is zero.
        assert_eq!(windows[..6], [56, 49, 43, 38, 34, 30]);
        assert_eq!(windows[19], 7);
        assert_eq!(ledbat.window.ssthresh, 6);
    }

    #[test]
    fn with_the_gate_the_window_falls_by_an_eighth_once_a_round_trip() {
        let (mut ledbat, mut random) = ledbat(Gate::Rtt, 64, 101);
        for (acknowledged, expected) in [(1, 56), (2, 56), (1_000, 56), (1_001, 49)] {
            acknowledge(&mut ledbat, &mut random, acknowledged, 101);
            assert_eq!(ledbat.window.cwnd, expected, "at {acknowledged}");
        }
    }

    #[test]
    fn the_window_stays_within_eight_segments_of_the_flight() {
        let (mut ledbat, mut random) = ledbat(Gate::Ack, 20, 0);
        let in_flight = Bytes::new(5 * MSS.get());
        ledbat.on_ack(&stamped(Ack { in_flight, ..ack(ms(0), 1) }, 0), &mut random);
        assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (14, 13));
    }

    #[test]
    fn the_first_slow_start_ignores_delay_and_a_loss_halves_the_window() {
        let mut ledbat = AppleLedbat::new(&Config::default(), &start());
        let mut random = Random::stream(1, "ledbat");
        for delay in [0, 500, 500, 500, 500, 500] {
            acknowledge(&mut ledbat, &mut random, 0, delay);
        }
        assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (16, NO_THRESHOLD));
        ledbat.on_enter_recovery(&loss(ms(0)));
        assert_eq!(ledbat.window.cwnd, 8);
    }

    #[test]
    fn a_single_flow_oscillates_between_the_target_and_a_lower_bound_set_by_the_gate() {
        // 8 Mbit/s and 50 ms hold 50 segments, the target 100 more. With a gate, a few cuts reduce the window by up to a third of
        // that sum; without a gate it falls to seven segments.
        let link =
            Link { rate: Rate::from_mbit_per_sec(8), rtt: Span::from_millis(50), buffer: 400, mark: None };
        for (md_gate, lowest) in [(Gate::Ack, 7..=7), (Gate::Rtt, 100..=140)] {
            let config = crate::Config::AppleLedbat(Config { md_gate, ..Config::default() });
            let mut path = Path::of(&config, link);
            path.trace(Span::from_secs(60), 1);
            let windows = path.trace(Span::from_millis(20), 3000);
            let (least, most) = (windows.iter().min().unwrap(), windows.iter().max().unwrap());
            assert!(lowest.contains(least), "{md_gate:?}: {least}");
            assert!((145..=156).contains(most), "{md_gate:?}: {most}");
        }
    }
}
