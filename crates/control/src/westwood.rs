//! Westwood+: Reno that reduces the window to the estimated BDP, not to half. After a loss the window is the filtered rate times
//! the smallest RTT. Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP
//! congestion control" (ACM CCR 34(2), 2004), in the integers of Linux 6.18 `net/ipv4/tcp_westwood.c`: in recovery the window is
//! halved as Reno's, and at its end it becomes the estimated BDP.

use crate::ranges::within;
use crate::westwood_rate::PathRate;
use crate::{Ack, Delivered, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Bytes, Random, Time};

/// Parameters of Westwood+; `tcp_westwood` has no parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Ticks per second of the kernel's clock, the unit of rates and RTTs (Linux `CONFIG_HZ`, 100 to 1000).
    #[serde(deserialize_with = "hz")]
    #[schemars(range(min = 100, max = 1000))]
    pub hz: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { hz: crate::jiffies::HZ as u32 }
    }
}

/// Ticks per second with which a kernel can be built; 100 to 1000.
pub(crate) fn hz<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "hz", 100..=1000)
}

/// A connection under Westwood+.
#[derive(Debug)]
pub(crate) struct Westwood {
    window: Window,
    path: PathRate,
}

impl Westwood {
    pub(crate) fn new(config: &Config, start: &Start) -> Westwood {
        Westwood { window: Window::new(start), path: PathRate::new(config.hz, start) }
    }
}

impl crate::windowed::Windowed for Westwood {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }
    fn wants_delivered(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, delivered: &Delivered) {
        self.path.update(delivered);
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.path.set_mss(mss);
    }
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if ack.may_grow {
            self.window.reno(ack);
        }
    }
    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }
    fn on_exit_recovery(&mut self, _: Time) {
        self.window.ssthresh = self.path.segments();
        self.window.cwnd = self.window.ssthresh;
    }
    /// A timeout sets the threshold to the estimated BDP, and resets the smallest RTT.
    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.reduce {
            self.window.ssthresh = self.path.segments();
            self.path.forget_min();
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.path.describe(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, Path, ack, delivered, loss, ms, start, state_of, timeout};
    use crate::{Controller, RttSample};
    use weir_base::{Rate, Span};

    /// A connection with a window of 100 on a path that carried 20 segments each 40 ms, 500 bytes per tick of 1 ms.
    fn westwood() -> Westwood {
        let mut westwood = Westwood::new(&Config { hz: 1000 }, &start());
        westwood.window.cwnd = 100;
        let rtt = Some(RttSample { rtt: Span::from_millis(40), delayed: false, queued_back: Span::ZERO });
        for (now, acknowledged) in [(1, 0), (50, 24_500), (51, 25_500)] {
            westwood.on_delivered(&Delivered { rtt, acknowledged, predicted: true, ..delivered(ms(now), 1) });
        }
        westwood
    }

    #[test]
    fn the_window_is_halved_during_recovery_and_then_set_to_the_estimated_bdp() {
        // 24,500 bytes in 51 ticks are 480 per tick, and 19 segments in 40 ticks.
        let mut westwood = westwood();
        westwood.on_enter_recovery(&loss(ms(60)));
        assert_eq!((westwood.window.cwnd, westwood.window.ssthresh), (50, 50));
        westwood.on_exit_recovery(ms(100));
        assert_eq!((westwood.window.cwnd, westwood.window.ssthresh), (19, 19));
    }

    #[test]
    fn a_timeout_sets_the_threshold_to_the_estimated_bdp_and_resets_the_smallest_rtt() {
        let mut westwood = westwood();
        westwood.on_timeout(&timeout(ms(100)));
        assert_eq!((westwood.window.cwnd, westwood.window.ssthresh), (1, 19));
        let rtt = Some(RttSample { rtt: Span::from_millis(80), delayed: false, queued_back: Span::ZERO });
        westwood.on_delivered(&Delivered { rtt, acknowledged: 30_000, ..delivered(ms(101), 1) });
        assert_eq!(state_of(&westwood, "rtt_min_ms"), Some(80.0));
    }

    #[test]
    fn a_second_timeout_of_the_same_flight_keeps_the_threshold() {
        let mut westwood = westwood();
        westwood.window.ssthresh = 30;
        westwood.on_timeout(&Timeout { reduce: false, ..timeout(ms(100)) });
        assert_eq!(westwood.window.ssthresh, 30);
    }

    #[test]
    fn a_loss_before_the_first_rate_sample_leaves_two_segments() {
        let mut westwood = Westwood::new(&Config::default(), &start());
        westwood.on_enter_recovery(&loss(ms(0)));
        westwood.on_exit_recovery(ms(1));
        assert_eq!(westwood.window.cwnd, 2);
    }

    #[test]
    fn the_window_grows_as_in_reno() {
        let mut westwood = westwood();
        westwood.window.ssthresh = 100;
        let mut random = Random::stream(1, "westwood");
        westwood.on_ack(&ack(ms(1), 100), &mut random);
        assert_eq!(westwood.window.cwnd, 101);
        westwood.on_ack(&crate::Ack { may_grow: false, ..ack(ms(1), 100) }, &mut random);
        assert_eq!(westwood.window.cwnd, 101);
    }

    #[test]
    fn the_window_after_a_loss_fills_the_path_without_a_queue() {
        // 10 Mbit/s and 40 ms hold 50 segments. The clock of 1 ms rounds the rate down and the RTT of 40.8 ms up to 41.
        let link =
            Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 50, mark: None };
        let mut path = Path::of(&crate::Config::Westwood(Config { hz: 1000 }), link);
        path.trace(Span::from_secs(10), 1);
        let windows = path.trace(Span::from_millis(40), 1000);
        let settled = windows.windows(2).filter(|pair| pair[1] + 20 < pair[0]).map(|pair| pair[1]);
        let settled: Vec<u64> = settled.collect();
        assert!(settled.len() > 3, "{settled:?}");
        assert!(settled.iter().all(|window| (49..=53).contains(window)), "{settled:?}");
    }
}
