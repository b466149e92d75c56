//! Recorded cellular links, saturated: each departure against its line of the file. The recordings are not ours to carry:
//! the test runs when WEIR_TRACES names a folder of `*.up` and `*.down` files in Mahimahi's format, and says so when not.
#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::sync::Arc;
use weir_base::{Bytes, Ecn, FlowId, Packet, Span, Time};
use weir_fabric::{Config, Fabric, Flow, Link, Loss, Node, Playback, RoundTrips, TcpView, Trace, Wire};

#[derive(Debug, Clone)]
struct Full {
    number: u64,
    arrived: Time,
}

impl Packet for Full {
    fn wire_length(&self) -> u32 {
        1500
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn arrive(&mut self, now: Time) {
        self.arrived = now;
    }
    fn arrived(&self) -> Time {
        self.arrived
    }
    fn class(&self) -> Ecn {
        Ecn::NotEct
    }
}

impl Wire for Full {
    fn destination(&self) -> usize {
        1
    }
    fn tcp(&self) -> Option<TcpView<'_>> {
        None
    }
    fn write_to(&self, _: &mut Vec<u8>) {}
    fn duplicate(&self) -> Full {
        self.clone()
    }
    fn corrupt(&mut self) {}
    fn is_corrupt(&self) -> bool {
        false
    }
}

/// Two hosts and a link that plays this trace, with 4 bytes for each packet, as Mahimahi counts.
fn network(text: &str) -> Config {
    let trace = Arc::new(Trace::parse(text).unwrap());
    let limit = serde_json::json!({"limit": "10000000 packets"});
    let host = Node { host: true, jitter: Span::ZERO, card: false };
    Config {
        nodes: vec![host.clone(), host],
        links: vec![Link {
            from: 0,
            to: 1,
            rate: Some(trace.mean_rate()),
            trace: Some(Playback { trace, repeat: true }),
            wifi: None,
            delay: Span::ZERO,
            loss: Loss::NONE,
            jitter: None,
            duplicate: 0.0,
            corrupt: 0.0,
            outages: vec![],
            overhead: Bytes::new(4),
            queue: weir_queue::Config::with_parameters("tail-drop", limit).unwrap(),
            drop: vec![],
            hold: vec![],
            schedule: vec![],
            measured: true,
        }],
        flows: vec![Flow { from: 0, group: 0 }],
        ways: vec![],
        groups: 1,
        base_rtt: None,
        mtu: Bytes::new(1500),
        round_trips: RoundTrips::Segments,
        seed: 1,
    }
}

#[test]
fn every_packet_of_a_saturated_recorded_link_leaves_at_its_line_of_the_file() {
    let Some(folder) = std::env::var_os("WEIR_TRACES") else {
        println!("recorded links: skipped, WEIR_TRACES names no folder with them");
        return;
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recorded =
        |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "up" || kind == "down");
    let mut compared = 0;
    for path in files.filter(recorded) {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        let length = *lines.last().unwrap();
        let mut fabric = Fabric::new(&network(&text));
        // One round and a bit of the next, all waiting from the start.
        let packets = lines.len() as u64 + 1_000;
        (1..=packets).for_each(|number| fabric.inject(0, Full { number, arrived: Time::ZERO }, Time::ZERO));
        let mut expected = lines.iter().copied().chain(lines.iter().map(|at| length + at));
        for number in 1..=packets {
            let delivery = fabric.advance(Time::NEVER).unwrap();
            let at = Time::ZERO + Span::from_millis(expected.next().unwrap());
            assert_eq!((delivery.packet.number, delivery.at), (number, at), "{}", path.display());
        }
        assert!(fabric.advance(Time::NEVER).is_none());
        // The opportunities of 0 ms come once more when the trace begins again.
        let opportunities = lines.len() + lines.iter().filter(|at| **at == 0).count();
        let capacity = fabric.take_capacity(0, Time::ZERO + Span::from_millis(length));
        assert_eq!(capacity, Bytes::new(opportunities as u64 * 1504));
        compared += packets;
        println!("{}: {packets} departures, each at its line", path.display());
    }
    assert!(compared > 0, "WEIR_TRACES holds no *.up and *.down");
}
