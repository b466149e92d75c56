//! RACK loss detection (RFC 8985) as in Linux `tcp_recovery.c`: a segment is lost if a segment sent later has been delivered, and
//! the RTT of that segment plus a reordering window have passed. Until reordering is seen, the window is zero during recovery and
//! once three segments are SACKed. It grows with DSACKs.

use super::scoreboard::{LOST, RETRANS, Scoreboard};

/// Segments out of order that indicate a loss while no reordering has been seen (`tcp_reordering`).
pub(crate) const REORDERING: u32 = 3;
/// The largest degree of reordering that is remembered (`tcp_max_reordering`).
pub(crate) const MAX_REORDERING: u64 = 300;
/// Recoveries for which a widened window stays (`TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;

/// State of the detector. Times are in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Rack {
    /// Time of sending and end position of the newest delivered segment.
    sent_at: u64,
    end: u64,
    rtt: u64,
    /// Whether a delivery has advanced the state since the last detection.
    pub(crate) advanced: bool,
    pub(crate) dsack_seen: bool,
    steps: u8,
    persist: u8,
    last_delivered: u64,
    /// Degree of reordering seen, in segments.
    pub(crate) reordering: u32,
    pub(crate) reordering_seen: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            sent_at: 0,
            end: 0,
            rtt: 0,
            advanced: false,
            dsack_seen: false,
            steps: 1,
            persist: 0,
            last_delivered: 0,
            reordering: REORDERING,
            reordering_seen: false,
        }
    }
}

/// Whether a segment left after another: later, or at the same time but further on (`tcp_skb_sent_after`).
pub(crate) fn sent_after(sent_at: u64, end: u64, other_sent_at: u64, other_end: u64) -> bool {
    sent_at > other_sent_at || (sent_at == other_sent_at && end > other_end)
}

/// The values on which the reordering window depends. Times are in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) now: u64,
    pub(crate) min_rtt: u64,
    pub(crate) srtt8: u64,
    /// Whether the phase is Recovery or Loss.
    pub(crate) recovering: bool,
}

/// The result of a detection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Detection {
    /// Microseconds until the next detection; 0 if none is needed.
    pub(crate) look_again: u64,
    /// Whether a retransmission was found lost.
    pub(crate) lost_retransmission: bool,
}

impl Rack {
    /// A segment was delivered (`tcp_rack_advance`).
    pub(crate) fn advance(&mut self, now: u64, min_rtt: u64, resent: bool, sent_at: u64, end: u64) {
        let rtt = now.saturating_sub(sent_at);
        // Faster than any round trip: the original was delivered, not the retransmission.
        if resent && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if sent_after(sent_at, end, self.sent_at, self.end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Segments were delivered out of order, from position `low` to `high` (`tcp_check_sack_reordering`).
    pub(crate) fn saw_reordering(&mut self, low: u64, high: u64, mss: u64) {
        let metric = high.saturating_sub(low);
        if metric == 0 {
            return;
        }
        if metric > u64::from(self.reordering) * mss {
            self.reordering = metric.div_ceil(mss).min(MAX_REORDERING) as u32;
        }
        self.reordering_seen = true;
    }

    /// Widens the window once a round trip after a DSACK (`tcp_rack_update_reo_wnd`).
    pub(crate) fn adapt(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.last_delivered {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = self.steps.saturating_add(1);
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery has ended without being undone.
    pub(crate) fn recovery_was_needed(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
    /// A DSACK has undone a recovery.
    pub(crate) fn recovery_was_undone(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// The reordering window in microseconds: the wait for segments that may be late (`tcp_rack_reo_wnd`).
    fn window(&self, conditions: &Conditions, sacked: u32) -> u64 {
        if !self.reordering_seen && (conditions.recovering || sacked >= self.reordering) {
            return 0;
        }
        ((conditions.min_rtt >> 2) * u64::from(self.steps)).min(conditions.srtt8 >> 3)
    }

    /// Whether a segment sent at `sent_at` has been out for at least the RTT of the newest delivered one (`tcp_rack_skb_timeout`
    /// without a reordering window).
    pub(crate) fn overdue(&self, now: u64, sent_at: u64) -> bool {
        self.rtt + sent_at <= now
    }

    /// Marks lost segments (`tcp_rack_detect_loss`).
    pub(crate) fn detect(&self, board: &mut Scoreboard, conditions: &Conditions) -> Detection {
        let window = self.window(conditions, board.sacked);
        let mut found = Detection::default();
        let mut at = board.oldest_sent();
        while let Some(number) = at {
            at = board.sent_after(number);
            let sent = *board.get(number);
            if sent.has(LOST) && !sent.has(RETRANS) {
                continue;
            }
            if !sent_after(self.sent_at, self.end, sent.sent_at, sent.end()) {
                break;
            }
            let due = sent.sent_at + self.rtt + window;
            if due <= conditions.now {
                found.lost_retransmission |= board.mark_lost(number);
                board.leave_list(number);
            } else {
                found.look_again = found.look_again.max(due - conditions.now);
            }
        }
        found
    }
}
