//! The admission of a flow at the node where it enters. While the flow is not admitted its driver keeps its packets.

use super::Entering;
use super::bins::Bins;
use super::meters::{Meters, Seat, UNREACHABLE};
use crate::admission::{Admission, Credit, Event, Standing};
use crate::cat::Cat;
use crate::node::{Admitted, FlowAt, Node};
use crate::packet::{Body, Key};
use crate::utility::Seen;
use weir_base::{Bytes, Random, Rate, Time};

/// A flow that enters here.
#[derive(Debug)]
pub struct Entry {
    /// The node's name for it.
    pub at: FlowAt,
    /// What all its packets have in common.
    pub admitted: Admitted,
    pub(super) admission: Admission,
    /// Its place at the edge.
    place: usize,
    /// Its bin: the name, and the number at the edge.
    to: Key,
    pub(super) bin: usize,
    /// Its seat at a meter, since its rate first followed the price.
    pub(super) seat: Option<Seat>,
    /// The set of flows that are on together or not at all.
    pub(super) coupled: Option<u32>,
    /// Whether it waits for no admission: its admission does not begin.
    is_answer: bool,
    is_open: bool,
    /// When it is looked at again, apart from its meter.
    pub(super) next: Time,
}

impl Entry {
    pub(super) fn new<B: Body, C: Cat>(
        flow: &Entering,
        place: usize,
        bin: usize,
        seed: u64,
        node: &mut Node<B, C>,
    ) -> Entry {
        let random = Random::stream_of(seed, "admission", flow.number);
        Entry {
            at: node.open_flow(flow.to, flow.interested, flow.is_sensitive, flow.inner),
            admitted: Admitted { deadline: flow.terms.deadline, ecn: 0, checksum: 0 },
            admission: Admission::new(flow.terms.clone(), random),
            place,
            to: flow.to,
            bin,
            seat: None,
            coupled: flow.coupled,
            is_answer: flow.is_answer,
            is_open: flow.is_answer,
            next: if flow.is_answer { Time::NEVER } else { flow.terms.begins },
        }
    }

    /// Its time has come.
    pub(super) fn look<B: Body, C: Cat>(
        &mut self,
        bins: &mut Bins,
        meters: &mut Meters,
        node: &Node<B, C>,
        now: Time,
    ) {
        self.resume(meters, now);
        if self.update(bins, meters, node, now) {
            self.settle(meters, now);
        } else {
            self.next = now + UNREACHABLE;
        }
    }

    /// It has sent a packet.
    pub(super) fn has_sent<B: Body, C: Cat>(
        &mut self,
        bytes: u32,
        bins: &mut Bins,
        meters: &mut Meters,
        node: &Node<B, C>,
        now: Time,
    ) {
        if self.is_answer {
            return;
        }
        self.resume(meters, now);
        self.update(bins, meters, node, now);
        self.admission.admitted(Bytes::new(bytes.into()), now);
        self.settle(meters, now);
    }

    /// Tells its admission what it sees, and its meter the rate. Returns false if no price is known.
    fn update<B: Body, C: Cat>(
        &mut self,
        bins: &mut Bins,
        meters: &mut Meters,
        node: &Node<B, C>,
        now: Time,
    ) -> bool {
        let Some((k, depth)) = bins.look(self.bin, node, now) else { return false };
        self.admission.update(&Seen { k, depth, loss: node.loss(self.at) }, now);
        if let Some(seat) = self.take_seat(meters) {
            meters.note(seat, self.admission.rate(), now);
        }
        true
    }

    /// Its seat at the meter of its equation, if it is on and its rate follows the price.
    fn take_seat(&mut self, meters: &mut Meters) -> Option<Seat> {
        let equation = self.admission.equation().filter(|_| self.admission.standing() == Standing::On)?;
        if let Some(seat) = self.seat {
            if meters.is_of(seat, &equation) {
                return Some(seat);
            }
            meters.leave(seat);
        }
        self.seat = Some(meters.join(self.bin, &equation, self.place));
        self.seat
    }

    /// It does not wait at its meter any more, which has counted for it.
    pub(super) fn resume(&mut self, meters: &mut Meters, now: Time) {
        if let Some((rate, lacks)) = self.seat.and_then(|seat| meters.resume(seat, now)) {
            self.admission.resume(rate, lacks, now);
        }
    }

    /// Opens or closes it after its admission. If it lacks credit, it waits at its meter, or until the time at a rate of its own.
    pub(super) fn settle(&mut self, meters: &mut Meters, now: Time) {
        self.is_open = self.admission.is_open(now);
        self.next = self.admission.due().max(now);
        if self.is_open || self.admission.standing() != Standing::On {
            return;
        }
        match self.take_seat(meters) {
            Some(seat) => meters.wait(seat, self.admission.lacks(now), now),
            None => self.next = self.next.min(self.admission.next_time()),
        }
    }

    /// Its meter has opened it.
    pub(super) fn open(&mut self, rate: Rate, lacks: Credit, now: Time) {
        self.admission.resume(rate, lacks, now);
        self.is_open = true;
    }

    /// Its admission. While the flow waits, its rate is [`Edge::rate`](super::Edge::rate).
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Whether something has happened to it since the last call of [`Entry::take_events`].
    pub(super) fn has_events(&self) -> bool {
        self.admission.has_events()
    }

    /// Takes what has happened to it.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.admission.take_events()
    }

    /// Whether its packets only answer those of another flow.
    pub fn is_answer(&self) -> bool {
        self.is_answer
    }

    /// Whether it may send.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Where its packets go.
    pub fn to(&self) -> Key {
        self.to
    }
}
