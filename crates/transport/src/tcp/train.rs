//! Trains of segments. Linux hands down several segments at once and cuts them apart late, even where the device cannot (TSO,
//! GSO); that decides when the last bit of a window is used (`tcp_tso_should_defer`) and which segments carry PSH: the last of
//! each train of two or more (`__tcp_transmit_skb`), which the receiver acknowledges as soon as it is read.

use super::sender::{Sender, micros};
use weir_base::Time;
use weir_control::Phase;

/// A train holds what the pacing rate sends in a 1024th of a second (`sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
/// At least so many segments, unless the controller says otherwise (`tcp_min_tso_segs`).
const LEAST: u64 = 2;
/// Largest train in bytes (`GSO_LEGACY_MAX_SIZE` less headers).
const LARGEST: u64 = 65_536 - 320;
/// Short paths get longer trains: one halving for each 2^9 us of RTT (`tcp_tso_rtt_log`), none left after 32.
const RTT_SHIFT: u32 = 9;
/// A train is not held back longer than this after the last one, microseconds.
const DEFER_MOST: u64 = 1_000;
/// A part of the window that is worth sending (`tcp_tso_win_divisor`).
const WINDOW_PART: u64 = 3;

/// The train that is leaving.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Train {
    left: u64,
    /// It has more than one segment.
    long: bool,
}

impl Sender {
    /// Segments of a full train (`tcp_tso_autosize`).
    fn train_goal(&self) -> u64 {
        let rate = self.pacer.rate().map_or(0, |rate| rate.bits_per_sec() / 8);
        let mut bytes = rate >> PACING_SHIFT;
        let halvings = self.least_rtt() >> RTT_SHIFT;
        if halvings < 32 {
            bytes += 65_536 >> halvings;
        }
        let mss = u64::from(self.mss);
        let least = self.controller.send_quantum().map_or(LEAST, |bytes| bytes.get() / mss);
        (bytes.min(LARGEST) / mss).max(least).max(1).min(self.gso_max_segs.into())
    }

    /// Whether the next new segment may leave now, as far as trains go. Windows have been checked.
    #[inline]
    pub(crate) fn train_ready(&mut self, now: Time) -> bool {
        self.train.left > 0 || self.gso_max_segs == 1 || self.begin_train(now)
    }

    /// Begins another train, if it need not wait for more segments.
    fn begin_train(&mut self, now: Time) -> bool {
        let mss = u64::from(self.mss);
        let cwnd = u64::from(self.cwnd());
        let room = cwnd - u64::from(self.board.in_flight());
        let offered = (self.window_end() - self.next) / mss;
        let waiting = (self.written - self.next.min(self.written)).div_ceil(mss);
        let goal = self.train_goal();
        let limit = room.min(offered);
        if waiting > 1 && limit < goal && limit < waiting && self.may_defer(limit, cwnd, now) {
            return false;
        }
        let size = goal.min(room).min((cwnd / 2).max(1)).min(offered).min(waiting).max(1);
        self.train = Train { left: size, long: size > 1 };
        true
    }

    /// Whether it is worth waiting for a longer train (`tcp_tso_should_defer`).
    fn may_defer(&self, limit: u64, cwnd: u64, now: Time) -> bool {
        let at = micros(now);
        let Some(head) = self.board.head() else { return false };
        !matches!(self.phase, Phase::Recovery | Phase::Loss)
            && at.saturating_sub(micros(self.last_sent)) <= DEFER_MOST
            && limit < cwnd.min(u64::from(self.window) / u64::from(self.mss)) / WINDOW_PART
            // The next acknowledgement is due soon.
            && at.saturating_sub(head.sent_at) >= self.rtt.srtt8() >> 4
    }

    /// A new segment left: whether it carries PSH, as the end of a train or of what was written.
    pub(crate) fn train_sent(&mut self) -> bool {
        self.train.left = self.train.left.saturating_sub(1);
        (self.train.left == 0 && self.train.long) || (self.next >= self.written && !self.endless)
    }

    /// Sending has stopped: what comes next is another train.
    pub(crate) fn end_train(&mut self) {
        self.train = Train::default();
    }
}
