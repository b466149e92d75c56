use super::*;
use weir_base::Ecn;

const FULL: u16 = 70;

/// A packet of TCP at address 1.
fn packet(at_us: u64, what: What) -> Sighting {
    Sighting {
        at: Time::from_nanos(at_us * 1000),
        what,
        packet: 1,
        flow: 7,
        sequence: 0,
        bytes: 1500,
        segments: 1,
        segment_bytes: 0,
        ecn: Ecn::Ect0,
    }
}

fn watched() -> Watched {
    Watched::new(WatchSettings { start: Time::ZERO, period: Span::from_millis(10) })
}

fn seen(sightings: &[Sighting]) -> Watched {
    let mut watched = watched();
    sightings.iter().for_each(|sighting| watched.see(sighting));
    watched
}

fn report_by(watched: &Watched, kernel: &KernelCounts) -> QueueReport {
    watched.report(Time::from_nanos(20_000_000), kernel, 0, &|number| format!("reason {number}"))
}

/// A report that the kernel's counters agree with.
fn report(watched: &Watched, packets: u64, drops: u64) -> QueueReport {
    let exactly = |count| Bracket { least: count, most: count };
    report_by(
        watched,
        &KernelCounts { packets: exactly(packets), drops: exactly(drops), ..KernelCounts::default() },
    )
}

#[test]
fn sojourn_rate_and_backlog_are_those_of_two_packets_that_wait() {
    let second = |at, what| Sighting { packet: 2, sequence: 1448, ..packet(at, what) };
    let watched = seen(&[
        packet(0, What::Enqueued),
        second(1000, What::Enqueued),
        packet(3000, What::Dequeued),
        second(6000, What::Dequeued),
    ]);
    let report = report(&watched, 2, 0);
    let sojourn = report.sojourn_ms.unwrap();
    assert_eq!((sojourn.count, sojourn.min, sojourn.mean, sojourn.max), (2, 3.0, 4.0, 5.0));
    // 1500 bytes for 3 ms and for 5 ms, in 20 ms.
    assert_eq!(report.backlog, Backlog { mean_bytes: 600.0, max_bytes: 3000 });
    assert!((report.rate_mbps - 1.2).abs() < 1e-9, "{}", report.rate_mbps);
    assert_eq!(report.periods.len(), 1);
    assert_eq!(report.periods[0].mean_sojourn(), Some(Span::from_millis(4)));
    assert_eq!(report.checks.invalid, Vec::<String>::new());
}

#[test]
fn a_refused_packet_is_told_from_one_that_is_dropped_after_it_has_waited() {
    let refused = Sighting { packet: 2, ecn: Ecn::NotEct, ..packet(500, What::Dropped { reason: FULL }) };
    let watched = seen(&[packet(0, What::Enqueued), refused, packet(900, What::Dropped { reason: FULL })]);
    let report = report(&watched, 0, 2);
    assert_eq!(report.drops_by_reason["reason 70"], Drops { at_arrival: 1, after_waiting: 1 });
    assert_eq!(report.by_codepoint["not-ect"].dropped, 1);
    assert_eq!(report.by_codepoint["ect0"].dropped, 1);
    assert_eq!((report.drops, report.sojourn_ms, watched.waiting()), (2, None, 0));
    assert!(report.checks.invalid.is_empty(), "{:?}", report.checks);
}

#[test]
fn a_mark_counts_for_the_codepoint_that_the_packet_brought() {
    let with = |packet_number, at, what, ecn| Sighting { packet: packet_number, ecn, ..packet(at, what) };
    let watched = seen(&[
        with(1, 0, What::Enqueued, Ecn::Ect1),
        with(2, 0, What::Enqueued, Ecn::Ce),
        with(3, 0, What::Enqueued, Ecn::Ect0),
        with(1, 1, What::Dequeued, Ecn::Ce),
        with(2, 2, What::Dequeued, Ecn::Ce),
        with(3, 3, What::Dequeued, Ecn::Ect0),
    ]);
    let report = report(&watched, 3, 0);
    assert_eq!(report.marks, 1);
    assert_eq!(report.by_codepoint["ect1"], ByCodepoint { packets: 1, marked: 1, dropped: 0 });
    assert_eq!(report.by_codepoint["ce"], ByCodepoint { packets: 1, marked: 0, dropped: 0 });
    assert_eq!(report.by_codepoint["ect0"].marked, 0);
}

#[test]
fn a_packet_that_goes_past_an_empty_queue_has_not_waited() {
    let watched = seen(&[packet(5, What::Passed)]);
    let report = report(&watched, 1, 0);
    assert_eq!((report.packets, report.passed, report.bytes), (1, 1, 1500));
    assert_eq!(report.sojourn_ms.unwrap().max, 0.0);
    assert_eq!(watched.waiting(), 0);
}

#[test]
fn the_parts_of_a_split_packet_have_its_arrival() {
    // 3 segments of 1448 bytes behind 54 bytes of headers; the buffer is free as soon as it is split, and the next large packet has it.
    let large = |sequence, at| Sighting {
        bytes: 4398,
        segments: 3,
        segment_bytes: 1448,
        sequence,
        ..packet(at, What::Enqueued)
    };
    let part = |number: u32, at| Sighting {
        packet: 100 + u64::from(number),
        bytes: 1502,
        sequence: 1448 * number,
        ..packet(at, What::Dequeued)
    };
    let mut events = vec![large(0, 0), large(3 * 1448, 1000)];
    // The next one is refused whole. It begins where the data of the second ends, and is no part of it.
    let refused = Sighting { packet: 300, ..large(6 * 1448, 1500) };
    events.push(Sighting { what: What::Dropped { reason: FULL }, ..refused });
    events.extend((0..6).map(|number| part(number, 2000 + u64::from(number) * 1000)));
    let watched = seen(&events);
    let report = report(&watched, 6, 1);
    assert_eq!(report.drops_by_reason["reason 70"], Drops { at_arrival: 1, after_waiting: 0 });
    // 2, 3 and 4 ms since the first arrival, 4, 5 and 6 ms since the second.
    let sojourn = report.sojourn_ms.unwrap();
    assert_eq!((sojourn.count, sojourn.mean, sojourn.max), (6, 4.0, 6.0));
    assert_eq!((report.backlog.max_bytes, watched.waiting()), (2 * 4398, 0));
    assert!(report.checks.invalid.is_empty(), "{:?}", report.checks);
}

#[test]
fn a_large_packet_that_leaves_whole_counts_as_its_segments() {
    let large = |at, what| Sighting { bytes: 4398, segments: 3, segment_bytes: 1448, ..packet(at, what) };
    let watched = seen(&[large(0, What::Enqueued), large(1000, What::Dequeued)]);
    let report = report(&watched, 3, 0);
    assert_eq!((report.packets, report.bytes, report.sojourn_ms.unwrap().count), (3, 4398, 3));
}

#[test]
fn an_address_that_is_used_again_is_another_packet() {
    let other = |at, what| Sighting { flow: 8, bytes: 60, ..packet(at, what) };
    // The departure of the first packet was lost; the address is used again, by another flow.
    let watched =
        seen(&[packet(0, What::Enqueued), other(1000, What::Enqueued), other(3000, What::Dequeued)]);
    let report = report(&watched, 2, 0);
    assert_eq!(report.sojourn_ms.unwrap().max, 2.0);
    assert_eq!(report.checks.arrivals_without_departure, 1);
    assert_eq!(report.checks.invalid.len(), 2, "{:?}", report.checks);
    // A departure from an address at which another packet waits is not that packet's.
    let watched = seen(&[packet(0, What::Enqueued), other(1000, What::Dequeued)]);
    assert_eq!((watched.waiting(), report_by(&watched, &KernelCounts::default()).sojourn_ms), (1, None));
}

#[test]
fn packets_that_waited_before_or_that_the_device_gave_back_are_not_missed() {
    let watched = seen(&[packet(0, What::Dequeued), packet(10, What::Dequeued)]);
    let exactly = |count| Bracket { least: count, most: count };
    let counts = KernelCounts {
        packets: exactly(1),
        requeues: exactly(1),
        waiting_before: 1,
        ..KernelCounts::default()
    };
    assert_eq!(report_by(&watched, &counts).checks.invalid, Vec::<String>::new());
    let counts = KernelCounts { packets: exactly(2), ..KernelCounts::default() };
    assert_eq!(report_by(&watched, &counts).checks.departures_without_arrival, 2);
}

#[test]
fn more_than_a_thousandth_is_invalid_and_the_reason_is_told() {
    let pair = |number: u64| {
        [What::Enqueued, What::Dequeued].map(|what| Sighting { packet: number, ..packet(number, what) })
    };
    let watched = seen(&(0..1000).flat_map(pair).collect::<Vec<_>>());
    // One drop of 1000 packets is a thousandth, two are more. The counter was read twice at each end.
    assert!(report(&watched, 1000, 1).checks.invalid.is_empty());
    let two = report(&watched, 1000, 2).checks;
    assert_eq!(two.drops_difference, 2);
    assert!(two.invalid[0].starts_with("2 drops are the difference from the queue's own counter"), "{two:?}");
    let within =
        KernelCounts { packets: Bracket::between([10, 20], [1005, 1030]), ..KernelCounts::default() };
    assert_eq!(within.packets, Bracket { least: 985, most: 1020 });
    assert_eq!(report_by(&watched, &within).checks.packets_difference, 0);
    let lost = watched.report(Time::from_nanos(20_000_000), &within, 2, &|_| String::new());
    assert_eq!(lost.checks.invalid.len(), 1);
}

#[test]
fn an_event_is_read_from_its_bytes() {
    let mut bytes = [0; Sighting::LENGTH];
    bytes[..8].copy_from_slice(&3_000_000u64.to_ne_bytes());
    bytes[8..16].copy_from_slice(&1u64.to_ne_bytes());
    bytes[16..20].copy_from_slice(&7u32.to_ne_bytes());
    bytes[24..28].copy_from_slice(&1500u32.to_ne_bytes());
    bytes[32..34].copy_from_slice(&FULL.to_ne_bytes());
    (bytes[36], bytes[37]) = (2, 2);
    assert_eq!(Sighting::read(&bytes), Some(packet(3000, What::Dropped { reason: FULL })));
    assert_eq!(Sighting::read(&bytes[..37]), None);
    bytes[36] = 9;
    assert_eq!(Sighting::read(&bytes), None);
}

#[test]
fn counts_are_those_since_they_were_taken_and_the_report_has_all() {
    let of = |number, at, what, ecn| Sighting { packet: number, ecn, ..packet(at, what) };
    let mut watched = seen(&[
        of(1, 0, What::Enqueued, Ecn::Ect1),
        of(2, 0, What::Enqueued, Ecn::NotEct),
        of(1, 4, What::Dequeued, Ecn::Ce),
    ]);
    let first = watched.take_counts();
    assert_eq!((first.arrived, first.sent, first.sent_bytes), ([1, 1, 0, 0], [0, 1, 0, 0], [0, 1500, 0, 0]));
    assert_eq!((first.marked, first.sojourn[1].max()), ([0, 1, 0, 0], Some(Span::from_micros(4))));
    watched.see(&of(3, 5, What::Dropped { reason: FULL }, Ecn::Ect0));
    watched.see(&of(2, 9, What::Dequeued, Ecn::NotEct));
    let second = watched.take_counts();
    // The refused packet has arrived, too.
    assert_eq!((second.arrived, second.dropped, second.sent), ([0, 0, 1, 0], [0, 0, 1, 0], [1, 0, 0, 0]));
    assert_eq!(second.sojourn.iter().map(weir_base::Histogram::count).sum::<u64>(), 1);
    let report = report(&watched, 2, 1);
    assert_eq!((report.sojourn_ms.unwrap().count, report.drops, report.marks), (2, 1, 1));
    assert_eq!(report.by_codepoint.len(), 3);
}
