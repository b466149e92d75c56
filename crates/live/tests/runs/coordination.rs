//! Aggregation points between hosts whose kernels check every UDP checksum that they rewrite.

use crate::{DUMBBELL, go, lab};
use weir_live::Tally;
use weir_plan::Run;
use weir_record::FlowEventKind::{Completed, Opened, Started};
use weir_record::MessageKind;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// Two sites 40 ms apart, with an aggregation point each, and this traffic. Three packets are lost on the way there.
fn sites(station: &str, application: &str, traffic: &str) -> Run {
    let point = |name: &str, at: &str| {
        format!(
            "[stations.{name}]\nat = \"{at}\"\nlinks = [\"down\", \"up\"]\nkind = \"aggregation-point\"\n\
             application = [{{ id = 1{application} }}]\n{station}\n"
        )
    };
    let stations = point("west", "left") + &point("east", "right");
    lab(&format!(
        "[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\ndrop = {{ down = [50, 120, 190] }}\n{stations}{traffic}"
    ))
}

/// Such sites; each sends 100 datagrams a second of 1,000 bytes with a header of this kind to the other.
fn sites_with_datagrams(transport: &str, station: &str, application: &str, source: &str, ip: u8) -> Run {
    let group = |name: &str, direction: &str| {
        format!(
            "[traffic.{name}]\ndirection = \"{direction}\"\nip = {ip}\n\
             transport = {{ kind = \"cp-udp\", application = 1{transport} }}\n\
             workload = {{ kind = \"udp\", rate = \"800 kbit/s\", packet = \"1000 B\", source = \"{source}\" }}\n"
        )
    };
    sites(station, application, &(group("there", "down") + &group("back", "up")))
}

/// Asserts what both kernels have handed to their applications: 300 datagrams each, except three that are lost on the way
/// there.
fn assert_arrived(tally: &Tally, payload: u64, what: &str) {
    let read: Vec<u64> = tally.flows.iter().map(|flow| flow.sum.read_bytes).collect();
    assert!(read[0].is_multiple_of(payload) && (290..=297).contains(&(read[0] / payload)), "{what} {read:?}");
    assert!(read[1].is_multiple_of(payload) && (290..=300).contains(&(read[1] / payload)), "{what} {read:?}");
}

pub(crate) fn kernels_accept() {
    let sealed = format!(", key = \"{KEY}\"");
    for (transport, station, application, source, ip, header) in [
        ("", "", "", "socket", 4, 28 + 20),
        (", version = 2", "", "", "socket", 6, 48 + 36),
        (&sealed[..], &format!("peer_key = \"{KEY}\"")[..], &sealed[..], "socket", 4, 28 + 36),
        (", version = 2", "", "", "fabric", 6, 48 + 36),
    ] {
        let what = format!("{transport} {source} IPv{ip}");
        let (tally, outcome) = go(&sites_with_datagrams(transport, station, application, source, ip));
        assert_arrived(&tally, 1000 - header, &what);
        assert_eq!((outcome.audit.lost, outcome.audit.dropped), (3, 0), "{what}");
        let [west, east] = &tally.stations[..] else { panic!("two stations") };
        let rtt = west["rtt_ms"];
        // A busy host adds to it.
        assert!((39.0..80.0).contains(&rtt), "{what}: {rtt} ms between the points of a path of 40 ms");
        // Each loss is known once three later packets have come.
        assert_eq!((east["packets_lost"], west["packets_lost"]), (3.0, 0.0), "{what}");
        assert_eq!(east["inbound_packets"], east["packets_arrived"], "{what}");
        assert!(!west.keys().any(|name| name.starts_with("refused")), "{what}: {west:?}");
    }
}

pub(crate) fn sliq_follows_reports() {
    let group = |name: &str, more: &str| {
        format!(
            "[traffic.{name}]\ntransport = {{ kind = \"sliq\", coordination = {{ application = 1, rate = \"2 Mbit/s\" }}{more} }}\n\
             workload = {{ kind = \"transfer\", size = \"300 kB\" }}\n"
        )
    };
    let whole = |groups: &str, flows: usize, counted: f64| {
        let (tally, outcome) = go(&sites("", "", groups));
        for flow in &tally.flows[..flows] {
            assert_eq!(flow.sum.read_bytes, 300_000, "{groups}");
        }
        let [west, east] = &tally.stations[..] else { panic!("two stations") };
        assert!(west["flowshare_mbps"] > 0.0 && west["outbound_flowshare_mbps"] > 0.0, "{groups}: {west:?}");
        assert_eq!((west["flows"], east["flows"]), (counted, counted), "{groups}");
        assert!(!west.keys().chain(east.keys()).any(|name| name.starts_with("refused")), "{west:?} {east:?}");
        assert_eq!(outcome.environment["ignored_frames"], 0, "{groups}: nothing stray on the wire");
    };
    whole(&(group("plain", "") + &group("sealed", ", seal = \"noise\"")), 2, 2.0);
    // Two streams of a connection are one flow of the application.
    let shared = ", seal = \"noise\", connection = \"c\"";
    whole(&(group("one", shared) + &group("other", shared)), 2, 1.0);
}

pub(crate) fn strangers_are_refused() {
    // The key of the endpoints is not that of the points.
    let forged = sites_with_datagrams(
        &format!(", key = \"{KEY}\""),
        "",
        ", key = \"ffffffffffffffffffffffffffffffff\"",
        "socket",
        4,
    );
    let (tally, outcome) = go(&forged);
    assert_eq!(tally.flows.iter().map(|flow| flow.sum.read_bytes).sum::<u64>(), 0);
    assert_eq!(
        tally.stations[0]["refused_tag"] + tally.stations[1]["refused_tag"],
        outcome.audit.discarded as f64
    );
}

pub(crate) fn streams_arrive_whole() {
    // 200 kB are 140 packets: the three that are lost are among those of both flows.
    let run = sites(
        "",
        "",
        "[traffic.streams]\nflows = 2\ntransport = { kind = \"rudp\", application = 1, rate = \"2 Mbit/s\" }\n\
         workload = { kind = \"transfer\", size = \"200 kB\" }\n",
    );
    let (tally, outcome) = go(&run);
    assert_eq!((outcome.audit.lost, outcome.audit.dropped), (3, 0));
    for flow in &tally.flows {
        assert_eq!(flow.sum.read_bytes, 200_000);
        let happened: Vec<_> = flow.events.iter().map(|(_, kind)| *kind).collect();
        for kind in [Started, Opened, Completed] {
            assert!(happened.contains(&kind), "{kind:?} in {happened:?}");
        }
        assert!(
            flow.state["flowshare_mbps"] > 0.0 && flow.state["reported_rtt_ms"] > 35.0,
            "{:?}",
            flow.state
        );
    }
    let retransmitted = tally.flows.iter().map(|flow| flow.last.retransmissions).sum::<u64>();
    assert!(retransmitted >= 3, "{retransmitted}");
    let [west, east] = &tally.stations[..] else { panic!("two stations") };
    assert_eq!((east["packets_lost"], west["packets_lost"]), (3.0, 0.0));
    for station in [west, east] {
        assert_eq!(station["discarded_packets"], 0.0);
        assert!(!station.keys().any(|name| name.starts_with("refused")), "{station:?}");
    }
    assert_eq!(outcome.environment["ignored_frames"], 0, "nothing stray on the wire");
}

pub(crate) fn ensembles_wait_for_all_their_frames() {
    let run = sites(
        "",
        "",
        "[traffic.streams]\nflows = 3\n\
         transport = { kind = \"rudp\", application = 1, scheme = \"frames\", messages_apart = true }\n\
         workload = { kind = \"ensembles\", size = \"4000 B\", pattern = \"Mmm\", dispersion = 0.5 }\n",
    );
    let (tally, _) = go(&run);
    let messages = tally.flows.iter().flat_map(|flow| &flow.messages);
    let ensembles = messages.filter(|message| message.kind == MessageKind::Ensemble).count() as u64;
    assert!(ensembles > 10, "{ensembles}");
    // The bytes read of a flow are the frames of all whole ensembles, and a part of the others.
    for (flow, frame) in tally.flows.iter().zip([8000, 2000, 2000]) {
        assert!(flow.sum.read_bytes >= ensembles * frame, "{} of {ensembles}", flow.sum.read_bytes);
    }
    // The barrier: no flow is ahead of the slowest by more than its send buffer of 1.5 round trips holds.
    let frames = |flow: usize, frame: u64| tally.flows[flow].sum.read_bytes / frame;
    let all = [frames(0, 8000), frames(1, 2000), frames(2, 2000)];
    assert!(all.iter().all(|frames| frames - ensembles <= 30), "{all:?} of {ensembles}");
}

pub(crate) fn rate_based_flows_arrive() {
    for transport in ["tfrc", "rap"] {
        let run = lab(&format!(
            "{DUMBBELL}queue = {{ kind = \"tail-drop\", limit = \"1000 packets\" }}\n\
             [traffic.a]\ntransport = \"{transport}\"\nworkload = {{ kind = \"transfer\", size = \"100 kB\" }}\n"
        ));
        let (tally, outcome) = go(&run);
        assert_eq!((outcome.audit.dropped, outcome.audit.lost), (0, 0), "{transport}");
        assert_eq!(tally.flows[0].sum.read_bytes, 100_000, "{transport}");
        assert!(tally.when(0, Completed).is_some(), "{transport}: {:?}", tally.flows[0].events);
        assert!(tally.transport_samples > 0, "{transport}");
    }
}
