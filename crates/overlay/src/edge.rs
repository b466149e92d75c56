//! The flows that enter the network at one node: when each may send, and which of them are on.
//!
//! The driver opens flows ([`Edge::open`]), calls [`Edge::on_timer`] at [`Edge::next_time`], and tells of each packet that a flow has sent
//! ([`Edge::has_sent`]). A flow has a place, which is its number for the planner.

mod agenda;
mod entry;
mod planning;

pub use entry::Entry;

use crate::admission::Terms;
use crate::cat::Cat;
use crate::context::Inner;
use crate::node::Node;
use crate::nodes::Nodes;
use crate::packet::{Body, Key};
use crate::planner::Planner;
use agenda::Agenda;
use weir_base::{Bytes, Time};

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
    /// The headers of its packets.
    pub inner: Inner,
}

/// The flows that enter at one node.
#[derive(Debug)]
pub struct Edge {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    /// When each of them is looked at again.
    agenda: Agenda,
    planner: Option<Planner>,
    /// The planner plans from this time on.
    plans_from: Time,
}

impl Edge {
    /// Without flows. A planner decides which of them are on if `is_planned`.
    pub fn new(is_planned: bool) -> Edge {
        Edge {
            entries: Vec::new(),
            free: Vec::new(),
            agenda: Agenda::default(),
            planner: is_planned.then(|| Planner::new(Time::ZERO)),
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
        let entry = Entry::new(flow, seed, node);
        let next = entry.next;
        match self.free.pop() {
            Some(at) => {
                self.entries[at] = Some(entry);
                self.agenda.set(at, next);
                at
            }
            None => {
                self.entries.push(Some(entry));
                self.agenda.push(self.entries.len() - 1, next);
                self.entries.len() - 1
            }
        }
    }

    /// Closes a flow.
    pub fn close<B: Body, C: Cat>(&mut self, at: usize, node: &mut Node<B, C>) {
        let Some(entry) = self.entries.get_mut(at).and_then(Option::take) else { return };
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

    /// The same, to take what has been decided about them.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (usize, &mut Entry)> {
        self.entries.iter_mut().enumerate().filter_map(|(at, entry)| Some((at, entry.as_mut()?)))
    }

    /// When a flow or the planner has something to do.
    pub fn next_time(&self) -> Time {
        self.agenda.soonest().min(self.planner_due())
    }

    /// A flow has sent a packet with so many bytes of payload.
    pub fn has_sent<B: Body, C: Cat>(&mut self, at: usize, bytes: u32, node: &Node<B, C>, now: Time) {
        if let Some(Some(entry)) = self.entries.get_mut(at) {
            entry.has_sent(node, bytes, now);
            self.agenda.set(at, entry.next);
        }
    }

    /// Plans, and looks at the flows whose time has come. `around` are the headers of a datagram between nodes, without the overlay's own.
    /// `opened` is told the places of the flows that may send from now on.
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
            if let Some(entry) = &mut self.entries[at] {
                if entry.look(node, now) {
                    opened(at);
                }
                self.agenda.set(at, entry.next);
            }
            first = at + 1;
        }
    }
}
