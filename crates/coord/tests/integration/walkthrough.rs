//! The source's worked examples through a whole aggregation point, and its statements on reports and checksums.

use crate::site::{ms, packet, pass, point, prefix, reports, tuple};
use proptest::prelude::*;
use weir_base::{Span, Time};
use weir_coord::cell::{Cell, Family, R1, general};
use weir_coord::endpoint::{Endpoint, Identity};
use weir_coord::header::{Echo, Flags, Operation, Pointer, Probe, Report, Version};
use weir_coord::{Function, Packet, Side, Statistic, Ticks, Verdict};

fn point_at(register: u8, cell: Cell, id: u8) -> Operation {
    let Cell { address, offset } = cell;
    Operation { address: R1 + register, value: Pointer { address, offset, id }.value() }
}

/// A packet of flow 2 as the other AP sends it.
fn from_path(probe: Probe) -> Vec<u8> {
    let mut bytes = packet(Version::One, 2, Flags::DATAPATH, &[]);
    probe.write(Version::One, &mut bytes);
    bytes
}

#[test]
fn selections_and_reports_follow_figure_3_5() {
    // Application 1, flow 2. A: GP1 becomes 250, R1 selects NET.rtt (token 0), R2 selects NET.bw (token 1).
    let mut ap = point(1, "");
    let (out, back) = (tuple(1, 2), tuple(2, 2));
    let gp1 = general(1, 2).unwrap();
    let rtt = Family::Rtt.cell(Statistic::Latest);
    let bw = Family::Bandwidth.cell(Statistic::Latest);
    let mut a = packet(
        Version::One,
        2,
        Flags::default(),
        &[Operation { address: gp1.address, value: 250 }, point_at(0, rtt, 0), point_at(1, bw, 1)],
    );
    assert_eq!(pass(&mut ap, Side::Local, out, &mut a, ms(1000)), Verdict::Forward);
    assert_eq!(ap.application(1).unwrap().read(gp1), 250);
    // A crosses the path as a probe, with nothing to echo yet.
    let sent = Probe::read(Version::One, &a);
    assert_eq!((sent.timestamp, sent.echo, sent.bandwidth), (Ticks::at(ms(1000)), None, 0));

    // B returns with A's timestamp after 17.2 ms and a flowshare of 872 KiB/s.
    let echo = |timestamp, delay| Some(Echo { timestamp, delay: Ticks::new(delay) });
    let arrival = ms(1000) + Span::from_micros(17_200);
    let probe = Probe {
        timestamp: Ticks::new(77),
        echo: echo(sent.timestamp, 0),
        bandwidth: 872,
        loss: 0,
        sequence: 5,
    };
    let mut b = from_path(probe);
    assert_eq!(pass(&mut ap, Side::Path, back, &mut b, arrival), Verdict::Forward);
    let got = reports(&b);
    // A tick is 15 us: 17,200 us are 1,127 ticks, 17,197 us.
    assert!(got[0].id == 0 && got[0].value.abs_diff(17_200) <= 16, "{got:?}");
    assert_eq!(got[1], Report { id: 1, value: 872 });
    assert_eq!(got[2..], [Report::default(); 2]);

    // D passes the AP before C: old selection, old token. E passes after it.
    let mut d = from_path(Probe { sequence: 6, bandwidth: 873, ..probe });
    pass(&mut ap, Side::Path, back, &mut d, arrival + Span::from_millis(1));
    let mut c = packet(Version::One, 2, Flags::default(), &[point_at(1, gp1, 2)]);
    pass(&mut ap, Side::Local, out, &mut c, arrival + Span::from_millis(2));
    let mut e = from_path(Probe { sequence: 7, bandwidth: 874, ..probe });
    pass(&mut ap, Side::Path, back, &mut e, arrival + Span::from_millis(3));
    assert_eq!(reports(&d)[1], Report { id: 1, value: 873 });
    assert_eq!(reports(&e)[1], Report { id: 2, value: 250 });
}

#[test]
fn a_packet_with_lscope_is_absorbed_and_one_with_reflect_is_returned_after_its_writes() {
    let mut ap = point(1, "");
    let gp7 = general(7, 3).unwrap();
    let write = |value| Operation { address: gp7.address, value };
    let mut bytes = packet(Version::One, 3, Flags::LSCOPE, &[write(11)]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 3), &mut bytes, ms(0)), Verdict::Absorb);
    assert_eq!(ap.application(1).unwrap().read(gp7), 11);

    let sum = Cell { offset: Function::Sum as u8, ..gp7 };
    let mut bytes = packet(Version::One, 3, Flags::REFLECT, &[write(12), point_at(3, sum, 9)]);
    let before = bytes.len();
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 3), &mut bytes, ms(1)), Verdict::Return);
    assert_eq!(reports(&bytes)[3], Report { id: 9, value: 12 });
    assert_eq!(bytes.len(), before);
    // Neither has crossed the path.
    assert_eq!(ap.application(1).unwrap().read(Family::PacketSize.cell(Statistic::Samples)), 0);
    assert_eq!((ap.counters().absorbed, ap.counters().returned, ap.counters().outbound), (1, 1, 0));
}

#[test]
fn cells_of_a_silent_flow_expire_and_those_of_others_remain() {
    let mut ap = point(1, "");
    let gp1 = general(1, 0).unwrap();
    let write = |ap: &mut weir_coord::Point, flow: u8, at| {
        let operation = Operation { address: gp1.address, value: 100 + u32::from(flow) };
        let mut bytes = packet(Version::One, flow, Flags::default(), &[operation]);
        pass(ap, Side::Local, tuple(1, flow), &mut bytes, at);
    };
    write(&mut ap, 1, ms(0));
    for n in 0..8 {
        write(&mut ap, 2, ms(n * 1000));
        while ap.next_timer().is_some_and(|next| next <= ms(n * 1000 + 999)) {
            let next = ap.next_timer().unwrap();
            ap.on_timer(next);
        }
    }
    let one = ap.application(1).unwrap();
    assert_eq!(one.read(Family::Flows.cell(Statistic::Latest)), 1);
    assert_eq!((one.read(Cell { offset: 1, ..gp1 }), one.read(Cell { offset: 2, ..gp1 })), (0, 102));
    assert_eq!(one.read(Cell { offset: Function::Assigned as u8, ..gp1 }), 1);
    assert!(one.flow(1).unwrap().owner().is_none() && one.flow(2).unwrap().owner().is_some());
    // After a minute of silence no timer is left.
    let mut last = Time::ZERO;
    while let Some(next) = ap.next_timer() {
        ap.on_timer(next);
        last = next;
    }
    assert!((67_000..67_200).contains(&(last.as_nanos() / 1_000_000)), "{last}");
}

#[test]
fn throughput_and_packet_size_count_forwarded_packets() {
    let mut ap = point(1, "");
    // 112 bytes of IP packet (20 header, 64 data, 28 of IP and UDP) each millisecond: 112,000 B/s, 109.4 KiB/s.
    for n in 0..1000 {
        let mut bytes = packet(Version::One, 4, Flags::default(), &[]);
        pass(&mut ap, Side::Local, tuple(1, 4), &mut bytes, ms(n));
    }
    let one = ap.application(1).unwrap();
    assert_eq!(one.read(Family::PacketSize.cell(Statistic::Mean)), 112);
    assert_eq!(one.read(Family::Throughput.cell(Statistic::Latest)), 109);
    assert_eq!(one.read(Cell { address: 255, offset: 128 + 4 }), 109);
    assert_eq!(one.read(Cell { address: 255, offset: 128 + 5 }), 0);
}

/// The RFC 768 checksum of a payload alone; the rest of the datagram does not change.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if !(sum as u16) == 0 { 0xffff } else { !(sum as u16) }
}

proptest! {
    #[test]
    fn checksums_stay_correct_through_both_aggregation_points(
        values in prop::collection::vec(any::<u32>(), 4), two in any::<bool>(), at in 0u64..10_000,
    ) {
        let version = if two { Version::Two } else { Version::One };
        let (mut near, mut far) = (point(1, ""), point(2, ""));
        let operations: Vec<_> = values.into_iter().map(Operation::from_word).collect();
        let mut bytes = packet(version, 5, Flags::default(), &operations);
        let mut checksum = sum(&bytes);
        for (point, side, now) in [(&mut near, Side::Local, ms(at)), (&mut far, Side::Path, ms(at + 25))] {
            let length = bytes.len() as u32 + 28;
            let packet =
                Packet { side, tuple: tuple(1, 5), length, payload: &mut bytes, checksum: Some(&mut checksum) };
            prop_assert_eq!(point.handle(packet, now), Verdict::Forward);
            prop_assert_eq!(checksum, sum(&bytes));
        }
    }
}

#[test]
fn an_endpoint_watches_more_cells_than_a_packet_reports() {
    let mut ap = point(1, "");
    let identity = Identity { application: 1, flow: 6, protocol: 7, key: None, epoch: 1 };
    let gp = |k| general(k, 6).unwrap();
    let cells: Vec<Cell> = (1..=10).map(gp).collect();
    let mut endpoint = Endpoint::new(identity, Version::One, &cells);
    for k in 1..=10u8 {
        endpoint.write(k - 1, 1000 + u32::from(k));
    }
    assert!(endpoint.has_news());
    let mut seen = Vec::new();
    for n in 0..60 {
        let mut bytes = packet(Version::One, 6, Flags::REFLECT, &[]);
        endpoint.seal(Flags::REFLECT, &mut bytes);
        // Each third packet is lost.
        if n % 3 == 2 {
            continue;
        }
        assert_eq!(pass(&mut ap, Side::Local, tuple(1, 6), &mut bytes, ms(n)), Verdict::Return);
        let length = endpoint.open(&bytes, |cell, value| seen.push((cell, value))).unwrap();
        assert_eq!(length, 20);
    }
    assert!(!endpoint.has_news());
    for k in 1..=10 {
        assert_eq!(endpoint.value(gp(k)), Some(1000 + u32::from(k)), "{k} {seen:?}");
    }
}

#[test]
fn an_endpoint_without_a_key_adopts_the_version_of_its_peer() {
    let identity = Identity { application: 1, flow: 6, protocol: 7, key: None, epoch: 1 };
    let mut endpoint = Endpoint::new(identity, Version::Two, &[]);
    assert_eq!(endpoint.header_length(), 36);
    let mut bytes = vec![0; 40];
    prefix(Version::One, 6, Flags::default()).write(&mut bytes);
    endpoint.open(&bytes, |_, _| {}).unwrap();
    assert_eq!(endpoint.header_length(), 20);
}
