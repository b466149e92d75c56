//! Segments without special flags of a connection without ECN that are not of the two most frequent kinds: data beyond a gap, and
//! acknowledgements with SACK blocks or with other news for the sender. A part of what is done for any other segment suffices for them.

use super::super::ack::Arrival;
use super::super::receiver::Data;
use super::{Connection, position, positions, wire};
use weir_base::{Ecn, Time};
use weir_endpoint::{Flags, MAX_SACK, Segment};

impl Connection {
    /// Takes data beyond the next data in order, without special flags, from a peer to which nothing is outstanding, and returns whether
    /// the segment is such data.
    #[inline]
    pub(super) fn on_data_ahead(&mut self, segment: &Segment, ecn: Ecn, now: Time) -> bool {
        let Some(sender) = self.sender.as_deref_mut() else { return false };
        let plain = segment.len > 0
            && (segment.flags == Flags::ACK || segment.flags == Flags::ACK.with(Flags::PSH))
            && segment.ack == wire(sender.una, self.config.initial_sequence)
            && segment.sack.is_empty()
            && self.agreed.is_none()
            && sender.board.out() == 0;
        let Some(seq) = position(segment.seq, self.peer_sequence, self.receiver.next) else { return false };
        if !plain || seq <= self.receiver.next {
            return false;
        }
        let data = Data { fin: false, cwr: false, ..Data::of(segment, seq, ecn) };
        self.receiver.take_in(&data, sender.rtt.srtt(), sender.rtt.rto(), now);
        sender.on_window(seq, segment.window);
        self.report_blocks(now);
        true
    }

    /// Takes an acknowledgement without data or special flags that the sender does not predict, and returns whether the segment is one.
    #[inline]
    pub(super) fn on_plain_ack(&mut self, segment: &Segment, now: Time) -> bool {
        let Some(sender) = self.sender.as_deref_mut() else { return false };
        let seq = self.receiver.next;
        let plain = segment.len == 0
            && segment.flags == Flags::ACK
            && segment.seq == wire(seq, self.peer_sequence)
            && self.agreed.is_none();
        let Some(ack) = position(segment.ack, self.config.initial_sequence, sender.una) else { return false };
        if !plain {
            return false;
        }
        self.receiver.take_timestamp(seq, segment.tsval);
        let mut blocks = [(0, 0); MAX_SACK];
        let count = if self.config.sack {
            positions(&segment.sack, self.config.initial_sequence, sender.una, &mut blocks)
        } else {
            0
        };
        let arrival = Arrival::plain(segment, ack, seq, &blocks[..count]);
        sender.on_ack(&arrival, now);
        sender.check_space(now);
        true
    }
}
