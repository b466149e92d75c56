//! The flows that enter the network at one node: when each may send, and which of them are on.
//!
//! The driver opens flows ([`Edge::open`]), calls [`Edge::on_timer`] at [`Edge::next_time`], and tells of each packet that a flow has sent
//! ([`Edge::has_sent`]). A flow has a place, which is its number for the planner.

mod agenda;
mod bins;
mod entry;
mod meters;
mod planning;

pub use entry::Entry;

use crate::admission::{Admission, Terms};
use crate::cat::Cat;
use crate::context::Inner;
use crate::node::Node;
use crate::nodes::Nodes;
use crate::packet::{Body, Key};
use crate::planner::Planner;
use agenda::Agenda;
use bins::Bins;
use meters::Meters;
use weir_base::{Bytes, Rate, Time};

/// A flow that enters the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Entering {
    /// A number that no other flow of the network has; its random draws follow from it.
    pub number: u64,
    /// Its bin.
    pub to: Key,
    /// The receivers that it is for, of a group's members; all of them if `None`.
    pub interested: Option<Nodes>,
    /// What it is and asks for.
    pub terms: Terms,
    /// The set of flows that are on together or not at all, of which it is one.
    pub coupled: Option<u32>,
    /// Whether it is sensitive to latency.
    pub is_sensitive: bool,
    /// Whether its packets only answer those of another flow: they wait for no admission.
    pub is_answer: bool,
    /// The headers of its packets.
    pub inner: Inner,
}

/// The flows that enter at one node.
#[derive(Debug)]
pub struct Edge {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    /// When each of them is looked at again, apart from its meter.
    agenda: Agenda<Time>,
    /// The bins that they enter, and what counts the credit of those that wait.
    bins: Bins,
    meters: Meters,
    planner: Option<Planner>,
    /// The flows about which something has been decided since [`Edge::take_decided`].
    decided: Vec<usize>,
    /// The planner plans from this time on.
    plans_from: Time,
}

impl Edge {
    /// Without flows. A planner decides which of them are on if `is_planned`.
    pub fn new(is_planned: bool) -> Edge {
        Edge {
            entries: Vec::new(),
            free: Vec::new(),
            agenda: Agenda::new(Time::NEVER),
            bins: Bins::default(),
            meters: Meters::new(),
            planner: is_planned.then(|| Planner::new(Time::ZERO)),
            decided: Vec::new(),
            plans_from: Time::ZERO,
        }
    }

    /// From now on a planner decides which flows are on, or none does.
    pub fn set_planned(&mut self, is_planned: bool, now: Time) {
        if is_planned != self.planner.is_some() {
            self.planner = is_planned.then(|| Planner::new(now));
        }
    }

    /// Opens a flow and returns its place. The place of a flow that was closed is used again.
    pub fn open<B: Body, C: Cat>(&mut self, flow: &Entering, seed: u64, node: &mut Node<B, C>) -> usize {
        let at = self.free.pop().unwrap_or(self.entries.len());
        let bin = self.bins.join(flow.to, flow.interested);
        let entry = Entry::new(flow, at, bin, seed, node);
        self.agenda.set(at, entry.next);
        match self.entries.get_mut(at) {
            Some(place) => *place = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        at
    }

    /// Closes a flow.
    pub fn close<B: Body, C: Cat>(&mut self, at: usize, node: &mut Node<B, C>) {
        let Some(entry) = self.entries.get_mut(at).and_then(Option::take) else { return };
        if let Some(seat) = entry.seat {
            self.meters.leave(seat);
        }
        self.bins.leave(entry.bin);
        node.close_flow(entry.at);
        self.agenda.set(at, Time::NEVER);
        self.free.push(at);
    }

    /// A flow.
    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)?.as_ref()
    }

    /// The flows with their places, in the order of these.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)))
    }

    /// Tells of the flows about which something has been decided since the last call, in the order of their places.
    pub fn take_decided(&mut self, mut tell: impl FnMut(usize, &mut Entry)) {
        self.decided.sort_unstable();
        for at in self.decided.drain(..) {
            if let Some(Some(entry)) = self.entries.get_mut(at) {
                tell(at, entry);
            }
        }
    }

    /// The rate of a flow: of one that waits by the price as it was read last, of another when it last sent.
    pub fn rate(&self, at: usize) -> Rate {
        let Some(entry) = self.entry(at) else { return Rate::default() };
        let counted = entry.seat.and_then(|seat| self.meters.rate(seat));
        counted.unwrap_or_else(|| entry.admission.rate())
    }

    /// The price of a flow as it was read last.
    pub fn price(&self, at: usize) -> Bytes {
        self.entry(at).map_or(Bytes::ZERO, |entry| self.bins.get(entry.bin).price)
    }

    /// A flow's utility has another priority from now on, above 0.
    pub fn set_priority(&mut self, at: usize, priority: f64, now: Time) {
        self.change(at, now, |admission| admission.set_priority(priority));
    }

    /// Changes the admission of a flow. Returns whether it may send from now on.
    fn change(&mut self, at: usize, now: Time, change: impl FnOnce(&mut Admission)) -> bool {
        self.act(at, |entry, _, meters| {
            entry.resume(meters, now);
            change(&mut entry.admission);
            entry.settle(meters, now);
        })
    }

    /// Does something with a flow, and notes when it is looked at again and whether something has been decided about it. Returns whether it
    /// may send from now on.
    fn act(&mut self, at: usize, act: impl FnOnce(&mut Entry, &mut Bins, &mut Meters)) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(at) else { return false };
        let (was_open, had_events) = (entry.is_open(), entry.has_events());
        act(entry, &mut self.bins, &mut self.meters);
        self.agenda.set(at, entry.next);
        if entry.has_events() && !had_events {
            self.decided.push(at);
        }
        entry.is_open() && !was_open
    }

    /// When a flow or the planner has something to do.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.agenda.soonest().min(self.meters.next_time()).min(self.planner_due())
    }

    /// A flow has sent a packet with so many bytes of payload.
    pub fn has_sent<B: Body, C: Cat>(&mut self, at: usize, bytes: u32, node: &Node<B, C>, now: Time) {
        self.act(at, |entry, bins, meters| entry.has_sent(bytes, bins, meters, node, now));
    }

    /// Plans, and looks at the flows and the meters whose time has come. `around` are the headers of a datagram between nodes, without the
    /// overlay's own. `opened` is told the places of the flows that may send from now on.
    pub fn on_timer<B: Body, C: Cat>(
        &mut self,
        node: &Node<B, C>,
        around: Bytes,
        now: Time,
        mut opened: impl FnMut(usize),
    ) {
        self.plan(node, around, now, &mut opened);
        let mut first = 0;
        while let Some(at) = self.agenda.due(first, now) {
            if self.act(at, |entry, bins, meters| entry.look(bins, meters, node, now)) {
                opened(at);
            }
            first = at + 1;
        }
        let Edge { entries, bins, meters, .. } = self;
        first = 0;
        while let Some((meter, bin, equation)) = meters.due(first, now) {
            let rate = bins.look(bin, node, now).map(|(k, price)| equation.rate(k, price));
            meters.look(meter, rate, now, |at, rate, lacks| {
                if let Some(entry) = &mut entries[at] {
                    entry.open(rate, lacks, now);
                    opened(at);
                }
            });
            first = meter + 1;
        }
    }
}

#[cfg(test)]
mod tests;
