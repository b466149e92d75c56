//! Flows of a few packets, each of which can be judged by hand. Segments have 1000 bytes.

use super::*;
use crate::packet::TCP;
use weir_base::Ecn;

/// A packet of the flow: from the sender of data (0) or the receiver (1).
struct Sent {
    at: u64,
    from: usize,
    packet: Packet,
}

fn packet(from: usize, tcp: Tcp) -> Packet {
    let ends = [([10, 0, 0, 1].into(), 5000), ([10, 0, 0, 2].into(), 80)];
    Packet {
        addresses: [ends[from].0, ends[1 - from].0],
        protocol: TCP,
        ports: [ends[from].1, ends[1 - from].1],
        ecn: Ecn::NotEct,
        identification: Some(0),
        is_atomic: true,
        length: 40 + tcp.payload,
        tcp: Some(tcp),
    }
}

/// Segment n at this millisecond: its sequence number is 1 + 1000 n.
fn data(at: u64, segment: u32) -> Sent {
    let tcp = Tcp {
        sequence: (1 + 1000 * segment).wrapping_add(OFFSET),
        acknowledgement: Some(1),
        payload: 1000,
        ..Tcp::default()
    };
    Sent { at, from: 0, packet: packet(0, tcp) }
}

/// Sequence numbers begin so high that they wrap after the third segment.
const OFFSET: u32 = u32::MAX - 3000;

/// An acknowledgement of all segments below n.
fn ack(at: u64, segment: u32) -> Sent {
    let acknowledgement = Some((1 + 1000 * segment).wrapping_add(OFFSET));
    Sent { at, from: 1, packet: packet(1, Tcp { sequence: 1, acknowledgement, ..Tcp::default() }) }
}

fn syn() -> [Sent; 2] {
    let first = Tcp { sequence: OFFSET, syn: true, mss: Some(1000), ..Tcp::default() };
    let second = Tcp {
        sequence: 0,
        acknowledgement: Some(OFFSET.wrapping_add(1)),
        syn: true,
        mss: Some(1460),
        ..Tcp::default()
    };
    [(0, 0, first), (20, 1, second)].map(|(at, from, tcp)| Sent { at, from, packet: packet(from, tcp) })
}

impl Sent {
    fn tcp(mut self, change: impl FnOnce(&mut Tcp)) -> Sent {
        self.packet.tcp.as_mut().map(change);
        self
    }
    /// With its own timestamp and the echo of the other end's.
    fn stamped(self, own: u32, echo: u32) -> Sent {
        self.tcp(|tcp| tcp.timestamps = Some((own, echo)))
    }
    fn identified(mut self, identification: u16) -> Sent {
        self.packet.identification = Some(identification);
        self
    }
    /// With a SACK block of the segments from a to b, b excluded.
    fn sack(self, a: u32, b: u32) -> Sent {
        let place = |segment: u32| (1 + 1000 * segment).wrapping_add(OFFSET);
        self.tcp(|tcp| tcp.sack[0] = Some((place(a), place(b))))
    }
}

fn flow(packets: impl IntoIterator<Item = Sent>) -> Flow {
    let mut flow: Option<Flow> = None;
    for Sent { at, from, packet } in packets {
        let at = Time::from_nanos(at * 1_000_000);
        let (key, is_back) = Key::of(&packet);
        assert_eq!(usize::from(is_back), from);
        flow.get_or_insert_with(|| Flow::new(key, &packet, at, from)).count(at, &packet, from);
    }
    flow.unwrap()
}

/// Segments seen twice, retransmissions seen once, reordered segments, copies.
fn late(flow: &Flow) -> [u64; 4] {
    let late = &flow.directions[0].late;
    [late.repeated, late.filling, late.reordered, late.copies]
}

/// The handshake, with a path of 20 ms to the receiver and 10 ms to the sender.
fn begun(packets: impl IntoIterator<Item = Sent>) -> Flow {
    flow(syn().into_iter().chain([ack_of_syn()]).chain(packets))
}

fn ack_of_syn() -> Sent {
    data(30, 0).tcp(|tcp| tcp.payload = 0)
}

#[test]
fn data_that_was_seen_is_a_retransmission() {
    let flow = begun([data(30, 0), data(31, 1), data(32, 2), data(33, 3), data(100, 1), ack(130, 4)]);
    assert_eq!(late(&flow), [1, 0, 0, 0]);
    assert_eq!(flow.directions[0].late.bytes, 1000);
}

#[test]
fn data_in_a_gap_is_judged_by_timestamps_then_identifications_then_time() {
    let around = |late: Sent, gap: Sent| begun([data(30, 0), gap, late]);
    let judged = |flow: Flow| late(&flow);
    let (sent_again, reordered) = ([0, 1, 0, 0], [0, 0, 1, 0]);
    // 2 ms after the gap, but sent later.
    assert_eq!(judged(around(data(33, 1).stamped(8, 0), data(31, 2).stamped(7, 0))), sent_again);
    assert_eq!(judged(around(data(90, 1).stamped(6, 0), data(31, 2).stamped(7, 0))), reordered);
    assert_eq!(judged(around(data(33, 1).identified(2), data(31, 2).identified(u16::MAX))), sent_again);
    assert_eq!(judged(around(data(90, 1).identified(6), data(31, 2).identified(7))), reordered);
    // The round trip is 30 ms.
    assert_eq!(judged(around(data(60, 1), data(31, 2))), reordered);
    assert_eq!(judged(around(data(61, 1), data(31, 2))), sent_again);
}

#[test]
fn a_copy_by_the_network_is_no_retransmission() {
    let twice = |at| data(at, 1).identified(9);
    assert_eq!(late(&begun([data(30, 0).identified(8), twice(31), twice(32)])), [0, 0, 0, 1]);
    // Older than what passed before it.
    let old = begun([data(30, 0).stamped(1, 0), data(31, 1).stamped(2, 0), data(32, 0).stamped(1, 0)]);
    assert_eq!(late(&old), [0, 0, 0, 1]);
}

#[test]
fn a_packet_that_its_card_still_has_to_cut_counts_as_its_segments() {
    let large = |at| data(at, 0).tcp(|tcp| tcp.payload = 3500);
    let flow = begun([large(30), large(90)]);
    assert_eq!((late(&flow), flow.directions[0].segments), ([4, 0, 0, 0], 8));
}

#[test]
fn a_retransmission_is_spurious_if_the_receiver_shows_that_the_original_arrived() {
    let original = || [data(30, 0).stamped(1, 0), data(31, 1).stamped(1, 0)];
    let again = || data(80, 0).stamped(5, 0);
    let spurious = |rest: Vec<Sent>| {
        let flow = begun(original().into_iter().chain([again()]).chain(rest));
        assert_eq!(late(&flow), [1, 0, 0, 0]);
        flow.directions[0].spurious()
    };
    // The echo is of the retransmission; of the original; then a duplicate SACK of it as well.
    assert_eq!(spurious(vec![ack(100, 2).stamped(0, 5)]), 0);
    assert_eq!(spurious(vec![ack(100, 2).stamped(0, 1)]), 1);
    assert_eq!(spurious(vec![ack(100, 2).stamped(0, 1), ack(101, 2).stamped(0, 1).sack(0, 1)]), 1);
    assert_eq!(spurious(vec![ack(100, 2), ack(101, 2).sack(0, 1)]), 1);
    // A SACK above the acknowledgement is not a duplicate one.
    assert_eq!(spurious(vec![ack(100, 1), ack(101, 1).sack(1, 2)]), 0);
    // Acknowledged before it was retransmitted.
    let flow = begun(original().into_iter().chain([ack(60, 2), again()]));
    assert_eq!(flow.directions[0].spurious(), 1);
}

#[test]
fn the_echo_of_a_second_repaired_gap_does_not_make_it_spurious() {
    // Segments 0 and 1 are lost and retransmitted at 80 and 81 ms; one acknowledgement covers both and echoes the first (RFC 7323).
    let lost = [data(32, 2).stamped(1, 0), ack(52, 0).sack(2, 3)];
    let again = [data(80, 0).stamped(5, 0), data(81, 1).stamped(6, 0), ack(101, 3).stamped(0, 5)];
    let flow = begun(lost.into_iter().chain(again));
    assert_eq!((late(&flow), flow.directions[0].spurious()), ([0, 2, 0, 0], 0));
}

#[test]
fn what_is_acknowledged_and_not_seen_was_missed_by_the_capture() {
    // Segment 1 in the middle, and segment 3 at the end.
    let flow = begun([data(30, 0), data(32, 2), ack(52, 2), ack(53, 4)]);
    assert_eq!(flow.directions[0].missed(), (2000, 2));
    assert_eq!((late(&flow), flow.directions[0].unrepaired()), ([0; 4], 0));
    // Segment 1 was lost before the capture, for good.
    let flow = begun([data(30, 0), data(32, 2), ack(52, 1)]);
    assert_eq!((flow.directions[0].missed(), flow.directions[0].unrepaired()), ((0, 0), 1000));
}

#[test]
fn a_capture_that_begins_within_a_connection_misses_nothing_before_it() {
    let flow = flow([ack(29, 3), data(30, 5), ack(31, 4), data(32, 6), ack(52, 7)]);
    // Segments 3 and 4: acknowledged after the capture began, and not seen.
    assert_eq!(flow.directions[0].missed(), (2000, 2));
    assert_eq!(late(&flow), [0; 4]);
}

#[test]
fn the_round_trip_is_that_to_both_ends_and_tells_where_the_capture_is() {
    let flow = begun([data(30, 0), data(40, 1), ack(65, 2)]);
    assert_eq!(flow.round_trip(), Some(Span::from_millis(30)));
    assert_eq!((flow.opener, flow.side()), (0, Some(Side::Between)));
    // One acknowledgement gives one sample, 65 - 40 ms, which stands for both segments.
    let rtt = flow.directions[0].rtt().histogram();
    assert_eq!(
        (rtt.count(), rtt.min(), rtt.max()),
        (2, Some(Span::from_millis(25)), Some(Span::from_millis(25)))
    );
    // The same with the receiver 1 ms away.
    let [first, mut second] = syn();
    second.at = 1;
    let near = super::tests::flow([first, second, ack_of_syn()]);
    assert_eq!((near.round_trip(), near.side()), (Some(Span::from_millis(30)), Some(Side::Second)));
}

#[test]
fn marks_are_counted_as_they_pass_and_as_they_are_echoed() {
    let mut marked = data(31, 1);
    marked.packet.ecn = Ecn::Ce;
    let flow = begun([data(30, 0), marked, ack(51, 2).tcp(|tcp| tcp.ece = true)]);
    assert_eq!(flow.directions[0].ecn[Ecn::Ce as usize], 1);
    assert_eq!(flow.directions[0].echoed_marks, 1);
}

#[test]
fn a_probe_of_an_idle_connection_is_no_retransmission() {
    let probe = data(9000, 0).tcp(|tcp| {
        tcp.sequence = tcp.sequence.wrapping_add(999);
        tcp.payload = 1;
    });
    let flow = begun([data(30, 0), ack(50, 1), probe]);
    assert_eq!((late(&flow), flow.directions[0].keepalives), ([0; 4], 1));
}

#[test]
fn a_number_that_no_window_reaches_is_of_another_connection() {
    let far = data(31, 0).tcp(|tcp| tcp.sequence = tcp.sequence.wrapping_add(1 << 31));
    let flow = begun([data(30, 0), far, data(32, 1)]);
    assert_eq!((late(&flow), flow.directions[0].implausible), ([0; 4], 1));
}

#[test]
fn a_path_that_reorders_gives_round_trips_and_a_duplicate_sack_gives_none() {
    // Segment 2 overtakes segment 1, which arrives 3 ms later.
    let overtaken = [data(30, 0), data(31, 1), data(32, 2), ack(80, 1), ack(82, 1).sack(2, 3), ack(85, 3)];
    let round_trips = |flow: &Flow| {
        let rtt = flow.directions[0].rtt().histogram();
        (rtt.count(), (rtt.mean().unwrap().as_nanos() * rtt.count()).div_ceil(1_000_000))
    };
    let (count, sum) = round_trips(&begun(overtaken));
    assert_eq!((count, sum), (3, 50 + 50 + 54));
    // The receiver had segment 3 twice. Segment 4 is the next one that is answered.
    let doubled = [data(30, 3), data(31, 4), ack(80, 4), ack(81, 4).sack(3, 4), ack(85, 5)];
    assert_eq!(round_trips(&begun(doubled.into_iter())), (2, 50 + 54));
}
