//! Room in the send buffer (`tcp_check_space`). An application that finds too little waits until a third of the buffer is free
//! (`SOCK_NOSPACE`), and the buffer grows only while an application waits and the window is not full. An application without end
//! always waits.

use super::sender::{Rexmit, Sender};
use weir_base::Time;

impl Sender {
    /// Grows the buffer, and wakes the application if there is room now. Called after an acknowledgement, before anything is
    /// sent in response.
    #[inline(always)]
    pub(crate) fn check_space(&mut self, now: Time) {
        if !self.written.endless && !self.buffer.is_awaited() {
            return;
        }
        let segments = self.cwnd().max(self.rack.reordering + 1);
        if self.buffer.is_short_of(segments) && self.leaves_window_open(now) {
            self.buffer.expand(segments);
        }
        if self.buffer.is_awaited() {
            self.buffer.wake(self.held());
        }
    }

    /// Whether the window is not full (`tcp_should_expand_sndbuf`) at one of the times at which Linux looks: after each new segment
    /// that is sent in response to the acknowledgement (`tcp_event_new_data_sent`), and when no more can be sent
    /// (`tcp_data_snd_check`). Retransmissions leave before that.
    #[inline(never)]
    fn leaves_window_open(&self, now: Time) -> bool {
        let lost =
            if self.rexmit == Rexmit::Lost { self.board.lost.saturating_sub(self.board.retrans) } else { 0 };
        match self.cwnd().saturating_sub(self.board.in_flight() + lost) {
            0 => false,
            1 => !self.next_fits() || now < self.new_data_ready_at(),
            // One new segment is sent or none; either way there is room for another.
            _ => true,
        }
    }

    /// An application without end fills the buffer when it is woken; a greedy one does so whenever it can.
    #[inline(always)]
    pub(crate) fn fill_buffer(&mut self) {
        if self.written.greedy || self.buffer.wakes(self.held()) {
            self.write_until_full();
        }
    }

    #[inline(never)]
    fn write_until_full(&mut self) {
        let full = self.una + self.buffer.capacity() + self.buffer.shared(self.board.merged);
        if full > self.written.end {
            self.check_app_limited();
            let from = std::mem::replace(&mut self.written.end, full);
            self.note_written(from, true);
        }
    }

    /// The application has written the data from this position on, and may have filled the buffer.
    pub(crate) fn note_written(&mut self, from: u64, full: bool) {
        self.filled |= full;
        if !self.written.greedy {
            self.written.note(from, full, self.max_window);
        }
    }

    /// Payload bytes that the buffer holds, as far as they take memory: less what neighbours that share a buffer save.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.written.beyond(self.una).saturating_sub(self.buffer.shared(self.board.merged))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ack::Arrival;
    use super::super::config::Config;
    use super::super::written::Written;
    use super::*;
    use weir_endpoint::Segment;

    const MSS: u64 = 1448;

    /// A sender with a window of ten segments that has sent all of `written`, of which the first `acknowledged` are delivered.
    fn sender(written: u64, acknowledged: u64) -> Sender {
        let config =
            Config { mss: MSS as u16, ..Config::new("newreno".parse().expect("it is in the registry")) };
        let data = Written { end: 1 + written * MSS, ..Written::default() };
        let mut sender = Sender::new(&config, data, Time::ZERO, 1 << 20, Some(20_000));
        while sender.poll(Time::ZERO).is_some() {}
        sender.una = 1 + acknowledged * MSS;
        sender.board.pop_through(sender.una);
        sender
    }

    #[test]
    fn a_window_that_stays_full_leaves_the_buffer_as_it_is() {
        let now = Time::ZERO;
        assert!(!sender(30, 0).leaves_window_open(now), "ten are in flight");
        assert!(!sender(30, 1).leaves_window_open(now), "one more can be sent, and the window is full again");
        assert!(
            sender(30, 2).leaves_window_open(now),
            "two more can be sent; after the first there is room for one"
        );
        assert!(sender(10, 1).leaves_window_open(now), "nothing more is written");
    }

    #[test]
    fn an_application_that_waits_for_room_does_not_limit_the_sender_until_it_writes_again() {
        // A fixed buffer of twelve segments and a window of ten.
        let fixed = weir_base::Bytes::new(12 * 2280);
        let config = Config {
            mss: MSS as u16,
            send_buffer: (fixed, fixed),
            ..Config::new("newreno".parse().expect("it is in the registry"))
        };
        let endless = Written { endless: true, ..Written::default() };
        let mut sender = Sender::new(&config, endless, Time::ZERO, 1 << 20, Some(20_000));
        while sender.poll(Time::ZERO).is_some() {}
        let now = Time::ZERO + weir_base::Span::from_millis(20);
        let mut answer = |first: u64, sacked: u64| {
            let sack = [(1 + (first + 1) * MSS, 1 + (first + 1 + sacked) * MSS)];
            let segment = Segment { window: 1 << 20, ..Segment::default() };
            let sack = &sack[..usize::from(sacked > 0)];
            let arrival = Arrival::plain(&segment, 1 + first * MSS, 0, sack);
            sender.on_ack(&arrival, now);
            sender.check_space(now);
            while sender.poll(now).is_some() {}
            (sender.board.in_flight(), sender.delivery.is_app_limited())
        };
        // Two are delivered beyond the first one, which is missing, and the other two are sent. Then nothing is left to send.
        assert_eq!(answer(0, 2), (10, false));
        assert!(!answer(0, 6).1, "no room is left in the buffer, so the application has not written");
        // All twelve are acknowledged: the application finds nothing in flight when it writes.
        assert!(answer(12, 0).1);
    }

    #[test]
    fn sacked_neighbours_take_the_memory_of_one_head() {
        let mut sender = sender(30, 0);
        assert_eq!(sender.held(), 30 * MSS);
        (1..10).for_each(|number| sender.board.mark_sacked(number));
        // Eight heads of 832 bytes are 2.9 segments of 2280.
        assert_eq!(sender.held(), 28 * MSS);
        let mut sender = self::sender(30, 0);
        (1..10).step_by(2).for_each(|number| sender.board.mark_sacked(number));
        assert_eq!(sender.held(), 30 * MSS, "behind each missing segment stands a single one");
    }
}
