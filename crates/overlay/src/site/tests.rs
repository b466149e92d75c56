//! Two sites over one link that takes a millisecond.

mod depths;
mod groups;
mod kills;
mod network;
mod parts;
mod quotas;

use super::datagram::{IP, read};
use super::{Config, Outside, Places, Plain, Service, Site, stream};
use crate::Inner;
use crate::cat::{Delay, Reported};
use crate::message::header::is_packet;
use crate::node::Signal;
use crate::nodes::NodeId;
use crate::proxy::tcp::{Relay, Segment};
use crate::proxy::udp::tests::Parity;
use weir_base::{Bytes, Rate, Span, Time};

const TICK: Span = Span::from_millis(1);

fn id(number: u8) -> NodeId {
    NodeId::new(number).unwrap()
}

/// 10.1.0.0/16 is behind node 0, 10.2.0.0/16 behind node 1.
fn places() -> Places {
    Places::new(vec![("10.1.0.0/16".parse().unwrap(), id(0)), ("10.2.0.0/16".parse().unwrap(), id(1))])
}

fn link() -> Reported {
    let delay = Delay::constant(TICK);
    let capacity = Rate::from_mbit_per_sec(100);
    Reported { is_up: true, waiting: Bytes::ZERO, capacity, delay, loss: 0.0 }
}

fn site(number: u8, places: Places, services: Vec<Service>) -> Site<Reported, Plain> {
    let (node, networks) = (crate::Config::default(), vec![]);
    let config = Config {
        id: id(number),
        epoch: 1,
        seed: 1,
        node,
        places,
        networks,
        services,
        longest: Bytes::new(1389),
        code: &Parity,
        around: Bytes::new(28),
    };
    let mut site = Site::new(config, Plain).unwrap();
    site.connect(link(), id(1 - number.min(1)), None);
    site
}

/// What a site has said in a tick.
#[derive(Default)]
struct Said {
    packets: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    to_networks: Vec<(usize, Vec<u8>)>,
    segments: Vec<(Inner, Vec<u8>)>,
}

impl Outside for Said {
    fn packet(&mut self, _: usize, header: &[u8], body: &[u8], _: bool) {
        self.packets.push([header, body].concat());
    }
    fn signal(&mut self, _: usize, datagram: &[u8], _: Signal) {
        self.packets.push(datagram.to_vec());
    }
    fn deliver(&mut self, datagram: &[u8]) {
        self.delivered.push(datagram.to_vec());
    }
    fn deliver_to_network(&mut self, network: usize, datagram: &[u8]) {
        self.to_networks.push((network, datagram.to_vec()));
    }
    fn segment(&mut self, flow: &Inner, segment: &[u8]) {
        self.segments.push((*flow, segment.to_vec()));
    }
}

/// What comes of a packet, by its number: none, itself, or several.
type Passes = Box<dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>>>;

struct Pair {
    sites: [Site<Reported, Plain>; 2],
    now: Time,
    /// What is on its way to each site.
    coming: [Vec<Vec<u8>>; 2],
    delivered: [Vec<Vec<u8>>; 2],
    /// What has gone to hosts of each site's networks.
    to_networks: [Vec<(usize, Vec<u8>)>; 2],
    segments: [Vec<(Inner, Vec<u8>)>; 2],
    is_up: bool,
    /// What is done with the packets from site 0 that are on their way.
    passes: Passes,
    passed: usize,
}

impl Pair {
    fn new(sites: [Site<Reported, Plain>; 2]) -> Pair {
        let (coming, delivered, to_networks, segments) = Default::default();
        Pair {
            sites,
            now: Time::ZERO,
            coming,
            delivered,
            to_networks,
            segments,
            is_up: true,
            passes: Box::new(|_, packet| vec![packet]),
            passed: 0,
        }
    }

    fn tick(&mut self, datagrams: &[Vec<u8>]) {
        self.now += TICK;
        for at in 0..2 {
            let (site, mut said, now) = (&mut self.sites[at], Said::default(), self.now);
            *site.node_mut().cat_mut(0).unwrap() = Reported { is_up: self.is_up, ..link() };
            for bytes in std::mem::take(&mut self.coming[at]) {
                site.from_neighbour(0, &bytes, now, &mut said);
            }
            site.refill(now, &mut said);
            if at == 0 {
                datagrams.iter().for_each(|datagram| site.from_program(datagram, now, &mut said));
            }
            site.on_timer(now, &mut said);
            assert!(site.next_time(now) > now, "nothing is left to do");
            for packet in said.packets.drain(..).filter(|_| self.is_up) {
                if at == 0 && is_packet(packet[0]) {
                    self.coming[1].extend((self.passes)(self.passed, packet));
                    self.passed += 1;
                } else {
                    self.coming[1 - at].push(packet);
                }
            }
            self.delivered[at].append(&mut said.delivered);
            self.to_networks[at].append(&mut said.to_networks);
            self.segments[at].append(&mut said.segments);
        }
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick(&[]));
    }
}

/// A datagram between these addresses.
fn datagram(source: u32, destination: u32, payload: &[u8]) -> Vec<u8> {
    let inner = crate::Inner {
        source,
        destination,
        source_port: 5000,
        destination_port: 6000,
        protocol: 17,
        dscp: 0,
    };
    let mut datagram = Vec::new();
    let fate = super::datagram::Fate { hops: 0, ecn: 0, checksum: 1, sequence: 1 };
    assert!(super::datagram::write(&inner, fate, payload, &mut datagram));
    datagram
}

const HERE: u32 = 0x0a01_0001;
const THERE: u32 = 0x0a02_0001;

#[test]
fn a_datagram_reaches_the_other_site_with_one_link_less_to_live() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, places(), vec![])));
    pair.ticks(1500);
    let sent = datagram(HERE, THERE, b"hello");
    pair.tick(std::slice::from_ref(&sent));
    pair.ticks(20);
    let [ref come] = pair.delivered[1][..] else { panic!("{:?}", pair.delivered) };
    assert_eq!(read(come).unwrap(), read(&sent).unwrap());
    assert_eq!((come[8], sent[8]), (63, 64));
    assert_eq!((come.len(), come[IP..].to_vec()), (sent.len(), sent[IP..].to_vec()));
    assert!(pair.delivered[0].is_empty());
}

#[test]
fn a_source_behind_another_node_is_refused_where_it_enters_and_where_it_leaves() {
    // Node 0 believes that a third site's prefix is its own.
    let wrong = Places::new(vec![
        ("10.1.0.0/16".parse().unwrap(), id(0)),
        ("10.2.0.0/16".parse().unwrap(), id(1)),
        ("10.3.0.0/16".parse().unwrap(), id(0)),
    ]);
    let mut pair = Pair::new([site(0, wrong, vec![]), site(1, places(), vec![])]);
    pair.ticks(1500);
    pair.tick(&[datagram(0x0a03_0001, THERE, b"x"), datagram(0x0a04_0001, THERE, b"x")]);
    pair.ticks(20);
    assert!(pair.delivered[1].is_empty());
    assert_eq!((pair.sites[0].counts().foreign, pair.sites[1].counts().foreign), (1, 1));
    assert_eq!(pair.sites[0].counts().admitted, 1);
}

#[test]
fn an_address_behind_no_other_node_is_no_flow() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, places(), vec![])));
    pair.ticks(1500);
    pair.tick(&[
        datagram(HERE, 0x0a09_0001, b"x"),
        datagram(HERE, HERE + 1, b"x"),
        vec![0x41, 2, 3],
        vec![0x60; 40],
    ]);
    let counts = pair.sites[0].counts();
    assert_eq!((counts.unknown, counts.malformed, counts.other_version), (2, 1, 1));
    assert_eq!(pair.sites[0].told().count(), 0);
}

#[test]
fn what_waits_while_no_way_leads_there_is_bounded_and_goes_when_one_does() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, places(), vec![])));
    pair.is_up = false;
    pair.ticks(100);
    for number in 0..600_u32 {
        pair.tick(&[datagram(HERE, THERE, &number.to_be_bytes())]);
    }
    assert_eq!(pair.sites[0].counts().overflowed, 110);
    assert_eq!(pair.sites[0].told().next().unwrap().waiting, 490);
    pair.is_up = true;
    pair.ticks(3000);
    assert_eq!(pair.delivered[1].len(), 490);
    let told = pair.sites[0].told().next().unwrap();
    assert_eq!((told.waiting, told.sent.get()), (0, 490 * 4));
}

#[test]
fn of_a_service_that_keeps_the_newest_one_datagram_waits() {
    let newest = serde_json::json!({ "name": "newest", "newest": true });
    let services = vec![serde_json::from_value(newest).unwrap()];
    let mut pair = Pair::new([site(0, places(), services), site(1, places(), vec![])]);
    pair.is_up = false;
    pair.ticks(10);
    for number in 0..5u8 {
        pair.tick(&[datagram(HERE, THERE, &[number])]);
    }
    let told = pair.sites[0].told().next().unwrap();
    assert_eq!((told.waiting, told.refused, told.admitted), (1, 4, 0));
    pair.is_up = true;
    pair.ticks(2000);
    let [ref come] = pair.delivered[1][..] else { panic!("{:?}", pair.delivered) };
    assert_eq!(read(come).unwrap().body, [4]);
    assert_eq!(pair.sites[0].told().next().unwrap().admitted, 1);
}

#[test]
fn a_flow_that_sends_nothing_for_two_minutes_is_forgotten_and_its_place_used_again() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, places(), vec![])));
    pair.ticks(1500);
    pair.tick(&[datagram(HERE, THERE, b"x")]);
    pair.ticks(122_000);
    assert_eq!(pair.sites[0].told().count(), 0);
    pair.tick(&[datagram(HERE, THERE, b"y")]);
    pair.ticks(20);
    assert_eq!((pair.sites[0].told().count(), pair.delivered[1].len()), (1, 2));
}

#[test]
fn a_flow_of_a_service_has_its_utility_and_its_deadline() {
    let service: Service = serde_json::from_value(serde_json::json!({
        "name": "voice", "ports": 6000, "admit": { "kind": "strap", "priority": 3.0 }, "rate": "1 Mbit/s", "deadline": "50 ms"
    }))
    .unwrap();
    let mut pair = Pair::new([site(0, places(), vec![service]), site(1, places(), vec![])]);
    pair.ticks(1500);
    pair.tick(&[datagram(HERE, THERE, b"x")]);
    pair.ticks(100);
    let told = pair.sites[0].told().next().unwrap();
    assert_eq!((told.service, told.utility, told.priority), (Some("voice"), "strap", 3.0));
    // It begins with one of eight steps, and takes one more each 50 ms.
    assert_eq!((told.rate, pair.delivered[1].len()), (Rate::from_bits_per_sec(375_000), 1));
}

/// A stream from site 0 to site 1, with the relays of both sites.
struct Stream {
    pair: Pair,
    flows: [Inner; 2],
    relays: [Relay; 2],
    given: u64,
}

impl Stream {
    fn new(services: Vec<Service>) -> Stream {
        let mut pair = Pair::new([site(0, places(), services), site(1, places(), vec![])]);
        pair.ticks(1500);
        let flow = stream::flow((HERE, 40_000), (THERE, 80));
        let relays = [0, 1].map(|_| Relay::new(Bytes::new(1000), pair.now));
        Stream { pair, flows: [flow, stream::back(&flow)], relays, given: 0 }
    }

    fn tick(&mut self) {
        let Stream { pair, flows, relays, given } = self;
        pair.tick(&[]);
        let now = pair.now;
        for (at, relay) in relays.iter_mut().enumerate() {
            let (site, flow, mut said) = (&mut pair.sites[at], &flows[at], Said::default());
            for (back, bytes) in pair.segments[at].drain(..) {
                assert_eq!(stream::back(&back), *flow);
                let (segment, _) = Segment::decode(&bytes, 0).unwrap();
                relay.receive(&segment, &site.admission(flow, now, &mut said), now);
            }
            let ready = relay.ready();
            relay.give(ready, now);
            *given += ready.get();
            relay.acknowledged(*given, now);
            while let Some(segment) = relay.next(&site.admission(flow, now, &mut said), now) {
                let mut bytes = vec![];
                segment.encode(&mut bytes);
                bytes.resize(bytes.len() + segment.part.map_or(0, |part| part.bytes as usize), 7);
                site.send_segment(flow, &bytes, segment.part.is_some(), now, &mut said);
            }
            pair.coming[1 - at].append(&mut said.packets);
        }
    }
}

#[test]
fn a_stream_crosses_two_sites_and_only_its_own_flow_is_told() {
    let mut stream = Stream::new(vec![]);
    stream.relays[0].take(Bytes::new(20_000));
    stream.relays[0].end();
    (0..30).for_each(|_| stream.tick());
    assert_eq!(stream.given, 20_000);
    assert!(stream.relays[1].ends() && stream.relays[0].has_sent_all());
    assert_eq!(stream.relays[0].repeated(), [0, 0]);
    let told: Vec<Inner> = stream.pair.sites[0].told().map(|flow| flow.inner).collect();
    assert_eq!(told, [stream.flows[0]]);
    // The other side has sent no data: what it has said is 20 answers at most, one for each second segment, the first word and the last.
    assert_eq!(stream.pair.sites[1].told().map(|flow| flow.sent.get()).sum::<u64>(), 0);
    let flow = stream.flows[0];
    stream.pair.sites[0].close_stream(&flow);
    assert_eq!(stream.pair.sites[0].told().count(), 0);
}

#[test]
fn a_stream_is_admitted_at_the_rate_of_its_service_and_its_driver_is_told_when_it_may_go_on() {
    let service: Service = serde_json::from_value(serde_json::json!({
        "name": "backup", "ports": 80, "admit": { "kind": "log", "cap": "4 Mbit/s" }, "deadline": "9 ms"
    }))
    .unwrap();
    let mut stream = Stream::new(vec![service]);
    let mut opened = vec![];
    for _ in 0..1000 {
        let room = stream.relays[0].room();
        stream.relays[0].take(room);
        stream.tick();
        stream.pair.sites[0].take_opened(&mut opened);
    }
    // The cap is of payload, of which 17 to 20 bytes are each segment's header.
    assert!((480_000..500_000).contains(&stream.given), "{}", stream.given);
    assert!(opened.len() > 400 && opened.iter().all(|flow| *flow == stream.flows[0]), "{}", opened.len());
    let told = stream.pair.sites[0].told().next().unwrap();
    assert_eq!((told.service, told.rate), (Some("backup"), Rate::from_mbit_per_sec(4)));
    assert_eq!(stream.pair.sites[0].counts().expired, 0);
}

#[test]
fn a_segment_in_the_name_of_another_site_goes_nowhere() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, places(), vec![])));
    pair.ticks(1500);
    let (forged, mut said) = (stream::flow((THERE + 1, 40_000), (THERE, 80)), Said::default());
    pair.sites[0].send_segment(&forged, b"forged", false, pair.now, &mut said);
    assert!(said.packets.is_empty());
    assert!(!pair.sites[0].admission(&forged, pair.now, &mut said).is_open);
    assert_eq!(pair.sites[0].counts().foreign, 2);
}
