//! Actions that endpoints and strangers must not be able to perform.

use crate::site::{config, ms, packet, pass, point, reports, tuple};
use proptest::prelude::*;
use weir_base::Time;
use weir_coord::cell::{Cell, Family, R1, general};
use weir_coord::endpoint::{Endpoint, Identity, Refused};
use weir_coord::header::{self, Flags, LONGEST, Operation, Pointer, Prefix, Report, Version};
use weir_coord::seal::{Key, Leg};
use weir_coord::{Config, FiveTuple, Packet, Point, Refusal, Side, Statistic, Verdict};

const PLAIN: Flags = Flags(0);
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const PEER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

fn refused(refusal: Refusal) -> Verdict {
    Verdict::Refuse(refusal)
}

#[test]
fn packets_of_no_configured_application_pass_unchanged() {
    let mut ap = point(1, "");
    let stranger = FiveTuple { source: "192.0.2.1".parse().unwrap(), ..tuple(1, 2) };
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    let before = bytes.clone();
    assert_eq!(pass(&mut ap, Side::Local, stranger, &mut bytes, ms(0)), Verdict::Pass);
    let port = FiveTuple { source_port: 53, ..tuple(1, 2) };
    assert_eq!(pass(&mut ap, Side::Local, port, &mut bytes, ms(0)), Verdict::Pass);
    assert_eq!(bytes, before);
    assert_eq!(ap.next_timer(), None);
    let mut none = Point::new(&Config::default(), 1, 1).unwrap();
    assert_eq!(pass(&mut none, Side::Local, tuple(1, 2), &mut bytes, ms(0)), Verdict::Pass);
}

#[test]
fn a_packet_with_one_foreign_address_or_port_belongs_to_no_application() {
    let mut ap = point(1, "");
    let elsewhere = "10.3.0.2".parse().unwrap();
    let right = tuple(1, 2);
    let wrong = [
        FiveTuple { source: elsewhere, ..right },
        FiveTuple { source_port: 9200, ..right },
        FiveTuple { destination: elsewhere, ..right },
        FiveTuple { destination_port: 8999, ..right },
    ];
    for tuple in wrong {
        let mut bytes = packet(Version::One, 2, PLAIN, &[Operation { address: 0, value: 1 }]);
        assert_eq!(pass(&mut ap, Side::Local, tuple, &mut bytes, ms(0)), Verdict::Pass, "{tuple:?}");
        // From the path too: only the other site's packets are probes.
        let mut bytes = packet(Version::One, 2, Flags::DATAPATH, &[]);
        let before = bytes.clone();
        assert_eq!(
            pass(&mut ap, Side::Path, tuple.reversed(), &mut bytes, ms(0)),
            Verdict::Pass,
            "{tuple:?}"
        );
        assert_eq!(bytes, before);
    }
    let application = ap.application(1).unwrap();
    assert_eq!((application.active_flows(), application.read(Cell { address: 0, offset: 2 })), (0, 0));
    assert_eq!(application.path().rtt().echo(ms(1)), None);
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Local, right, &mut bytes, ms(0)), Verdict::Forward);
}

#[test]
fn a_packet_on_a_configured_port_without_a_header_or_with_a_foreign_id_is_refused() {
    let mut ap = point(1, "");
    let mut short = vec![0x10; 19];
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 2), &mut short, ms(0)), refused(Refusal::NoHeader));
    let mut foreign = packet(Version::One, 2, PLAIN, &[]);
    Prefix { application: 5, ..Prefix::read(&foreign).unwrap() }.write(&mut foreign);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 2), &mut foreign, ms(0)), refused(Refusal::Foreign));
    assert_eq!(ap.counters().refused[Refusal::Foreign as usize], 1);
}

#[test]
fn one_application_neither_reads_nor_writes_the_table_of_another() {
    let text = "[[application]]\nid = 2\nname = \"two\"\nlocal = [\"10.1.0.0/16\"]\nlocal_ports = 8000\n\
                remote = [\"10.2.0.0/16\"]\nremote_ports = 8000\n";
    let mut both = config(1, "");
    both.application.extend(Config::from_toml(text).unwrap().application);
    let mut ap = Point::new(&both, 1, 1).unwrap();
    let secret = general(1, 2).unwrap();
    let write = Operation { address: secret.address, value: 4711 };
    let mut bytes = packet(Version::One, 2, PLAIN, &[write]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 2), &mut bytes, ms(0)), Verdict::Forward);

    // An endpoint of application 2 uses application 1's id: refused. It uses its own id: another table.
    let two = FiveTuple { source_port: 8000, destination_port: 8000, ..tuple(1, 9) };
    let pointer = Pointer { address: secret.address, offset: secret.offset, id: 1 };
    let look = Operation { address: R1, value: pointer.value() };
    let mut bytes = packet(Version::One, 2, Flags::REFLECT, &[look, Operation { value: 1, ..write }]);
    assert_eq!(pass(&mut ap, Side::Local, two, &mut bytes, ms(1)), refused(Refusal::Foreign));
    Prefix { application: 2, ..Prefix::read(&bytes).unwrap() }.write(&mut bytes);
    assert_eq!(pass(&mut ap, Side::Local, two, &mut bytes, ms(1)), Verdict::Return);
    assert_eq!(reports(&bytes)[0], Report { id: 1, value: 1 });
    assert_eq!(ap.application(1).unwrap().read(secret), 4711);
}

#[test]
fn a_flow_id_belongs_to_its_first_five_tuple_until_it_expires() {
    let mut ap = point(1, "");
    let thief = FiveTuple { source_port: 9150, ..tuple(1, 2) };
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 2), &mut bytes, ms(0)), Verdict::Forward);
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Local, thief, &mut bytes, ms(4900)), refused(Refusal::Owner));
    // The flow's lifetime is 5 s.
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    ap.on_timer(ms(5000));
    assert_eq!(pass(&mut ap, Side::Local, thief, &mut bytes, ms(5100)), Verdict::Forward);
    assert_eq!(ap.application(1).unwrap().active_flows(), 1);
}

#[test]
fn a_packet_from_the_path_reports_only_to_the_owner_of_its_flow_and_creates_no_flow() {
    let mut ap = point(1, "");
    let pointer = Pointer { address: 0, offset: 2, id: 1 };
    let operations = [Operation { address: 0, value: 99 }, Operation { address: R1, value: pointer.value() }];
    let mut bytes = packet(Version::One, 2, PLAIN, &operations);
    pass(&mut ap, Side::Local, tuple(1, 2), &mut bytes, ms(0));
    let inbound = |ap: &mut Point, flow, tuple| {
        let mut bytes = packet(Version::One, flow, Flags::DATAPATH, &[]);
        assert_eq!(pass(ap, Side::Path, tuple, &mut bytes, ms(1)), Verdict::Forward);
        reports(&bytes)[0]
    };
    assert_eq!(inbound(&mut ap, 2, tuple(2, 2)), Report { id: 1, value: 99 });
    let other = FiveTuple { destination_port: 9150, ..tuple(2, 2) };
    assert_eq!(inbound(&mut ap, 2, other), Report::default());
    assert_eq!(inbound(&mut ap, 40, tuple(2, 40)), Report::default());
    assert_eq!(ap.application(1).unwrap().active_flows(), 1);
}

#[test]
fn the_datapath_flag_is_required_from_the_path_and_refused_from_endpoints() {
    let mut ap = point(1, "");
    let mut bytes = packet(Version::One, 2, Flags::DATAPATH, &[]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 2), &mut bytes, ms(0)), refused(Refusal::Direction));
    let mut bytes = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Path, tuple(2, 2), &mut bytes, ms(0)), refused(Refusal::Direction));
    // From the path, REFLECT and LSCOPE do nothing and are taken away.
    let all = Flags::DATAPATH.with(Flags::REFLECT).with(Flags::LSCOPE);
    let mut bytes = packet(Version::One, 2, all, &[]);
    assert_eq!(pass(&mut ap, Side::Path, tuple(2, 2), &mut bytes, ms(0)), Verdict::Forward);
    assert_eq!(Prefix::read(&bytes).unwrap().flags, PLAIN);
}

#[test]
fn an_endpoint_does_not_read_the_words_of_a_probe_as_reports() {
    let cell = Family::Rtt.cell(Statistic::Latest);
    let identity = Identity { application: 1, flow: 2, protocol: 7, key: None, epoch: 1 };
    let mut endpoint = Endpoint::new(identity, Version::One, &[cell]);
    let word = Report { id: 1, value: 4711 }.word();
    for (flags, value) in [(Flags::DATAPATH, None), (PLAIN, Some(4711))] {
        let mut bytes = packet(Version::One, 2, flags, &[]);
        header::set_words(Version::One, &mut bytes, [word, 0, 0, 0]);
        assert_eq!(endpoint.open(&bytes, |_, _| {}), Ok(20));
        assert_eq!((endpoint.value(cell), endpoint.was_reported()), (value, value.is_some()));
    }
    // What an endpoint itself writes is no report either: its words name addresses, and none of a watched cell's token.
    let bytes = packet(Version::One, 2, PLAIN, &[Operation { address: R1, value: 9 }]);
    assert_eq!(endpoint.open(&bytes, |_, _| {}), Ok(20));
    assert!(!endpoint.was_reported());
}

#[test]
fn flow_ids_are_capped() {
    let mut ap = point(1, "flows = 8\n");
    let mut bytes = packet(Version::One, 7, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 7), &mut bytes, ms(0)), Verdict::Forward);
    let mut bytes = packet(Version::One, 8, PLAIN, &[]);
    assert_eq!(pass(&mut ap, Side::Local, tuple(1, 8), &mut bytes, ms(0)), refused(Refusal::FlowId));
}

#[test]
fn reflections_are_as_long_as_their_requests_and_limited_in_rate() {
    let mut limited = config(1, "");
    limited.reflections_per_second = 100;
    let mut ap = Point::new(&limited, 1, 1).unwrap();
    let mut returned = 0;
    // 10,000 packets a second for 2 s: a burst of ten is reflected, then 100 a second.
    for n in 0..20_000u64 {
        let mut bytes = packet(Version::One, 2, Flags::REFLECT, &[]);
        let length = bytes.len();
        let now = Time::from_nanos(n * 100_000);
        match pass(&mut ap, Side::Local, tuple(1, 2), &mut bytes, now) {
            Verdict::Return => returned += 1,
            verdict => assert_eq!(verdict, refused(Refusal::Reflections)),
        }
        assert_eq!(bytes.len(), length);
    }
    assert!((208..=211).contains(&returned), "{returned}");
}

/// Two APs with keys on both legs, and an endpoint at each site.
fn keyed() -> (Point, Point, Endpoint, Endpoint) {
    let ap = |own| {
        let mut config = config(own, &format!("key = \"{KEY}\"\n"));
        config.peer_key = Some(PEER.parse().unwrap());
        Point::new(&config, 1, 1).unwrap()
    };
    let endpoint = || {
        let key = Some(KEY.parse().unwrap());
        let identity = Identity { application: 1, flow: 2, protocol: 7, key, epoch: 1 };
        Endpoint::new(identity, Version::One, &[Family::Rtt.cell(Statistic::Latest)])
    };
    (ap(1), ap(2), endpoint(), endpoint())
}

#[test]
fn sealed_packets_pass_both_aggregation_points_once() {
    let (mut near, mut far, mut here, mut there) = keyed();
    let mut bytes = vec![0; 100];
    here.seal(PLAIN, &mut bytes);
    let sent = bytes.clone();
    assert_eq!(pass(&mut near, Side::Local, tuple(1, 2), &mut bytes, ms(0)), Verdict::Forward);
    let crossing = bytes.clone();
    assert_eq!(pass(&mut far, Side::Path, tuple(1, 2), &mut bytes, ms(25)), Verdict::Forward);
    assert_eq!(there.open(&bytes, |_, _| {}), Ok(36));

    // A replay on each leg: neither AP nor endpoint accepts it.
    assert_eq!(there.open(&bytes, |_, _| {}), Err(Refused::Replay));
    let mut again = crossing.clone();
    assert_eq!(pass(&mut far, Side::Path, tuple(1, 2), &mut again, ms(26)), refused(Refusal::Replay));
    let mut again = sent.clone();
    assert_eq!(pass(&mut near, Side::Local, tuple(1, 2), &mut again, ms(1)), refused(Refusal::Replay));
    // A packet of one leg on another leg.
    let mut wrong = sent;
    Prefix { flags: Flags::DATAPATH, ..Prefix::read(&wrong).unwrap() }.write(&mut wrong);
    assert_eq!(pass(&mut far, Side::Path, tuple(1, 2), &mut wrong, ms(27)), refused(Refusal::Tag));
}

#[test]
fn a_keyed_aggregation_point_refuses_version_1_and_counts_no_forged_probe() {
    let (mut near, mut far, mut here, _) = keyed();
    let mut old = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut near, Side::Local, tuple(1, 2), &mut old, ms(0)), refused(Refusal::Unsealed));
    let mut old = packet(Version::One, 2, Flags::DATAPATH, &[]);
    assert_eq!(pass(&mut far, Side::Path, tuple(1, 2), &mut old, ms(0)), refused(Refusal::Unsealed));
    assert_eq!(here.open(&packet(Version::One, 2, PLAIN, &[]), |_, _| {}), Err(Refused::Tag));
    let mut forged = packet(Version::Two, 2, Flags::DATAPATH, &[]);
    Key::new([9; 16]).seal(Leg::Path, &mut forged);
    assert_eq!(pass(&mut far, Side::Path, tuple(1, 2), &mut forged, ms(0)), refused(Refusal::Tag));
    assert_eq!(far.application(1).unwrap().path().rtt().echo(ms(1)), None);
    // Version 1 is refused for an application without a key too, if the two APs share a key.
    let mut half = config(1, "");
    half.peer_key = Some(PEER.parse().unwrap());
    let mut half = Point::new(&half, 1, 1).unwrap();
    let mut old = packet(Version::One, 2, PLAIN, &[]);
    assert_eq!(pass(&mut half, Side::Local, tuple(1, 2), &mut old, ms(0)), refused(Refusal::Unsealed));
}

#[test]
fn a_replayed_packet_is_refused_even_after_its_flow_expired() {
    let (mut near, _, mut here, _) = keyed();
    let mut bytes = vec![0; 100];
    here.seal(Flags::LSCOPE, &mut bytes);
    let mut again = bytes.clone();
    assert_eq!(pass(&mut near, Side::Local, tuple(1, 2), &mut bytes, ms(0)), Verdict::Absorb);
    ap_forgets(&mut near);
    assert_eq!(pass(&mut near, Side::Local, tuple(1, 2), &mut again, ms(70_000)), refused(Refusal::Replay));
}

fn ap_forgets(ap: &mut Point) {
    while let Some(next) = ap.next_timer() {
        ap.on_timer(next);
    }
    assert_eq!(ap.application(1).unwrap().active_flows(), 0);
}

proptest! {
    #[test]
    fn no_bytes_make_an_aggregation_point_panic_or_change_the_payload(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..60), any::<bool>(), 0u8..4, 0u64..50_000_000), 1..50),
    ) {
        let mut ap = point(1, "");
        let mut now = Time::ZERO;
        for (mut bytes, local, flow, gap) in packets {
            now += weir_base::Span::from_nanos(gap);
            // The bytes are random, but version and application id are valid, so most packets get past the first checks.
            if bytes.len() > 1 {
                (bytes[0], bytes[1]) = (0x10 | (bytes[0] & 0x20), 0x80 | flow);
                bytes[0] = if bytes[0] & 0x20 != 0 { 0x20 } else { 0x10 };
            }
            let behind = bytes.get(LONGEST..).map(<[u8]>::to_vec);
            let (side, tuple) = if local { (Side::Local, tuple(1, flow)) } else { (Side::Path, tuple(2, flow)) };
            let packet = Packet { side, tuple, length: 100, payload: &mut bytes, checksum: None };
            ap.handle(packet, now);
            prop_assert_eq!(bytes.get(LONGEST..).map(<[u8]>::to_vec), behind);
        }
        let cells = (0..=255u8).flat_map(|address| (0..=255).map(move |offset| Cell { address, offset }));
        for cell in cells {
            prop_assert!(ap.application(1).unwrap().read(cell) <= header::VALUE_MAX);
        }
    }
}
