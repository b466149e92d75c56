//! Reno: the window grows by a segment for each acknowledged one in slow start, by a segment for each window after that, and is
//! halved at a loss. Source: RFC 5681, and Linux 6.18 `net/ipv4/tcp_cong.c` (`tcp_reno`), which counts in whole segments. NewReno's
//! addition (RFC 6582), to stay in recovery until all outstanding data is acknowledged, is in the transport.

use crate::hystart_plus_plus::HyStartPlusPlus;
use crate::{Ack, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Time};

/// Parameters of Reno.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether HyStart++ (RFC 9406) may end the first slow start early; Linux does not have HyStart++.
    pub hystart_plus_plus: bool,
    /// Whether the window grows by all segments that an acknowledgement covers (RFC 3465). If not, it grows by one segment for each
    /// acknowledgement, as in RFC 5681, section 3.1, in Linux 2.4 and in BSDs of its time.
    pub byte_counting: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { hystart_plus_plus: false, byte_counting: true }
    }
}

/// The smallest threshold, in segments (RFC 5681, equation 4).
const MIN_THRESHOLD: u32 = 2;

/// A connection under Reno.
#[derive(Debug)]
pub(crate) struct NewReno {
    window: Window,
    hystart: Option<HyStartPlusPlus>,
    byte_counting: bool,
}

impl NewReno {
    pub(crate) fn new(config: &Config, start: &Start) -> NewReno {
        NewReno {
            window: Window::new(start),
            hystart: config.hystart_plus_plus.then(|| HyStartPlusPlus::new(start)),
            byte_counting: config.byte_counting,
        }
    }

    /// Half the window (Linux `tcp_reno_ssthresh`).
    fn halved(&self) -> u32 {
        (self.window.cwnd / 2).max(MIN_THRESHOLD)
    }
}

impl crate::windowed::Windowed for NewReno {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// Linux `tcp_reno_cong_avoid`.
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if let Some(hystart) = &mut self.hystart {
            hystart.watch(ack, &mut self.window);
        }
        if !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let mut delivered = ack.delivered_segments;
        if !self.byte_counting {
            delivered = delivered.min(1);
        }
        if self.window.in_slow_start() {
            delivered = match &mut self.hystart {
                Some(hystart) => hystart.slow_start(&mut self.window, delivered),
                None => self.window.slow_start(delivered),
            };
        }
        if delivered > 0 {
            self.window.additive_increase(self.window.cwnd, delivered);
        }
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.hystart = None;
        self.halved()
    }
    fn on_timeout(&mut self, _: &Timeout) {
        self.hystart = None;
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cwnd_cnt", f64::from(self.window.cwnd_cnt));
        if let Some(hystart) = &self.hystart {
            hystart.describe(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::{Link, MSS, Path, ack, loss, ms, start, timeout};
    use weir_base::{Bytes, Rate, Span};

    fn reno() -> (NewReno, Random) {
        (NewReno::new(&Config::default(), &start()), Random::stream(1, "reno"))
    }

    #[test]
    fn the_window_doubles_each_round_in_slow_start() {
        let (mut reno, mut random) = reno();
        for expected in [20, 40, 80] {
            reno.on_ack(&ack(ms(0), reno.window.cwnd), &mut random);
            assert_eq!(reno.window().get(), expected * MSS.get());
        }
    }

    #[test]
    fn each_acknowledgement_counts_once_without_byte_counting() {
        let config = Config { byte_counting: false, ..Config::default() };
        let (mut reno, mut random) = (NewReno::new(&config, &start()), Random::stream(1, "reno"));
        for _ in 0..5 {
            reno.on_ack(&ack(ms(0), 2), &mut random);
        }
        assert_eq!(reno.window.cwnd, 15, "slow start: a segment for each of five acknowledgements");
        reno.on_enter_recovery(&loss(ms(0)));
        reno.on_exit_recovery(ms(1));
        for _ in 0..7 {
            assert_eq!(reno.window.cwnd, 7);
            reno.on_ack(&ack(ms(2), 2), &mut random);
        }
        assert_eq!(reno.window.cwnd, 8, "after it: a segment for each seven");
    }

    #[test]
    fn the_window_grows_by_one_segment_per_window_after_slow_start() {
        let (mut reno, mut random) = reno();
        reno.on_enter_recovery(&loss(ms(0)));
        reno.on_exit_recovery(ms(1));
        assert_eq!(reno.window.cwnd, 5);
        for expected in 6..20 {
            for _ in 0..reno.window.cwnd {
                assert_eq!(reno.window.cwnd, expected - 1);
                reno.on_ack(&ack(ms(2), 1), &mut random);
            }
            assert_eq!(reno.window.cwnd, expected);
        }
    }

    #[test]
    fn segments_beyond_the_threshold_count_towards_congestion_avoidance() {
        let (mut reno, mut random) = reno();
        reno.window.ssthresh = 12;
        // Two segments grow the window to 12, twelve of the other thirteen grow it to 13, and one is left over.
        reno.on_ack(&ack(ms(0), 15), &mut random);
        assert_eq!((reno.window.cwnd, reno.window.cwnd_cnt), (13, 1));
    }

    #[test]
    fn a_loss_halves_the_window_but_not_below_two_segments() {
        let (mut reno, _) = reno();
        for expected in [5, 2, 2, 2] {
            reno.on_enter_recovery(&loss(ms(0)));
            reno.on_exit_recovery(ms(0));
            assert_eq!((reno.window.cwnd, reno.window.ssthresh), (expected, expected));
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_half_as_threshold() {
        let (mut reno, _) = reno();
        reno.on_timeout(&timeout(ms(0)));
        assert_eq!((reno.window.cwnd, reno.window.ssthresh), (1, 5));
        assert_eq!(reno.slow_start_threshold(), Some(Bytes::new(5 * MSS.get())));
    }

    #[test]
    fn the_window_does_not_grow_while_it_is_not_the_limit() {
        let (mut reno, mut random) = reno();
        reno.on_ack(&Ack { cwnd_limited: false, ..ack(ms(0), 10) }, &mut random);
        reno.on_ack(&Ack { may_grow: false, ..ack(ms(0), 10) }, &mut random);
        assert_eq!(reno.window.cwnd, 10);
    }

    #[test]
    fn a_single_reno_flow_oscillates_between_half_of_path_and_buffer_and_the_whole() {
        // 10 Mbit/s and 40 ms hold 50 segments, the buffer holds 50, and one is being sent: a window of 102 loses one.
        let link =
            Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 50, mark: None };
        let mut path = Path::new("reno", link);
        path.trace(Span::from_secs(10), 1);
        let windows = path.trace(Span::from_millis(40), 1000);
        let (least, most) = (windows.iter().min().copied(), windows.iter().max().copied());
        assert_eq!((least, most), (Some(51), Some(102)));
    }

    #[test]
    fn the_window_on_an_ideal_path_follows_the_recorded_values() {
        let link =
            Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 25, mark: None };
        let windows = Path::new("reno", link).trace(Span::from_millis(100), 16);
        assert_eq!(windows, [40, 126, 65, 67, 69, 71, 72, 74, 76, 77, 38, 41, 43, 46, 48, 50]);
    }
}
