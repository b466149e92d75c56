//! The flows of a site's programs: what waits of each, and what was decided about it.

use super::carried::Carried;
use super::parts::Due;
use crate::admission::{Event, Standing};
use crate::context::Inner;
use crate::edge::Entry;
use crate::node::Discard;
use crate::packet::Key;
use crate::proxy::udp::sending::Sending;
use std::collections::{BTreeMap, VecDeque};
use weir_base::{Bytes, Rate, Span, Time};

/// The most flows at a time.
const MOST: usize = 4096;
/// The most packets of a flow that wait (digest A 7.1).
const WAITING: usize = 490;
/// A flow that has sent nothing for so long is forgotten (digest A 7.6).
const IDLE: Span = Span::from_secs(120);
/// How often idle flows are looked for.
const LOOK: Span = Span::from_secs(1);
/// Decisions about a flow that are kept.
const EVENTS: usize = 16;

/// What has become of datagrams and packets since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that were admitted.
    pub admitted: u64,
    /// Datagrams that left for programs.
    pub delivered: u64,
    /// Datagrams of flows that were off.
    pub refused: u64,
    /// Datagrams for which there was no room.
    pub overflowed: u64,
    /// Packets and datagrams of messages beyond the quota of their neighbour.
    pub over_quota: u64,
    /// Packets that could no longer be in time.
    pub expired: u64,
    /// Datagrams whose source is behind another node than the one they come from.
    pub foreign: u64,
    /// Datagrams to addresses behind no other node.
    pub unknown: u64,
    /// Packets that could not be sealed or opened.
    pub unsealed: u64,
    /// Announcements that their origin has not signed.
    pub forged: u64,
    /// Datagrams of more parts than one may have.
    pub too_long: u64,
    /// Parts of datagrams that repairs have restored.
    pub restored: u64,
    /// Datagrams of which parts were missing, or that came after later ones had left.
    pub incomplete: u64,
    /// Datagrams of another version of IP.
    pub other_version: u64,
    /// Datagrams and packets that could not be read.
    pub malformed: u64,
    /// Other packets that went no further.
    pub lost: u64,
}

impl Counts {
    pub(super) fn discarded(&mut self, why: Discard) {
        let count = match why {
            Discard::Expired => &mut self.expired,
            Discard::Overflow => &mut self.overflowed,
            Discard::Malformed => &mut self.malformed,
            Discard::Hops | Discard::Visited | Discard::NoReceiver | Discard::NoContext => &mut self.lost,
        };
        *count += 1;
    }
}

/// A packet that waits for its admission.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) body: Carried,
    pub(super) ecn: u8,
    pub(super) checksum: u16,
}

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    inner: Inner,
    /// Its service, by its place.
    pub(super) service: Option<usize>,
    /// What cuts its datagrams into parts, if that is done.
    pub(super) sending: Option<Sending>,
    waiting: VecDeque<Waiting>,
    /// When its program sent last.
    pub(super) used: Time,
    /// Datagrams that were refused or had no room.
    pub(super) refused: u64,
    /// Packets that were admitted.
    pub(super) admitted: u64,
    events: VecDeque<Event>,
}

impl Flow {
    /// The fields that its packets share.
    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Lets a packet wait. Returns it if there is no room.
    pub(super) fn push(&mut self, packet: Waiting) -> Option<Waiting> {
        if self.waiting.len() >= WAITING {
            self.refused += 1;
            return Some(packet);
        }
        self.waiting.push_back(packet);
        None
    }

    /// Makes room for a newer datagram: what waits is refused. Returns it.
    pub(super) fn give_way(&mut self) -> VecDeque<Waiting> {
        self.refused += self.waiting.len() as u64;
        self.flush()
    }

    /// Takes the packet that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// Takes all that waits.
    pub(super) fn flush(&mut self) -> VecDeque<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Keeps what was decided.
    pub(super) fn note(&mut self, events: Vec<Event>) {
        self.events.extend(events);
        self.events.drain(..self.events.len().saturating_sub(EVENTS));
    }
}

/// What is told of a flow.
#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// The fields that its packets share.
    pub inner: Inner,
    /// The name of its service.
    pub service: Option<&'a str>,
    /// Where it goes.
    pub to: Key,
    /// Its utility.
    pub utility: &'a str,
    /// Its priority.
    pub priority: f64,
    /// The time within which its packets must arrive.
    pub deadline: Option<Span>,
    /// How it stands.
    pub standing: Standing,
    /// The rate at which it is admitted.
    pub rate: Rate,
    /// The depth that it saw last.
    pub price: Bytes,
    /// Payload that was admitted.
    pub sent: Bytes,
    /// Packets that were admitted.
    pub admitted: u64,
    /// Packets that wait.
    pub waiting: usize,
    /// Datagrams that were refused or had no room.
    pub refused: u64,
    /// The latest decisions, the last one last.
    pub events: &'a VecDeque<Event>,
}

impl<'a> Told<'a> {
    pub(super) fn new(
        flow: &'a Flow,
        entry: &'a Entry,
        (rate, price): (Rate, Bytes),
        service: Option<&'a str>,
    ) -> Told<'a> {
        let admission = entry.admission();
        let utility = &admission.terms().utility;
        Told {
            inner: flow.inner,
            service,
            to: entry.to(),
            utility: utility.name(),
            priority: utility.priority(),
            deadline: admission.terms().deadline,
            standing: admission.standing(),
            rate,
            price,
            sent: admission.sent(),
            admitted: flow.admitted,
            waiting: flow.waiting.len(),
            refused: flow.refused,
            events: &flow.events,
        }
    }
}

/// All flows, by their places.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: Vec<Option<Flow>>,
    by_inner: BTreeMap<Inner, usize>,
    made: u64,
    look_at: Time,
    /// When groups of parts get their repairs, by their flows' places.
    pub(super) repairs: Due<usize>,
}

impl Flows {
    /// The place of a flow.
    pub(super) fn at(&self, inner: &Inner) -> Option<usize> {
        self.by_inner.get(inner).copied()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Flow> {
        self.flows.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Flow> {
        self.flows.get_mut(at)?.as_mut()
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_inner.len() >= MOST
    }

    /// A number that no other flow has.
    pub(super) fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(super) fn open(
        &mut self,
        at: usize,
        inner: Inner,
        service: Option<usize>,
        sending: Option<Sending>,
        now: Time,
    ) {
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, || None);
        }
        let (waiting, events) = (VecDeque::new(), VecDeque::new());
        let (used, refused, admitted) = (now, 0, 0);
        self.flows[at] = Some(Flow { inner, service, sending, waiting, used, refused, admitted, events });
        self.by_inner.insert(inner, at);
    }

    /// Forgets a flow; the result is what waited.
    pub(super) fn close(&mut self, at: usize) -> VecDeque<Waiting> {
        let Some(flow) = self.flows.get_mut(at).and_then(Option::take) else { return VecDeque::new() };
        self.by_inner.remove(&flow.inner);
        self.repairs.set(at, Time::NEVER);
        flow.waiting
    }

    /// The places of all flows.
    pub(super) fn places(&self) -> Vec<usize> {
        self.by_inner.values().copied().collect()
    }

    /// When idle flows are looked for.
    pub(super) fn look_at(&self) -> Time {
        if self.by_inner.is_empty() { Time::NEVER } else { self.look_at }
    }

    /// The places of flows that have been idle for long, once a second.
    pub(super) fn idle(&mut self, now: Time) -> Vec<usize> {
        if now < self.look_at {
            return Vec::new();
        }
        self.look_at = now + LOOK;
        let is_idle = |flow: &Flow| now.since(flow.used) >= IDLE;
        let places = self.flows.iter().enumerate();
        places.filter(|(_, flow)| flow.as_ref().is_some_and(is_idle)).map(|(at, _)| at).collect()
    }
}
