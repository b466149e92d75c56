//! The fabric: all links of a run, and the events in them.

mod card;
mod carry;
mod change;
mod counts;
mod deferred;
mod endless;
mod station;

pub use carry::Present;
pub use counts::Totals;
pub use endless::Culprit;
pub use station::{Decided, Net, Placed, Station, StationCounters};

use crate::event::EventQueue;
use crate::link::{Around, Link, LinkCounters, Observer};
use crate::pauses::Pauses;
use crate::route::{Hop, Hops, Routes};
use crate::tap::Taps;
use crate::transit::Transits;
use crate::wire::Wire;
use crate::{config, config::Config};
use change::Event;
use endless::Endless;
use station::Stations;
use std::collections::VecDeque;
use weir_base::{Random, Span, Time};

/// The most packets that are kept for stations.
const MOST_KEPT: usize = 1 << 16;

/// A packet that has reached a host.
#[derive(Debug)]
pub struct Delivery<P> {
    /// The host: index of its node.
    pub host: usize,
    /// The packet.
    pub packet: P,
    /// When it reached the host.
    pub at: Time,
}

/// A host's own delay before the first link.
#[derive(Debug)]
pub(crate) struct Edge<P> {
    jitter: Span,
    pauses: Pauses,
    /// Whether packets leave when they are handed in: there is neither jitter nor a pause.
    is_exact: bool,
    random: Random,
    last_departure: Time,
    /// Packets that wait here until they leave.
    waiting: VecDeque<(Time, P)>,
    /// The deferred link that is the first link of all its packets, which then wait in that link; `None` if there is no such link, or
    /// if no packet waits.
    pub(crate) link: Option<u32>,
}

/// The network between hosts, as a state machine: packets and a time in, packets and the next time out.
///
/// Calls must not go back in time. At equal times the fabric's own events come in the order of links, then hosts.
pub struct Fabric<P> {
    pub(crate) links: Vec<Link<P>>,
    pub(crate) edges: Vec<Edge<P>>,
    /// All links' changes, latest first.
    changes: Vec<(usize, Event)>,
    /// How many of them have been made.
    changed: u64,
    pub(crate) routes: Routes,
    /// The present routes, without the links that take no time.
    pub(crate) hops: Hops,
    /// The same as `hops`, for packets that leave a station.
    pub(crate) exits: Hops,
    pub(crate) stations: Stations<P>,
    pub(crate) events: EventQueue,
    pub(crate) taps: Taps,
    /// Counters of the flows that stations carry, by flow; empty if they carry none.
    pub(crate) transits: Vec<Transits>,
    pub(crate) around: Around<P>,
    /// The source of the event that is being handled; `usize::MAX` if the driver acts for a host.
    pub(crate) acting: usize,
    /// The source of the first host.
    pub(crate) first_host: usize,
    /// Packets that have reached a host and are yet to be fetched: those whose whole route takes no time, and those that stations
    /// have sent.
    pub(crate) ready: VecDeque<Delivery<P>>,
    endless: Endless,
    sent: u64,
    delivered: u64,
    pub(crate) corrupted: u64,
    unroutable: u64,
}

/// The source of an event. Link `i` has sources `2i` (transmitter) and `2i + 1` (pipe); then come the hosts' edges, by node, the
/// schedule, and last the stations.
enum Source {
    Transmitter(usize),
    Pipe(usize),
    Edge(usize),
    Schedule,
    Station(usize),
}

impl<P> Edge<P> {
    /// When the first packet that waits here leaves; [`Time::NEVER`] if none waits.
    fn leaves_at(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |(at, _)| *at)
    }
}

impl<P: Wire> Fabric<P> {
    /// Builds a fabric in which nothing has happened yet.
    pub fn new(config: &Config) -> Fabric<P> {
        Fabric::with_stations(config, vec![])
    }

    /// Builds a fabric with these stations, in which nothing has happened yet.
    pub fn with_stations(config: &Config, stations: Vec<Placed<P>>) -> Fabric<P> {
        let stations = Stations::new(stations);
        let links: Vec<_> =
            config.network.links.iter().enumerate().map(|(i, link)| Link::new(i, link, config)).collect();
        let edge = |(index, node): (usize, &config::Node)| Edge {
            jitter: node.jitter,
            pauses: Pauses::new(node.pauses.clone()),
            is_exact: node.jitter.is_zero() && node.pauses.is_empty(),
            random: Random::stream_of(config.seed, "host", index as u64),
            last_departure: Time::ZERO,
            waiting: VecDeque::new(),
            link: None,
        };
        let mut changes: Vec<_> = config
            .network
            .links
            .iter()
            .enumerate()
            .flat_map(|(i, link)| {
                let changes = link.schedule.iter().cloned().map(|change| Event::Change(Box::new(change)));
                let outages = link.outages.iter().flat_map(|outage| {
                    [Event::Outage(true, outage.at), Event::Outage(false, outage.at + outage.length)]
                });
                changes.chain(outages).map(move |event| (i, event))
            })
            .collect();
        changes.sort_by_key(|(link, event)| std::cmp::Reverse((event.at(), *link)));
        let routes = Routes::new(&config.network, |node| stations.at(node).is_some());
        let (hops, exits) = both_hops(&routes, &links, &stations);
        let mut fabric = Fabric {
            edges: config.network.nodes.iter().enumerate().map(edge).collect(),
            events: EventQueue::new(2 * links.len() + config.network.nodes.len() + 1 + stations.len()),
            first_host: 2 * links.len(),
            hops,
            exits,
            stations,
            links,
            changes,
            changed: 0,
            routes,
            taps: Taps::new(&config.flows, config.groups, config.round_trips),
            transits: Vec::new(),
            around: Around::default(),
            acting: usize::MAX,
            ready: VecDeque::new(),
            endless: Endless::default(),
            sent: 0,
            delivered: 0,
            corrupted: 0,
            unroutable: 0,
        };
        if let Some((_, first)) = fabric.changes.last() {
            let source = fabric.schedule_source();
            fabric.events.push(Time::ZERO + first.at(), source);
        }
        fabric.arm_stations();
        if fabric.changes.is_empty() && fabric.stations.len() == 0 {
            for (host, edge) in fabric.edges.iter_mut().enumerate().filter(|(_, edge)| !edge.is_exact) {
                edge.link = fabric.hops.only_link(host).filter(|link| fabric.links[*link as usize].deferred);
            }
        } else {
            fabric.defer_nothing();
        }
        fabric
    }

    /// Shows every packet at every instrumented link to `observer`. Must be called before any packet is handed in.
    pub fn observe(&mut self, observer: Box<dyn Observer<P> + Send>) {
        self.defer_nothing();
        self.links.iter_mut().for_each(Link::observe);
        self.around.observer = Some(observer);
    }

    /// A host needs this packet no more: stations may use its memory for those that they write and copy ([`Wire::IS_REUSED`]).
    pub fn keep(&mut self, packet: P) {
        if self.around.discarded.len() < MOST_KEPT {
            self.around.discard(packet);
        }
    }

    /// Takes a packet that was dropped by a queue or lost by a link, for reuse ([`Wire::IS_REUSED`]); `None` if there is none.
    pub fn take_discarded(&mut self) -> Option<P> {
        self.around.discarded.pop()
    }

    fn schedule_source(&self) -> usize {
        self.first_host + self.edges.len()
    }

    pub(crate) fn station_source(&self, number: usize) -> usize {
        self.schedule_source() + 1 + number
    }

    #[inline]
    fn source(&self, number: usize) -> Source {
        let links = self.first_host;
        if number < links {
            if number.is_multiple_of(2) { Source::Transmitter(number / 2) } else { Source::Pipe(number / 2) }
        } else if number < links + self.edges.len() {
            Source::Edge(number - links)
        } else if number == links + self.edges.len() {
            Source::Schedule
        } else {
            Source::Station(number - self.station_source(0))
        }
    }

    /// A host hands a packet in; it waits for the host's jitter, and for the end of a pause, before it leaves.
    #[inline(always)]
    pub fn inject(&mut self, host: usize, packet: P, now: Time) {
        let edge = &mut self.edges[host];
        if edge.is_exact {
            return self.inject_exact(host, packet, now);
        }
        self.sent += 1;
        let at = edge.last_departure.max(now + edge.random.within(edge.jitter));
        edge.last_departure = edge.pauses.leaves(at);
        let (link, at) = (edge.link, edge.last_departure);
        if let Some(link) = link
            && let Hop::Link(_) = self.hops.next(host, packet.destination())
        {
            return self.defer(link as usize, at, host, packet);
        }
        let edge = &mut self.edges[host];
        if edge.waiting.is_empty() {
            self.events.push(at, self.first_host + host);
        }
        edge.waiting.push_back((at, packet));
    }

    /// A host hands a packet in that leaves at `now`, without the host's jitter and pauses.
    pub fn inject_exact(&mut self, host: usize, packet: P, now: Time) {
        self.sent += 1;
        self.leave(host, packet, now);
    }

    /// A packet that another flow's host has handed in is for this flow's receiver too.
    pub fn sent_too(&mut self, flow: usize, bytes: u32) {
        self.taps.sent_too(flow as u32, bytes);
    }

    /// A packet leaves a host: the tap sees it, and it takes the first link.
    #[inline(always)]
    fn leave(&mut self, host: usize, packet: P, now: Time) {
        self.taps.sent(host, &packet, now);
        let hop = self.hops.next(host, packet.destination());
        if let Some(delivery) = self.take_hop(hop, host, None, packet, now) {
            self.ready.push_back(delivery);
        }
    }

    /// Takes the next hop of a packet that has reached a node by a link, or that leaves the node. Returns a packet that has
    /// reached its host.
    #[inline(always)]
    pub(crate) fn take_hop(
        &mut self,
        hop: Hop,
        node: usize,
        from: Option<usize>,
        packet: P,
        now: Time,
    ) -> Option<Delivery<P>> {
        match hop {
            Hop::Link(index) => {
                if self.links[index].deferred {
                    self.arrive_deferred(index, packet, now);
                    return None;
                }
                let link = &mut self.links[index];
                let before = link.head();
                if let Some(wake) = link.arrive(packet, now, &mut self.around) {
                    self.events.push(wake, 2 * index);
                }
                let head = link.head();
                if head < before {
                    self.events.push(head, 2 * index + 1);
                }
                None
            }
            Hop::Arrived => {
                let host = packet.destination();
                if packet.is_corrupt() {
                    // Its checksum is wrong. TCP never sees it, so the tap does not count it.
                    self.corrupted += 1;
                } else {
                    self.delivered += 1;
                    self.catch_up_with_host(host, now);
                    self.taps.received(host, &packet, now);
                }
                Some(Delivery { host, packet, at: now })
            }
            Hop::Nowhere => {
                self.unroutable += 1;
                None
            }
            Hop::Station(by) => {
                let node = by.map_or(node, |link| self.links[link].to as usize);
                self.visit(node, by.or(from), packet, now);
                None
            }
        }
    }

    /// When the next event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.ready.front().map_or(self.events.next_time(), |delivery| delivery.at)
    }

    /// No packet reaches a host before this time, unless another one is handed in; [`Time::NEVER`] if no event is due. A driver in
    /// real time may sleep until then: [`Fabric::advance`] handles each earlier event at the event's own time.
    pub fn next_arrival(&self) -> Time {
        let ready = self.ready.front().map_or(Time::NEVER, |delivery| delivery.at);
        // A packet that a transmitter begins to send arrives after the link's delay; a change of that delay is an event itself.
        let earliest = |(at, number)| match self.source(number) {
            Source::Transmitter(index) => at + self.links[index].delay(),
            Source::Pipe(_) | Source::Edge(_) | Source::Schedule | Source::Station(_) => at,
        };
        self.events.iter().map(earliest).fold(ready, Time::min)
    }

    /// Handles the events up to and including `until`. Stops at the first packet that reaches a host or leaves a host's card.
    #[inline(always)]
    pub fn advance(&mut self, until: Time) -> Option<Delivery<P>> {
        if let Some(delivery) = self.ready.pop_front() {
            return Some(delivery);
        }
        while let Some((now, number)) = self.events.due(until) {
            self.acting = number;
            if number < self.first_host && self.links[number / 2].deferred {
                match self.deferred_event(number / 2, now, number) {
                    Some(delivery) => return Some(delivery),
                    None => continue,
                }
            }
            let delivery = match self.source(number) {
                Source::Transmitter(index) => {
                    let delivery = self.transmit(index, now);
                    if self.has_left_card() {
                        return delivery;
                    }
                    delivery
                }
                Source::Pipe(index) => {
                    let link = &mut self.links[index];
                    // A packet that was overtaken at the head of the pipe has two events; the second finds no packet.
                    let Some(packet) = link.take_arrived(now) else {
                        self.events.pop();
                        continue;
                    };
                    let (head, to) = (link.head(), link.to as usize);
                    self.next_event(head, number);
                    let hop = self.hops.next(to, packet.destination());
                    let stops = matches!(hop, Hop::Station(_));
                    let delivery = self.take_hop(hop, to, Some(index), packet, now);
                    if stops { self.ready.pop_front() } else { delivery }
                }
                Source::Edge(host)
                    if self.edges[host].link.is_some() && self.edges[host].leaves_at() != now =>
                {
                    self.edges[host].link.and_then(|link| self.deferred_event(link as usize, now, number))
                }
                Source::Edge(host) => {
                    let edge = &mut self.edges[host];
                    let packet = edge.waiting.pop_front().map(|(_, packet)| packet);
                    let head = edge.waiting.front().map_or(Time::NEVER, |(at, _)| *at);
                    self.next_event(head, number);
                    if let Some(packet) = packet {
                        self.leave(host, packet, now);
                    }
                    self.ready.pop_front()
                }
                Source::Schedule => {
                    self.change(number);
                    None
                }
                Source::Station(station) => {
                    let delivery = self.station_timer(station, now);
                    if self.has_left_card() {
                        return delivery;
                    }
                    delivery
                }
            };
            if delivery.is_some() {
                return delivery;
            }
        }
        self.acting = usize::MAX;
        None
    }

    /// Replaces the source's event, which is done, with its next one at `next`; removes it if `next` is [`Time::NEVER`].
    #[inline]
    pub(crate) fn next_event(&mut self, next: Time, number: usize) {
        if next == Time::NEVER { self.events.pop() } else { self.events.replace(next, number) }
    }

    #[inline(always)]
    fn transmit(&mut self, index: usize, now: Time) -> Option<Delivery<P>> {
        let link = &mut self.links[index];
        if link.is_paced() {
            return self.transmit_paced(index, now);
        }
        let before = link.head();
        let wake = link.transmit(now, &mut self.around);
        let head = link.head();
        self.next_event(wake.unwrap_or(Time::NEVER), 2 * index);
        if head < before {
            self.events.push(head, 2 * index + 1);
        }
        None
    }

    fn transmit_paced(&mut self, index: usize, now: Time) -> Option<Delivery<P>> {
        let link = &mut self.links[index];
        let (before, backlog) = (link.head(), link.queue().backlog().bytes);
        let wake = link.transmit_paced(now, &mut self.around);
        let (head, drained) = (link.head(), link.has_drained(backlog));
        let wake = wake.filter(|due| *due > now || !self.is_endless(Culprit::Link(index), now));
        self.next_event(wake.unwrap_or(Time::NEVER), 2 * index);
        if head < before {
            self.events.push(head, 2 * index + 1);
        }
        if drained { self.tell_drained(index, now) } else { None }
    }

    /// The next hop of a packet that leaves a node by this link.
    pub(crate) fn way_out(&self, node: usize, link: usize, host: usize) -> Hop {
        let Some(way) = self.links.get(link).filter(|link| link.from() == node) else { return Hop::Nowhere };
        match way.through() {
            None => Hop::Link(link),
            Some(end) if self.stations.at(end).is_some() => Hop::Station(Some(link)),
            Some(end) => self.hops.next(end, host),
        }
    }
}

/// The next hops of packets that have reached a node, and of packets that leave a station.
fn both_hops<P: Wire>(routes: &Routes, links: &[Link<P>], stations: &Stations<P>) -> (Hops, Hops) {
    let hops =
        |leaving| routes.hops(|link| links[link].through(), |node| stations.at(node).is_some(), leaving);
    (hops(false), hops(true))
}
