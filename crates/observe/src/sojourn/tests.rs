use super::*;
use weir_base::CODEPOINTS;

/// IPv4 and TCP from port `from`, with this sequence number and codepoint.
fn header(from: u16, sequence: u32, ecn: Ecn) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0] = 0x45;
    bytes[1] = ecn as u8;
    bytes[9] = crate::TCP;
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[20..22].copy_from_slice(&from.to_be_bytes());
    bytes[22..24].copy_from_slice(&80u16.to_be_bytes());
    bytes[24..28].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

struct Told {
    watch: QueueWatch,
    periods: Vec<QueuePeriod>,
}

impl Told {
    fn new() -> Told {
        Told { watch: QueueWatch::new(Span::from_millis(10)), periods: vec![] }
    }

    fn say(
        &mut self,
        micros: u64,
        what: What,
        packet: u64,
        segments: u32,
        header: &[u8; HEADER],
    ) -> &mut Told {
        let at = Time::ZERO + Span::from_micros(micros);
        let bytes = 66 + 1448 * segments;
        let event = Event { at, what, packet, segments, bytes, header };
        self.watch.event(&event, &mut |period| self.periods.push(*period));
        self
    }

    fn plain(&mut self, micros: u64, what: What, packet: u64) -> &mut Told {
        self.say(micros, what, packet, 1, &header(1000, packet as u32, Ecn::Ect0))
    }
}

#[test]
fn the_sojourn_of_a_packet_is_from_its_arrival_to_its_departure() {
    let mut told = Told::new();
    told.plain(0, What::Came, 1).plain(100, What::Came, 2).plain(1000, What::Left(None), 1).plain(
        3100,
        What::Left(None),
        2,
    );
    let report = told.watch.report();
    let sojourn = report.sojourn_ms.clone().unwrap();
    assert_eq!((report.came, report.left, report.waiting, report.most_waiting), (2, 2, 0, 2));
    assert!((sojourn.mean - 2.0).abs() < 1e-9 && (sojourn.max - 3.0).abs() < 1e-9, "{sojourn:?}");
    // 2 x 1514 bytes in 3.1 ms.
    assert!((report.rate_mbps.unwrap() - 2.0 * 1514.0 * 8.0 / 3100.0).abs() < 1e-9);
    assert_eq!((report.unmatched, report.forgotten), (0, 0));
}

#[test]
fn drops_count_by_reason_and_marks_by_the_codepoint_on_arrival() {
    let mut told = Told::new();
    told.plain(0, What::Came, 1).plain(1, What::Dropped(77), 1);
    told.plain(10, What::Came, 2);
    told.say(5010, What::Left(None), 2, 1, &header(1000, 2, Ecn::Ce));
    told.plain(6000, What::Came, 3).plain(9000, What::Dropped(78), 3);
    let report = told.watch.report();
    assert_eq!(report.dropped, BTreeMap::from([(77, 1), (78, 1)]));
    assert_eq!(report.drops(), 2);
    let ect0 = Ecn::Ect0 as usize;
    assert_eq!((report.marked_by_codepoint[ect0], report.dropped_by_codepoint[ect0]), (1, 2));
    let after = report.dropped_after_ms.unwrap();
    assert!((after.max - 3.0).abs() < 1e-9 && after.min < 0.002, "{after:?}");
}

#[test]
fn a_packet_that_passes_an_empty_queue_has_no_sojourn() {
    let mut told = Told::new();
    told.plain(0, What::Came, 1).plain(3, What::Started, 1);
    // One that has waited says that it starts too, after it has left.
    told.plain(10, What::Came, 2).plain(20, What::Left(None), 2).plain(21, What::Started, 2);
    let report = told.watch.report();
    assert_eq!((report.passed, report.left, report.sojourn_ms.unwrap().count), (1, 1, 1));
}

#[test]
fn the_segments_of_a_packet_that_was_split_are_found_by_their_sequence_numbers() {
    let mut told = Told::new();
    // Two packets of three segments of one flow, then one of another flow.
    told.say(0, What::Came, 1, 3, &header(1, 0, Ecn::NotEct));
    told.say(100, What::Came, 2, 3, &header(1, 3 * 1448, Ecn::NotEct));
    told.say(200, What::Came, 3, 2, &header(2, 0, Ecn::NotEct));
    let mut address = 10;
    let mut segment = |told: &mut Told, at: u64, from: u16, number: u32| {
        address += 1;
        told.say(at, What::Left(None), address, 1, &header(from, number * 1448, Ecn::NotEct));
    };
    // The flows take turns, and the address of a packet that was split is used again for another one.
    segment(&mut told, 1000, 1, 0);
    segment(&mut told, 2000, 2, 0);
    told.say(2100, What::Came, 1, 1, &header(7, 0, Ecn::NotEct));
    for number in 1..6 {
        segment(&mut told, 2000 + 1000 * u64::from(number), 1, number);
    }
    segment(&mut told, 8000, 2, 1);
    told.say(9000, What::Left(None), 1, 1, &header(7, 0, Ecn::NotEct));
    let report = told.watch.report();
    assert_eq!((report.came, report.left, report.waiting), (9, 9, 0));
    assert_eq!((report.unmatched, report.forgotten), (0, 0));
    // By hand: 1, 3, 4 - of packet 1; 4.9, 5.9, 6.9 - of packet 2; 1.8, 7.8 of packet 3; 6.9 of the last.
    let mean = (1.0 + 3.0 + 4.0 + 4.9 + 5.9 + 6.9 + 1.8 + 7.8 + 6.9) / 9.0;
    assert!((report.sojourn_ms.unwrap().mean - mean).abs() < 1e-6);
}

#[test]
fn what_left_before_the_first_match_came_before_the_observation() {
    let mut told = Told::new();
    told.plain(0, What::Left(None), 90).plain(1, What::Left(None), 91);
    told.plain(2, What::Came, 1).plain(3, What::Left(None), 92).plain(4, What::Left(None), 1);
    let report = told.watch.report();
    assert_eq!((report.unmatched, report.left, report.sent), (0, 1, 4));
    // Then it counts, as does one whose address another packet has.
    told.plain(5, What::Left(None), 93).plain(6, What::Came, 5).plain(7, What::Came, 5);
    let report = told.watch.report();
    assert_eq!((report.unmatched, report.forgotten, report.waiting), (1, 1, 1));
}

#[test]
fn a_packet_of_which_nothing_is_heard_is_forgotten_after_ten_seconds() {
    let mut told = Told::new();
    told.plain(0, What::Came, 1);
    told.plain(9_000_000, What::Came, 2).plain(9_000_010, What::Left(None), 2);
    assert_eq!(told.watch.report().waiting, 1);
    told.plain(11_000_000, What::Came, 3);
    let report = told.watch.report();
    assert_eq!((report.forgotten, report.waiting), (1, 1));
}

#[test]
fn periods_follow_each_other_without_gaps() {
    let mut told = Told::new();
    told.plain(0, What::Came, 1).plain(4_000, What::Left(None), 1);
    told.plain(12_000, What::Came, 2).plain(35_000, What::Dropped(1), 2).plain(40_000, What::Came, 3);
    let of = |period: &QueuePeriod| (period.came, period.left, period.dropped, period.waiting);
    let periods: Vec<_> = told.periods.iter().map(of).collect();
    assert_eq!(periods, [(1, 1, 0, 0), (1, 0, 0, 1), (0, 0, 0, 1), (0, 0, 1, 0)]);
    assert_eq!(told.periods[0].sojourn_mean_ms, Some(4.0));
    assert!((told.periods[3].from_s - 0.03).abs() < 1e-12);
}

#[test]
fn codepoints_are_read_from_both_versions_of_ip() {
    for ecn in CODEPOINTS {
        assert_eq!(Header::of(&header(1, 2, ecn)).ecn(), ecn);
        let mut six = [0; HEADER];
        (six[0], six[1], six[6]) = (0x60, (ecn as u8) << 4, crate::TCP);
        six[44..48].copy_from_slice(&7u32.to_be_bytes());
        let header = Header::of(&six);
        assert_eq!((header.ecn(), header.sequence), (ecn, Some(7)));
    }
    assert_eq!(Header::of(&[0; HEADER]).flow, None);
    // Options of IPv4 move the ports, as far as the bytes go.
    let mut far = [0; HEADER];
    (far[0], far[9]) = (0x4f, crate::TCP);
    assert_eq!(Header::of(&far).sequence, None);
}

#[test]
fn the_counters_of_the_queue_are_compared_from_the_first_to_the_last_packet_that_left() {
    let mut told = Told::new();
    let left = |sent, drops| What::Left(Some(Counted { sent, drops }));
    // Two left at once, when 102 were counted; then a large packet was dropped, which counts once; then two left.
    for packet in 1..5 {
        told.plain(packet, What::Came, packet);
    }
    told.plain(10, left(102, 7), 1).plain(10, left(102, 7), 2);
    told.say(11, What::Came, 9, 3, &header(9, 0, Ecn::NotEct));
    told.say(12, What::Dropped(5), 9, 3, &header(9, 0, Ecn::NotEct));
    told.plain(20, left(103, 8), 3);
    // One that passes is counted by the queue too.
    told.plain(21, What::Came, 5).plain(22, What::Started, 5);
    told.plain(30, left(105, 8), 4);
    let both = Counted { sent: 3, drops: 1 };
    let report = told.watch.report();
    assert_eq!(report.compared, Some(Compared { counted: both, seen: both }));
    assert_eq!((report.drops(), report.sent), (3, 5));
}
