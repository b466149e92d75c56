//! A discipline that a program adds while it runs. It sees packets as numbers and decides over them; the packets themselves, simulated or
//! real, wait here until it does.
//!
//! What it holds is counted here, so that no packet is counted wrongly or sent twice whatever it decides.

use crate::{Backlog, DropReason, Fate, Link, Queue};
use std::collections::BTreeMap;
use std::fmt::Debug;
use weir_base::{Added, Dscp, Ecn, FlowId, Packet, Parameters, Raised, Random, Time};

/// What makes disciplines of a kind that a program has added, from all parameters of that kind.
pub type Maker = dyn Fn(&Parameters, &Link, Random) -> Box<dyn Decider> + Send + Sync;

/// A packet in numbers.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its number in this queue: packets are counted from 0 as they arrive.
    pub number: u64,
    /// Length of the IP packet in bytes, with its headers.
    pub length: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Its codepoint.
    pub ecn: Ecn,
    /// Its DSCP.
    pub dscp: Dscp,
    /// When it arrived.
    pub now: Time,
}

/// A decision over a packet that the queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The packet of this number is dropped.
    Drop(u64, DropReason),
    /// The packet of this number is marked CE.
    Mark(u64),
}

/// What decides in a discipline that was added. Its methods are those of [`Queue`], over numbers.
pub trait Decider: Debug {
    /// A packet arrives; the queue holds it until it is dropped or sent.
    fn enqueue(&mut self, packet: &Arrival, now: Time, decide: &mut dyn FnMut(Decision));
    /// The number of the next packet to send, if there is one.
    fn dequeue(&mut self, now: Time, decide: &mut dyn FnMut(Decision)) -> Option<u64>;
    /// When it can send, at the earliest, if it holds packets; `None` if it always can (see [`Queue::departs`]).
    fn departs(&self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }
    /// Whether it can always send while it holds a packet; otherwise it has a [`Decider::departs`].
    fn is_work_conserving(&self) -> bool {
        true
    }
    /// Reports its internal state as names and values.
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let _ = report;
    }
}

/// A discipline that was added, with the packets that it holds.
#[derive(Debug)]
pub(crate) struct Decided<P> {
    decider: Box<dyn Decider>,
    packets: BTreeMap<u64, P>,
    arrived: u64,
    backlog: Backlog,
}

impl crate::Parameters for Added<Maker> {}

impl<P: Packet> Decided<P> {
    pub(crate) fn new(config: &Added<Maker>, link: &Link, random: Random) -> Decided<P> {
        let Some(make) = config.maker() else {
            Raised::raise(format!("queue `{}` cannot be made here", config.prototype().name));
        };
        let decider = make(config.parameters(), link, random);
        Decided { decider, packets: BTreeMap::new(), arrived: 0, backlog: Backlog::default() }
    }

    /// Takes out the packet of this number.
    fn take(&mut self, number: u64) -> P {
        let Some(packet) = self.packets.remove(&number) else {
            Raised::raise(format!("the queue does not hold packet {number} any more"));
        };
        self.backlog.remove(&packet);
        packet
    }

    /// Carries decisions out, in their order.
    fn carry_out(&mut self, decisions: Vec<Decision>, now: Time, fate: &mut dyn Fate<P>) {
        for decision in decisions {
            match decision {
                Decision::Drop(number, reason) => {
                    let packet = self.take(number);
                    fate.dropped(packet, reason, now);
                }
                Decision::Mark(number) => match self.packets.get_mut(&number) {
                    Some(packet) if packet.ecn().is_capable() => {
                        packet.mark_ce();
                        fate.marked(packet, now);
                    }
                    Some(_) => {
                        Raised::raise(format!("packet {number} cannot be marked: it is not ECN-capable"))
                    }
                    None => Raised::raise(format!("the queue does not hold packet {number} any more")),
                },
            }
        }
    }
}

impl<P: Packet> Queue<P> for Decided<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let arrival = Arrival {
            number: self.arrived,
            length: packet.wire_length(),
            flow: packet.flow(),
            ecn: packet.ecn(),
            dscp: packet.dscp(),
            now,
        };
        self.arrived += 1;
        self.backlog.add(&packet);
        self.packets.insert(arrival.number, packet);
        let mut decisions = Vec::new();
        self.decider.enqueue(&arrival, now, &mut |decision| decisions.push(decision));
        self.carry_out(decisions, now, fate);
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        let mut decisions = Vec::new();
        let number = self.decider.dequeue(now, &mut |decision| decisions.push(decision));
        self.carry_out(decisions, now, fate);
        match number {
            Some(number) => Some(self.take(number)),
            // The link would never ask again.
            None if self.backlog.packets > 0 && self.is_work_conserving() => Raised::raise(format!(
                "the queue holds {} packets, but none is to be sent and it does not say when",
                self.backlog.packets
            )),
            None => None,
        }
    }

    fn departs(&self, now: Time) -> Option<Time> {
        let held = self.backlog.packets > 0;
        held.then(|| self.decider.departs(now).map_or(now, |departs| departs.max(now)))
    }

    fn is_work_conserving(&self) -> bool {
        self.decider.is_work_conserving()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        self.decider.state(report);
    }
}
