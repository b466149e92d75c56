//! LEDBAT: steers the one-way queuing delay to a target, at a speed proportional to the distance from it. Source: RFC 6817, in the
//! integers of the Linux module of its authors (D. Kuehlewind's `tcp_ledbat`): milliseconds, segments, and Reno's response to
//! losses. `ALLOWED_INCREASE` limits how far the window exceeds the flight size; it is not added to the window.

use crate::ledbat_delay::QueuingDelay;
use crate::{Ack, Signal, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Span, Time};

/// Parameters of LEDBAT, named as in RFC 6817.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Target queuing delay (RFC 6817: at most 100 ms).
    pub target: Span,
    /// Segments added each round trip when there is no queue (RFC 6817: at most 1).
    pub gain: u32,
    /// Segments by which the window may exceed the flight size.
    pub allowed_increase: u32,
    /// The smallest window, in segments; 0 counts as 1.
    pub min_cwnd: u32,
    /// Number of minutes whose smallest delay is the base delay; 0 counts as 1 (RFC 6817 advises 10).
    pub base_history: u32,
    /// Number of newest samples whose smallest is the current delay; 0 counts as 1.
    pub current_filter: u32,
    /// Whether the connection begins with slow start.
    pub slow_start: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            target: Span::from_millis(100),
            gain: 1,
            allowed_increase: 1,
            min_cwnd: 2,
            base_history: 2,
            current_filter: 2,
            slow_start: true,
        }
    }
}

/// A connection under LEDBAT.
#[derive(Debug)]
pub(crate) struct Ledbat {
    config: Config,
    window: Window,
    delay: QueuingDelay,
    /// Change of the window that is not yet a whole segment, in segments times milliseconds; negative for a decrease.
    credit: i64,
}

/// Slow start while the window is at most its threshold; returns the delivered segments that are left for congestion avoidance.
pub(crate) fn slow_start(window: &mut Window, ack: &Ack) -> u32 {
    if window.cwnd <= window.ssthresh {
        window.slow_start(ack.delivered_segments)
    } else {
        ack.delivered_segments
    }
}

/// Limits the window to `allowed_increase` segments more than were in flight before the acknowledgement, and to at least
/// `min_cwnd`.
pub(crate) fn bound(window: &mut Window, ack: &Ack, allowed_increase: u32, min_cwnd: u32) {
    let in_flight = ack.in_flight.get().div_ceil(window.mss().get());
    let most = in_flight + u64::from(ack.delivered_segments) + u64::from(allowed_increase);
    window.cwnd = window.cwnd.min(u32::try_from(most).unwrap_or(u32::MAX)).max(min_cwnd.max(1));
    // A window that the delay has reduced must not grow by slow start again.
    if window.cwnd <= window.ssthresh {
        window.ssthresh = window.cwnd - 1;
    }
}

impl Ledbat {
    pub(crate) fn new(config: &Config, start: &Start) -> Ledbat {
        let mut window = Window::new(start);
        if !config.slow_start {
            window.ssthresh = window.cwnd - 1;
        }
        let delay = QueuingDelay::new(config.base_history, config.current_filter);
        Ledbat { config: config.clone(), window, delay, credit: 0 }
    }

    /// Changes the window by `gain * (target - delay) / target` segments for each delivered window.
    fn steer(&mut self, ack: &Ack, delivered: u32) {
        let target = i64::try_from(self.config.target.as_millis()).unwrap_or(i64::MAX).max(1);
        let off = target.saturating_sub(self.delay.millis());
        let step = i64::from(self.config.gain).saturating_mul(off).saturating_mul(i64::from(delivered));
        self.credit = self.credit.saturating_add(step);
        let window = &mut self.window;
        let mut cwnd = i64::from(window.cwnd);
        let price = cwnd.saturating_mul(target);
        if self.credit.unsigned_abs() >= price.unsigned_abs() {
            let segments = self.credit / price;
            self.credit -= segments * price;
            cwnd += segments;
        }
        window.cwnd = u32::try_from(cwnd.max(0)).unwrap_or(u32::MAX);
        bound(window, ack, self.config.allowed_increase, self.config.min_cwnd);
    }
}

impl crate::windowed::Windowed for Ledbat {
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
        // In recovery, acknowledgements echo the timestamp from before the hole; the module ignores them.
        if !ack.may_grow {
            return;
        }
        self.delay.update(ack);
        if !ack.cwnd_limited {
            return;
        }
        let delivered = slow_start(&mut self.window, ack);
        if delivered > 0 {
            self.steer(ack, delivered);
        }
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

    fn ledbat(cwnd: u32) -> (Ledbat, Random) {
        let mut ledbat = Ledbat::new(&Config::default(), &start());
        (ledbat.window.cwnd, ledbat.window.ssthresh) = (cwnd, cwnd - 1);
        let mut random = Random::stream(1, "ledbat");
        // The sample that defines delay zero.
        let first = Ack { cwnd_limited: false, ..stamped(ack(ms(0), 1), 0) };
        ledbat.on_ack(&first, &mut random);
        (ledbat, random)
    }
    /// Gives `count` acknowledgements of a segment at a queuing delay in milliseconds, with the window in flight.
    fn acknowledge(ledbat: &mut Ledbat, random: &mut Random, count: u32, delay: u32) {
        let in_flight = Bytes::new(1000 * MSS.get());
        for _ in 0..count {
            ledbat.on_ack(&stamped(Ack { in_flight, ..ack(ms(0), 1) }, delay), random);
        }
    }

    #[test]
    fn growth_is_one_segment_per_window_without_a_queue_and_half_of_one_at_half_the_target() {
        for (delay, acks) in [(0, 20), (50, 40), (75, 80)] {
            let (mut ledbat, mut random) = ledbat(20);
            // The current delay is the smaller of two samples, so two are needed to replace the one at the start.
            ledbat.delay.update(&stamped(ack(ms(0), 1), delay));
            ledbat.delay.update(&stamped(ack(ms(0), 1), delay));
            acknowledge(&mut ledbat, &mut random, acks - 1, delay);
            assert_eq!(ledbat.window.cwnd, 20, "{delay} ms");
            acknowledge(&mut ledbat, &mut random, 1, delay);
            assert_eq!(ledbat.window.cwnd, 21, "{delay} ms");
        }
    }

    #[test]
    fn the_window_shrinks_in_proportion_to_the_delay_above_the_target() {
        // At 200 ms the excess equals the target: one segment less for each 20, except for the first sample.
        let (mut ledbat, mut random) = ledbat(20);
        ledbat.delay.update(&stamped(ack(ms(0), 1), 200));
        acknowledge(&mut ledbat, &mut random, 20, 200);
        assert_eq!(ledbat.window.cwnd, 19);
        // Ten times the target: ten segments less for each window, down to two.
        acknowledge(&mut ledbat, &mut random, 60, 1100);
        assert_eq!(ledbat.window.cwnd, 2);
    }

    #[test]
    fn the_window_stays_within_one_segment_of_the_flight() {
        let (mut ledbat, mut random) = ledbat(20);
        let in_flight = Bytes::new(9 * MSS.get());
        ledbat.on_ack(&stamped(Ack { in_flight, ..ack(ms(0), 1) }, 0), &mut random);
        assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (11, 10));
    }

    #[test]
    fn the_first_slow_start_ignores_delay_and_a_loss_halves_the_window() {
        let mut ledbat = Ledbat::new(&Config::default(), &start());
        let mut random = Random::stream(1, "ledbat");
        acknowledge(&mut ledbat, &mut random, 10, 5_000);
        assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (20, NO_THRESHOLD));
        ledbat.on_enter_recovery(&loss(ms(0)));
        assert_eq!(ledbat.window.cwnd, 10);
    }

    #[test]
    fn recovery_ignores_delay_samples_and_keeps_the_growth_earned_before() {
        let (mut ledbat, mut random) = ledbat(20);
        acknowledge(&mut ledbat, &mut random, 19, 0);
        ledbat.on_enter_recovery(&loss(ms(0)));
        for _ in 0..2 {
            ledbat.on_ack(&stamped(Ack { may_grow: false, ..ack(ms(0), 1) }, 500), &mut random);
        }
        ledbat.on_exit_recovery(ms(0));
        assert_eq!((ledbat.window.cwnd, ledbat.delay.millis()), (10, 0));
        // With one more, twenty are acknowledged: one segment for the old window, two for the new one.
        acknowledge(&mut ledbat, &mut random, 1, 0);
        assert_eq!(ledbat.window.cwnd, 12);
    }

    #[test]
    fn a_single_ledbat_flow_holds_its_target_behind_a_deep_buffer() {
        // 8 Mbit/s and 50 ms hold 50 segments, a queue of 100 ms holds 100, and one is being sent.
        let link =
            Link { rate: Rate::from_mbit_per_sec(8), rtt: Span::from_millis(50), buffer: 400, mark: None };
        let config = Config { slow_start: false, ..Config::default() };
        let mut path = Path::of(&crate::Config::Ledbat(config), link);
        path.trace(Span::from_secs(40), 1);
        for window in path.trace(Span::from_secs(1), 10) {
            assert!((147..=153).contains(&window), "{window}");
        }
    }
}
