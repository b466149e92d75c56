//! Stations: what they see, hold, copy, discard and send, and that every packet is accounted for.

use super::links::balance;
use super::*;
use std::collections::VecDeque;

/// A station that calls a function for each packet.
struct Does<F>(F);

impl<F> std::fmt::Debug for Does<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Does")
    }
}

impl<F: FnMut(Datagram, Option<usize>, &mut Net<'_, Datagram>)> Station<Datagram> for Does<F> {
    fn packet(&mut self, packet: Datagram, from: Option<usize>, net: &mut Net<'_, Datagram>) {
        (self.0)(packet, from, net);
    }
}

fn at(node: usize, station: impl Station<Datagram> + 'static) -> Placed<Datagram> {
    Placed { at: node, links: vec![], station: Box::new(station) }
}

/// Sends packets 1 to n at once to host 2, and returns when each arrived anywhere.
fn burst_past(
    config: &Config,
    stations: Vec<Placed<Datagram>>,
    n: u64,
) -> (Vec<(u64, Time)>, Fabric<Datagram>) {
    let mut fabric = Fabric::with_stations(config, stations);
    (1..=n).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let mut seen = vec![];
    while let Some(delivery) = fabric.advance(Time::NEVER) {
        seen.push((delivery.packet.number, delivery.at));
    }
    balance(&fabric);
    (seen, fabric)
}

#[test]
fn a_station_that_forwards_everything_changes_no_arrival() {
    for access in [Span::ZERO, Span::from_millis(1)] {
        let mut config = two_hops(|_| {});
        config.network.links[0].delay = access;
        let passes = |packet, _: Option<usize>, net: &mut Net<'_, Datagram>| net.forward(packet);
        let (seen, fabric) = burst_past(&config, vec![at(1, Does(passes))], 3);
        assert_eq!(seen, burst(&config, 3).0);
        assert_eq!(fabric.station(0), StationCounters { packets: 3, ..StationCounters::default() });
    }
}

#[test]
fn a_station_sees_only_packets_of_its_links_and_knows_by_which_one_they_arrived() {
    // Packets for host 3 come to router 2 by the near link, 1, those for host 0 by the access link, 4.
    for (links, seen) in [(vec![], 2), (vec![1], 1), (vec![4], 1), (vec![5], 1), (vec![2], 0)] {
        let station = Does(|packet: Datagram, from, net: &mut Net<'_, Datagram>| {
            assert_eq!((from, net.node()), (Some(if packet.destination == 3 { 1 } else { 4 }), 2));
            net.forward(packet);
        });
        let placed = Placed { at: 2, links, station: Box::new(station) };
        let mut fabric = Fabric::with_stations(&two_routes(vec![]), vec![placed]);
        fabric.inject(0, datagram(1, 3), Time::ZERO);
        fabric.inject(3, datagram(2, 0), Time::ZERO);
        let arrivals: Vec<_> = std::iter::from_fn(|| fabric.advance(Time::NEVER)).map(|d| d.at).collect();
        assert_eq!((arrivals, fabric.station(0).packets), (vec![ms(5), ms(5)], seen));
    }
}

#[test]
fn copied_and_discarded_packets_are_in_the_packet_counts() {
    let station = Does(|packet: Datagram, _, net: &mut Net<'_, Datagram>| match packet.number {
        2 => net.discard(packet),
        3 => {
            let copy = net.copy(&packet);
            net.forward(packet);
            net.forward(copy);
        }
        _ => net.forward(packet),
    });
    let (seen, fabric) = burst_past(&two_hops(|_| {}), vec![at(1, station)], 4);
    assert_eq!(seen.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 3, 3, 4]);
    let totals = fabric.totals();
    assert_eq!((totals.sent, totals.made, totals.delivered, totals.discarded), (4, 1, 4, 1));
    assert_eq!(fabric.station(0), StationCounters { packets: 4, discarded: 1, made: 1, held: 0 });
}

#[test]
fn a_packet_that_a_station_cannot_forward_is_counted_as_unroutable() {
    // A packet sent by a link that does not begin at the station, and one that the station sends to itself.
    let station = Does(|mut packet: Datagram, _, net: &mut Net<'_, Datagram>| {
        if packet.number == 1 {
            return net.send(packet, 0);
        }
        packet.destination = net.node();
        net.forward(packet);
    });
    let (seen, fabric) = burst_past(&two_hops(|_| {}), vec![at(1, station)], 2);
    assert_eq!((seen, fabric.totals().unroutable), (vec![], 2));
}

#[test]
fn a_packet_addressed_to_a_station_reaches_it_and_its_answer_comes_back() {
    let mut config = two_hops(|_| {});
    config.network.nodes[2].host = false;
    config.network.links.push(Link { from: 2, to: 1, ..config.network.links[1].clone() });
    config.network.links.push(Link { from: 1, to: 0, ..config.network.links[0].clone() });
    let answers = Does(|mut packet: Datagram, _, net: &mut Net<'_, Datagram>| {
        assert!(packet.turn_round());
        net.forward(packet);
    });
    let (seen, mut fabric) = burst_past(&config, vec![at(2, answers)], 2);
    // 17 ms there, and the same back; the second behind the first both ways.
    assert_eq!(seen, [(1, ms(34)), (2, ms(40))]);
    assert_eq!(fabric.take_flow(0).unwrap().received_packets, 2, "the flow's end is the station's node");
    // A damaged packet is discarded there, as at a host.
    config.network.links[1].corrupt = 1.0;
    let unseen = Does(|_: Datagram, _: Option<usize>, _: &mut Net<'_, Datagram>| panic!("was shown"));
    let (seen, fabric) = burst_past(&config, vec![at(2, unseen)], 2);
    assert_eq!((seen, fabric.totals().corrupted), (vec![], 2));
}

/// Two stations at neighbouring nodes send a packet to and fro between them, in no time.
#[test]
fn stations_that_send_to_each_other_without_delay_take_turns() {
    let mut config = two_routes(vec![]);
    config.network.links.iter_mut().for_each(|link| link.delay = Span::ZERO);
    let bounces = |back: usize, until: u32| {
        Does(move |mut packet: Datagram, _, net: &mut Net<'_, Datagram>| {
            packet.length += 1;
            if packet.length < until { net.send(packet, back) } else { net.forward(packet) }
        })
    };
    let stations = vec![at(1, bounces(1, 0)), at(2, bounces(5, 1510))];
    let mut fabric = Fabric::with_stations(&config, stations);
    fabric.inject(0, datagram(1, 3), ms(1));
    let delivery = fabric.advance(ms(1)).unwrap();
    assert_eq!((delivery.at, delivery.packet.length), (ms(1), 1510));
    assert_eq!((fabric.station(0).packets, fabric.station(1).packets), (5, 5));
    balance(&fabric);
}

/// A station that holds each packet for five milliseconds.
#[derive(Debug, Default)]
struct Holds(VecDeque<(Time, Datagram)>);

impl Station<Datagram> for Holds {
    fn packet(&mut self, packet: Datagram, _: Option<usize>, net: &mut Net<'_, Datagram>) {
        self.0.push_back((net.now() + Span::from_millis(5), packet));
    }
    fn next_timer(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |(at, _)| *at)
    }
    fn on_timer(&mut self, net: &mut Net<'_, Datagram>) {
        while let Some((_, packet)) = self.0.pop_front_if(|(at, _)| *at <= net.now()) {
            net.forward(packet);
        }
    }
    fn held(&self) -> u64 {
        self.0.len() as u64
    }
}

#[test]
fn packets_that_a_station_holds_until_a_timer_are_in_the_packet_counts() {
    let config = two_hops(|link| (link.rate, link.delay) = (None, Span::ZERO));
    let mut fabric = Fabric::with_stations(&config, vec![at(1, Holds::default())]);
    for n in 1..=3 {
        assert!(fabric.advance(ms(n)).is_none());
        fabric.inject(0, datagram(n, 2), ms(n));
    }
    assert!(fabric.advance(ms(6)).is_none());
    assert_eq!((fabric.totals().held, fabric.totals().in_flight, fabric.next_arrival()), (3, 0, ms(7)));
    balance(&fabric);
    // The packets reach the station at 2, 3 and 4 ms.
    let seen: Vec<_> = std::iter::from_fn(|| fabric.advance(Time::NEVER)).map(|d| d.at).collect();
    assert_eq!((seen, fabric.totals().held), (vec![ms(7), ms(8), ms(9)], 0));
}

/// A station that queues all packets itself and gives a link no more than two at a time (backpressure).
#[derive(Debug, Default)]
struct Feeds {
    waiting: VecDeque<Datagram>,
    link: usize,
    told: u64,
}

impl Feeds {
    fn feed(&mut self, net: &mut Net<'_, Datagram>) {
        while net.backlog(self.link).bytes < Bytes::new(3000)
            && let Some(packet) = self.waiting.pop_front()
        {
            net.send(packet, self.link);
        }
    }
}

impl Station<Datagram> for Feeds {
    fn packet(&mut self, packet: Datagram, _: Option<usize>, net: &mut Net<'_, Datagram>) {
        assert_eq!((net.route(2), net.rate(1)), (Some(self.link), Some(Rate::from_mbit_per_sec(2))));
        net.watch(self.link, Bytes::new(3000));
        self.waiting.push_back(packet);
        self.feed(net);
    }
    fn drained(&mut self, link: usize, net: &mut Net<'_, Datagram>) {
        assert_eq!(link, self.link);
        self.told += 1;
        self.feed(net);
    }
    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("told", self.told as f64);
    }
}

#[test]
fn a_station_that_is_notified_when_a_link_drains_keeps_it_busy_with_two_queued_packets() {
    let config = two_hops(|_| {});
    let feeds = Feeds { link: 1, ..Feeds::default() };
    let mut fabric = Fabric::with_stations(&config, vec![at(1, feeds)]);
    (1..=10).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    assert!(fabric.advance(ms(1)).is_none());
    // One packet is being sent, two are queued.
    assert_eq!((fabric.backlog(1).packets, fabric.totals().held), (2, 7));
    let seen: Vec<_> =
        std::iter::from_fn(|| fabric.advance(Time::NEVER)).map(|d| (d.packet.number, d.at)).collect();
    assert_eq!(seen, burst(&config, 10).0, "the link is as busy as if it had them all");
    let mut told = 0.0;
    fabric.station_state(0, &mut |name, value| told += if name == "told" { value } else { 0.0 });
    // The station is told each time that one of the two is sent: seven times with a packet to follow, and
    // once with none left.
    assert_eq!(told, 8.0);
    balance(&fabric);
}

#[test]
fn packets_still_stop_at_a_station_after_a_change_of_the_network() {
    let change = Change { at: Span::from_millis(2), delay: Some(Span::ZERO), ..Change::default() };
    let mut config = two_hops(|link| (link.rate, link.schedule) = (None, vec![change]));
    config.network.links[0].delay = Span::ZERO;
    let passes = |packet, _: Option<usize>, net: &mut Net<'_, Datagram>| net.forward(packet);
    let mut fabric = Fabric::with_stations(&config, vec![at(1, Does(passes))]);
    for at in [0, 3, 20] {
        assert!(fabric.advance(ms(at)).is_none_or(|delivery| delivery.at >= ms(3)));
        fabric.inject(0, datagram(at, 2), ms(at));
    }
    while fabric.advance(Time::NEVER).is_some() {}
    assert_eq!((fabric.station(0).packets, fabric.totals().delivered), (3, 3));
}

/// A station whose timer is due again at once after its first packet.
#[derive(Debug)]
struct Restless(Time);

impl Station<Datagram> for Restless {
    fn packet(&mut self, packet: Datagram, _: Option<usize>, net: &mut Net<'_, Datagram>) {
        self.0 = net.now();
        net.forward(packet);
    }
    fn next_timer(&self) -> Time {
        self.0
    }
}

#[test]
fn a_station_that_has_no_end_at_one_instant_is_stopped_and_named() {
    let (seen, fabric) = burst_past(&two_hops(|_| {}), vec![at(1, Restless(Time::NEVER))], 3);
    assert_eq!(seen.len(), 3);
    assert!(matches!(fabric.endless(), Some((Culprit::Station(0), _))), "{:?}", fabric.endless());
}
