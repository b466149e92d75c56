//! The fabric as a whole: times, orders, losses and sums that a person can work out by hand.

mod links;
mod shapers;
mod stations;

use super::*;
use std::sync::Arc;
use weir_base::{Bytes, Ecn, FlowId, Packet, Rate, Span, Time};

#[derive(Debug, Clone, PartialEq)]
struct Datagram {
    number: u64,
    length: u32,
    destination: usize,
    ecn: Ecn,
    arrived: Time,
    class: Ecn,
    corrupt: bool,
}

impl Packet for Datagram {
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

impl Wire for Datagram {
    fn destination(&self) -> usize {
        self.destination
    }
    fn relabel(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn turn_round(&mut self) -> bool {
        // All come from host 0.
        self.destination = 0;
        true
    }
    fn tcp(&self) -> Option<TcpView<'_>> {
        None
    }
    fn write_to(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.number.to_be_bytes());
    }
    fn duplicate(&self) -> Datagram {
        self.clone()
    }
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn is_corrupt(&self) -> bool {
        self.corrupt
    }
}

fn datagram(number: u64, destination: usize) -> Datagram {
    Datagram {
        number,
        length: 1500,
        destination,
        ecn: Ecn::Ect0,
        arrived: Time::ZERO,
        class: Ecn::Ect0,
        corrupt: false,
    }
}

/// A recording as a link plays it.
fn playback(trace: &Arc<Trace>, repeat: bool) -> Option<Playback> {
    let recording = Some(Arc::clone(trace));
    Some(Playback { file: "test".into(), digest: String::new(), repeat, recording })
}

/// An outage that begins at `at` and lasts so long, both in milliseconds.
fn outage(at: u64, length: u64) -> Outage {
    Outage { at: Span::from_millis(at), length: Span::from_millis(length) }
}

/// Host 0, router 1, host 2: an access link without limit, then a link of 2 Mbit/s and 10 ms.
fn two_hops(change: impl FnOnce(&mut Link)) -> Config {
    let access = Link { delay: Span::from_millis(1), ..Link::plain("access", 0, 1) };
    let mut slow = Link {
        rate: Some(Rate::from_mbit_per_sec(2)),
        delay: Span::from_millis(10),
        instrumented: true,
        ..Link::plain("slow", 1, 2)
    };
    change(&mut slow);
    Config {
        network: Network {
            nodes: vec![Node::host("a"), Node::router("r"), Node::host("b")],
            links: vec![access, slow],
            routes: vec![],
            base_rtt: None,
        },
        flows: vec![Flow { from: 0, to: 2, group: 0 }],
        groups: 1,
        round_trips: RoundTrips::Segments,
        seed: 1,
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// Sends packets 1 to n at once, and returns when each arrived.
fn burst(config: &Config, n: u64) -> (Vec<(u64, Time)>, Fabric<Datagram>) {
    let mut fabric = Fabric::new(config);
    (1..=n).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let mut seen = vec![];
    while let Some(delivery) = fabric.advance(Time::NEVER) {
        seen.push((delivery.packet.number, delivery.at));
    }
    (seen, fabric)
}

#[test]
fn packets_leave_a_slow_link_one_serialisation_time_apart() {
    // 1 ms access, 6 ms to serialise 1500 bytes at 2 Mbit/s, 10 ms to travel.
    let (seen, mut fabric) = burst(&two_hops(|_| {}), 3);
    assert_eq!(seen, [(1, ms(17)), (2, ms(23)), (3, ms(29))]);
    let counters = fabric.take_link(1, ms(40));
    assert_eq!((counters.sent[Ecn::Ect0 as usize], counters.busy), (3, Span::from_millis(18)));
    let (class, delays) = fabric.delays(1).next().unwrap();
    assert_eq!((class, delays.mean().unwrap()), (Ecn::Ect0, Span::from_millis(6)));
    assert_eq!(counters.capacity, Bytes::new(10_000));
}

#[test]
fn overhead_adds_to_the_transmission_time() {
    let (seen, _) = burst(&two_hops(|link| link.overhead = Bytes::new(250)), 1);
    assert_eq!(seen, [(1, ms(18))]);
}

#[test]
fn packets_beyond_the_queue_limit_are_dropped_and_the_packet_counts_balance() {
    let (seen, fabric) = burst(
        &two_hops(|l| {
            l.queue =
                weir_queue::Config::with_parameters("tail-drop", serde_json::json!({"limit": "2 packets"}))
                    .unwrap()
        }),
        5,
    );
    assert_eq!(seen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2, 3]);
    let totals = fabric.totals();
    assert_eq!((totals.sent, totals.delivered, totals.dropped, totals.in_flight), (5, 3, 2, 0));
}

#[test]
fn scripted_drops_lose_exactly_the_named_packets() {
    let (seen, fabric) = burst(&two_hops(|link| link.drop = vec![2, 4]), 5);
    assert_eq!(seen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(fabric.totals().lost, 2);
}

#[test]
fn a_reordered_packet_is_overtaken_by_the_configured_number() {
    let (seen, _) = burst(&two_hops(|link| link.reorder = vec![Reorder { packet: 2, by: 3 }]), 7);
    assert_eq!(seen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 3, 4, 5, 2, 6, 7]);
}

#[test]
fn a_change_of_rate_and_delay_takes_effect_at_its_time_and_order_is_kept() {
    let at = Span::from_millis(8);
    let change = Change {
        at,
        rate: Some(Rate::from_mbit_per_sec(12)),
        delay: Some(Span::from_millis(1)),
        ..Change::default()
    };
    let (seen, _) = burst(&two_hops(|link| link.schedule = vec![change]), 3);
    // The first two started at 1 and 7 ms at the old rate; the second was sent after the change in delay would let it
    // overtake, but arrives no earlier than the first.
    assert_eq!(seen, [(1, ms(17)), (2, ms(23)), (3, ms(23))]);
}

#[test]
fn random_loss_loses_the_configured_share() {
    let (seen, fabric) = burst(
        &two_hops(|link| {
            link.loss = Loss::Independent(0.1);
            link.queue = weir_queue::Config::with_parameters(
                "tail-drop",
                serde_json::json!({"limit": "100000 packets"}),
            )
            .unwrap();
        }),
        20_000,
    );
    let share = fabric.totals().lost as f64 / 20_000.0;
    assert!((share - 0.1).abs() < 0.01, "{share}");
    assert_eq!(seen.len() as u64 + fabric.totals().lost, 20_000);
}

#[test]
fn jitter_holds_packets_back_but_keeps_their_order() {
    let mut config = two_hops(|link| link.rate = Some(Rate::from_mbit_per_sec(10_000)));
    config.network.nodes[0].jitter = Span::from_millis(5);
    let mut fabric = Fabric::new(&config);
    (0..1000).for_each(|i| fabric.inject(0, datagram(i, 2), ms(0)));
    let (mut last, mut number) = (Time::ZERO, 0);
    while let Some(delivery) = fabric.advance(Time::NEVER) {
        assert!(delivery.at >= last && delivery.packet.number == number);
        (last, number) = (delivery.at, number + 1);
    }
    assert!(number == 1000 && last > ms(11 + 4) && last < ms(11 + 7));
}

#[test]
fn a_packet_without_a_route_is_counted_as_unroutable() {
    let mut fabric = Fabric::new(&two_hops(|_| {}));
    fabric.inject(2, datagram(1, 0), Time::ZERO);
    assert!(fabric.advance(Time::NEVER).is_none());
    assert_eq!(fabric.totals().unroutable, 1);
}

#[test]
fn advance_stops_at_the_time_it_is_given() {
    let mut fabric = Fabric::new(&two_hops(|_| {}));
    fabric.inject(0, datagram(1, 2), Time::ZERO);
    assert!(fabric.advance(ms(16)).is_none());
    assert_eq!(fabric.next_time(), ms(17));
    assert_eq!(fabric.advance(ms(17)).unwrap().at, ms(17));
}

#[test]
fn internal_events_are_no_arrivals() {
    let mut fabric = Fabric::new(&two_hops(|_| {}));
    (1..=3).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    assert!(fabric.advance(ms(1)).is_none());
    // The first packet is on the slow link, the second begins at 7 ms. Nothing arrives before the first packet, and the link is not
    // caught up until then.
    assert_eq!((fabric.next_time(), fabric.next_arrival()), (ms(17), ms(17)));
    let mut seen = vec![];
    while fabric.next_arrival() != Time::NEVER {
        let until = fabric.next_arrival();
        while let Some(delivery) = fabric.advance(until) {
            seen.push(delivery.at);
        }
    }
    assert_eq!(seen, [ms(17), ms(23), ms(29)]);
}

#[test]
fn a_path_without_delay_delivers_at_once() {
    let mut config = two_hops(|link| (link.rate, link.delay) = (None, Span::ZERO));
    config.network.links[0].delay = Span::ZERO;
    let mut fabric = Fabric::new(&config);
    fabric.inject(0, datagram(1, 2), ms(3));
    assert_eq!(fabric.next_time(), ms(3));
    assert_eq!(fabric.advance(ms(3)).unwrap().at, ms(3));
    assert_eq!(fabric.totals().delivered, 1);
}

/// Two routers between two hosts, with a near link (3 ms) and a far one (9 ms) in each direction.
fn two_routes(routes: Vec<Route>) -> Config {
    let mut config = two_hops(|_| {});
    let link = |from, to, ms| Link {
        from,
        to,
        rate: None,
        delay: Span::from_millis(ms),
        ..config.network.links[0].clone()
    };
    config.network.links = vec![
        link(0, 1, 1),
        link(1, 2, 3),
        link(1, 2, 9),
        link(2, 3, 1),
        link(3, 2, 1),
        link(2, 1, 3),
        link(2, 1, 9),
        link(1, 0, 1),
    ];
    config.network.nodes = vec![Node::host("a"), Node::router("r"), Node::router("s"), Node::host("b")];
    config.network.routes = routes;
    config
}

#[test]
fn a_given_route_overrides_the_shortest_one_and_applies_to_one_host_only() {
    let arrivals = |config: &Config| {
        let mut fabric = Fabric::new(config);
        fabric.inject(0, datagram(1, 3), Time::ZERO);
        fabric.inject(3, datagram(2, 0), Time::ZERO);
        let mut seen = vec![];
        while let Some(delivery) = fabric.advance(Time::NEVER) {
            seen.push((delivery.packet.number, delivery.at));
        }
        seen
    };
    assert_eq!(arrivals(&two_routes(vec![])), [(1, ms(5)), (2, ms(5))]);
    // Out by the far link, back by the near one.
    let far = two_routes(vec![Route { to: 3, links: vec![2] }]);
    assert_eq!(arrivals(&far), [(2, ms(5)), (1, ms(11))]);
    let paths = Paths::new(&far.network);
    assert!(paths.crosses(0, 3, 2) && !paths.crosses(0, 3, 1));
    assert!(paths.crosses(3, 0, 5) && !paths.crosses(3, 0, 6));
}

#[test]
fn a_packet_on_a_given_route_with_a_loop_is_counted_as_unroutable() {
    // From router 1 to router 2 and back again, over links that take no time.
    let mut config = two_routes(vec![Route { to: 3, links: vec![1, 5] }]);
    config.network.links.iter_mut().for_each(|link| link.delay = Span::ZERO);
    let mut fabric = Fabric::new(&config);
    fabric.inject(0, datagram(1, 3), Time::ZERO);
    assert!(fabric.advance(Time::NEVER).is_none());
    assert_eq!((fabric.totals().sent, fabric.totals().unroutable), (1, 1));
    assert!(!Paths::new(&config.network).crosses(0, 3, 3));
}

/// Random networks: routers joined at random, and hosts behind one or two of them.
#[test]
fn routes_to_a_host_behind_one_router_are_those_that_a_search_from_the_host_finds() {
    use crate::route::Routes;
    use crate::shortest::{Edge, least_delay};
    let (routers, hosts) = (6, 8);
    for seed in 0..20 {
        let mut random = weir_base::Random::stream(seed, "routes");
        let mut config = two_routes(vec![]);
        let like = config.network.links[0].clone();
        config.network.links.clear();
        let mut join = |from: usize, to: usize, random: &mut weir_base::Random| {
            let delay = Span::from_millis(random.below(4));
            config.network.links.push(Link { from, to, delay, ..like.clone() });
        };
        for _ in 0..14 {
            join(random.below(routers) as usize, random.below(routers) as usize, &mut random);
        }
        for host in routers..routers + hosts {
            for _ in 0..=random.below(2) {
                let router = random.below(routers) as usize;
                join(host as usize, router, &mut random);
                join(router, host as usize, &mut random);
            }
        }
        let node = |number| if number < routers { Node::router("r") } else { Node::host("h") };
        config.network.nodes = (0..routers + hosts).map(node).collect();
        let mut into = vec![vec![]; config.network.nodes.len()];
        for (link, of) in (0..).zip(&config.network.links) {
            into[of.to].push(Edge { link, to: of.from, delay: of.delay });
        }
        let routes = Routes::new(&config.network, |_| true);
        for target in 0..config.network.nodes.len() {
            let found = least_delay(target, &into, |node| config.network.nodes[node].host);
            let found: Vec<_> = found.into_iter().map(|link| link.map(|link| link as usize)).collect();
            let kept: Vec<_> = (0..found.len()).map(|node| routes.link(node, target)).collect();
            assert_eq!(kept, found, "seed {seed}, to {target}");
        }
    }
}
