//! The states of congestion and recovery and their changes as in Linux `tcp_fastretrans_alert`: Open, Disorder, CWR, Recovery and
//! Loss, with undo (DSACK, Eifel) and F-RTO (RFC 5682 in its SACK form).

use super::ack::Effects;
use super::sender::{Rexmit, Sender};
use weir_base::Time;
use weir_control::{Congestion, Phase, Signal, Timeout};

impl Sender {
    /// Handles an acknowledgement that signals loss or marks, or arrives outside the Open state. Returns the allowed retransmissions.
    pub(crate) fn alert(&mut self, prior_una: u64, effects: &mut Effects, now: Time) -> Rexmit {
        if effects.ece {
            self.undo.reversible = false;
        }
        if self.phase == Phase::Open {
            self.undo.stamp = None;
        } else if self.una >= self.high_seq && self.leave_state(effects, now) {
            return Rexmit::Nothing;
        }
        match self.phase {
            Phase::Recovery => {
                if effects.una_advanced && self.undo_partially(prior_una, effects, now) {
                    return Rexmit::Nothing;
                }
                if !self.sack && effects.is_duplicate() {
                    self.add_duplicate();
                }
                if self.undo_by_dsack(now) {
                    self.try_to_open(effects, now);
                }
                self.identify_loss(effects, now);
                if self.phase != Phase::Recovery {
                    if self.board.lost == 0 {
                        return Rexmit::Nothing;
                    }
                    self.enter_recovery(effects.ece, now);
                }
            }
            Phase::Loss => {
                let rexmit = self.process_loss(effects, now);
                self.identify_loss(effects, now);
                if self.phase != Phase::Open && !effects.lost_retransmission {
                    return rexmit;
                }
                return self.open_state(effects, now).unwrap_or(rexmit);
            }
            _ => return self.open_state(effects, now).unwrap_or(Rexmit::Nothing),
        }
        Rexmit::Lost
    }

    /// Looks for losses in Open, Disorder or CWR. Returns the allowed retransmissions; `None` if nothing is lost.
    fn open_state(&mut self, effects: &mut Effects, now: Time) -> Option<Rexmit> {
        if !self.sack {
            if effects.una_advanced {
                self.forget_duplicates();
            }
            if effects.is_duplicate() {
                self.add_duplicate();
            }
        }
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.undo_by_dsack(now);
        }
        self.identify_loss(effects, now);
        if self.board.lost == 0 {
            self.try_to_open(effects, now);
            return None;
        }
        self.enter_recovery(effects.ece, now);
        Some(Rexmit::Lost)
    }

    /// Ends a state once all data outstanding at its beginning is acknowledged. Returns whether the state is held nevertheless.
    fn leave_state(&mut self, effects: &Effects, now: Time) -> bool {
        match self.phase {
            // CWR is held until more is acknowledged, so that the segment with CWR arrives.
            Phase::Cwr if self.una != self.high_seq => {
                self.end_reduction(now);
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !self.sack {
                    self.forget_duplicates();
                }
                if self.try_undo_recovery(effects, now) {
                    return true;
                }
                self.end_reduction(now);
            }
            _ => {}
        }
        false
    }

    /// Looks for losses by RACK, or by NewReno without SACK (`tcp_identify_packet_loss`).
    fn identify_loss(&mut self, effects: &mut Effects, now: Time) {
        if self.board.out() == 0 {
            return;
        }
        if !self.sack {
            self.mark_head_lost(effects.una_advanced);
            return;
        }
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let conditions = self.conditions(now);
        let found = self.rack.detect(&mut self.board, &conditions);
        effects.lost_retransmission |= found.lost_retransmission;
        if found.look_again > 0 {
            self.set_reorder_timer(found.look_again, now);
            effects.set_timer = false;
        }
    }

    /// Begins recovery; a reduction under way continues (`tcp_enter_recovery`).
    pub(crate) fn enter_recovery(&mut self, ece: bool, now: Time) {
        if self.board.retrans == 0 && !self.retransmission_outstanding() {
            self.undo.stamp = None;
        }
        self.undo.reversible = false;
        self.begin_undo();
        if !self.reducing() {
            self.undo.reversible = !ece;
            self.begin_reduction(Signal::Loss, now);
        }
        self.counters.recoveries += 1;
        self.phase = Phase::Recovery;
    }

    fn begin_undo(&mut self) {
        let probe = u32::from(self.probe_end != 0 && self.probe_is_copy);
        self.undo.begin(self.una, self.board.retrans + probe);
    }

    /// `tcp_init_cwnd_reduction`.
    pub(crate) fn begin_reduction(&mut self, signal: Signal, now: Time) {
        self.prr.begin(self.cwnd());
        self.high_seq = self.next;
        self.probe_end = 0;
        let in_flight = self.bytes(self.board.in_flight());
        self.controller.on_enter_recovery(&Congestion { now, signal, in_flight });
        self.read_window();
        self.ecn.cwr_queued = self.ecn.echoes;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(crate) fn end_reduction(&mut self, now: Time) {
        self.usage.stamp = now;
        self.controller.on_exit_recovery(now);
        self.read_window();
    }

    /// Begins a reduction because the peer echoes a mark or the controller requests it (`tcp_enter_cwr`).
    pub(crate) fn enter_reduction(&mut self, signal: Signal, now: Time) {
        self.undo.reversible = false;
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.undo.marker = None;
            self.begin_reduction(signal, now);
            self.phase = Phase::Cwr;
        }
    }

    fn try_to_open(&mut self, effects: &Effects, now: Time) {
        if !self.retransmission_outstanding() {
            self.undo.stamp = None;
        }
        if effects.ece {
            self.enter_reduction(Signal::Ecn, now);
        }
        if self.phase != Phase::Cwr {
            self.keep_open();
        }
    }

    /// Enters Open, or Disorder while a segment is SACKed, lost or retransmitted (`tcp_try_keep_open`).
    pub(crate) fn keep_open(&mut self) {
        let disorder = self.board.sacked + self.board.lost > 0 || self.retransmission_outstanding();
        let phase = if disorder { Phase::Disorder } else { Phase::Open };
        if self.phase != phase {
            self.phase = phase;
            self.high_seq = self.next;
        }
    }

    /// Whether a retransmission is in flight, or the oldest segment was ever retransmitted (`tcp_any_retrans_done`).
    fn retransmission_outstanding(&self) -> bool {
        self.board.retrans > 0
            || self.board.head().is_some_and(|head| head.has(super::scoreboard::EVER_RETRANS))
    }

    /// Undoes the reduction (`tcp_undo_cwnd_reduction`).
    fn undo_reduction(&mut self, unmark_lost: bool, now: Time) {
        if unmark_lost {
            self.board.unmark_lost();
        }
        if self.undo.reversible {
            self.controller.on_undo(now);
            self.read_window();
            self.ecn.cwr_queued = false;
        }
        self.counters.undos += 1;
        self.usage.stamp = now;
        self.undo.marker = None;
        // SACKed segments may still reveal a loss.
        self.rack.advanced = true;
    }

    /// Undoes the reduction if all retransmissions were duplicates (`tcp_try_undo_dsack`). Returns whether it did.
    fn undo_by_dsack(&mut self, now: Time) -> bool {
        if !self.undo.all_duplicates() {
            return false;
        }
        self.rack.recovery_was_undone();
        self.undo_reduction(false, now);
        true
    }

    /// `tcp_try_undo_recovery`. Returns whether the state is held.
    fn try_undo_recovery(&mut self, effects: &Effects, now: Time) -> bool {
        if self.undo.may(effects.echoed) {
            self.undo_reduction(false, now);
        } else {
            self.rack.recovery_was_needed();
        }
        if self.holds_state() {
            return true;
        }
        self.phase = Phase::Open;
        false
    }

    /// Undoes the reduction if a late original has filled the hole (`tcp_try_undo_partial`). Returns `true` if retransmissions are
    /// still out and no more segments marked lost may be sent.
    fn undo_partially(&mut self, prior_una: u64, effects: &Effects, now: Time) -> bool {
        if self.undo.marker.is_none() || !self.undo.original_arrived(effects.echoed) {
            return false;
        }
        self.rack.saw_reordering(prior_una, self.highest_sacked(), u64::from(self.mss));
        if self.board.retrans > 0 {
            return true;
        }
        if !self.retransmission_outstanding() {
            self.undo.stamp = None;
        }
        self.undo_reduction(true, now);
        self.keep_open();
        false
    }

    /// `tcp_try_undo_loss`.
    fn undo_loss(&mut self, spurious: bool, effects: &Effects, now: Time) -> bool {
        if !spurious && !self.undo.may(effects.echoed) {
            return false;
        }
        self.undo_reduction(true, now);
        self.expirations = 0;
        if !self.holds_state() && (spurious || self.sack) {
            self.phase = Phase::Open;
        }
        true
    }

    /// Takes an acknowledgement after a timeout (`tcp_process_loss`). Returns the allowed retransmissions.
    fn process_loss(&mut self, effects: &Effects, now: Time) -> Rexmit {
        let recovered = self.una >= self.high_seq;
        if effects.una_advanced && self.undo_loss(false, effects, now) {
            return Rexmit::Nothing;
        }
        if self.frto {
            if effects.original_delivered && self.undo_loss(true, effects, now) {
                return Rexmit::Nothing;
            }
            if self.next > self.high_seq {
                if effects.data_sacked || effects.is_duplicate() {
                    self.frto = false;
                }
            } else if effects.una_advanced && !recovered {
                self.high_seq = self.next;
                if self.has_new_data() && self.window_end() > self.next {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(effects, now);
            return Rexmit::Nothing;
        }
        if !self.sack {
            if self.next > self.high_seq && effects.is_duplicate() {
                self.add_duplicate();
            } else if self.next <= self.high_seq && effects.una_advanced {
                self.forget_duplicates();
            }
        }
        Rexmit::Lost
    }

    /// The retransmission timer has fired (`tcp_enter_loss`).
    pub(crate) fn enter_loss(&mut self, now: Time) {
        let new_recovery = !matches!(self.phase, Phase::Recovery | Phase::Loss);
        self.mark_timed_out(now);
        let reduce = matches!(self.phase, Phase::Open | Phase::Disorder)
            || self.high_seq <= self.una
            || (self.phase == Phase::Loss && self.expirations == 0);
        if reduce {
            self.undo.reversible = true;
            self.begin_undo();
        }
        let in_flight = self.bytes(self.board.in_flight());
        let next_sequence = self.next;
        let (delivered, lost) = (self.delivery.delivered, self.board.total_lost);
        self.controller.on_timeout(&Timeout { now, in_flight, next_sequence, reduce, delivered, lost });
        self.read_window();
        self.usage.stamp = now;
        if matches!(self.phase, Phase::Open | Phase::Disorder) && self.board.sacked >= super::rack::REORDERING
        {
            self.rack.reordering = self.rack.reordering.min(super::rack::REORDERING);
        }
        self.phase = Phase::Loss;
        self.high_seq = self.next;
        self.probe_end = 0;
        self.ecn.cwr_queued = self.ecn.echoes;
        self.frto = new_recovery || self.expirations > 0;
    }

    /// Marks all segments lost except those sent too recently (`tcp_timeout_mark_lost`).
    fn mark_timed_out(&mut self, now: Time) {
        let at = super::sender::micros(now);
        if !self.sack {
            self.forget_duplicates();
        }
        let reneged = self.board.head().is_some_and(|head| head.has(super::scoreboard::SACKED));
        if reneged {
            self.board.forget_sacks();
            self.known_blocks = [(0, 0); 4];
        }
        let first = self.board.first();
        for number in first..self.board.next() {
            let sent_at = self.board.get(number).sent_at;
            if reneged || number == first || self.rack.overdue(at, sent_at) {
                self.board.mark_lost(number);
            }
        }
    }

    /// Handles the answer to a tail loss probe (`tcp_process_tlp_ack`).
    pub(crate) fn on_probe_ack(&mut self, ack: u64, effects: &Effects, now: Time) {
        if ack < self.probe_end {
            return;
        }
        if !self.probe_is_copy || effects.dsack_of_probe {
            self.probe_end = 0;
        } else if ack > self.probe_end {
            // The probe repaired a loss to which nothing else reacts.
            self.undo.reversible = false;
            self.begin_reduction(Signal::Loss, now);
            self.phase = Phase::Cwr;
            self.end_reduction(now);
            self.keep_open();
        } else if !effects.una_advanced && !effects.not_duplicate() && !effects.data_sacked {
            self.probe_end = 0;
        }
    }
}
