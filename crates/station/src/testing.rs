//! A packet and a network for the tests of this room: host 0, the router 1 with a station, and host 2, a millisecond apart.

use weir_base::{Ecn, FlowId, Packet, Span, Time};
use weir_fabric::{Config, Fabric, Flow, Link, Network, Node, Placed, RoundTrips, Station, TcpView, Wire};

/// The router with the station.
pub(crate) const ROUTER: usize = 1;
/// The host beyond it.
pub(crate) const HOST: usize = 2;

/// A packet that host 0 sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// When, in milliseconds.
    pub ms: u64,
    pub length: u32,
    pub ecn: Ecn,
}

/// A packet on its way, and where and when it arrived.
#[derive(Debug, Clone)]
pub(crate) struct TestPacket {
    pub number: u64,
    pub destination: usize,
    pub ecn: Ecn,
    /// When it arrived, in milliseconds.
    pub ms: u64,
    length: u32,
    arrived: Time,
    class: Ecn,
}

impl Packet for TestPacket {
    fn wire_length(&self) -> u32 {
        self.length
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn arrive(&mut self, now: Time) {
        (self.arrived, self.class) = (now, self.ecn);
    }
    fn arrived(&self) -> Time {
        self.arrived
    }
    fn class(&self) -> Ecn {
        self.class
    }
}

impl Wire for TestPacket {
    fn destination(&self) -> usize {
        self.destination
    }
    fn tcp(&self) -> Option<TcpView<'_>> {
        None
    }
    fn relabel(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    /// All packets come from host 0; those of 40 bytes stand for packets that are no datagrams.
    fn turn_round(&mut self) -> bool {
        let datagram = self.length > 40;
        if datagram {
            self.destination = 0;
        }
        datagram
    }
    fn write_to(&self, _: &mut Vec<u8>) {}
    fn duplicate(&self) -> TestPacket {
        self.clone()
    }
    fn corrupt(&mut self) {}
    fn is_corrupt(&self) -> bool {
        false
    }
}

/// Sends packets past a station, and returns those that arrived.
pub(crate) fn past(
    station: Box<dyn Station<TestPacket>>,
    to: usize,
    sent: &[Sent],
) -> (Vec<TestPacket>, Fabric<TestPacket>) {
    let link = |from, to| Link { delay: Span::from_millis(1), ..Link::plain("link", from, to) };
    let config = Config {
        network: Network {
            nodes: vec![Node::host("a"), Node::router("r"), Node::host("b")],
            links: vec![link(0, ROUTER), link(ROUTER, 0), link(ROUTER, HOST), link(HOST, ROUTER)],
            routes: vec![],
            base_rtt: None,
        },
        flows: vec![Flow { from: 0, to, group: 0 }],
        groups: 1,
        round_trips: RoundTrips::Segments,
        seed: 1,
    };
    let placed = Placed { at: ROUTER, links: vec![], station };
    let mut fabric = Fabric::with_stations(&config, vec![placed]);
    let mut arrived = vec![];
    let mut fetch = |fabric: &mut Fabric<TestPacket>, until| {
        while let Some(delivery) = fabric.advance(until) {
            assert_eq!(delivery.host, delivery.packet.destination);
            let ms = delivery.at.as_nanos() / 1_000_000;
            arrived.push(TestPacket { ms, ..delivery.packet });
        }
    };
    for (number, &Sent { ms, length, ecn }) in (0..).zip(sent) {
        let now = Time::ZERO + Span::from_millis(ms);
        fetch(&mut fabric, now);
        let packet =
            TestPacket { number, destination: to, ecn, ms: 0, length, arrived: Time::ZERO, class: ecn };
        fabric.inject(0, packet, now);
    }
    fetch(&mut fabric, Time::NEVER);
    (arrived, fabric)
}

/// A value of the station's state.
pub(crate) fn state(fabric: &Fabric<TestPacket>, wanted: &str) -> Option<f64> {
    let mut found = None;
    fabric.station_state(0, &mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found
}
