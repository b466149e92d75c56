//! What loss-based controllers have in common: a [`Window`] that comes down at a loss, comes back if that was a mistake,
//! collapses at a timeout and decays when it is not used. Each of them adds how it grows and how far it comes down.

use crate::{Ack, Congestion, Controller, Delivered, Feedback, Random, Restart, Signal, Timeout, Window};
use weir_base::{Bytes, Time};

/// A controller around a [`Window`].
pub(crate) trait Windowed: Send {
    /// Its window.
    fn base(&self) -> &Window;
    /// Its window.
    fn base_mut(&mut self) -> &mut Window;

    /// An acknowledgement: the window may grow (Linux `cong_avoid`).
    fn acknowledged(&mut self, ack: &Ack, random: &mut Random);
    /// What the acknowledgement delivered (see [`Controller::on_delivered`]).
    fn delivered(&mut self, delivered: &Delivered) {
        let _ = delivered;
    }
    /// Whether it wants to be told what was delivered.
    fn watches(&self) -> bool {
        false
    }
    /// Whether the acknowledgement makes it come down (see [`Controller::wants_reduction`]).
    fn asks(&self) -> bool {
        false
    }
    /// The new threshold in segments when congestion is answered (Linux `ssthresh`). A timeout asks as a loss does.
    fn reduced(&mut self, signal: Signal, now: Time) -> u32;
    /// The window has come down for a loss or a mark.
    fn came_down(&mut self, now: Time) {
        let _ = now;
    }
    /// The reduction is over (Linux `CA_EVENT_COMPLETE_CWR`).
    fn settled(&mut self, now: Time) {
        let _ = now;
    }
    /// The window has collapsed at a timeout.
    fn collapsed(&mut self, timeout: &Timeout) {
        let _ = timeout;
    }
    /// The window has come back.
    fn came_back(&mut self) {}
    /// Sending begins again after idleness, or the window was not used.
    fn restarts(&mut self, restart: &Restart) {
        let _ = restart;
    }
    /// The window where it is below one segment, which [`Window`] cannot say.
    fn fraction(&self) -> Option<Bytes> {
        None
    }
    /// What leaves at once (see [`Controller::send_quantum`]).
    fn together(&self) -> Option<Bytes> {
        None
    }
    /// The congestion feedback that it needs.
    fn needs(&self) -> Feedback {
        Feedback::Classic
    }
    /// What it knows besides the window.
    fn describe(&self, report: &mut dyn FnMut(&'static str, f64));
}

impl<W: Windowed> Controller for W {
    fn on_ack(&mut self, ack: &Ack, random: &mut Random) {
        self.acknowledged(ack, random);
    }
    fn on_delivered(&mut self, delivered: &Delivered) {
        self.delivered(delivered);
    }
    fn wants_delivered(&self) -> bool {
        self.watches()
    }
    fn wants_reduction(&self) -> bool {
        self.asks()
    }
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        let ssthresh = self.reduced(congestion.signal, congestion.now);
        self.base_mut().reduce(ssthresh, congestion);
        self.came_down(congestion.now);
    }
    fn on_exit_recovery(&mut self, now: Time) {
        self.base_mut().end_reduction();
        self.settled(now);
    }
    fn on_undo(&mut self, _: Time) {
        self.base_mut().undo();
        self.came_back();
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        let ssthresh = timeout.reduce.then(|| self.reduced(Signal::Loss, timeout.now));
        self.base_mut().collapse(ssthresh, timeout);
        self.collapsed(timeout);
    }
    fn on_restart(&mut self, restart: &Restart) {
        self.restarts(restart);
        self.base_mut().restart(restart);
    }
    fn window(&self) -> Bytes {
        self.fraction().unwrap_or_else(|| self.base().bytes())
    }
    fn send_quantum(&self) -> Option<Bytes> {
        self.together()
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        Some(self.base().threshold())
    }
    fn feedback(&self) -> Feedback {
        self.needs()
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cwnd_segments", f64::from(self.base().cwnd));
        self.describe(report);
    }
}
