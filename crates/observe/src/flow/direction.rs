//! One direction of a flow: what its sender sent, as far as the capture saw it, and what the receiver said of it.
//!
//! Data below the highest byte seen is late. If those bytes were seen before, it is a retransmission, or a copy that the network made. If they
//! were not, it is a retransmission of a segment that was lost before the capture, or the segment itself, overtaken by others. What was sent
//! before the segment that overtook it carries no later timestamp and no later IPv4 identification than that one. Where both are equal or
//! missing, time decides: no retransmission can answer a gap in less than a round trip. (Jaiswal et al., Measurement and Classification of
//! Out-of-Sequence Packets in a Tier-1 IP Backbone, 2007, has the cases; their thresholds are not used.)

use super::repeats::Repeats;
use super::round_trips::{Answer, RoundTrips};
use super::sequence::{Hole, Holes, Opening, START, Sequence};
use crate::packet::{Packet, Tcp};
use crate::rate::elapsed;
use crate::spread::Spread;
use std::collections::VecDeque;
use weir_base::{Span, Time};

/// Most timestamps that wait for their echo.
const MOST_WAITING: usize = 32;
/// The least round trip while none is known: Wireshark's bound for a segment that is out of order without a handshake (packet-tcp.c).
const LEAST_ROUND_TRIP: Span = Span::from_millis(3);
/// Two identifications further apart than this are not of one counter.
const NEAR_IDENTIFICATIONS: i16 = 1000;
/// Segments that are remembered, to find copies of them.
const REMEMBERED: usize = 4;
/// Bytes of the option with timestamps in each segment (RFC 7323, appendix A).
const STAMPS: u32 = 12;

/// Late data of a direction, each count in segments of the connection's size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Late {
    /// Retransmissions of what the capture has seen: it was lost behind the capture, or not at all.
    pub(crate) repeated: u64,
    /// Retransmissions of what it has not seen: it was lost before the capture, or missed by it.
    pub(crate) filling: u64,
    /// Segments that came after others that were sent later.
    pub(crate) reordered: u64,
    /// Copies of segments that the sender sent once.
    pub(crate) copies: u64,
    /// Payload bytes of all retransmissions.
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Direction {
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    /// Packets with data, and their bytes of data.
    pub(crate) data_packets: u64,
    pub(crate) payload: u64,
    /// Data packets as the network carries them: a packet that the card still has to cut counts as its segments.
    pub(crate) segments: u64,
    /// Packets by the bits of their ECN field.
    pub(crate) ecn: [u64; 4],
    /// Acknowledgements of this direction that report marks (ECE).
    pub(crate) echoed_marks: u64,
    pub(crate) late: Late,
    pub(crate) syn_repeats: u64,
    pub(crate) keepalives: u64,
    /// Segments whose numbers are of another connection.
    pub(crate) implausible: u64,
    /// The shortest time from a timestamp to its echo.
    pub(crate) echo: Option<Span>,
    sequence: Sequence,
    high: u64,
    acked: u64,
    holes: Holes,
    repeats: Repeats,
    syn: Option<u32>,
    mss: Option<u16>,
    largest: u32,
    has_stamps: bool,
    newest_stamp: Option<u32>,
    remembered: [(u32, u16); REMEMBERED],
    round_trips: RoundTrips,
    stamps: VecDeque<(u32, Time)>,
}

impl Direction {
    /// Whether this segment is below the highest one, so that it matters when it can have been sent.
    pub(crate) fn is_late(&self, tcp: &Tcp) -> bool {
        let mut sequence = self.sequence;
        sequence.is_known() && sequence.place(tcp.sequence).is_some_and(|place| place < self.high)
    }

    /// A packet that passes. `round_trip` is the shortest known one of the whole path; only a late segment needs it.
    pub(crate) fn count(&mut self, at: Time, packet: &Packet, round_trip: Option<Span>) {
        self.packets += 1;
        self.ip_bytes += u64::from(packet.length);
        self.ecn[packet.ecn as usize] += 1;
        match &packet.tcp {
            Some(tcp) => self.send(at, packet, tcp, round_trip),
            None => {
                self.data_packets += 1;
                self.segments += 1;
            }
        }
    }

    fn send(&mut self, at: Time, packet: &Packet, tcp: &Tcp, round_trip: Option<Span>) {
        if tcp.rst {
            return;
        }
        if tcp.payload > 0 {
            self.data_packets += 1;
            self.payload += u64::from(tcp.payload);
            self.largest = self.largest.max(tcp.payload);
        }
        let is_first = !self.sequence.is_known();
        let Some(from) = self.sequence.place(tcp.sequence) else {
            self.implausible += 1;
            return;
        };
        let stamp = tcp.timestamps.map(|(own, _)| own);
        let opening = Opening { at, stamp, identification: packet.identification.filter(|id| *id != 0) };
        if is_first {
            (self.high, self.acked) = (from, 0);
            if !tcp.syn {
                self.holes.open(Hole { from: 0, to: START, opening, is_acked: false });
            }
        }
        if tcp.syn {
            self.syn_repeats += u64::from(self.syn == Some(tcp.sequence));
            self.syn = Some(tcp.sequence);
            self.mss = tcp.mss;
            self.has_stamps = tcp.timestamps.is_some();
        }
        let to = from + u64::from(tcp.payload) + u64::from(tcp.syn) + u64::from(tcp.fin);
        if tcp.payload > 0 {
            self.segments += self.in_segments(tcp.payload.into());
        }
        if to > from && !tcp.syn {
            self.place(from, to, tcp, opening, round_trip);
        } else if to > from {
            self.high = self.high.max(to);
        }
        if let Some(own) = stamp {
            let is_newer = self.newest_stamp.is_none_or(|newest| (own.wrapping_sub(newest) as i32) > 0);
            if is_newer {
                self.newest_stamp = Some(own);
                if self.stamps.len() < MOST_WAITING {
                    self.stamps.push_back((own, at));
                }
            }
        }
    }

    /// Data, or a FIN, from one place to another.
    fn place(&mut self, from: u64, to: u64, tcp: &Tcp, opening: Opening, round_trip: Option<Span>) {
        let id = opening.identification;
        let is_copy = id.is_some_and(|id| self.remembered.contains(&(tcp.sequence, id)));
        if let Some(id) = id {
            self.remembered.rotate_right(1);
            self.remembered[0] = (tcp.sequence, id);
        }
        if from >= self.high {
            if from > self.high {
                self.holes.open(Hole { from: self.high, to: from, opening, is_acked: false });
            }
            self.high = to;
            self.round_trips.send(from, to, opening.at);
            return;
        }
        if tcp.payload <= 1 && to == self.high && !tcp.fin && self.acked >= to {
            self.keepalives += 1;
            return;
        }
        let late_end = to.min(self.high);
        // A FIN that is retransmitted alone is no data.
        let bytes = (late_end - from).min(tcp.payload.into());
        let segments = self.in_segments(bytes);
        let filled = self.holes.fill(from, late_end);
        self.high = self.high.max(to);
        if bytes == 0 {
            return;
        }
        let was_sent_again = match &filled {
            Some((_, gap)) => is_sent_after(&opening, gap, round_trip),
            None => !is_copy && !self.is_old(opening.stamp),
        };
        let late = &mut self.late;
        match (filled, was_sent_again) {
            (Some(_), true) => late.filling += segments,
            (Some(_), false) => late.reordered += segments,
            (None, true) => late.repeated += segments,
            (None, false) => late.copies += segments,
        }
        if was_sent_again {
            late.bytes += bytes;
            self.repeats.add(from, late_end, opening.stamp, late_end <= self.acked);
            self.round_trips.send_again(from, late_end);
        }
    }

    /// Whether a segment with this timestamp was sent before another one that has passed.
    fn is_old(&self, stamp: Option<u32>) -> bool {
        stamp.zip(self.newest_stamp).is_some_and(|(own, newest)| (own.wrapping_sub(newest) as i32) < 0)
    }

    /// An acknowledgement of what this direction sends, by the other end.
    pub(crate) fn acknowledge(&mut self, at: Time, number: u32, tcp: &Tcp) {
        self.echoed_marks += u64::from(tcp.ece && !tcp.syn);
        let echo = tcp.timestamps.map(|(_, echo)| echo);
        if let Some(echo) = echo {
            self.echo(at, echo);
        }
        let is_first = !self.sequence.is_known();
        let Some(to) = self.sequence.place(number) else { return };
        let opening = Opening { at, stamp: None, identification: None };
        if is_first {
            self.high = to;
            self.holes.open(Hole { from: 0, to, opening, is_acked: false });
        }
        let mut blocks = [None; 4];
        for (index, (from, end)) in tcp.sack.iter().map_while(|block| *block).enumerate() {
            let (Some(from), Some(end)) = (self.sequence.place(from), self.sequence.place(end)) else {
                break;
            };
            blocks[index] = Some((from, end));
        }
        // A duplicate SACK is the first block, and lies below the acknowledgement or within the second block (RFC 2883, section 4).
        let duplicate = match blocks {
            [Some((from, end)), second, ..] => Some((from, end))
                .filter(|_| end <= to || second.is_some_and(|(low, high)| low <= from && end <= high)),
            _ => None,
        };
        if let Some((from, end)) = duplicate {
            self.repeats.duplicate(from, end);
        }
        let answer = Answer {
            at,
            from: self.acked,
            to: to.max(self.acked),
            first_block: blocks[0].filter(|_| duplicate.is_none()),
            has_gap: blocks[usize::from(duplicate.is_some())].is_some(),
        };
        if to > self.acked {
            if to > self.high {
                let hole = Hole { from: self.high, to, opening, is_acked: true };
                self.holes.open(hole);
                self.high = to;
            }
            self.holes.acknowledge(to);
            self.repeats.acknowledge(self.acked, to, echo);
            self.acked = to;
        }
        // An acknowledgement that was overtaken says nothing new.
        if to == self.acked {
            self.round_trips.acknowledge(&answer);
        }
    }

    /// The other end echoes a timestamp of this direction, perhaps for the first time.
    fn echo(&mut self, at: Time, echo: u32) {
        let is_reached = |(own, _): &&(u32, Time)| (echo.wrapping_sub(*own) as i32) >= 0;
        while let Some(&(own, then)) = self.stamps.front().filter(is_reached) {
            self.stamps.pop_front();
            if own == echo {
                let took = elapsed(then, at);
                self.echo = Some(self.echo.map_or(took, |least| least.min(took)));
            }
        }
    }

    /// The number of segments in which a card sends this many bytes. Without a handshake their size is unknown, and they count as one.
    fn in_segments(&self, bytes: u64) -> u64 {
        self.segment().map_or(1, |size| bytes.div_ceil(size)).max(1)
    }

    /// The payload of a full segment, which the two SYNs have agreed on.
    fn segment(&self) -> Option<u64> {
        let mss = u32::from(self.mss?);
        Some(u64::from(mss.saturating_sub(if self.has_stamps { STAMPS } else { 0 }).max(1)))
    }

    /// What both SYNs have agreed on: segments of the smaller size, and timestamps if both have them.
    pub(crate) fn agree(directions: &mut [Direction; 2]) {
        let [first, second] = directions;
        first.mss = [first.mss, second.mss].into_iter().flatten().min();
        first.has_stamps &= second.has_stamps;
        (second.mss, second.has_stamps) = (first.mss, first.has_stamps);
    }

    /// Retransmitted segments.
    pub(crate) fn retransmissions(&self) -> u64 {
        self.late.repeated + self.late.filling
    }

    /// Retransmissions of what had arrived, as the receiver shows.
    pub(crate) fn spurious(&self) -> u64 {
        self.repeats.needless()
    }

    /// Bytes that passed unseen, and an estimate of their packets.
    pub(crate) fn missed(&self) -> (u64, u64) {
        let bytes = self.holes.missed();
        let size = self.segment().unwrap_or(u64::from(self.largest)).max(1);
        (bytes, bytes.div_ceil(size))
    }

    /// Bytes that were lost before the capture and never retransmitted there.
    pub(crate) fn unrepaired(&self) -> u64 {
        self.holes.unrepaired()
    }

    /// The shortest time from a packet at the capture to the receiver's answer there.
    pub(crate) fn nearest(&self) -> Option<Span> {
        [self.rtt().min(), self.echo].into_iter().flatten().min()
    }

    /// The round trips at the capture.
    pub(crate) fn rtt(&self) -> &Spread {
        self.round_trips.samples()
    }

    /// Whether this SYN begins another connection.
    pub(crate) fn is_new(&self, tcp: &Tcp) -> bool {
        self.sequence.is_known() && self.syn != Some(tcp.sequence)
    }
}

/// Whether a segment that fills a gap was sent after the segment that had shown the gap.
fn is_sent_after(own: &Opening, gap: &Opening, round_trip: Option<Span>) -> bool {
    let later = |(own, gap): (u32, u32)| own.wrapping_sub(gap) as i32;
    if let Some(stamps) = own.stamp.zip(gap.stamp).map(later).filter(|difference| *difference != 0) {
        return stamps > 0;
    }
    let later = |(own, gap): (u16, u16)| own.wrapping_sub(gap) as i16;
    let ids = own.identification.zip(gap.identification).map(later);
    if let Some(ids) = ids.filter(|difference| {
        *difference != 0 && (-NEAR_IDENTIFICATIONS..=NEAR_IDENTIFICATIONS).contains(difference)
    }) {
        return ids > 0;
    }
    elapsed(gap.at, own.at) >= round_trip.unwrap_or(LEAST_ROUND_TRIP)
}
