//! Recovery without SACK: NewReno (RFC 6582) as in Linux (`tcp_is_reno` in `tcp_input.c`). A duplicate acknowledgement reports that
//! some segment has arrived, but not which one. The third duplicate marks the oldest segment lost, and in recovery each partial
//! acknowledgement marks the next one. RACK and tail loss probes need SACK and are off.

use super::rack::MAX_REORDERING;
use super::scoreboard::LOST;
use super::sender::Sender;
use weir_control::Phase;

impl Sender {
    /// A duplicate acknowledgement: one more segment has arrived (`tcp_add_reno_sack`).
    pub(crate) fn add_duplicate(&mut self) {
        let before = self.board.sacked;
        self.board.sacked += 1;
        self.limit_duplicates();
        self.delivery.delivered += u64::from(self.board.sacked.saturating_sub(before));
    }

    /// Resets the count of duplicates (`tcp_reset_reno_sack`).
    pub(crate) fn forget_duplicates(&mut self) {
        self.board.sacked = 0;
    }

    /// The cumulative number has acknowledged `acked` segments: one filled the hole, the others had caused duplicate
    /// acknowledgements before (`tcp_remove_reno_sacks`).
    pub(crate) fn remove_duplicates(&mut self, acked: u32) {
        if acked > 0 {
            self.delivery.delivered += u64::from(acked.saturating_sub(self.board.sacked).max(1));
            self.board.sacked = self.board.sacked.saturating_sub(acked - 1);
        }
        self.limit_duplicates();
    }

    /// Limits the count of duplicates: at least one segment is missing, so more duplicates than the others can cause are a sign of
    /// reordering (`tcp_limit_reno_sacked`, `tcp_check_reno_reordering`).
    fn limit_duplicates(&mut self) {
        let most = self.board.out().saturating_sub(self.board.lost.max(1));
        if self.board.sacked > most {
            self.board.sacked = most;
            self.rack.reordering = u64::from(self.board.out()).min(MAX_REORDERING) as u32;
            self.rack.reordering_seen = true;
        }
    }

    /// Marks the oldest segment lost if NewReno's conditions hold (`tcp_newreno_mark_lost`).
    pub(crate) fn mark_head_lost(&mut self, una_advanced: bool) {
        let lost = match self.phase {
            Phase::Recovery => una_advanced,
            Phase::Loss => false,
            _ => self.board.sacked >= self.rack.reordering,
        };
        if lost && self.board.head().is_some_and(|head| !head.has(LOST)) {
            self.board.mark_lost(self.board.first());
            self.board.sacked = self.board.sacked.min(self.board.out() - self.board.lost);
        }
    }

    /// Whether the state is held. It is held until data above the recovery point is acknowledged, so that duplicates of older
    /// segments start no second recovery (RFC 6582, section 3.2 step 1; `tcp_is_non_sack_preventing_reopen`). The time of the
    /// first retransmission is kept meanwhile; Linux forgets it and makes an exception for it (`tcp_packet_delayed`).
    pub(crate) fn holds_state(&self) -> bool {
        !self.sack && self.una == self.high_seq
    }
}
