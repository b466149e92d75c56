//! The header of an outgoing segment, with the sender's position and the receiver's fields, and the codepoint of its packet.

use super::super::transmit::Outgoing;
use super::{Connection, wire};
use weir_base::{Ecn, Time};
use weir_control::{Codepoint, Feedback};
use weir_endpoint::{AccEcnOption, Flags, Segment};

impl Connection {
    /// The codepoint of packets without new data: capable if the feedback reports marks on all packets, as in Linux for controllers
    /// that need ECN (`TCP_CONG_NEEDS_ECN`; RFC 8257, section 3.5) and for Accurate ECN (`tcp_ecn_send`).
    pub(super) fn control_codepoint(&self) -> Ecn {
        match self.agreed {
            Some(Feedback::Dctcp | Feedback::Accurate) => self.config.codepoint.as_ecn(),
            Some(Feedback::Classic) | None => Ecn::NotEct,
        }
    }

    /// The codepoint of new data. ECT(1) promises a reaction to each mark, which is impossible after the fallback to RFC 3168
    /// (RFC 9331, section 4.3).
    fn data_codepoint(&self) -> Ecn {
        match (self.agreed, self.config.codepoint) {
            (None, _) => Ecn::NotEct,
            (Some(Feedback::Classic), Codepoint::Ect1) if self.config.feedback == Feedback::Accurate => {
                Ecn::Ect0
            }
            (Some(_), codepoint) => codepoint.as_ecn(),
        }
    }

    /// Writes an acknowledgement without data.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, segment: &mut Segment, now: Time) {
        let next = self.sender.as_deref().map_or(1, |sender| sender.next);
        self.fill(segment, next, 0, Flags::ACK, now);
    }

    #[inline(always)]
    pub(super) fn put_on_wire(&mut self, outgoing: Outgoing, segment: &mut Segment, now: Time) -> Ecn {
        let mut flags = Flags::ACK;
        if outgoing.fin {
            flags = flags.with(Flags::FIN);
        }
        if outgoing.push {
            flags = flags.with(Flags::PSH);
        }
        if outgoing.cwr {
            flags = flags.with(Flags::CWR);
        }
        self.fill(segment, outgoing.start, outgoing.len, flags, now);
        let new_data = outgoing.new && outgoing.len > 0;
        let codepoint = if new_data { self.data_codepoint() } else { self.control_codepoint() };
        if outgoing.len > 0 {
            self.receiver.acks.on_data_sent(now);
        }
        if self.sender.as_deref().is_some_and(|sender| sender.batch.is_open()) {
            let plain =
                segment.flags == Flags::ACK && segment.sack.is_empty() && self.receiver.has_said_all();
            self.first_of_batch = if plain { Some((*segment, codepoint)) } else { None };
        }
        codepoint
    }

    /// The same for a segment that follows another one in a batch: it has the same header except for its position and PSH, unless
    /// the first one carried reports of the receiver.
    #[inline(always)]
    pub(super) fn put_next_on_wire(&mut self, outgoing: Outgoing, segment: &mut Segment, now: Time) -> Ecn {
        let Some((first, codepoint)) = &self.first_of_batch else {
            return self.put_on_wire(outgoing, segment, now);
        };
        *segment = *first;
        segment.seq = wire(outgoing.start, self.config.initial_sequence);
        if outgoing.push {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        *codepoint
    }

    /// Writes a segment at a position of this side that leaves now, with the receiver's fields.
    #[inline(always)]
    fn fill(&mut self, segment: &mut Segment, start: u64, len: u16, flags: Flags, now: Time) {
        self.compose(segment, start, len, flags, now);
        self.receiver.on_ack_sent();
    }

    /// Writes a segment at a position of this side.
    #[inline(always)]
    pub(super) fn compose(&mut self, segment: &mut Segment, start: u64, len: u16, flags: Flags, now: Time) {
        let receiver = &mut self.receiver;
        let peer = self.peer_sequence;
        let echo = receiver.echo();
        // All fields are named, since `segment` may hold an earlier segment.
        let Segment { seq, ack, window, tsval, tsecr, sack, len: payload, flags: bits, counters } = segment;
        *seq = wire(start, self.config.initial_sequence);
        *ack = wire(receiver.next, peer);
        *window = receiver.tell_window();
        *tsval = self.config.clock.ticks(now);
        *tsecr = receiver.recent;
        *payload = len;
        *bits = flags.with(echo);
        *counters = AccEcnOption::NONE;
        sack.clear();
        if self.config.sack && receiver.reassembly.has_news() {
            if let Some((start, end)) = receiver.reassembly.duplicate.take() {
                sack.push(wire(start, peer), wire(end, peer));
            }
            for &(start, end) in receiver.reassembly.blocks() {
                sack.push(wire(start, peer), wire(end, peer));
            }
        }
        if let Some(counted) = &mut receiver.accecn {
            if let Some((counters, matter)) = counted.option() {
                segment.add_counters(counters, matter, self.config.mss);
            }
            counted.on_ack_sent(segment.counters != AccEcnOption::NONE);
        }
    }
}
