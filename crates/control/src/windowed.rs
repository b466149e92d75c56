//! The common part of loss-based controllers: a [`Window`] that is reduced at a loss, restored if the reduction was spurious,
//! collapses at a timeout and decays when it is not used. Each controller adds its growth and the size of its reductions.

use crate::{Ack, Congestion, Controller, Delivered, Feedback, Random, Restart, Signal, Timeout, Window};
use weir_base::{Bytes, Time};

/// A controller with a [`Window`]. Its hooks have the names and arguments of [`Controller`]'s; each says whether the window changes
/// before or after it.
pub(crate) trait Windowed: Send {
    /// The controller's window.
    fn base(&self) -> &Window;
    /// The controller's window.
    fn base_mut(&mut self) -> &mut Window;

    /// The threshold in segments after congestion, to which the window is reduced (Linux `ssthresh`). Also called at a timeout, with
    /// a loss as the signal.
    fn ssthresh(&mut self, signal: Signal, now: Time) -> u32;

    /// [`Controller::on_ack`]: the window may grow (Linux `cong_avoid`).
    fn on_ack(&mut self, ack: &Ack, random: &mut Random);
    /// [`Controller::on_delivered`].
    fn on_delivered(&mut self, delivered: &Delivered) {
        let _ = delivered;
    }
    /// [`Controller::keeps_queues_short`].
    fn keeps_queues_short(&self) -> bool {
        false
    }
    /// [`Controller::wants_delivered`].
    fn wants_delivered(&self) -> bool {
        false
    }
    /// [`Controller::wants_reduction`].
    fn wants_reduction(&self) -> bool {
        false
    }
    /// [`Controller::on_enter_recovery`], after the window has been reduced.
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        let _ = congestion;
    }
    /// [`Controller::on_exit_recovery`] (Linux `CA_EVENT_COMPLETE_CWR`).
    fn on_exit_recovery(&mut self, now: Time) {
        let _ = now;
    }
    /// [`Controller::on_undo`], after the window has been restored.
    fn on_undo(&mut self, now: Time) {
        let _ = now;
    }
    /// [`Controller::on_timeout`], after the window has collapsed.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let _ = timeout;
    }
    /// [`Controller::on_restart`], before the window decays.
    fn on_restart(&mut self, restart: &Restart) {
        let _ = restart;
    }
    /// [`Controller::window`]. A controller whose window may be below one segment, which [`Window`] cannot express, overrides it.
    fn window(&self) -> Bytes {
        self.base().bytes()
    }
    /// [`Controller::send_quantum`].
    fn send_quantum(&self) -> Option<Bytes> {
        None
    }
    /// [`Controller::feedback`].
    fn feedback(&self) -> Feedback {
        Feedback::Classic
    }
    /// [`Controller::set_mss`], after the window's segment size has changed.
    fn set_mss(&mut self, mss: Bytes) {
        let _ = mss;
    }
    /// [`Controller::state`], without the window.
    fn state(&self, report: &mut dyn FnMut(&'static str, f64));
}

impl<W: Windowed> Controller for W {
    #[inline(always)]
    fn on_ack(&mut self, ack: &Ack, random: &mut Random) {
        Windowed::on_ack(self, ack, random);
    }
    fn on_delivered(&mut self, delivered: &Delivered) {
        Windowed::on_delivered(self, delivered);
    }
    fn keeps_queues_short(&self) -> bool {
        Windowed::keeps_queues_short(self)
    }
    fn wants_delivered(&self) -> bool {
        Windowed::wants_delivered(self)
    }
    fn wants_reduction(&self) -> bool {
        Windowed::wants_reduction(self)
    }
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        let ssthresh = self.ssthresh(congestion.signal, congestion.now);
        self.base_mut().reduce(ssthresh, congestion);
        Windowed::on_enter_recovery(self, congestion);
    }
    fn on_exit_recovery(&mut self, now: Time) {
        self.base_mut().end_reduction();
        Windowed::on_exit_recovery(self, now);
    }
    fn on_undo(&mut self, now: Time) {
        self.base_mut().undo();
        Windowed::on_undo(self, now);
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        let ssthresh = timeout.reduce.then(|| self.ssthresh(Signal::Loss, timeout.now));
        self.base_mut().collapse(ssthresh, timeout);
        Windowed::on_timeout(self, timeout);
    }
    fn on_restart(&mut self, restart: &Restart) {
        Windowed::on_restart(self, restart);
        self.base_mut().restart(restart);
    }
    fn window(&self) -> Bytes {
        Windowed::window(self)
    }
    fn send_quantum(&self) -> Option<Bytes> {
        Windowed::send_quantum(self)
    }
    fn open_to(&mut self, window: Bytes) {
        self.base_mut().open_to(window);
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.base_mut().set_mss(mss);
        Windowed::set_mss(self, mss);
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        Some(self.base().threshold())
    }
    fn feedback(&self) -> Feedback {
        Windowed::feedback(self)
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cwnd_segments", f64::from(self.base().cwnd));
        Windowed::state(self, report);
    }
}
