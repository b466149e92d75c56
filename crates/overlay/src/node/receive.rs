//! Packets that come: from this node's applications and from neighbours.

use super::{Discard, FlowAt, LocalFlow, Node, Output, VIRTUAL, seen};
use crate::cat::Cat;
use crate::context::Context;
use crate::message::Message;
use crate::message::header::{Header, MOST_HOPS, Unreadable};
use crate::nodes::Nodes;
use crate::packet::{Body, Flow, Key, Packet};
use crate::queue::{BinAt, Class, Queued};
use weir_base::{Span, Time};

/// A sensitive packet without a deadline stands as if it had this time to spare.
const SPARE: Span = Span::from_secs(1);

/// What an application hands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admitted {
    /// The time within which it must arrive; `None` if it need not.
    pub deadline: Option<Span>,
    /// ECN field of its IP header.
    pub ecn: u8,
    /// Checksum of its UDP header.
    pub checksum: u16,
}

impl<B: Body, C: Cat> Node<B, C> {
    /// A packet of a flow has been admitted.
    pub fn admit(&mut self, flow: FlowAt, packet: Admitted, body: B, now: Time, out: &mut impl Output<B>) {
        let Some((name, sequence, context)) = self.name(flow, now) else {
            self.counters.discarded += 1;
            return out.discard(body, Discard::NoReceiver);
        };
        self.flows[flow.0].heard.has_sent(packet.deadline, now);
        let packet = Packet {
            flow: name,
            sequence,
            to: context.to,
            receivers: context.receivers,
            due: packet.deadline.map(|deadline| now + deadline),
            is_sensitive: context.is_sensitive,
            visited: Nodes::EMPTY,
            hops: 0,
            ecn: packet.ecn & 3,
            checksum: packet.checksum,
            body,
        };
        self.enqueue(packet, &context, now, out);
        self.serve(now, out);
    }

    /// The flow's present name, next sequence number and context. Where its receivers have changed it becomes another flow, since a
    /// context never changes.
    fn name(&mut self, at: FlowAt, now: Time) -> Option<(Flow, u32, Context)> {
        let LocalFlow { to, interested, is_sensitive, inner, .. } = *self.flows.get(at.0)?;
        let receivers = self.receivers_of(to, interested);
        let flow = &mut self.flows[at.0];
        if receivers.is_empty() {
            return None;
        }
        let context = Context { to, receivers, is_sensitive, inner };
        let known =
            flow.flow.filter(|name| receivers == flow.receivers && self.contexts.used(*name, now).is_some());
        let name = match known {
            Some(name) => name,
            None => {
                let name = Flow { source: self.id, generation: self.epoch as u8, number: self.next_flow };
                self.next_flow = self.next_flow.wrapping_add(1);
                if !self.contexts.define(name, context, now) {
                    return None;
                }
                if let Some(former) = flow.flow.replace(name) {
                    self.named.remove(&former.bits());
                }
                self.named.insert(name.bits(), at);
                flow.receivers = receivers;
                flow.heard.renamed(now);
                name
            }
        };
        flow.sequence = flow.sequence.wrapping_add(1) & 0xff_ffff;
        Some((name, flow.sequence, context))
    }

    /// A packet has come over a link.
    pub fn packet(&mut self, port: usize, header: &[u8], mut body: B, now: Time, out: &mut impl Output<B>) {
        let known = |flow| self.contexts.used(flow, now);
        let (header, context, attached, length) = match Header::decode(header, known) {
            Ok(read) => read,
            Err(why) => {
                if let Unreadable::Unknown(flow) = why {
                    self.reply(port, Message::Unknown(flow), now);
                }
                self.counters.discarded += 1;
                let malformed = why == Unreadable::Malformed;
                return out.discard(body, if malformed { Discard::Malformed } else { Discard::NoContext });
            }
        };
        if let Some(port) = self.ports.get_mut(port) {
            port.adjacency.heard(now);
        }
        if attached {
            if !self.contexts.define(header.flow, context, now) {
                self.counters.discarded += 1;
                return out.discard(body, Discard::NoContext);
            }
            self.reply(port, Message::Known(header.flow), now);
        }
        body.behind(length);
        self.arrive(header, context, body, now, out);
        self.serve(now, out);
    }

    fn arrive(&mut self, header: Header, context: Context, body: B, now: Time, out: &mut impl Output<B>) {
        let refusal = if header.receivers.is_empty() {
            Some(Discard::NoReceiver)
        } else if header.hops >= MOST_HOPS {
            Some(Discard::Hops)
        } else {
            (header.time_to_go.is_some() && header.visited.has(self.id)).then_some(Discard::Visited)
        };
        if let Some(why) = refusal {
            self.counters.discarded += 1;
            return out.discard(body, why);
        }
        let mut packet = Packet {
            flow: header.flow,
            sequence: header.sequence,
            to: context.to,
            receivers: header.receivers,
            due: header.time_to_go.map(|left| now + left),
            is_sensitive: context.is_sensitive,
            visited: header.visited,
            hops: header.hops + 1,
            ecn: header.ecn,
            checksum: header.checksum,
            body,
        };
        if packet.receivers.has(self.id) {
            self.counters.delivered += 1;
            if let Some(due) = packet.due {
                self.counted.on_packet(packet.flow, packet.sequence, packet.body.bytes(), due, now);
                self.chores_at = self.chores_at.min(self.counted.due());
            }
            let others = packet.receivers.without(self.id);
            if others.is_empty() {
                return out.deliver(packet, &context);
            }
            let spare = self.queues.spares().pop();
            out.deliver(packet.copy_for(Nodes::of(self.id), spare), &context);
            packet.receivers = others;
        }
        self.enqueue(packet, &context, now, out);
    }

    /// Queues a packet, or replaces it by zombies if it cannot be in time any more.
    fn enqueue(&mut self, packet: Packet<B>, context: &Context, now: Time, out: &mut impl Output<B>) {
        if let (Key::Group(_), Some(tree)) = (packet.to, &mut self.tree) {
            let counters = &mut self.counters;
            let spares = self.queues.spares();
            return tree.enqueue(packet, self.id, &self.routes, &self.neighbours, spares, |packet| {
                counters.overflowed += 1;
                out.discard(packet.body, Discard::Overflow);
            });
        }
        let class = context.class(packet.due.is_some());
        let rank = if class == Class::LowLatency { self.leaves_by(&packet, now) } else { now };
        let (receivers, bytes) = (packet.receivers, u64::from(packet.body.bytes()));
        let is_hopeless = packet.due.is_some() && rank <= now;
        let at = match self.queues.enqueue(packet, class, rank, now) {
            Queued::Waits(at) => at,
            Queued::Displaced(at, packet) => {
                self.counters.overflowed += 1;
                out.discard(packet.body, Discard::Overflow);
                at
            }
            Queued::Refused(packet) => {
                self.counters.overflowed += 1;
                return out.discard(packet.body, Discard::Overflow);
            }
        };
        self.note_arrival(at, receivers, bytes, class.is_sensitive(), now);
        if is_hopeless {
            self.clean(now, out);
        }
    }

    /// When a sensitive packet must leave to be in time over the fastest way to every receiver.
    fn leaves_by(&self, packet: &Packet<B>, now: Time) -> Time {
        let due = packet.due.unwrap_or(now + SPARE);
        let slowest =
            packet.receivers.iter().map(|node| self.routes.best_delay(node).unwrap_or(Span::MAX)).max();
        due - slowest.unwrap_or(Span::ZERO)
    }

    fn note_arrival(&mut self, at: BinAt, receivers: Nodes, bytes: u64, is_sensitive: bool, now: Time) {
        for node in receivers.iter() {
            let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { continue };
            let seen = seen(destination, is_sensitive);
            let state = &mut destination.state.zombies[usize::from(is_sensitive)];
            let added = state.on_arrival(&self.config.zombies, bytes, seen, now);
            self.queues.add_zombies(at, node, VIRTUAL[usize::from(is_sensitive)], added);
            self.counters.zombies_added += added;
        }
    }
}
