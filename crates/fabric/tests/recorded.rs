//! A saturated cellular link that plays a trace: each departure is compared with its line of the file (`labs/traces`, Mahimahi's
//! format).
#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::sync::Arc;
use weir_base::{Bytes, Ecn, FlowId, Packet, Span, Time};
use weir_fabric::{Config, Fabric, Flow, Link, Network, Node, Playback, RoundTrips, TcpView, Trace, Wire};

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
    fn relabel(&mut self, _: Ecn) {}
    fn turn_round(&mut self) -> bool {
        false
    }
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
    let link = Link {
        rate: Some(trace.mean_rate()),
        trace: Some(Playback {
            file: String::new(),
            digest: String::new(),
            repeat: true,
            recording: Some(trace),
        }),
        overhead: Bytes::new(4),
        queue: weir_queue::Config::with_parameters("tail-drop", limit).unwrap(),
        instrumented: true,
        ..Link::plain("link", 0, 1)
    };
    Config {
        network: Network {
            nodes: vec![Node::host("a"), Node::host("b")],
            links: vec![link],
            routes: vec![],
            base_rtt: None,
        },
        flows: vec![Flow { from: 0, to: 1, group: 0 }],
        groups: 1,
        round_trips: RoundTrips::Segments,
        seed: 1,
    }
}

#[test]
fn every_packet_of_a_saturated_link_leaves_at_its_line_of_the_trace() {
    let text = include_str!("../../../labs/traces/cellular.down");
    let lines: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let length = *lines.last().unwrap();
    let fades = lines.windows(2).filter(|pair| pair[1] - pair[0] >= 100).count();
    assert_eq!(
        (lines.len(), lines[0], fades),
        (14_990, 0, 4),
        "it begins at once and has fades of 0.1 s and more"
    );
    let mut fabric = Fabric::new(&network(text));
    // One round and a bit of the next, all waiting from the start.
    let packets = lines.len() as u64 + 1_000;
    (1..=packets).for_each(|number| fabric.inject(0, Full { number, arrived: Time::ZERO }, Time::ZERO));
    let mut expected = lines.iter().copied().chain(lines.iter().map(|at| length + at));
    let mut last = Time::ZERO;
    for number in 1..=packets {
        let delivery = fabric.advance(Time::NEVER).unwrap();
        last = Time::ZERO + Span::from_millis(expected.next().unwrap());
        assert_eq!((delivery.packet.number, delivery.at), (number, last));
    }
    assert!(fabric.advance(Time::NEVER).is_none());
    // 1504 bytes for each line up to that time; one more line may be of the same millisecond.
    let more = lines[1_000..].iter().take_while(|at| **at == lines[999]).count();
    assert_eq!(fabric.take_link(0, last).capacity, Bytes::new((packets + more as u64) * 1504));
}
