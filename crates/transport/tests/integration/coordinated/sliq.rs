//! SLIQ at the rate reported by aggregation points.

use super::sites::{DELAY, Sites, flowshare};
use crate::wire::setup;
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_coord::header::Prefix;
use weir_endpoint::{Body, Datagram, Endpoint, Message, Setup, Stream};
use weir_transport::{Config, End};

/// Data bytes of a full packet: 1,500 bytes minus the headers of IP, UDP and CP, 12 bytes of SLIQ and 15 of a part.
const PAYLOAD: f64 = 1500.0 - 20.0 - 8.0 - 20.0 - 12.0 - 15.0;

fn sliq(parameters: &str, coordination: &str) -> String {
    format!(r#"{{ "kind": "sliq" {parameters}, "coordination": {{ "application": 1 {coordination} }} }}"#)
}

fn ends(transport: &str, flow: u64, datagrams: bool) -> [End; 2] {
    let config: Config = serde_json::from_str(transport).unwrap();
    config.ends(&Setup { datagrams, ..setup(1, flow) })
}

#[test]
fn each_connection_gets_one_flowshare_whatever_their_number() {
    for flows in [1, 4, 12] {
        let mut sites = Sites::new(&vec![sliq("", ""); flows], "", 0.01);
        sites.rates(20, |_| 1 << 20);
        let rates = sites.rates(30, |_| 1 << 20);
        let mean = rates.iter().sum::<f64>() / flows as f64;
        let share = mean / (flowshare() * PAYLOAD / 1500.0);
        assert!((0.85..1.2).contains(&share), "{flows}: {share}");
        assert!(rates.iter().all(|rate| (rate / mean - 1.0).abs() < 0.02), "{flows}: {rates:?}");
    }
}

#[test]
fn four_sliq_connections_and_four_rudp_flows_have_equal_rates() {
    let rudp = r#"{ "kind": "rudp", "application": 1 }"#.to_owned();
    let mut sites = Sites::new(&[vec![sliq("", ""); 4], vec![rudp; 4]].concat(), "", 0.01);
    sites.rates(20, |_| 1 << 20);
    let rates = sites.rates(60, |_| 1 << 20);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / 4.0;
    // CP-RUDP has 9 bytes of header in a packet.
    let ratio = mean(&rates[..4]) / PAYLOAD / (mean(&rates[4..]) / 1443.0);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}: {rates:?}");
}

#[test]
fn without_reports_the_rate_halves_each_four_round_trips() {
    Sites::new(&[sliq("", "")], "", 0.01).halves_without_reports();
}

#[test]
fn acknowledgements_without_reports_do_not_keep_the_rate() {
    Sites::new(&[sliq("", "")], "", 0.01).halves_when_the_points_are_bypassed();
}

#[test]
fn no_report_raises_a_connection_above_its_maximum_rate() {
    let transport = sliq("", r#", "max_rate": "1 Mbit/s""#);
    Sites::new(&[transport.clone(), transport], "", 0.001).stays_below(Rate::from_mbit_per_sec(1));
}

/// All packets that an end sends now.
fn sent(end: &mut End, now: Time) -> Vec<Datagram> {
    let mut body = Body::Datagram(Datagram::default());
    let mut sent = Vec::new();
    while end.transmit(&mut body, now).is_some() {
        sent.push(body.datagram_mut().clone());
    }
    sent
}

/// Passes packets to an end, like an aggregation point without reports.
fn take(end: &mut End, datagrams: Vec<Datagram>, now: Time) {
    datagrams.into_iter().for_each(|datagram| end.receive(&Body::Datagram(datagram), Ecn::NotEct, now));
}

/// An open connection, and the time at which it opened.
fn opened(transport: &str, datagrams: bool) -> ([End; 2], Time) {
    let mut ends = ends(transport, 131, datagrams);
    ends[0].open(Time::ZERO);
    let now = Time::ZERO + DELAY;
    let request = sent(&mut ends[0], Time::ZERO);
    take(&mut ends[1], request, now);
    let answer = sent(&mut ends[1], now);
    let now = now + DELAY;
    take(&mut ends[0], answer, now);
    assert!(ends.iter().all(Endpoint::is_open));
    (ends, now)
}

#[test]
fn each_packet_begins_with_a_coordination_header_that_counts_in_its_length() {
    for (seal, tag) in [("none", 0), ("noise", 16)] {
        let transport = sliq(&format!(r#", "seal": "{seal}""#), "");
        let (mut ends, mut now) = opened(&transport, false);
        let mut lengths = Vec::new();
        for _ in 0..40 {
            ends[0].write(Stream(0), Message { bytes: 1 << 20, head: &[] }, now);
            let packets = sent(&mut ends[0], now);
            for packet in &packets {
                let prefix = Prefix::read(&packet.head).unwrap();
                assert_eq!((prefix.application, prefix.flow, prefix.protocol), (1, 131 - 128, 3));
                // SLIQ's mark, 5, is behind the 20 bytes of the CP header.
                assert_eq!(packet.head[20] >> 4, 5);
                lengths.push(28 + packet.payload());
            }
            now += Span::from_millis(10);
            take(&mut ends[1], packets, now);
            let back = sent(&mut ends[1], now);
            take(&mut ends[0], back, now);
        }
        // A part's header is 4 bytes longer than a segment's, so a full packet without a part is 4 bytes shorter.
        assert_eq!(lengths.iter().max(), Some(&1496), "{seal}");
        let config: Config = serde_json::from_str(&transport).unwrap();
        let full = config.full_packet(Bytes::new(1500), Bytes::new(20)).unwrap();
        assert_eq!((full.length.get(), full.payload.get()), (1496, 1425 - tag), "{seal}");
    }
}

#[test]
fn packets_without_a_header_or_of_another_flow_are_ignored() {
    let transport = sliq("", "");
    let mut one = ends(&transport, 1, false);
    one[0].open(Time::ZERO);
    let request = sent(&mut one[0], Time::ZERO).remove(0);
    let plain = Datagram { head: request.head[20..].to_vec(), zeros: 0 };
    let mut longer = request.clone();
    longer.head[0] = 0x20 | longer.head[0] & 0x0f;
    longer.head.extend([0; 16]);
    for (what, datagram, flow) in
        [("no header", plain, 1), ("another version", longer, 1), ("another flow's", request, 2)]
    {
        let mut other = ends(&transport, flow, false);
        take(&mut other[1], vec![datagram], Time::ZERO);
        assert!(!other[1].is_open() && sent(&mut other[1], Time::ZERO).is_empty(), "{what}");
    }
}

#[test]
fn streams_of_one_connection_share_one_flow_id() {
    let transport = sliq(r#", "connection": "c""#, "");
    let config: Config = serde_json::from_str(&transport).unwrap();
    let (mut first, now) = opened(&transport, false);
    let mut second = first.each_mut().map(|end| end.join(&config, &setup(1, 7)).unwrap());
    second[0].write(Stream(0), Message { bytes: 1000, head: &[] }, now);
    assert!(sent(&mut second[0], now).is_empty());
    let packets = sent(&mut first[0], now);
    assert_eq!(Prefix::read(&packets[0].head).unwrap().flow, 3);
    take(&mut first[1], packets, now);
    let mut read = 0;
    second[1].read(&mut |_, part| read += part.bytes);
    assert_eq!(read, 1000);
}
