//! Reno: one segment more for each that is acknowledged in slow start, one for each window after that, half at a loss.
//! Source: RFC 5681, and Linux 6.18 `net/ipv4/tcp_cong.c` (`tcp_reno`), which counts in whole segments. What NewReno
//! (RFC 6582) adds, staying in recovery until everything outstanding is acknowledged, is the transport's work.

use crate::{Ack, Congestion, Controller, Restart, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Random, Time};

/// Parameters of Reno: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// The smallest threshold, in segments (RFC 5681, equation 4).
const MIN_THRESHOLD: u32 = 2;

/// A connection under Reno.
#[derive(Debug)]
pub(crate) struct NewReno {
    window: Window,
}

impl NewReno {
    pub(crate) fn new(_: &Config, start: &Start) -> NewReno {
        NewReno { window: Window::new(start) }
    }

    /// Half the window (Linux `tcp_reno_ssthresh`).
    fn halved(&self) -> u32 {
        (self.window.cwnd / 2).max(MIN_THRESHOLD)
    }
}

impl Controller for NewReno {
    /// Linux `tcp_reno_cong_avoid`.
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
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

    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        self.window.reduce(self.halved(), congestion);
    }
    fn on_exit_recovery(&mut self, _: Time) {
        self.window.end_reduction();
    }
    fn on_undo(&mut self, _: Time) {
        self.window.undo();
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.window.collapse(timeout.reduce.then(|| self.halved()), timeout);
    }
    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
    }

    fn window(&self) -> Bytes {
        self.window.bytes()
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        Some(self.window.threshold())
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cwnd_segments", f64::from(self.window.cwnd));
        report("cwnd_cnt", f64::from(self.window.cwnd_cnt));
    }
}
