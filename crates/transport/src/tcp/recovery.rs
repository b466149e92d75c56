//! The states of congestion and recovery, entered and left as Linux `tcp_fastretrans_alert` does: Open, Disorder, CWR,
//! Recovery and Loss, with undo (DSACK, Eifel) and F-RTO (RFC 5682 in its SACK form).

use super::ack::Effects;
use super::sender::{Rexmit, Sender};
use weir_base::Time;
use weir_control::{Congestion, Phase, Signal, Timeout};

impl Sender {
    /// Something is out of the ordinary. Answers what may be sent.
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

    /// Open, Disorder or CWR: look for loss.
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

    /// What was outstanding when the state began is acknowledged. Answers whether the state is held nevertheless.
    fn leave_state(&mut self, effects: &Effects, now: Time) -> bool {
        match self.phase {
            // Held a little longer, so that the segment with CWR arrives.
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

    /// RACK, or NewReno without SACK, looks for losses (`tcp_identify_packet_loss`).
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

    /// Begins recovery; a reduction that is under way goes on (`tcp_enter_recovery`).
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

    /// The peer echoes a congestion mark, or the controller asks to come down (`tcp_enter_cwr`).
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

    /// Open, or Disorder while anything is SACKed, lost or retransmitted (`tcp_try_keep_open`).
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

    /// Takes the reduction back (`tcp_undo_cwnd_reduction`).
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
        // What is SACKed may still show a loss.
        self.rack.advanced = true;
    }

    /// All retransmissions were duplicates (`tcp_try_undo_dsack`).
    fn undo_by_dsack(&mut self, now: Time) -> bool {
        if !self.undo.all_duplicates() {
            return false;
        }
        self.rack.recovery_was_undone();
        self.undo_reduction(false, now);
        true
    }

    /// `tcp_try_undo_recovery`. Answers whether the state is held.
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

    /// The hole was filled by a late original (`tcp_try_undo_partial`). `true`: retransmissions are still out; send nothing
    /// more of what seems lost.
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

    /// After a timeout (`tcp_process_loss`).
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

    /// Everything is lost but what left too recently (`tcp_timeout_mark_lost`).
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

    /// A tail loss probe was answered (`tcp_process_tlp_ack`).
    pub(crate) fn on_probe_ack(&mut self, ack: u64, effects: &Effects, now: Time) {
        if ack < self.probe_end {
            return;
        }
        if !self.probe_is_copy || effects.dsack_of_probe {
            self.probe_end = 0;
        } else if ack > self.probe_end {
            // The probe repaired a loss that nobody else will answer for.
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
