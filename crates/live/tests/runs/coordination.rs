//! Aggregation points between hosts whose kernels check every UDP checksum that they rewrite.

use crate::{go, lab};
use weir_live::Tally;
use weir_plan::Run;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// Two sites 40 ms apart; each sends 100 datagrams a second of 1,000 bytes with a header of this kind to the other.
fn sites(transport: &str, station: &str, application: &str, source: &str, ip: u8) -> Run {
    let point = |name: &str, at: &str| {
        format!(
            "[stations.{name}]\nat = \"{at}\"\nlinks = [\"down\", \"up\"]\nkind = \"aggregation-point\"\n\
             application = [{{ id = 1{application} }}]\n{station}\n"
        )
    };
    let group = |name: &str, direction: &str| {
        format!(
            "[traffic.{name}]\ndirection = \"{direction}\"\nip = {ip}\n\
             transport = {{ kind = \"cp-udp\", application = 1{transport} }}\n\
             workload = {{ kind = \"udp\", rate = \"800 kbit/s\", packet = \"1000 B\", source = \"{source}\" }}\n"
        )
    };
    let stations = point("west", "left") + &point("east", "right");
    let traffic = group("there", "down") + &group("back", "up");
    lab(&format!(
        "[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\ndrop = {{ down = [50, 120, 190] }}\n{stations}{traffic}"
    ))
}

/// What both kernels have handed to their applications: 300 datagrams each, three of which are lost on the way there.
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
        let (tally, outcome) = go(&sites(transport, station, application, source, ip));
        assert_arrived(&tally, 1000 - header, &what);
        assert_eq!((outcome.audit.lost, outcome.audit.dropped), (3, 0), "{what}");
        let [west, east] = &tally.stations[..] else { panic!("two stations") };
        let rtt = west["rtt_ms"];
        assert!((rtt - 40.0).abs() < 5.0, "{what}: {rtt} ms between the points of a path of 40 ms");
        // Each loss is known once three later packets have come.
        assert_eq!((east["packets_lost"], west["packets_lost"]), (3.0, 0.0), "{what}");
        assert_eq!(east["inbound_packets"], east["packets_arrived"], "{what}");
        assert!(!west.keys().any(|name| name.starts_with("refused")), "{what}: {west:?}");
    }
}

pub(crate) fn strangers_are_refused() {
    // The key of the endpoints is not that of the points.
    let forged =
        sites(&format!(", key = \"{KEY}\""), "", ", key = \"ffffffffffffffffffffffffffffffff\"", "socket", 4);
    let (tally, outcome) = go(&forged);
    assert_eq!(tally.flows.iter().map(|flow| flow.sum.read_bytes).sum::<u64>(), 0);
    assert_eq!(
        tally.stations[0]["refused_tag"] + tally.stations[1]["refused_tag"],
        outcome.audit.discarded as f64
    );
}
