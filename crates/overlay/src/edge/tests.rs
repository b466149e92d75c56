use super::*;
use crate::Wire;
use crate::admission::Standing;
use crate::context::{Context, Inner};
use crate::forward::Reason;
use crate::harness::{Load, Net, OVERHEAD, at, node};
use crate::node::{Admitted, Config, Discard, FlowAt, Output, Signal};
use crate::nodes::Nodes;
use crate::packet::Packet;
use crate::utility::{Config as Utility, log, strap};
use crate::zombie;
use weir_base::Span;

/// What a node says is of no account here.
struct Nothing;

impl Output<Load> for Nothing {
    fn send(&mut self, _: usize, _: &[u8], _: Packet<Load>, _: Reason) {}
    fn signal(&mut self, _: usize, _: &[u8], _: Signal) {}
    fn deliver(&mut self, _: Packet<Load>, _: &Context) {}
    fn discard(&mut self, _: Load, _: Discard) {}
}

/// Bytes of each packet.
const PACKET: u32 = 1000;
const BEGINS: u64 = 1000;

/// The edge of a node that has a neighbour, and the depth of whose bin is 10,000 bytes. K is 8e9, so a flow of priority 1 has 100 kbit/s.
struct Place {
    edge: Edge,
    node: Node<Load, Wire>,
    /// The flow whose packets wait.
    filler: FlowAt,
    now: Time,
    /// Calls of the timer, and the flows that opened, with the time of each.
    calls: usize,
    opened: Vec<(usize, Time)>,
}

impl Place {
    fn new() -> Place {
        Place::with_bursts(Span::ZERO)
    }

    /// Its host hands over at once what comes in this time.
    fn with_bursts(burst: Span) -> Place {
        let zombies = zombie::Config::None(Default::default());
        let mut net = Net::new(2, Config { k: Some(8e9), zombies, asap: false, burst, ..Config::default() });
        net.link(0, 1, 10, Span::from_millis(1));
        net.run(at(BEGINS));
        let mut node = net.nodes.swap_remove(0);
        let filler = node.open_flow(self::node(1), None, false, Inner::default());
        let edge = Edge::new(false);
        let mut place = Place { edge, node, filler, now: at(BEGINS), calls: 0, opened: Vec::new() };
        place.fill();
        place
    }

    /// Packets come until the depth is 10,000 bytes.
    fn fill(&mut self) {
        while self.node.price_of(self::node(1), None) < Some(Bytes::new(10_000)) {
            let load =
                Load { source: 0, bytes: PACKET, sent: self.now, trace: Nodes::EMPTY, came_back: false };
            self.node.admit(self.filler, Admitted::default(), load, self.now, &mut Nothing);
        }
    }

    /// A flow that has begun.
    fn open(&mut self, utility: Utility, is_answer: bool) -> usize {
        let number = self.edge.entries.len() as u64;
        let offered = Rate::from_mbit_per_sec(1);
        let terms =
            Terms { utility, offered, deadline: None, size: None, begins: Time::ZERO, ends: Time::NEVER };
        let flow = Entering {
            number,
            to: node(1),
            interested: None,
            terms,
            coupled: None,
            is_sensitive: false,
            is_answer,
            inner: Inner::default(),
        };
        let flow = self.edge.open(&flow, 1, &mut self.node);
        self.run(Span::ZERO);
        self.opened.clear();
        flow
    }

    /// A flow of LOG with a cap of 1 Mbit/s that has just sent a packet.
    fn sent(&mut self, priority: f64) -> usize {
        let cap = Rate::from_mbit_per_sec(1);
        let flow = self.open(Utility::Log(log::Config { priority, cap, shape: 20.0 }), false);
        assert!(self.edge.entry(flow).unwrap().is_open());
        self.edge.has_sent(flow, PACKET, &self.node, self.now);
        assert!(!self.edge.entry(flow).unwrap().is_open());
        flow
    }

    /// Does what is due in a time. Flows that open have nothing to send.
    fn run(&mut self, time: Span) {
        let until = self.now + time;
        while self.edge.next_time() <= until {
            self.now = self.edge.next_time().max(self.now);
            let (now, opened) = (self.now, &mut self.opened);
            self.calls += 1;
            self.edge.on_timer(&self.node, Bytes::ZERO, now, |flow| opened.push((flow, now)));
        }
        self.now = until;
    }

    /// All packets leave at once.
    fn drain(&mut self) {
        let wire = self.node.cat_mut(0).unwrap();
        *wire = Wire::new(Rate::from_mbit_per_sec(1_000_000), Span::ZERO, 0.0, Bytes::new(OVERHEAD));
        // A link takes 6,000 bytes at a time.
        for micros in 0..10 {
            self.node.refill(self.now + Span::from_micros(micros), &mut Nothing);
        }
        assert_eq!(self.node.price_of(node(1), None), Some(Bytes::ZERO));
    }
}

/// This flow opened so many microseconds after the start, or up to a millisecond later.
fn assert_about((flow, time): (usize, Time), expected: usize, micros: u64) {
    let late = time.since(at(BEGINS) + Span::from_micros(micros));
    assert!(flow == expected && time >= at(BEGINS) + Span::from_micros(micros), "{flow} at {time:?}");
    assert!(late <= Span::from_millis(1), "{flow} at {time:?}");
}

#[test]
fn a_flow_opens_when_the_rate_of_its_priority_has_given_it_a_packet() {
    let mut place = Place::new();
    let (slow, fast) = (place.sent(1.0), place.sent(5.0));
    assert_eq!(place.edge.rate(slow).bits_per_sec(), 99_999);
    place.run(Span::from_millis(100));
    // 8,000 bits at 500 and at 100 kbit/s.
    assert_about(place.opened[0], fast, 16_000);
    assert_about(place.opened[1], slow, 80_000);
    assert_eq!(place.opened.len(), 2);
    // Nothing is looked at while no flow waits.
    assert_eq!(place.edge.next_time(), Time::NEVER);
}

#[test]
fn when_the_price_falls_a_flow_opens_at_its_new_rate() {
    let mut place = Place::new();
    let flow = place.sent(1.0);
    place.run(Span::from_micros(20_500));
    place.drain();
    place.run(Span::from_millis(100));
    // 2,050 of 8,000 bits were given until then, and the cap of 1 Mbit/s gives the rest.
    assert_about(place.opened[0], flow, 20_500 + 5950);
    assert_eq!(place.edge.price(flow), Bytes::ZERO);
}

#[test]
fn the_price_is_the_least_depth_of_the_time_of_a_burst() {
    let mut place = Place::with_bursts(Span::from_millis(2));
    let flow = place.sent(1.0);
    let full = place.edge.price(flow);
    assert_eq!(full, place.node.price_of(node(1), None).unwrap());
    place.run(Span::from_millis(1));
    place.drain();
    // The price is read each millisecond while a flow waits.
    place.run(Span::from_millis(1));
    assert_eq!(place.edge.price(flow), Bytes::ZERO);
    let wire = place.node.cat_mut(0).unwrap();
    *wire = Wire::new(Rate::from_bits_per_sec(1), Span::ZERO, 0.0, Bytes::new(OVERHEAD));
    let drained = place.now;
    place.fill();
    let mut prices = Vec::new();
    for _ in 0..4 {
        place.edge.has_sent(flow, PACKET, &place.node, place.now);
        prices.push((place.now.since(drained).as_micros(), place.edge.price(flow)));
        place.run(Span::from_millis(1));
    }
    // What came within 2 ms of an empty queue is a burst. What is still there after that is a queue.
    assert!(prices[..2].iter().all(|(_, price)| *price == Bytes::ZERO), "{prices:?}");
    assert!(prices[3].1 >= Bytes::new(10_000), "{prices:?}");
}

#[test]
fn a_flow_that_waits_keeps_its_credit_when_its_priority_changes() {
    let mut place = Place::new();
    let (flow, other) = (place.sent(1.0), place.sent(1.0));
    place.run(Span::from_millis(20));
    place.edge.set_priority(flow, 5.0, place.now);
    place.run(Span::from_millis(100));
    // 2,000 bits until then, and 6,000 at 500 kbit/s.
    assert_about(place.opened[0], flow, 32_000);
    assert_about(place.opened[1], other, 80_000);
}

#[test]
fn a_flow_that_is_closed_while_it_waits_does_not_open_and_its_place_is_used_again() {
    let mut place = Place::new();
    let (gone, stays) = (place.sent(1.0), place.sent(1.0));
    place.edge.close(gone, &mut place.node);
    place.run(Span::from_millis(100));
    assert_eq!(place.opened.iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [stays]);
    assert_eq!(place.sent(5.0), gone);
    place.run(Span::from_millis(20));
    assert_about(place.opened[0], gone, 116_000);
}

#[test]
fn a_flow_that_has_its_whole_rate_or_nothing_is_looked_at_by_its_steps_alone() {
    let mut place = Place::new();
    // It holds on up to 8e9 x 10 / 1e6 = 80,000 bits, the present depth.
    let utility = Utility::Strap(strap::Config { priority: 10.0, ..strap::Config::default() });
    let flow = place.open(utility, false);
    place.calls = 0;
    place.run(Span::from_secs(1));
    assert_eq!(place.edge.entry(flow).unwrap().admission().standing(), Standing::On);
    assert_eq!(place.calls, 100);
}

#[test]
fn answers_wait_for_no_admission_and_are_never_looked_at() {
    let mut place = Place::new();
    let flow = place.open(Utility::default(), true);
    for _ in 0..100 {
        assert!(place.edge.entry(flow).unwrap().is_open());
        place.edge.has_sent(flow, PACKET, &place.node, place.now);
    }
    assert_eq!((place.edge.next_time(), place.edge.rate(flow)), (Time::NEVER, Rate::default()));
}

#[test]
fn looks_at_a_thousand_flows_are_bounded_by_their_equations() {
    let mut place = Place::new();
    for flow in 0..1000 {
        place.sent(if flow % 2 == 0 { 1.0 } else { 5.0 });
    }
    place.calls = 0;
    place.run(Span::from_millis(100));
    // 100 ms of two meters, and the two times at which all flows of one open.
    assert_eq!(place.opened.len(), 1000);
    assert!(place.calls <= 2 * 100 + 2, "{}", place.calls);
}
