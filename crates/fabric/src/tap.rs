//! Taps at the host edge: retransmissions, throughput and RTT for each segment, read from TCP headers as they leave and
//! reach the hosts. The same code measures simulated and real connections, so one definition serves both.
//!
//! An RTT sample is the time from a segment's departure to the first acknowledgement, cumulative or selective, that covers
//! it, or what [`RoundTrips::Acknowledgements`] says; segments that were sent more than once give none (Karn). The delay of
//! delayed acknowledgements is part of a sample, as in a sender's own RTT samples.

use crate::wire::Wire;
use crate::{RoundTrips, TcpView, config};
use std::collections::VecDeque;
use weir_base::{Ecn, Histogram, Span, Time};

/// Counters of one flow since they were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Data packets that left the sending host.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Retransmitted packets among them, as far as TCP headers tell; the engine adds those that another transport counts itself.
    pub retransmitted: u64,
    /// Times that the sending host's card refused data, which stayed unsent.
    pub refused: u64,
    /// Data packets that reached the receiving host.
    pub received_packets: u64,
    /// Their IP bytes.
    pub received_bytes: u64,
    /// Data packets among them that were marked CE.
    pub received_ce: u64,
    /// When the first packet of any kind, a handshake's included, reached the receiving host or left it.
    pub first_packet: Option<Time>,
    /// When the last packet of any kind reached the receiving host. On a connection, the answer to the receiver's FIN comes
    /// after the data.
    pub last_arrival: Option<Time>,
    /// When the last data packet reached the receiving host.
    pub last_data: Option<Time>,
    /// Number of RTT samples.
    pub rtt_count: u64,
    /// Sum of the RTT samples in nanoseconds.
    pub rtt_sum: u64,
    /// Smallest RTT sample; zero if there is none.
    pub rtt_min: Span,
    /// Largest RTT sample; zero if there is none.
    pub rtt_max: Span,
}

impl FlowCounters {
    /// Adds the counters of a later period.
    pub fn merge(&mut self, later: &FlowCounters) {
        let add = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part);
        add(&mut self.sent_packets, later.sent_packets);
        add(&mut self.sent_bytes, later.sent_bytes);
        add(&mut self.retransmitted, later.retransmitted);
        add(&mut self.refused, later.refused);
        add(&mut self.received_packets, later.received_packets);
        add(&mut self.received_bytes, later.received_bytes);
        add(&mut self.received_ce, later.received_ce);
        self.first_packet = self.first_packet.or(later.first_packet);
        self.last_arrival = later.last_arrival.or(self.last_arrival);
        self.last_data = later.last_data.or(self.last_data);
        if later.rtt_count > 0 {
            self.rtt_min = if self.rtt_count == 0 { later.rtt_min } else { self.rtt_min.min(later.rtt_min) };
            self.rtt_max = self.rtt_max.max(later.rtt_max);
        }
        add(&mut self.rtt_count, later.rtt_count);
        add(&mut self.rtt_sum, later.rtt_sum);
    }

    /// Widens the range of RTT samples by one outside it.
    #[inline]
    fn widen(&mut self, rtt: Span) {
        self.rtt_min = if self.rtt_count == 0 { rtt } else { self.rtt_min.min(rtt) };
        self.rtt_max = self.rtt_max.max(rtt);
    }
}

/// A segment that is not acknowledged cumulatively.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Sequence number after its last byte.
    end: u32,
    /// Whether it no longer gives a sample: retransmitted, or acknowledged selectively.
    done: bool,
    selectively: bool,
    sent: Time,
}

/// The tap of one flow.
#[derive(Debug)]
struct Tap {
    from: u32,
    to: u32,
    group: u32,
    /// Whether `next` is known: data has been seen.
    begun: bool,
    /// Sequence number after the newest byte sent.
    next: u32,
    segments: VecDeque<Segment>,
    /// The SACK blocks of the last acknowledgement that had any, newest first.
    last_blocks: [(u32, u32); SACK_BLOCKS],
    counters: FlowCounters,
}

/// The most SACK blocks that a TCP header has room for (RFC 2018, section 3).
const SACK_BLOCKS: usize = 4;

/// The taps of all flows, and the RTTs of each group.
#[derive(Debug)]
pub(crate) struct Taps {
    flows: Vec<Tap>,
    round_trips: RoundTrips,
    pub(crate) group_rtts: Vec<Histogram>,
}

/// Whether sequence number `a` is before `b`, on the circle.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Taps {
    pub(crate) fn new(flows: &[config::Flow], groups: usize, round_trips: RoundTrips) -> Taps {
        let tap = |flow: &config::Flow| Tap {
            from: flow.from as u32,
            to: flow.to as u32,
            group: flow.group as u32,
            begun: false,
            next: 0,
            segments: VecDeque::new(),
            last_blocks: [(0, 0); SACK_BLOCKS],
            counters: FlowCounters::default(),
        };
        Taps {
            flows: flows.iter().map(tap).collect(),
            round_trips,
            group_rtts: vec![Histogram::new(); groups],
        }
    }

    /// A packet leaves a host.
    #[inline(always)]
    pub(crate) fn sent<P: Wire>(&mut self, host: usize, packet: &P, now: Time) {
        let Some(tap) = self.flows.get_mut(packet.flow().0 as usize) else { return };
        if tap.from != host as u32 {
            if tap.to == host as u32 {
                tap.counters.first_packet.get_or_insert(now);
            }
            return;
        }
        match packet.tcp() {
            Some(tcp) if tcp.payload == 0 => return,
            Some(tcp) => tap.segment_sent(tcp.sequence, tcp.sequence.wrapping_add(tcp.payload), now),
            None => {}
        }
        tap.counters.sent_packets += 1;
        tap.counters.sent_bytes += u64::from(packet.wire_length());
    }

    /// A packet reaches a host.
    #[inline(always)]
    pub(crate) fn received<P: Wire>(&mut self, host: usize, packet: &P, now: Time) {
        let Some(tap) = self.flows.get_mut(packet.flow().0 as usize) else { return };
        if tap.from == host as u32 {
            if let Some(tcp) = packet.tcp().filter(|tcp| tcp.ack && !tcp.syn && tap.begun) {
                let rtts = &mut self.group_rtts[tap.group as usize];
                match self.round_trips {
                    RoundTrips::Segments => tap.acknowledged(&tcp, now, rtts),
                    RoundTrips::Acknowledgements => tap.acknowledged_in_order(&tcp, now, rtts),
                }
            }
            return;
        }
        if tap.to != host as u32 {
            return;
        }
        tap.counters.first_packet.get_or_insert(now);
        tap.counters.last_arrival = Some(now);
        if packet.tcp().is_none_or(|tcp| tcp.payload > 0) {
            tap.counters.last_data = Some(now);
            tap.counters.received_packets += 1;
            tap.counters.received_bytes += u64::from(packet.wire_length());
            tap.counters.received_ce += u64::from(packet.ecn() == Ecn::Ce);
        }
    }

    /// A packet that another flow's host has sent is for this flow's receiver too.
    pub(crate) fn sent_too(&mut self, flow: u32, bytes: u32) {
        if let Some(tap) = self.flows.get_mut(flow as usize) {
            tap.counters.sent_packets += 1;
            tap.counters.sent_bytes += u64::from(bytes);
        }
    }

    /// The card of a flow's sending host has refused data.
    pub(crate) fn refused(&mut self, flow: usize) {
        self.flows[flow].counters.refused += 1;
    }

    /// The counters of a flow since they were last taken; `None` if nothing was counted.
    #[inline]
    pub(crate) fn take(&mut self, flow: usize) -> Option<FlowCounters> {
        let counters = &mut self.flows[flow].counters;
        (*counters != FlowCounters::default()).then(|| std::mem::take(counters))
    }
}

impl Tap {
    #[inline]
    fn segment_sent(&mut self, start: u32, end: u32, now: Time) {
        if !self.begun || !before(start, self.next) {
            (self.begun, self.next) = (true, end);
            self.segments.push_back(Segment { end, done: false, selectively: false, sent: now });
        } else {
            self.segment_resent(start, end, now);
        }
    }

    #[inline(never)]
    fn segment_resent(&mut self, start: u32, end: u32, now: Time) {
        self.counters.retransmitted += 1;
        let first = self.first_after(start);
        for segment in self.segments.iter_mut().skip(first) {
            segment.done = true;
            if !before(segment.end, end) {
                break;
            }
        }
        if before(self.next, end) {
            // A retransmission that also carries new bytes: they give no sample.
            self.next = end;
            self.segments.push_back(Segment { end, done: true, selectively: false, sent: now });
        }
    }

    #[inline(always)]
    fn acknowledged(&mut self, tcp: &TcpView<'_>, now: Time, rtts: &mut Histogram) {
        while let Some(&segment) = self.segments.front() {
            if before(tcp.acknowledgement, segment.end) {
                break;
            }
            self.segments.pop_front();
            if !segment.done {
                sample(&mut self.counters, rtts, now.since(segment.sent));
            }
        }
        if !tcp.sack.is_empty() {
            self.take_blocks(tcp, now, rtts);
        }
    }

    /// Takes the SACK blocks of an acknowledgement, except those that the last one had too.
    fn take_blocks(&mut self, tcp: &TcpView<'_>, now: Time, rtts: &mut Histogram) {
        for (index, block) in tcp.sack.iter().enumerate() {
            let &(start, end) = block;
            if !self.last_blocks.contains(block) && before(start, end) && before(tcp.acknowledgement, end) {
                self.selectively_acknowledged(start, end, index == 0, now, rtts);
            }
        }
        let count = tcp.sack.len().min(SACK_BLOCKS);
        self.last_blocks = Default::default();
        self.last_blocks[..count].copy_from_slice(&tcp.sack[..count]);
    }

    /// Index of the first segment that ends after this sequence number; the number of segments if there is none.
    fn first_after(&self, sequence: u32) -> usize {
        let segments = &self.segments;
        let known = |index: usize| segments.get(index).is_some_and(|segment| !before(sequence, segment.end));
        if !known(0) {
            return 0;
        }
        // Exact while all segments are as long as the second.
        let head = segments[0].end;
        let length = segments.get(1).map_or(1, |second| second.end.wrapping_sub(head).max(1));
        let guess = (sequence.wrapping_sub(head) / length) as usize;
        if known(guess) && !known(guess + 1) {
            return guess + 1;
        }
        segments.partition_point(|segment| !before(sequence, segment.end))
    }

    /// Only the segment that the cumulative number ends with gives a sample.
    fn acknowledged_in_order(&mut self, tcp: &TcpView<'_>, now: Time, rtts: &mut Histogram) {
        while let Some(segment) = self.segments.front().filter(|s| !before(tcp.acknowledgement, s.end)) {
            if segment.end == tcp.acknowledgement && !segment.done {
                sample(&mut self.counters, rtts, now.since(segment.sent));
            }
            self.segments.pop_front();
        }
    }

    /// Samples the segments that a SACK block acknowledges for the first time. A block grows at its ends, so the search goes
    /// inwards from both ends until it meets a known segment. If both ends of the newest block are known, a gap inside was
    /// filled: then the whole block is searched.
    fn selectively_acknowledged(
        &mut self,
        start: u32,
        end: u32,
        newest: bool,
        now: Time,
        rtts: &mut Histogram,
    ) {
        let (first, last) = (self.first_after(start), self.first_after(end));
        let counters = &mut self.counters;
        let mut new = |segment: &mut Segment| {
            if segment.selectively {
                return false;
            }
            if !segment.done {
                sample(counters, rtts, now.since(segment.sent));
            }
            (segment.done, segment.selectively) = (true, true);
            true
        };
        let (mut low, mut high) = (first, last);
        while high > low && new(&mut self.segments[high - 1]) {
            high -= 1;
        }
        while low < high && new(&mut self.segments[low]) {
            low += 1;
        }
        if newest && (low, high) == (first, last) {
            self.segments.range_mut(low..high).for_each(|segment| {
                new(segment);
            });
        }
    }
}

#[inline]
fn sample(counters: &mut FlowCounters, rtts: &mut Histogram, rtt: Span) {
    if !rtt.is_between(counters.rtt_min, counters.rtt_max) {
        counters.widen(rtt);
    }
    counters.rtt_count += 1;
    counters.rtt_sum += rtt.as_nanos();
    rtts.record(rtt);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Packet;

    fn tap() -> (Tap, Histogram) {
        let taps = Taps::new(&[config::Flow { from: 0, to: 1, group: 0 }], 1, RoundTrips::Segments);
        (taps.flows.into_iter().next().unwrap(), Histogram::new())
    }
    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }
    fn ack(acknowledgement: u32, sack: &[(u32, u32)]) -> TcpView<'_> {
        TcpView { sequence: 1, acknowledgement, payload: 0, syn: false, ack: true, sack }
    }

    #[test]
    fn each_segment_gives_one_rtt_sample_at_its_first_acknowledgement() {
        let (mut tap, mut rtts) = tap();
        (0..4).for_each(|i| tap.segment_sent(1000 * i, 1000 * (i + 1), ms(u64::from(i))));
        tap.acknowledged(&ack(2000, &[]), ms(20), &mut rtts); // 20 and 19 ms
        tap.acknowledged(&ack(2000, &[(3000, 4000)]), ms(23), &mut rtts); // 20 ms
        tap.acknowledged(&ack(4000, &[]), ms(62), &mut rtts); // 60 ms for the third; the fourth is known
        assert_eq!((rtts.count(), rtts.sum()), (4, 119_000_000));
    }

    #[test]
    fn in_order_rtt_samples_of_segments_behind_a_hole_wait_until_it_is_filled() {
        let (mut tap, mut rtts) = tap();
        (0..6).for_each(|i| tap.segment_sent(1000 * i, 1000 * (i + 1), ms(u64::from(i))));
        // The second of two segments: 20 ms. The third is lost.
        tap.acknowledged_in_order(&ack(2000, &[]), ms(21), &mut rtts);
        tap.acknowledged_in_order(&ack(2000, &[(3000, 6000)]), ms(25), &mut rtts);
        tap.segment_sent(2000, 3000, ms(26));
        // The last segment that arrived behind it: 41 ms, though it was known after 20.
        tap.acknowledged_in_order(&ack(6000, &[]), ms(46), &mut rtts);
        assert_eq!((rtts.count(), rtts.sum()), (2, 61_000_000));
    }

    #[test]
    fn a_retransmitted_segment_is_counted_and_gives_no_rtt_sample() {
        let (mut tap, mut rtts) = tap();
        let wrap = u32::MAX - 499;
        tap.segment_sent(wrap, 500, ms(0));
        tap.segment_sent(500, 1500, ms(0));
        tap.segment_sent(wrap, 500, ms(30));
        tap.acknowledged(&ack(1500, &[]), ms(50), &mut rtts);
        assert_eq!(
            (tap.counters.retransmitted, rtts.count(), tap.counters.rtt_max),
            (1, 1, Span::from_millis(50))
        );
    }

    #[test]
    fn the_first_segment_after_a_sequence_number_is_found_among_segments_of_any_length() {
        for lengths in [&[1000; 6][..], &[1000, 300, 1000, 1, 1000], &[1, 700, 700, 700, 2, 700], &[500], &[]]
        {
            // Sequence numbers wrap within the segments.
            let begin = 0u32.wrapping_sub(900);
            let (mut tap, _) = tap();
            let mut ends = vec![];
            for &length in lengths {
                let start = *ends.last().unwrap_or(&begin);
                ends.push(start.wrapping_add(length));
                tap.segment_sent(start, start.wrapping_add(length), ms(0));
            }
            for offset in 0..5000 {
                let sequence = begin.wrapping_add(offset);
                let expected = ends.iter().filter(|&&end| !before(sequence, end)).count();
                assert_eq!(tap.first_after(sequence), expected, "{lengths:?} at {offset}");
            }
        }
    }

    #[test]
    fn sack_blocks_that_grow_at_either_end_are_counted_once() {
        let (mut tap, mut rtts) = tap();
        (0..10).for_each(|i| tap.segment_sent(1000 * i, 1000 * (i + 1), ms(0)));
        tap.acknowledged(&ack(0, &[(5000, 6000)]), ms(10), &mut rtts);
        tap.acknowledged(&ack(0, &[(5000, 8000)]), ms(10), &mut rtts);
        tap.acknowledged(&ack(0, &[(3000, 8000)]), ms(10), &mut rtts);
        tap.acknowledged(&ack(0, &[(3000, 8000), (1000, 2000)]), ms(10), &mut rtts);
        assert_eq!(rtts.count(), 6);
        tap.acknowledged(&ack(0, &[(1000, 8000)]), ms(10), &mut rtts);
        assert_eq!(rtts.count(), 7, "the segment that joins two blocks counts too");
        assert_eq!(tap.segments.iter().filter(|s| s.selectively).count(), 7);
    }

    #[test]
    fn a_flow_is_counted_at_its_own_ends_and_not_at_hosts_on_the_way() {
        #[derive(Debug)]
        struct OfFlow0;
        impl Packet for OfFlow0 {
            fn wire_length(&self) -> u32 {
                1500
            }
            fn flow(&self) -> weir_base::FlowId {
                weir_base::FlowId(0)
            }
            fn ecn(&self) -> Ecn {
                Ecn::NotEct
            }
            fn mark_ce(&mut self) {}
            fn arrive(&mut self, _: Time) {}
            fn arrived(&self) -> Time {
                Time::ZERO
            }
            fn class(&self) -> Ecn {
                Ecn::NotEct
            }
        }
        impl Wire for OfFlow0 {
            fn destination(&self) -> usize {
                3
            }
            fn tcp(&self) -> Option<TcpView<'_>> {
                None
            }
            fn relabel(&mut self, _: Ecn) {}
            fn turn_round(&mut self) -> bool {
                false
            }
            fn write_to(&self, _: &mut Vec<u8>) {}
            fn duplicate(&self) -> OfFlow0 {
                OfFlow0
            }
            fn corrupt(&mut self) {}
            fn is_corrupt(&self) -> bool {
                false
            }
        }
        let flow = config::Flow { from: 0, to: 3, group: 0 };
        let mut taps = Taps::new(&[flow], 1, RoundTrips::Segments);
        // From host 0 over the hosts 1 and 2, each of which takes the packet in and sends it on, to host 3, and back.
        for (at, (from, to)) in [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)].into_iter().enumerate() {
            taps.sent(from, &OfFlow0, ms(at as u64));
            taps.received(to, &OfFlow0, ms(at as u64));
        }
        let seen = taps.take(0).unwrap();
        assert_eq!((seen.sent_packets, seen.received_packets), (1, 1));
        assert_eq!((seen.first_packet, seen.last_arrival), (Some(ms(2)), Some(ms(2))));
        assert_eq!(taps.take(0), None);
    }
}
