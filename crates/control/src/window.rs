//! The congestion window of a loss-based controller, counted in segments as in the kernel: slow start, additive increase,
//! reduction and its undo, collapse after a timeout, and decay when it is not used. Source: Linux 6.18 `net/ipv4/tcp_cong.c`,
//! `tcp_input.c` and `tcp_output.c`; the functions are named at each method.
//!
//! One difference: a reduction takes effect at once, since here PRR reduces the transport's window step by step, not this one. The
//! result is the same as in Linux (`tcp_end_cwnd_reduction`).

use crate::{Ack, Congestion, Restart, Signal, Start, Timeout};
use weir_base::{Bytes, Span};

/// The slow-start threshold before any congestion (Linux `TCP_INFINITE_SSTHRESH`).
pub const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// A congestion window in whole segments.
#[derive(Debug, Clone)]
pub struct Window {
    /// How many segments may be in flight; at least 1 (Linux `snd_cwnd`).
    pub cwnd: u32,
    /// The slow-start threshold in segments; [`NO_THRESHOLD`] before any congestion (Linux `snd_ssthresh`).
    pub ssthresh: u32,
    /// Segments acknowledged towards the next increase (Linux `snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    mss: Bytes,
    /// The window that [`Window::undo`] restores; `None` if there is nothing to undo.
    prior: Option<Prior>,
    /// Whether PRR is reducing the transport's window to `ssthresh` (Linux `tcp_in_cwnd_reduction`).
    reducing: bool,
}

/// The window before a reduction (Linux `prior_cwnd`, `prior_ssthresh`).
#[derive(Debug, Clone, Copy)]
struct Prior {
    cwnd: u32,
    ssthresh: u32,
}

impl Window {
    /// The window of a connection that has just been established.
    pub fn new(start: &Start) -> Window {
        Window {
            cwnd: start.initial_window.max(1),
            ssthresh: NO_THRESHOLD,
            cwnd_cnt: 0,
            mss: Bytes::new(start.mss.get().max(1)),
            prior: None,
            reducing: false,
        }
    }

    /// The window in bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(u64::from(self.cwnd) * self.mss.get())
    }

    /// The slow-start threshold in bytes; `u64::MAX` before any congestion.
    pub fn threshold(&self) -> Bytes {
        match self.ssthresh {
            NO_THRESHOLD => Bytes::new(u64::MAX),
            segments => Bytes::new(u64::from(segments) * self.mss.get()),
        }
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> Bytes {
        self.mss
    }

    /// Opens to `window` bytes and ends slow start, if there was no congestion yet and the window is smaller.
    pub fn open_to(&mut self, window: Bytes) {
        let cwnd = u32::try_from(window.get() / self.mss.get()).unwrap_or(u32::MAX);
        if self.ssthresh == NO_THRESHOLD && cwnd > self.cwnd {
            (self.cwnd, self.ssthresh) = (cwnd, cwnd);
        }
    }

    /// Changes the payload of a full segment; the window keeps its segments.
    pub fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.max(Bytes::new(1));
    }

    /// Whether the window is below its threshold (Linux `tcp_in_slow_start`).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Adds a segment for each delivered one, up to the threshold. Returns the delivered segments that are left for congestion
    /// avoidance (Linux `tcp_slow_start`).
    pub fn slow_start(&mut self, delivered: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(delivered).min(self.ssthresh).max(self.cwnd);
        let left = delivered - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// Adds a segment for each `count` delivered ones (Linux `tcp_cong_avoid_ai`).
    pub fn additive_increase(&mut self, count: u32, delivered: u32) {
        let count = count.max(1);
        // Credit from a larger `count` adds one segment, not several.
        if self.cwnd_cnt >= count {
            self.cwnd_cnt = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(delivered);
        if self.cwnd_cnt >= count {
            self.cwnd = self.cwnd.saturating_add(self.cwnd_cnt / count);
            self.cwnd_cnt %= count;
        }
    }

    /// Grows as Reno does: slow start up to the threshold, then a segment each window. No growth if the window did not limit sending
    /// (Linux `tcp_reno_cong_avoid`).
    #[inline]
    pub(crate) fn reno(&mut self, ack: &Ack) {
        if ack.cwnd_limited {
            self.reno_by(ack.delivered_segments);
        }
    }

    /// Grows as Reno does for `delivered` segments, in a connection whose window limits sending.
    pub(crate) fn reno_by(&mut self, mut delivered: u32) {
        if self.in_slow_start() {
            delivered = self.slow_start(delivered);
        }
        if delivered > 0 {
            self.additive_increase(self.cwnd, delivered);
        }
    }

    /// Half the window, but not below two segments (Linux `tcp_reno_ssthresh`).
    pub(crate) fn halved(&self) -> u32 {
        (self.cwnd / 2).max(2)
    }

    /// Reduces the window to `ssthresh`. Only a reduction for a loss can be undone: a mark is never spurious, nor is a reduction that
    /// the controller or the local queue caused (Linux `tcp_enter_recovery`, `tcp_enter_cwr`, `tcp_init_cwnd_reduction`).
    pub fn reduce(&mut self, ssthresh: u32, congestion: &Congestion) {
        self.prior = match congestion.signal {
            Signal::Loss => Some(self.now_as_prior()),
            Signal::Ecn | Signal::Own | Signal::Refused => None,
        };
        self.ssthresh = ssthresh;
        self.cwnd = ssthresh.max(1);
        self.cwnd_cnt = 0;
        self.reducing = true;
    }

    /// Ends the reduction (Linux `tcp_end_cwnd_reduction`).
    pub fn end_reduction(&mut self) {
        self.reducing = false;
    }

    /// Collapses to the segments in flight plus one. `ssthresh` is the new threshold; `None` if the timeout causes no reduction (Linux
    /// `tcp_enter_loss`).
    pub fn collapse(&mut self, ssthresh: Option<u32>, timeout: &Timeout) {
        if let Some(ssthresh) = ssthresh {
            self.prior = Some(self.now_as_prior());
            self.ssthresh = ssthresh;
        }
        let in_flight = timeout.in_flight.get().div_ceil(self.mss.get());
        self.cwnd = u32::try_from(in_flight + 1).unwrap_or(u32::MAX);
        self.cwnd_cnt = 0;
        self.reducing = false;
    }

    /// Restores the window before the last reduction, unless it has grown larger (Linux `tcp_undo_cwnd_reduction`,
    /// `tcp_reno_undo_cwnd`).
    pub fn undo(&mut self) {
        if let Some(prior) = self.prior.take() {
            self.cwnd = self.cwnd.max(prior.cwnd);
            self.ssthresh = self.ssthresh.max(prior.ssthresh);
        }
        self.reducing = false;
    }

    /// Decays a window that was not used.
    pub fn restart(&mut self, restart: &Restart) {
        match *restart {
            Restart::Idle { idle, rto, initial_window, .. } => self.after_idle(idle, rto, initial_window),
            Restart::Unused { used, initial_window, .. } => self.unused(used, initial_window),
            Restart::Transmit { .. } => {}
        }
    }

    /// Halves the window for each further retransmission timeout of idle time, down to the initial window, and keeps three quarters
    /// of the old one as threshold (Linux `tcp_cwnd_restart`).
    fn after_idle(&mut self, idle: Span, rto: Span, initial_window: u32) {
        self.ssthresh = self.remembered_threshold();
        let floor = initial_window.clamp(1, self.cwnd);
        let mut left = idle.saturating_sub(rto);
        while !left.is_zero() && self.cwnd > floor {
            self.cwnd = (self.cwnd / 2).max(floor);
            left = left.saturating_sub(rto);
        }
    }

    /// Reduces the window half-way to the used part (Linux `tcp_cwnd_application_limited`).
    fn unused(&mut self, used: u32, initial_window: u32) {
        let used = used.max(initial_window);
        if used < self.cwnd {
            self.ssthresh = self.remembered_threshold();
            self.cwnd = u32::midpoint(self.cwnd, used);
        }
    }

    /// The threshold, or three quarters of the window if that is more (Linux `tcp_current_ssthresh`).
    pub(crate) fn remembered_threshold(&self) -> u32 {
        if self.reducing { self.ssthresh } else { self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4) }
    }

    fn now_as_prior(&self) -> Prior {
        Prior { cwnd: self.cwnd, ssthresh: self.remembered_threshold() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, loss, ms, start, timeout};

    fn window_of(cwnd: u32) -> Window {
        Window { cwnd, ..Window::new(&start()) }
    }
    fn idle(millis: u64) -> Restart {
        let (idle, rto) = (Span::from_millis(millis), Span::from_millis(300));
        Restart::Idle { now: ms(0), idle, rto, initial_window: 10 }
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_remaining_segments() {
        let mut window = Window { ssthresh: 13, ..window_of(10) };
        assert_eq!((window.slow_start(2), window.cwnd), (0, 12));
        assert_eq!((window.slow_start(5), window.cwnd), (4, 13));
    }

    #[test]
    fn additive_increase_carries_the_remainder_over() {
        let mut window = window_of(10);
        window.additive_increase(10, 25);
        assert_eq!((window.cwnd, window.cwnd_cnt), (12, 5));
        // Five segments of credit add only one segment under a count of two.
        window.additive_increase(2, 1);
        assert_eq!((window.cwnd, window.cwnd_cnt), (13, 1));
    }

    #[test]
    fn idleness_halves_the_window_once_per_timeout_down_to_the_initial_window() {
        // (idle in ms, window after it) with a timeout of 300 ms.
        for (millis, expected) in [(300, 100), (301, 50), (600, 50), (601, 25), (901, 12), (1201, 10)] {
            let mut window = window_of(100);
            window.restart(&idle(millis));
            assert_eq!(window.cwnd, expected, "after {millis} ms");
        }
    }

    #[test]
    fn idleness_never_raises_a_small_window_and_keeps_three_quarters_as_threshold() {
        let mut window = Window { ssthresh: 2, ..window_of(4) };
        window.restart(&idle(5_000));
        assert_eq!((window.cwnd, window.ssthresh), (4, 3));
        let mut window = Window { ssthresh: 20, ..window_of(101) };
        window.restart(&idle(301));
        assert_eq!((window.cwnd, window.ssthresh), (50, 75));
    }

    #[test]
    fn an_unused_window_falls_half_way_to_its_used_part() {
        let unused = |used| Restart::Unused { now: ms(0), used, initial_window: 10 };
        let mut window = Window { ssthresh: 5, ..window_of(100) };
        window.restart(&unused(20));
        assert_eq!((window.cwnd, window.ssthresh), (60, 75));
        // Less than an initial window counts as an initial window.
        window.restart(&unused(1));
        assert_eq!((window.cwnd, window.ssthresh), (35, 75));
        window.restart(&unused(40));
        assert_eq!((window.cwnd, window.ssthresh), (35, 75));
    }

    #[test]
    fn a_timeout_reduces_the_window_to_the_flight_plus_one_segment() {
        let mut window = window_of(40);
        let in_flight = Bytes::new(3 * MSS.get());
        window.collapse(Some(20), &Timeout { in_flight, ..timeout(ms(0)) });
        assert_eq!((window.cwnd, window.ssthresh), (4, 20));
        // A second timeout of the same flight keeps the threshold.
        window.collapse(None, &timeout(ms(1)));
        assert_eq!((window.cwnd, window.ssthresh), (1, 20));
        // Undo restores the window before the first timeout.
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (40, NO_THRESHOLD));
    }

    #[test]
    fn undo_restores_the_window_before_a_loss() {
        let mut window = Window { ssthresh: 10, ..window_of(40) };
        window.reduce(20, &loss(ms(0)));
        assert_eq!((window.cwnd, window.ssthresh), (20, 20));
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (40, 30));
        // An undo works once only.
        window.cwnd = 5;
        window.undo();
        assert_eq!(window.cwnd, 5);
    }

    #[test]
    fn a_reduction_for_ecn_is_not_undone() {
        let mut window = window_of(40);
        window.reduce(20, &Congestion { signal: Signal::Ecn, ..loss(ms(0)) });
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (20, 20));
    }

    #[test]
    fn the_threshold_is_unlimited_until_congestion() {
        let mut window = window_of(40);
        assert_eq!(window.threshold(), Bytes::new(u64::MAX));
        window.reduce(20, &loss(ms(0)));
        assert_eq!(window.threshold(), Bytes::new(20_000));
        assert_eq!(window.bytes(), Bytes::new(20_000));
    }
}
