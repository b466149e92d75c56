//! DCTCP: the receiver echoes each mark, and once a window the sender reduces its window by half the smoothed share of marked
//! segments; the response to a loss is Reno's. Source: RFC 8257, in the integers of Linux 6.18 `net/ipv4/tcp_dctcp.c`. The
//! transport does the receiver's part, the accurate echo (section 3.2).
//!
//! Without ECN there are no marks and DCTCP behaves as Reno, as in Linux.

use crate::ranges::within;
use crate::{Ack, Delivered, Feedback, Phase, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Random, Time};

/// Parameters of DCTCP, named as the module parameters of `tcp_dctcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of the newest window in the share of marks, as a power of 1/2: g is 1/2^shift_g (0 to 10). RFC 8257,
    /// section 4.2, recommends 1/16.
    #[serde(deserialize_with = "shift")]
    #[schemars(range(min = 0, max = 10))]
    pub dctcp_shift_g: u32,
    /// Initial alpha, the smoothed share of marked segments, in 1/1024 (0 to 1024). With 1024 the first mark halves the window.
    #[serde(deserialize_with = "share")]
    #[schemars(range(min = 0, max = 1024))]
    pub dctcp_alpha_on_init: u32,
    /// Whether alpha falls to zero at once when it is below 2^shift_g, as in Linux since 4.4 (commit c80dbe046129, "allow dctcp
    /// alpha to drop to zero"). It then restarts from zero each window, and stays below 2^shift_g as long as less than a quarter of
    /// the segments is marked (with g = 1/16). If not, it stops falling at 2^shift_g - 1, as in Linux 3.18 to 4.3.
    pub alpha_to_zero: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { dctcp_shift_g: 4, dctcp_alpha_on_init: MAX_ALPHA, alpha_to_zero: true }
    }
}

fn shift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "dctcp_shift_g", 0..=ALPHA_SHIFT)
}
fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "dctcp_alpha_on_init", 0..=MAX_ALPHA)
}

/// Alpha is in units of 2^-10.
const ALPHA_SHIFT: u32 = 10;
/// The alpha of one: all segments are marked (Linux `DCTCP_MAX_ALPHA`).
const MAX_ALPHA: u32 = 1 << ALPHA_SHIFT;
/// The smallest threshold, in segments.
const MIN_THRESHOLD: u32 = 2;

/// A connection under DCTCP.
#[derive(Debug)]
pub(crate) struct Dctcp {
    window: Window,
    shift_g: u32,
    alpha_to_zero: bool,
    /// Smoothed share of marked segments, in 1/1024.
    alpha: u32,
    /// The observation window ends when this offset is acknowledged.
    observed_until: u64,
    /// Segments delivered in the observation window, and the marked ones among them.
    delivered: u64,
    marked: u64,
    phase: Phase,
}

impl Dctcp {
    pub(crate) fn new(config: &Config, start: &Start) -> Dctcp {
        Dctcp {
            window: Window::new(start),
            shift_g: config.dctcp_shift_g.min(ALPHA_SHIFT),
            alpha_to_zero: config.alpha_to_zero,
            alpha: config.dctcp_alpha_on_init.min(MAX_ALPHA),
            observed_until: 0,
            delivered: 0,
            marked: 0,
            phase: Phase::Open,
        }
    }

    /// `alpha = (1 - g) alpha + g F` (RFC 8257, section 3.3; Linux `dctcp_update_alpha`), rounded down to 2^-10.
    fn update_alpha(&mut self) {
        let decay = match self.alpha >> self.shift_g {
            0 if self.alpha_to_zero => self.alpha,
            decay => decay,
        };
        let news = (self.marked << (ALPHA_SHIFT - self.shift_g)) / self.delivered.max(1);
        self.alpha =
            u32::try_from(u64::from(self.alpha - decay) + news).map_or(MAX_ALPHA, |a| a.min(MAX_ALPHA));
    }

    /// Half of a window, at least `MIN_THRESHOLD` (Linux `dctcp_react_to_loss`).
    fn halved(cwnd: u32) -> u32 {
        (cwnd / 2).max(MIN_THRESHOLD)
    }
}

impl crate::windowed::Windowed for Dctcp {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }
    fn feedback(&self) -> Feedback {
        Feedback::Dctcp
    }
    fn wants_delivered(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, delivered: &Delivered) {
        self.delivered += u64::from(delivered.segments);
        self.marked += u64::from(delivered.ce_packets);
        if delivered.acknowledged >= self.observed_until {
            self.update_alpha();
            self.observed_until = delivered.next_sequence;
            (self.delivered, self.marked) = (0, 0);
        }
    }

    /// Growth is Reno's (Linux `tcp_reno_cong_avoid`).
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        // A loss during a reduction for marks halves the window that is left: the data that was in flight.
        if ack.phase == Phase::Recovery && self.phase == Phase::Cwr {
            let in_flight = ack.in_flight_before.get().div_ceil(self.window.mss().get());
            let left = u32::try_from(in_flight).map_or(self.window.cwnd, |n| n.min(self.window.cwnd));
            self.window.ssthresh = Dctcp::halved(left);
            self.window.cwnd = self.window.ssthresh;
        }
        self.phase = ack.phase;
        if !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let mut delivered = ack.delivered_segments;
        if self.window.in_slow_start() {
            delivered = self.window.slow_start(delivered);
        }
        if delivered > 0 {
            self.window.additive_increase(self.window.cwnd, delivered);
        }
    }

    /// Marks reduce the window by `alpha / 2` (RFC 8257, section 3.3; Linux `dctcp_ssthresh`), a loss by half (section 3.5).
    fn ssthresh(&mut self, signal: Signal, _: Time) -> u32 {
        let cwnd = self.window.cwnd;
        match signal {
            Signal::Loss | Signal::Own | Signal::Refused => Dctcp::halved(cwnd),
            Signal::Ecn => {
                let cut = (u64::from(cwnd) * u64::from(self.alpha)) >> (ALPHA_SHIFT + 1);
                (cwnd - cut as u32).max(MIN_THRESHOLD)
            }
        }
    }
    fn on_timeout(&mut self, _: &Timeout) {
        self.phase = Phase::Loss;
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("alpha", f64::from(self.alpha) / f64::from(MAX_ALPHA));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, Path, ack, delivered, loss, mark, ms, start, state_of, timeout};
    use crate::{Codepoint, Controller};
    use weir_base::{Bytes, Rate, Span};

    fn dctcp(cwnd: u32, alpha: u32) -> Dctcp {
        let config = Config { dctcp_alpha_on_init: alpha, ..Config::default() };
        let mut dctcp = Dctcp::new(&config, &start());
        (dctcp.window.cwnd, dctcp.window.ssthresh) = (cwnd, cwnd);
        dctcp
    }

    /// Alpha after a window of 100 delivered segments, `marked` of them with marks.
    fn window_with(dctcp: &mut Dctcp, marked: u32) -> u32 {
        dctcp.observed_until = 100;
        for (segments, ce_packets, acknowledged) in [(marked, marked, 50), (100 - marked, 0, 100)] {
            dctcp.on_delivered(&Delivered { ce_packets, acknowledged, ..delivered(ms(0), segments) });
        }
        dctcp.alpha
    }

    #[test]
    fn alpha_is_the_smoothed_share_of_marks_in_the_integers_of_the_kernel() {
        // 1024 - 64 + (50 << 6) / 100 = 992, then 992 - 62 + 0 = 930.
        let mut dctcp = dctcp(100, 1024);
        assert_eq!(window_with(&mut dctcp, 50), 992);
        assert_eq!(window_with(&mut dctcp, 0), 930);
        // All marked: 930 - 58 + 64.
        assert_eq!(window_with(&mut dctcp, 100), 936);
    }

    #[test]
    fn an_alpha_below_the_resolution_of_its_gain_falls_to_zero() {
        let mut dctcp = dctcp(100, 15);
        assert_eq!(window_with(&mut dctcp, 0), 0);
        // A mark in a hundred adds 0.64 of 1/1024, rounded down to zero as in Linux.
        assert_eq!(window_with(&mut dctcp, 1), 0);
        assert_eq!(window_with(&mut dctcp, 2), 1);
    }

    #[test]
    fn alpha_stays_lower_at_few_marks_than_before_linux_4_4() {
        // 8 % marks add (8 << 6) / 100 = 5 a window. Since 4.4 the 5 falls to zero before the next window; before, 15 and 5 make
        // 20, and alpha grows to 80, of which a sixteenth is 5.
        for (alpha_to_zero, expected) in [(true, 5), (false, 80)] {
            let mut dctcp = dctcp(100, 15);
            dctcp.alpha_to_zero = alpha_to_zero;
            assert_eq!((0..100).map(|_| window_with(&mut dctcp, 8)).last(), Some(expected));
        }
        let mut old = dctcp(100, 20);
        old.alpha_to_zero = false;
        assert_eq!((0..100).map(|_| window_with(&mut old, 0)).last(), Some(15));
    }

    #[test]
    fn marks_reduce_the_window_by_half_of_alpha_and_a_loss_by_half() {
        for (alpha, expected) in [(1024, 50), (512, 75), (64, 97), (0, 100)] {
            let mut dctcp = dctcp(100, alpha);
            dctcp.on_enter_recovery(&mark(ms(0)));
            assert_eq!((dctcp.window.cwnd, dctcp.window.ssthresh), (expected, expected), "alpha {alpha}");
        }
        let mut lossy = dctcp(100, 64);
        lossy.on_enter_recovery(&loss(ms(0)));
        assert_eq!(lossy.window.cwnd, 50);
        let mut late = dctcp(100, 64);
        late.on_timeout(&timeout(ms(0)));
        assert_eq!((late.window.cwnd, late.window.ssthresh), (1, 50));
        assert_eq!(crate::windowed::Windowed::ssthresh(&mut dctcp(2, 1024), Signal::Ecn, ms(0)), 2);
    }

    #[test]
    fn a_loss_during_a_reduction_for_marks_halves_the_flight() {
        let mut dctcp = dctcp(100, 512);
        let mut random = Random::stream(1, "dctcp");
        dctcp.on_enter_recovery(&mark(ms(0)));
        let reduction = Ack { phase: Phase::Cwr, may_grow: false, ..ack(ms(1), 1) };
        dctcp.on_ack(&reduction, &mut random);
        assert_eq!(dctcp.window.cwnd, 75);
        let in_flight_before = Bytes::new(60 * MSS.get());
        dctcp.on_ack(&Ack { phase: Phase::Recovery, in_flight_before, ..reduction }, &mut random);
        assert_eq!((dctcp.window.cwnd, dctcp.window.ssthresh), (30, 30));
    }

    #[test]
    fn an_undo_reverts_the_reduction_of_a_loss_but_not_that_of_marks() {
        let mut lossy = dctcp(100, 512);
        lossy.on_enter_recovery(&loss(ms(0)));
        lossy.on_undo(ms(1));
        assert_eq!(lossy.window.cwnd, 100);
        let mut marked = dctcp(100, 512);
        marked.on_enter_recovery(&mark(ms(0)));
        marked.on_undo(ms(1));
        assert_eq!(marked.window.cwnd, 75);
    }

    #[test]
    fn dctcp_uses_its_own_feedback_and_sends_ect_0() {
        let dctcp = dctcp(10, 1024);
        assert_eq!((dctcp.feedback(), dctcp.codepoint()), (Feedback::Dctcp, Codepoint::Ect0));
    }

    #[test]
    fn a_single_dctcp_flow_behind_a_step_keeps_the_queue_near_the_threshold() {
        // 100 Mbit/s and 8 ms hold 100 segments. K must be above a seventh of that (RFC 8257, section 4.1, by the analysis
        // of 2010): with 30 the queue never empties. The window oscillates between W* + 1 = 100 + 30 + 1 and
        // (1 - alpha / 2) of it, where alpha = sqrt(2 / W*) = 0.124: a reduction by 8 segments.
        let link = Link {
            rate: Rate::from_mbit_per_sec(100),
            rtt: Span::from_millis(8),
            buffer: 1000,
            mark: Some(30),
        };
        let mut path = Path::new("dctcp", link);
        path.trace(Span::from_secs(3), 1);
        let before = path.delivered;
        let windows = path.trace(Span::from_millis(5), 400);
        let (least, most) = (windows.iter().min().copied().unwrap(), windows.iter().max().copied().unwrap());
        assert!((118..=126).contains(&least), "{least}");
        assert!((131..=135).contains(&most), "{most}");
        // A full link carries 25,000 segments of 1000 bytes in 2 s.
        assert!(path.delivered - before >= 24_990, "{}", path.delivered - before);
        let alpha = state_of(path.controller.as_ref(), "alpha").unwrap();
        assert!((0.08..0.20).contains(&alpha), "{alpha}");
        assert_eq!(path.drops, 0);
    }
}
