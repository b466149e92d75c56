//! The sender's single timer (`icsk_retransmit_timer`): retransmission timeout, tail loss probe (RFC 8985, section 7), RACK's
//! reordering window, and the zero-window probe.

use super::jiffies::{self, JIFFY};
use super::sender::{Forced, Pending, Rexmit, Sender, micros};
use weir_base::Time;
use weir_control::Phase;

/// Shortest useful timeout, microseconds: two jiffies (`TCP_TIMEOUT_MIN`).
const TIMEOUT_MIN: u64 = 2 * JIFFY.as_micros();

impl Sender {
    fn arm(&mut self, pending: Pending, micros: u64, now: Time) {
        self.pending = pending;
        self.deadline = jiffies::deadline(now, micros);
    }

    fn disarm(&mut self) {
        self.pending = Pending::Nothing;
        self.deadline = Time::NEVER;
    }

    pub(crate) fn set_reorder_timer(&mut self, wait: u64, now: Time) {
        self.arm(Pending::Reorder, wait + TIMEOUT_MIN, now);
    }

    /// Sets the timer for a probe if one may be sent, otherwise for the retransmission timeout (`tcp_set_xmit_timer`).
    #[inline(never)]
    pub(crate) fn set_timer(&mut self, now: Time) {
        if !self.schedule_probe(true, now) {
            self.rearm_timeout(now);
        }
    }

    /// The same, but leaves it to the end of the burst if that may set the timer again.
    #[inline(always)]
    pub(crate) fn set_timer_soon(&mut self, now: Time) {
        if self.sack && self.phase == Phase::Open && self.board.out() > 0 {
            self.timer_due = true;
        } else {
            self.set_timer(now);
        }
    }

    /// `tcp_rearm_rto`.
    pub(crate) fn rearm_timeout(&mut self, now: Time) {
        if self.board.out() == 0 {
            self.disarm();
            return;
        }
        let mut wait = self.rtt.rto();
        if matches!(self.pending, Pending::Reorder | Pending::Probe) {
            wait = self.until_timeout(now).max(1);
        }
        self.arm(Pending::Retransmit, wait, now);
    }

    /// Microseconds until the timeout, counted from the sending of the oldest segment (`tcp_rto_delta_us`).
    fn until_timeout(&self, now: Time) -> u64 {
        let sent_at = self.board.head().map_or(micros(now), |head| head.sent_at);
        (sent_at + self.rtt.rto()).saturating_sub(micros(now))
    }

    /// Whether the phase allows tail loss probes, which need SACK.
    #[inline]
    pub(crate) fn may_probe(&self) -> bool {
        self.sack && matches!(self.phase, Phase::Open | Phase::Cwr)
    }

    /// `tcp_schedule_loss_probe`; `advancing` says that the timeout would start anew. Returns whether the probe is scheduled.
    #[inline(always)]
    pub(crate) fn schedule_probe(&mut self, advancing: bool, now: Time) -> bool {
        if self.board.out() == 0 || !self.may_probe() {
            return false;
        }
        let mut wait = match self.rtt.srtt8() {
            0 => super::rto::RTO_INITIAL,
            // Two round trips, and time for a delayed acknowledgement if a single segment is out.
            srtt8 => (srtt8 >> 2) + if self.board.out() == 1 { self.rtt.least() } else { TIMEOUT_MIN },
        };
        let timeout = if advancing { self.rtt.rto() } else { self.until_timeout(now) };
        if timeout > 0 {
            wait = wait.min(timeout);
        }
        self.arm(Pending::Probe, wait, now);
        true
    }

    /// Handles the deadline if it has passed.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        let pending = self.pending;
        self.batch.end();
        self.waits = false;
        self.disarm();
        match pending {
            Pending::Nothing => {}
            Pending::Retransmit => self.on_timeout(now),
            Pending::Probe => self.on_probe_timer(now),
            Pending::Reorder => self.on_reorder_timer(now),
            Pending::ZeroWindow => self.on_window_timer(now),
        }
    }

    /// `tcp_retransmit_timer`.
    fn on_timeout(&mut self, now: Time) {
        if self.board.out() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.expirations += 1;
        self.forced = Forced::Head;
        self.rexmit = Rexmit::Nothing;
        self.rtt.back_off();
        self.arm(Pending::Retransmit, self.rtt.rto(), now);
    }

    /// `tcp_send_loss_probe`: new data if it fits the window, otherwise the newest segment again.
    fn on_probe_timer(&mut self, now: Time) {
        self.pending = Pending::Probe;
        if self.probe_end != 0 || self.board.out() == 0 {
            self.rearm_timeout(now);
            return;
        }
        self.forced = if self.next_fits() { Forced::ProbeNew } else { Forced::ProbeOld };
        self.counters.probes += 1;
    }

    /// A probe has left: the timeout counts from now.
    pub(crate) fn probe_sent(&mut self, copy: bool, now: Time) {
        self.probe_is_copy = copy;
        self.probe_end = self.next;
        self.pending = Pending::Nothing;
        self.rearm_timeout(now);
    }

    /// `tcp_rack_reo_timeout`.
    fn on_reorder_timer(&mut self, now: Time) {
        self.pending = Pending::Reorder;
        let (in_flight, lost) = (self.board.in_flight(), self.board.total_lost);
        let conditions = self.conditions(now);
        let found = self.rack.detect(&mut self.board, &conditions);
        if self.board.in_flight() != in_flight {
            if self.phase != Phase::Recovery {
                self.enter_recovery(false, now);
                if !self.own_recovery && self.board.total_lost > lost {
                    self.prr.on_ack(1, self.controller_cwnd(), self.board.in_flight(), false);
                }
            }
            self.rexmit = Rexmit::Lost;
        }
        if found.look_again > 0 {
            self.set_reorder_timer(found.look_again, now);
        } else {
            self.rearm_timeout(now);
        }
    }

    /// Sets the timer of the zero-window probe if nothing is outstanding and new data waits (`tcp_check_probe_timer`).
    pub(crate) fn guard_window(&mut self, now: Time) {
        if self.pending == Pending::Nothing && self.board.out() == 0 && self.has_new_data() {
            self.arm(Pending::ZeroWindow, self.rtt.rto().max(self.rtt.least()), now);
        }
    }

    /// `tcp_send_probe0`.
    fn on_window_timer(&mut self, now: Time) {
        if self.board.out() != 0 || !self.has_new_data() {
            return;
        }
        self.window_probes += 1;
        self.forced = Forced::ZeroWindow;
        let wait = self.rtt.rto().max(self.rtt.least()) << self.window_probes.min(9);
        self.arm(Pending::ZeroWindow, wait.min(120_000_000), now);
    }
}
