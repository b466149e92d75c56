//! Nodes joined by ideal links of a rate and a delay, for tests: an event loop over their state machines, sources with LOG admission or a
//! constant rate, links that change, fail, lose, damage, repeat and reorder, and what the receivers had when.

mod parts;

pub(crate) use parts::*;

use crate::Wire;
use crate::admission::{Admission, Terms};
use crate::context::{Context, Inner};
use crate::forward::Reason;
use crate::node::{Admitted, Config, Counters, Discard, FlowAt, Node, Output, Signal};
use crate::nodes::Nodes;
use crate::packet::{GroupId, Key, Packet};
use crate::utility::Seen;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weir_base::{Bytes, Random, Rate, Span, Time};

#[derive(Debug)]
enum Event {
    Packet { to: usize, port: usize, header: Vec<u8>, load: Load },
    Signal { to: usize, port: usize, bytes: Vec<u8> },
    Timer(usize),
    Source(usize),
    Change(Change),
}

/// One direction of a link.
#[derive(Debug)]
struct Link {
    to: usize,
    to_port: usize,
    rate: Rate,
    delay: Span,
    loss: f64,
    free_at: Time,
}

/// A source of packets.
#[derive(Debug)]
struct Source {
    node: usize,
    flow: FlowAt,
    to: Key,
    interested: Option<Nodes>,
    bytes: u32,
    deadline: Option<Span>,
    admission: Option<Admission>,
    gap: Span,
    until: Time,
}

/// What one call of a node said.
#[derive(Debug, Default)]
struct Said {
    packets: Vec<(usize, Vec<u8>, Packet<Load>)>,
    signals: Vec<(usize, Vec<u8>)>,
    delivered: Vec<Packet<Load>>,
    discarded: Vec<(Load, Discard)>,
    reasons: Vec<Reason>,
}

impl Output<Load> for Said {
    fn send(&mut self, port: usize, header: &[u8], packet: Packet<Load>, why: Reason) {
        self.reasons.push(why);
        self.packets.push((port, header.to_vec(), packet));
    }
    fn signal(&mut self, port: usize, datagram: &[u8], _: Signal) {
        self.signals.push((port, datagram.to_vec()));
    }
    fn deliver(&mut self, packet: Packet<Load>, _: &Context) {
        self.delivered.push(packet);
    }
    fn discard(&mut self, body: Load, why: Discard) {
        self.discarded.push((body, why));
    }
}

pub(crate) struct Net {
    pub(crate) nodes: Vec<Node<Load, Wire>>,
    alive: Vec<bool>,
    config: Config,
    joined: BTreeMap<usize, Vec<GroupId>>,
    links: BTreeMap<(usize, usize), Link>,
    events: BinaryHeap<Reverse<(Time, u64)>>,
    due: BTreeMap<(Time, u64), Event>,
    count: u64,
    armed: Vec<Time>,
    sources: Vec<Source>,
    pub(crate) now: Time,
    pub(crate) received: BTreeMap<(usize, u8), Vec<Receipt>>,
    pub(crate) discarded: BTreeMap<(usize, &'static str), u64>,
    pub(crate) reasons: BTreeMap<&'static str, u64>,
    pub(crate) faults: Faults,
    pub(crate) fates: Fates,
    /// Packets that each source has sent.
    pub(crate) sent: Vec<u64>,
    random: Random,
}

impl Net {
    pub(crate) fn new(nodes: u8, config: Config) -> Net {
        let build = |number| Node::new(id(number), 1, config.clone()).unwrap();
        Net {
            nodes: (0..nodes).map(build).collect(),
            alive: vec![true; nodes.into()],
            joined: BTreeMap::new(),
            links: BTreeMap::new(),
            events: BinaryHeap::new(),
            due: BTreeMap::new(),
            count: 0,
            armed: vec![Time::NEVER; nodes.into()],
            sources: Vec::new(),
            now: Time::ZERO,
            received: BTreeMap::new(),
            discarded: BTreeMap::new(),
            reasons: BTreeMap::new(),
            faults: Faults::default(),
            fates: Fates::default(),
            sent: Vec::new(),
            random: Random::stream(1, "overlay"),
            config,
        }
    }

    pub(crate) fn link(&mut self, a: u8, b: u8, kbit: u64, delay: Span) {
        let rate = Rate::from_bits_per_sec(kbit * 1000);
        let mut ends = [(a, 0), (b, 0)].map(|(node, _)| {
            let wire = Wire::new(rate, delay, 0.0, Bytes::new(OVERHEAD));
            (usize::from(node), self.nodes[usize::from(node)].connect(wire).unwrap())
        });
        for _ in 0..2 {
            let (to, to_port) = ends[1];
            let link = Link { to, to_port, rate, delay, loss: 0.0, free_at: Time::ZERO };
            self.links.insert(ends[0], link);
            ends.reverse();
        }
    }

    pub(crate) fn join(&mut self, node: u8, group: u32) {
        self.nodes[usize::from(node)].join(GroupId(group));
        self.joined.entry(node.into()).or_default().push(GroupId(group));
    }

    pub(crate) fn flow(&mut self, flow: Flow) -> usize {
        let from = usize::from(flow.from);
        let is_sensitive = flow.deadline.is_some();
        let inner = Inner { dscp: flow.dscp, ..Inner::default() };
        let name = self.nodes[from].open_flow(flow.to, flow.interested, is_sensitive, inner);
        self.sources.push(Source {
            node: from,
            flow: name,
            to: flow.to,
            interested: flow.interested,
            bytes: flow.bytes,
            deadline: flow.deadline,
            admission: flow
                .log
                .map(|config| Admission::new(Terms::elastic(config), Random::stream(0, "flow"))),
            gap: flow.rate.time_to_send(Bytes::new(flow.bytes.into())),
            until: flow.until,
        });
        self.sent.push(0);
        let source = self.sources.len() - 1;
        self.schedule(flow.start, Event::Source(source));
        source
    }

    pub(crate) fn change(&mut self, time: Time, change: Change) {
        self.schedule(time, Event::Change(change));
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count)));
        self.due.insert((time, self.count), event);
    }

    pub(crate) fn run(&mut self, until: Time) {
        if self.now == Time::ZERO {
            (0..self.nodes.len()).for_each(|node| self.schedule(Time::ZERO, Event::Timer(node)));
        }
        let mut at_once = 0;
        while let Some(Reverse(key)) = self.events.peek().copied().filter(|Reverse(key)| key.0 <= until) {
            self.events.pop();
            let event = self.due.remove(&key).unwrap();
            at_once = if key.0 == self.now { at_once + 1 } else { 0 };
            assert!(at_once < 100_000, "time stands still at {}", self.now);
            self.now = key.0;
            self.happen(event);
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Packet { to, port, header, mut load } => {
                let here = id(to as u8);
                load.came_back |= load.trace.has(here);
                load.trace = load.trace.with(here);
                self.fates.unheard += u64::from(!self.alive[to]);
                self.call(to, |node, said| node.packet(port, &header, load, now, said));
            }
            Event::Signal { to, port, bytes } => {
                self.call(to, |node, said| node.message(port, &bytes, now, said));
            }
            Event::Timer(node) => {
                if self.armed[node] > now && now > Time::ZERO {
                    return;
                }
                self.armed[node] = Time::NEVER;
                self.call(node, |node, said| node.on_timer(now, said));
            }
            Event::Source(source) => self.emit(source),
            Event::Change(change) => self.make(change),
        }
    }

    fn make(&mut self, change: Change) {
        match change {
            Change::Rate(a, b, kbit) => {
                self.each_way(a, b, |link| link.rate = Rate::from_bits_per_sec(kbit * 1000))
            }
            Change::Loss(a, b, loss) => self.each_way(a, b, |link| link.loss = loss),
            Change::Drain(node) => self.nodes[usize::from(node)].set_drained(true),
            Change::Kill(node) => {
                self.alive[usize::from(node)] = false;
                self.fates.killed += self.nodes[usize::from(node)].held() as u64;
            }
            Change::Start(node, epoch) => {
                let at = usize::from(node);
                let mut fresh = Node::new(id(node), epoch, self.config.clone()).unwrap();
                for ((_, _), link) in self.links.range((at, 0)..(at + 1, 0)) {
                    fresh.connect(Wire::new(link.rate, link.delay, 0.0, Bytes::new(OVERHEAD))).unwrap();
                }
                for group in self.joined.get(&at).into_iter().flatten() {
                    fresh.join(*group);
                }
                self.nodes[at] = fresh;
                self.alive[at] = true;
                self.schedule(self.now, Event::Timer(at));
                self.armed[at] = self.now;
            }
        }
    }

    fn each_way(&mut self, a: u8, b: u8, change: impl Fn(&mut Link)) {
        let now = self.now;
        let (a, b) = (usize::from(a), usize::from(b));
        let mut touched = vec![];
        for ((from, port), link) in &mut self.links {
            if (*from, link.to) == (a, b) || (*from, link.to) == (b, a) {
                change(link);
                let wire = self.nodes[*from].cat_mut(*port).unwrap();
                wire.change(link.rate, link.delay, link.loss, now);
                touched.push(*from);
            }
        }
        touched.into_iter().for_each(|from| self.call(from, |node, said| node.on_timer(now, said)));
    }

    fn emit(&mut self, index: usize) {
        let now = self.now;
        let Source { node, flow, to, interested, bytes, deadline, gap, until, .. } = self.sources[index];
        if now >= until {
            return;
        }
        let mut next = now + Span::from_millis(1);
        let load = Load { source: index, bytes, sent: now, trace: set(&[node as u8]), came_back: false };
        let packet = Admitted { deadline, ecn: 0, checksum: 0 };
        if self.sources[index].admission.is_none() {
            next = now + gap;
            if self.alive[node] {
                self.sent[index] += 1;
                self.call(node, |node, said| node.admit(flow, packet, load, now, said));
            }
        } else if let (Some(price), Some(k)) =
            (self.nodes[node].price_of(to, interested), self.nodes[node].k())
        {
            let admission = self.sources[index].admission.as_mut().unwrap();
            admission.update(&Seen { k, depth: price, loss: None }, now);
            if admission.is_open(now) {
                admission.admitted(Bytes::new(bytes.into()), now);
                self.sent[index] += 1;
                self.call(node, |node, said| node.admit(flow, packet, load, now, said));
            }
            let admission = self.sources[index].admission.as_ref().unwrap();
            next = next.min(admission.next_time().max(now));
        }
        self.schedule(next, Event::Source(index));
    }

    fn call(&mut self, at: usize, call: impl FnOnce(&mut Node<Load, Wire>, &mut Said)) {
        if !self.alive[at] {
            return;
        }
        let mut said = Said::default();
        call(&mut self.nodes[at], &mut said);
        for (port, header, packet) in said.packets {
            let length = header.len() as u64 + u64::from(packet.body.bytes);
            let load = packet.body;
            self.carry(
                at,
                port,
                length,
                |to, port, header: Vec<u8>| Event::Packet { to, port, header, load: load.clone() },
                header,
            );
        }
        for (port, bytes) in said.signals {
            let length = bytes.len() as u64;
            self.carry(at, port, length, |to, port, bytes| Event::Signal { to, port, bytes }, bytes);
        }
        for packet in said.delivered {
            let receipt = Receipt {
                at: self.now,
                bytes: packet.body.bytes,
                delay: self.now.since(packet.body.sent),
                hops: packet.hops,
                came_back: packet.body.came_back,
            };
            self.received.entry((packet.body.source, at as u8)).or_default().push(receipt);
        }
        for (load, why) in said.discarded {
            *self.discarded.entry((load.source, discard_name(why))).or_default() += 1;
        }
        for reason in said.reasons {
            *self.reasons.entry(reason_name(reason)).or_default() += 1;
        }
        let next = self.nodes[at].next_time(self.now);
        if next < self.armed[at] {
            self.armed[at] = next;
            self.schedule(next, Event::Timer(at));
        }
    }

    fn carry(
        &mut self,
        from: usize,
        port: usize,
        length: u64,
        event: impl Fn(usize, usize, Vec<u8>) -> Event,
        bytes: Vec<u8>,
    ) {
        let Faults { damage, repeat, jitter } = self.faults;
        let link = self.links.get_mut(&(from, port)).unwrap();
        link.free_at = link.free_at.max(self.now) + link.rate.time_to_send(Bytes::new(length + OVERHEAD));
        if self.random.chance(link.loss) {
            return;
        }
        let (to, to_port, arrival) = (link.to, link.to_port, link.free_at + link.delay);
        for _ in 0..1 + u64::from(self.random.chance(repeat)) {
            let mut bytes = bytes.clone();
            if self.random.chance(damage) && !bytes.is_empty() {
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            let arrival = arrival + self.random.within(jitter);
            self.schedule(arrival, event(to, to_port, bytes));
        }
    }

    /// Receipts of a source's packets at a node in a window.
    pub(crate) fn receipts(
        &self,
        source: usize,
        node: u8,
        from: Time,
        until: Time,
    ) -> impl Iterator<Item = &Receipt> {
        let all = self.received.get(&(source, node)).into_iter().flatten();
        all.filter(move |receipt| receipt.at >= from && receipt.at < until)
    }
    /// Goodput in Mbit/s.
    pub(crate) fn rate(&self, source: usize, node: u8, from: Time, until: Time) -> f64 {
        let bytes: u64 =
            self.receipts(source, node, from, until).map(|receipt| u64::from(receipt.bytes)).sum();
        bytes as f64 * 8e-6 / until.since(from).as_secs_f64()
    }
    /// Mean and 99th percentile of the delay in milliseconds.
    pub(crate) fn delay(&self, source: usize, node: u8, from: Time, until: Time) -> (f64, f64) {
        let mut delays: Vec<f64> =
            self.receipts(source, node, from, until).map(|one| one.delay.as_millis_f64()).collect();
        delays.sort_by(f64::total_cmp);
        let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
        (mean, delays.get(delays.len() * 99 / 100).copied().unwrap_or(0.0))
    }
    pub(crate) fn counters(&self) -> Counters {
        self.nodes.iter().map(Node::counters).fold(Counters::default(), |sum, one| Counters {
            packets: sum.packets + one.packets,
            header_bytes: sum.header_bytes + one.header_bytes,
            body_bytes: sum.body_bytes + one.body_bytes,
            signals: sum.signals + one.signals,
            signal_bytes: sum.signal_bytes + one.signal_bytes,
            zombies_added: sum.zombies_added + one.zombies_added,
            zombies_left: sum.zombies_left + one.zombies_left,
            delivered: sum.delivered + one.delivered,
            expired: sum.expired + one.expired,
            overflowed: sum.overflowed + one.overflowed,
            discarded: sum.discarded + one.discarded,
            strangers: sum.strangers + one.strangers,
        })
    }
}
