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

#[cfg(test)]
mod tests {
    use crate::ack::Arrival;
    use crate::config::Config;
    use crate::sender::Sender;
    use crate::written::Written;
    use weir_base::{Bytes, Random, Span, Time};
    use weir_control::{Ack, Controller, Delivered, Phase};

    const MSS: u64 = 1000;
    const START: Time = Time::from_nanos(1_000_000_000);

    /// A controller with a fixed window that keeps the number of segments that it was last state of, by both hooks.
    #[derive(Default)]
    struct Losses {
        by_ack: u32,
        by_delivery: u32,
    }

    impl Controller for Losses {
        fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
            self.by_ack = ack.delivered_segments;
        }
        fn wants_delivered(&self) -> bool {
            true
        }
        fn on_delivered(&mut self, delivered: &Delivered) {
            self.by_delivery = delivered.segments;
        }
        fn window(&self) -> Bytes {
            Bytes::new(10 * MSS)
        }
        fn set_mss(&mut self, _: Bytes) {}
        fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
            report("by_ack", self.by_ack.into());
            report("by_delivery", self.by_delivery.into());
        }
    }

    /// A sender without SACK to which ten segments are written, all of which have left.
    fn ten_out() -> Sender {
        let config = Config { mss: MSS as u16, sack: false, ..Config::new("newreno".parse().unwrap()) };
        let written = Written { end: 1 + 10 * MSS, ..Written::default() };
        let mut sender = Sender::new(&config, written, START, 1 << 20, Some(20_000));
        sender.controller = Box::<Losses>::default();
        sender.wants_delivered = true;
        sender.read_window();
        while sender.poll(START).is_some() {}
        assert_eq!(sender.board.out(), 10);
        sender
    }

    /// Takes the acknowledgement of the first `segments` segments, which arrives after `millis`, and sends what may leave. Returns the
    /// segments delivered since the handshake, and those of which the controller is state by either hook.
    fn acknowledge(sender: &mut Sender, segments: u64, millis: u64) -> (u64, [f64; 2]) {
        let now = START + Span::from_millis(millis);
        let arrival = Arrival {
            ack: 1 + segments * MSS,
            seq: 0,
            window: 1 << 20,
            has_data: false,
            ece: false,
            feedback: None,
            tsval: sender.clock.ticks(now),
            tsecr: sender.clock.ticks(now - Span::from_millis(20)),
            sack: &[],
        };
        sender.on_ack(&arrival, now);
        while sender.poll(now).is_some() {}
        let mut state = vec![];
        sender.controller.state(&mut |_, value| state.push(value));
        (sender.delivery.delivered - 1, [state[0], state[1]])
    }

    #[test]
    fn a_duplicate_delivers_a_segment_of_which_the_second_hook_tells_with_the_next_acknowledgement() {
        // Segments 0 and 4 of ten are lost. Each of the other eight causes a duplicate.
        let mut sender = ten_out();
        for duplicate in 1..=8 {
            let before = if duplicate == 1 { 0.0 } else { 1.0 };
            assert_eq!(acknowledge(&mut sender, 0, 20), (duplicate, [1.0, before]), "duplicate {duplicate}");
            let phase = if duplicate < 3 { Phase::Disorder } else { Phase::Recovery };
            assert_eq!((sender.phase, sender.counters.retransmitted), (phase, u64::from(duplicate >= 3)));
        }
        // Segment 0 arrives again. Segments 1 to 3 were delivered before, so that one of the four is new.
        assert_eq!(acknowledge(&mut sender, 4, 40), (9, [1.0, 2.0]));
        assert_eq!((sender.phase, sender.counters.retransmitted), (Phase::Recovery, 2));
        // Segment 4 arrives again; the five after it were delivered before.
        assert_eq!(acknowledge(&mut sender, 10, 60), (10, [1.0; 2]));
        assert_eq!(
            (sender.phase, sender.counters.recoveries, sender.counters.timeouts),
            (Phase::Recovery, 1, 0)
        );
    }
}
