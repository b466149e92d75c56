//! Stations: machines that stand at nodes. One sees every packet that passes its node or is addressed to it, and may hold it,
//! change it, send it on, copy it or discard it; it has timers, and may read a link's backlog and be called when that drains. It
//! is called inside [`Fabric::advance`], so both engines run the same stations.
//!
//! A node without a station costs nothing: the tables of [`crate::route`] say where a packet stops.

use super::{Culprit, Delivery, Fabric};
use crate::event::EventQueue;
use crate::link::Link;
use crate::wire::Wire;
use std::collections::VecDeque;
use std::fmt::Debug;
use weir_base::{Bytes, FlowId, Rate, Time};
use weir_queue::Backlog;

/// A machine at a node, as a state machine: packets and times in, packets and the next time out.
pub trait Station<P: Wire>: Debug {
    /// A packet has reached the node by the link `from`, which is `None` if a host at the node sent it. The station now owns the
    /// packet: it goes on only when the station hands it to `net`, at once or later.
    fn packet(&mut self, packet: P, from: Option<usize>, net: &mut Net<'_, P>);

    /// The queue of a link that [`Net::watch`] named has fallen below its threshold.
    fn drained(&mut self, link: usize, net: &mut Net<'_, P>) {
        let _ = (link, net);
    }

    /// When [`Station::on_timer`] is due; [`Time::NEVER`] if it is not. The fabric reads it after each call.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The time of [`Station::next_timer`] has come.
    fn on_timer(&mut self, net: &mut Net<'_, P>) {
        let _ = net;
    }

    /// Whether it admits a packet of this flow now. A host behind it that is not admitted keeps its packets until [`Net::admit`] says so.
    fn admits(&self, flow: FlowId) -> bool {
        let _ = flow;
        true
    }

    /// How many packets it holds.
    fn held(&self) -> u64 {
        0
    }

    /// Its internal state for the records, as pairs of name and value. Names carry their unit; counters run from the start.
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let _ = report;
    }

    /// Its internal state about flows, the same way.
    fn flow_state(&self, report: &mut dyn FnMut(FlowId, &str, f64)) {
        let _ = report;
    }

    /// What it has decided about flows since the last call, each decision once.
    fn decided(&mut self, tell: &mut dyn FnMut(Decided)) {
        let _ = tell;
    }
}

/// A station has decided something about a flow: whether it is admitted, for example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decided {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: FlowId,
    /// What decided.
    pub by: &'static str,
    /// How the flow stands now.
    pub standing: &'static str,
    /// The rule, which says what the numbers are.
    pub rule: &'static str,
    /// What was compared.
    pub value: f64,
    /// With what.
    pub bound: f64,
}

/// A station and its place.
#[derive(Debug)]
pub struct Placed<P> {
    /// The node; at most one station at each.
    pub at: usize,
    /// The station sees only packets that reach the node or leave it by one of these links; all packets if the list is empty.
    pub links: Vec<usize>,
    /// The station.
    pub station: Box<dyn Station<P>>,
}

/// Counters of a station since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StationCounters {
    /// Packets that it saw.
    pub packets: u64,
    /// Packets that it discarded.
    pub discarded: u64,
    /// Packets that it made.
    pub made: u64,
    /// Packets that it holds.
    pub held: u64,
}

/// A packet that stops at a station: the station's number, the link that it came by, and the packet.
type Visit<P> = (usize, Option<usize>, P);

/// All stations of a fabric.
#[derive(Debug)]
pub(crate) struct Stations<P> {
    seats: Vec<Seat<P>>,
    /// By node, the number of the station that stands there.
    numbers: Vec<Option<u32>>,
    /// Packets that a station has not seen yet. A station that sends to another one in no time completes its own call first.
    visits: VecDeque<Visit<P>>,
    /// Whether a station is being called.
    calling: bool,
}

#[derive(Debug)]
struct Seat<P> {
    at: usize,
    links: Vec<usize>,
    /// The station; `None` while it is being called.
    station: Option<Box<dyn Station<P>>>,
    /// The time for which its timer is in the event queue; [`Time::NEVER`] when it is not.
    armed: Time,
    counters: StationCounters,
}

impl<P: Wire> Stations<P> {
    pub(crate) fn new(placed: Vec<Placed<P>>) -> Stations<P> {
        let seat = |placed: Placed<P>| Seat {
            at: placed.at,
            links: placed.links,
            station: Some(placed.station),
            armed: Time::NEVER,
            counters: StationCounters::default(),
        };
        let mut numbers = vec![None; placed.iter().map(|placed| placed.at + 1).max().unwrap_or(0)];
        // Where two stand at a node, the first one counts.
        for (number, placed) in placed.iter().enumerate().rev() {
            numbers[placed.at] = Some(number as u32);
        }
        let seats = placed.into_iter().map(seat).collect();
        Stations { seats, numbers, visits: VecDeque::new(), calling: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// The number of the station at a node, if there is one.
    pub(crate) fn at(&self, node: usize) -> Option<usize> {
        self.numbers.get(node).copied().flatten().map(|number| number as usize)
    }

    /// Whether the station at a node admits a packet of this flow now.
    pub(crate) fn admits(&self, node: usize, flow: FlowId) -> bool {
        let station = self.at(node).and_then(|number| self.seats[number].station.as_ref());
        station.is_none_or(|station| station.admits(flow))
    }

    pub(crate) fn counters(&self, number: usize) -> StationCounters {
        let seat = &self.seats[number];
        let held = seat.station.as_ref().map_or(0, |station| station.held());
        StationCounters { held, ..seat.counters }
    }

    /// The sums of all stations' counters.
    pub(crate) fn total(&self) -> StationCounters {
        (0..self.len()).map(|number| self.counters(number)).fold(StationCounters::default(), |sum, one| {
            StationCounters {
                packets: sum.packets + one.packets,
                discarded: sum.discarded + one.discarded,
                made: sum.made + one.made,
                held: sum.held + one.held,
            }
        })
    }

    pub(crate) fn state(&self, number: usize, report: &mut dyn FnMut(&str, f64)) {
        if let Some(station) = &self.seats[number].station {
            station.state(report);
        }
    }

    pub(crate) fn flow_state(&self, number: usize, report: &mut dyn FnMut(FlowId, &str, f64)) {
        if let Some(station) = &self.seats[number].station {
            station.flow_state(report);
        }
    }

    pub(crate) fn decided(&mut self, number: usize, tell: &mut dyn FnMut(Decided)) {
        if let Some(station) = &mut self.seats[number].station {
            station.decided(tell);
        }
    }

    /// Puts the station's timer into the event queue if it is due earlier than the one there.
    fn arm(&mut self, number: usize, source: usize, events: &mut EventQueue) {
        let seat = &mut self.seats[number];
        let due = seat.station.as_ref().map_or(Time::NEVER, |station| station.next_timer());
        if due < seat.armed {
            seat.armed = due;
            events.push(due, source);
        }
    }
}

impl<P: Wire> Fabric<P> {
    /// Sets the timers that stations have from the start.
    pub(super) fn arm_stations(&mut self) {
        for number in 0..self.stations.len() {
            let source = self.station_source(number);
            self.stations.arm(number, source, &mut self.events);
        }
    }

    /// A packet stops at the station of a node.
    #[cold]
    pub(crate) fn visit(&mut self, node: usize, from: Option<usize>, packet: P, now: Time) {
        if let Some(number) = self.stations.at(node) {
            self.stations.visits.push_back((number, from, packet));
            self.receive_visits(now);
        }
    }

    fn receive_visits(&mut self, now: Time) {
        while !self.stations.calling
            && let Some((number, from, packet)) = self.stations.visits.pop_front()
        {
            if self.is_endless(Culprit::Station(number), now) {
                return self.stations.visits.clear();
            }
            self.receive(number, from, packet, now);
        }
    }

    fn receive(&mut self, number: usize, from: Option<usize>, packet: P, now: Time) {
        let seat = &self.stations.seats[number];
        let (node, host) = (seat.at, packet.destination());
        let concerns = |link: Option<usize>| link.is_some_and(|link| seat.links.contains(&link));
        if !seat.links.is_empty() && !concerns(from) && !concerns(self.routes.link(node, host)) {
            return self.leave_station(node, packet, now);
        }
        if host == node {
            if packet.is_corrupt() {
                self.corrupted += 1;
                return;
            }
            self.taps.received(host, &packet, now);
        }
        self.stations.seats[number].counters.packets += 1;
        self.call(number, now, |station, net| station.packet(packet, from, net));
    }

    /// A packet goes on from the station of a node.
    fn leave_station(&mut self, node: usize, packet: P, now: Time) {
        let hop = self.exits.next(node, packet.destination());
        if let Some(delivery) = self.take_hop(hop, node, None, packet, now) {
            self.ready.push_back(delivery);
        }
    }

    /// Calls a station with its [`Net`], then sets its timer.
    fn call(&mut self, number: usize, now: Time, act: impl FnOnce(&mut dyn Station<P>, &mut Net<'_, P>)) {
        let Some(mut station) = self.stations.seats[number].station.take() else { return };
        self.stations.calling = true;
        act(&mut *station, &mut Net { fabric: self, number, now });
        self.stations.calling = false;
        let due = station.next_timer();
        self.stations.seats[number].station = Some(station);
        if due <= now && self.is_endless(Culprit::Station(number), now) {
            return;
        }
        let source = self.station_source(number);
        self.stations.arm(number, source, &mut self.events);
    }

    /// Handles a station's timer event. Returns a packet that has reached a host, if there is one.
    #[cold]
    pub(crate) fn station_timer(&mut self, number: usize, now: Time) -> Option<Delivery<P>> {
        self.events.pop();
        let seat = &mut self.stations.seats[number];
        // Other events are stale: the station has since set an earlier timer.
        if seat.armed == now {
            seat.armed = Time::NEVER;
            let due = seat.station.as_ref().is_some_and(|station| station.next_timer() <= now);
            self.call(number, now, |station, net| {
                if due {
                    station.on_timer(net);
                }
            });
            self.receive_visits(now);
        }
        self.ready.pop_front()
    }

    /// Tells the station at the start of a link that the link's queue has drained. Returns a packet that has reached a host, if
    /// there is one.
    #[cold]
    pub(crate) fn tell_drained(&mut self, link: usize, now: Time) -> Option<Delivery<P>> {
        if let Some(number) = self.stations.at(self.links[link].from()) {
            self.call(number, now, |station, net| station.drained(link, net));
            self.receive_visits(now);
        }
        self.ready.pop_front()
    }
}

/// The network as a station sees it, with the operations that it may use.
pub struct Net<'a, P> {
    pub(super) fabric: &'a mut Fabric<P>,
    number: usize,
    pub(super) now: Time,
}

impl<P: Wire> Net<'_, P> {
    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The node at which the station stands.
    pub fn node(&self) -> usize {
        self.fabric.stations.seats[self.number].at
    }

    /// Whether the station was placed at this link: it is one of [`Placed::links`].
    pub fn is_at(&self, link: usize) -> bool {
        self.fabric.stations.seats[self.number].links.contains(&link)
    }

    /// The link that leads from here to a node, if any does.
    pub fn route(&self, destination: usize) -> Option<usize> {
        self.fabric.routes.link(self.node(), destination)
    }

    /// Sends a packet on towards its destination.
    pub fn forward(&mut self, packet: P) {
        self.fabric.leave_station(self.node(), packet, self.now);
    }

    /// Sends a packet on by a link that begins here, whatever its destination. By any other link, the packet is unroutable.
    pub fn send(&mut self, packet: P, link: usize) {
        let node = self.node();
        let hop = self.fabric.way_out(node, link, packet.destination());
        if let Some(delivery) = self.fabric.take_hop(hop, node, None, packet, self.now) {
            self.fabric.ready.push_back(delivery);
        }
    }

    /// Discards a packet.
    pub fn discard(&mut self, packet: P) {
        self.counters().discarded += 1;
        self.fabric.around.discard(packet);
    }

    /// Makes an exact copy of a packet.
    pub fn copy(&mut self, packet: &P) -> P {
        self.counters().made += 1;
        packet.duplicate()
    }

    pub(super) fn counters(&mut self) -> &mut StationCounters {
        &mut self.fabric.stations.seats[self.number].counters
    }

    /// A link's present rate; with a trace, the trace's mean rate. `None` if the link has no limit.
    pub fn rate(&self, link: usize) -> Option<Rate> {
        self.fabric.links[link].rate()
    }

    /// The packets and bytes in a link's queue.
    pub fn backlog(&self, link: usize) -> Backlog {
        self.fabric.links[link].queue().backlog()
    }

    /// From now on [`Station::drained`] is called whenever the queue of a link that begins here falls below `below` IP bytes
    /// because a packet is sent; zero ends this. A link without a rate has no queue.
    pub fn watch(&mut self, link: usize, below: Bytes) {
        let (node, now) = (self.node(), self.now);
        if let Some(link) = self.fabric.links.get_mut(link).filter(|link: &&mut Link<P>| link.from() == node)
        {
            link.watch(below, now);
        }
    }
}
