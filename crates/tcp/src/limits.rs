//! What limits a sender, in time (`enum tcp_chrono` of include/linux/tcp.h): it has data or data in flight, and of that time the
//! receiver's window or the send buffer holds it back. As in Linux, a full congestion window comes before both.

use super::chrono::{Chrono, Limit};
use super::sender::Sender;
use weir_base::Time;
use weir_endpoint::Limits;

impl Sender {
    /// The congestion window is full.
    #[inline(always)]
    pub(crate) fn note_full_window(&mut self, now: Time) {
        self.chrono.set(Limit::Busy, now);
    }

    /// No more can be sent now, and the congestion window has room.
    #[inline]
    pub(crate) fn note_limit_of_data(&mut self, now: Time) {
        let waits_for_room = self.written.endless || self.buffer.is_awaited();
        let limit = if self.has_new_data() {
            // New data that fits waits for the pacer or, as a short segment, for the one before it.
            if self.is_beyond_window() { Limit::ReceiveWindow } else { Limit::Busy }
        } else if self.board.out() == 0 && !waits_for_room {
            Limit::Nothing
        } else if waits_for_room {
            Limit::SendBuffer
        } else {
            Limit::Busy
        };
        self.chrono.set(limit, now);
    }

    /// Whether the next new segment lies beyond the receiver's window.
    fn is_beyond_window(&self) -> bool {
        self.next_segment().is_some_and(|(len, _)| self.next + u64::from(len) > self.window_end())
    }

    /// For how long it was limited by what so far.
    pub(crate) fn limits(&self, now: Time) -> Limits {
        let Chrono { busy, receive_window, send_buffer, .. } = self.chrono.until(now);
        Limits { busy, receive_window, send_buffer, app_limited: self.delivery.rate_is_app_limited() }
    }
}
