//! Packets and zombies that leave, and the periodic adjustments of depth (digest A 1, A 6.4, A 6.6, A 6.7).

use super::{Node, Output, STARVED, VIRTUAL, Watch, exact, forwarded, seen};
use crate::cat::Cat;
use crate::depth;
use crate::forward::{Action, Decision, Port, Reason, View};
use crate::message::header::{Header, LONGEST};
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, Packet};
use crate::queue::{BinAt, Class, Slot};
use crate::starvation::{self, Rivals};
use crate::zombie::LARGEST;
use weir_base::{Bytes, Rate, Span, Time};

/// Weight of a new queue delay in the mean (digest A 6.8).
const QUEUE_DELAY_WEIGHT: f64 = 0.001;

impl<B: Body, C: Cat> Node<B, C> {
    /// A carrier has room again.
    pub fn refill(&mut self, now: Time, out: &mut impl Output<B>) {
        self.serve(now, out);
    }

    /// Sends what can be sent.
    pub(super) fn serve(&mut self, now: Time, out: &mut impl Output<B>) {
        self.serve_tree(now, out);
        if self.queues.active().is_empty() || self.gates.iter().all(|gate| gate.is_shut(now)) {
            return;
        }
        self.look(now);
        let mut is_clean = !self.queues.has_sensitive();
        while let Some(decision) = self.decide(now) {
            // Late packets are looked for only when something can go.
            if !std::mem::replace(&mut is_clean, true) {
                self.clean(now, out);
                continue;
            }
            match decision.action {
                Action::Zombies { sensitive } => self.let_go(decision, sensitive, now),
                Action::Packet { class, place } => self.send(decision, class, place, now, out),
                Action::Coded => self.send_coded(decision, now, out),
            }
            self.look_again(decision.port, now);
        }
    }

    /// The next thing to do by what was last seen of the neighbours.
    fn decide(&mut self, now: Time) -> Option<Decision> {
        let Node { queues, view, advertised, routes, forwarder, config, .. } = self;
        if !view.iter().any(|port| port.room > 0) {
            return None;
        }
        let seen = View { queues, ports: view, advertised, routes, now };
        let decision = forwarder.decide(&seen, |one, sensitive| forwarded(config, one, sensitive));
        queues.settle();
        decision
    }

    /// Notes the neighbours that are up and have told their depths.
    fn look(&mut self, now: Time) {
        self.view.clear();
        for (number, (gate, port)) in self.gates.iter().zip(&self.ports).enumerate() {
            let Some(node) = gate.known(now) else { continue };
            let (room, drains, yields) = gate.takes(&port.cat, &self.config.zombies, now);
            self.view.push(Port { number, node, room, drains, yields });
        }
    }

    /// A decision has changed what a link takes.
    fn look_again(&mut self, number: usize, now: Time) {
        if let Some(port) = self.view.iter_mut().find(|port| port.number == number) {
            let cat = &self.ports[number].cat;
            (port.room, port.drains, port.yields) = self.gates[number].takes(cat, &self.config.zombies, now);
        }
    }

    fn serve_tree(&mut self, now: Time, out: &mut impl Output<B>) {
        for port in 0..self.ports.len() {
            while let Some(tree) = &mut self.tree
                && self.gates[port].node.is_some()
                && self.gates[port].room(&self.ports[port].cat, now) > Bytes::ZERO
                && let Some(packet) = tree.pop(port)
            {
                self.transmit(port, packet, Reason::Tree, now, out);
            }
        }
    }

    /// Zombies leave: at no cost for the link, but only in the time that it does not need for packets, or in the turn of packets.
    fn let_go(&mut self, decision: Decision, sensitive: bool, now: Time) {
        let classes = if sensitive { Class::SENSITIVE_ZOMBIES } else { Class::NORMAL_ZOMBIES };
        let mut largest = 0;
        for node in decision.nodes.iter() {
            let mut left = LARGEST;
            for class in classes {
                left -= self.let_go_of(decision.bin, node, class, left, sensitive, now);
            }
            largest = largest.max(LARGEST - left);
        }
        let port = &mut self.ports[decision.port];
        port.sent.zombies += largest;
        // Learned depth may stay; its turn at the link is over all the same.
        let bytes = if largest == 0 { LARGEST } else { largest };
        self.gates[decision.port].let_go(&port.cat, bytes, &self.config.zombies, now);
    }

    /// Takes up to `most` bytes of one class; returns how many left.
    fn let_go_of(
        &mut self,
        at: BinAt,
        node: NodeId,
        class: Class,
        most: u64,
        sensitive: bool,
        now: Time,
    ) -> u64 {
        let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { return 0 };
        let offered = most.min(destination.bytes(class));
        if offered == 0 {
            return 0;
        }
        let mut leaving = offered;
        if class == VIRTUAL[usize::from(sensitive)] {
            let seen = seen(destination, sensitive);
            let state = &mut destination.state.zombies[usize::from(sensitive)];
            leaving = state.on_zombie(&self.config.zombies, offered, seen, now);
        }
        let taken = self.queues.take_zombies(at, node, class, leaving);
        self.counters.zombies_left += taken;
        taken
    }

    fn send(&mut self, decision: Decision, class: Class, place: Slot, now: Time, out: &mut impl Output<B>) {
        let arrived = self.queues.entry(place).map_or(now, |entry| entry.arrived);
        let taken = self.queues.take(decision.bin, class, place, decision.nodes, now);
        let Some(mut packet) = taken else { return };
        packet.body.waited(now.since(arrived));
        self.note_departure(decision.bin, &packet, class, now.since(arrived), now);
        self.settle_debt(&decision, &packet, class);
        self.transmit(decision.port, packet, decision.reason, now, out);
    }

    fn send_coded(&mut self, decision: Decision, now: Time, out: &mut impl Output<B>) {
        let first = self.queues.bin(decision.bin).first(Class::Normal);
        let arrived = first.and_then(|place| self.queues.entry(place)).map_or(now, |entry| entry.arrived);
        let taken = self.queues.take_coded(decision.bin, Class::Normal, decision.nodes, now);
        let Some(mut packet) = taken else { return };
        packet.body.waited(now.since(arrived));
        self.note_departure(decision.bin, &packet, Class::Normal, now.since(arrived), now);
        self.settle_debt(&decision, &packet, Class::Normal);
        self.transmit(decision.port, packet, decision.reason, now, out);
    }

    /// A packet has left its bin: virtual depth may take its place, and starvation begins anew.
    fn note_departure(&mut self, at: BinAt, packet: &Packet<B>, class: Class, waited: Span, now: Time) {
        let sensitive = class.is_sensitive();
        let bytes = u64::from(packet.body.bytes());
        let next = self.oldest(at, sensitive).map_or(Span::ZERO, |arrived| now.since(arrived));
        let gap = self.config.depth.on_departure(waited, next);
        for node in packet.receivers.iter() {
            let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { continue };
            let seen = seen(destination, sensitive);
            let Watch { zombies, starvation, queue_delay, .. } = &mut destination.state;
            starvation.on_departure();
            *queue_delay += QUEUE_DELAY_WEIGHT * (waited.as_secs_f64() - *queue_delay);
            let added = zombies[usize::from(sensitive)].on_departure(&self.config.zombies, bytes, seen, now);
            self.queues.add_zombies(at, node, VIRTUAL[usize::from(sensitive)], added);
            self.queues.add_zombies(at, node, STARVED[usize::from(sensitive)], gap);
            self.counters.zombies_added += added + gap;
        }
    }

    /// A packet whose turn zombies have had leaves zombies in its place. So depths fall by no more than the link's rate, though no packet
    /// waits for zombies.
    fn settle_debt(&mut self, decision: &Decision, packet: &Packet<B>, class: Class) {
        let gate = &mut self.gates[decision.port];
        let bytes = gate.owed.min(packet.body.bytes().into());
        if bytes == 0 {
            return;
        }
        gate.owed -= bytes;
        for node in packet.receivers.iter() {
            self.queues.add_zombies(decision.bin, node, VIRTUAL[usize::from(class.is_sensitive())], bytes);
            self.counters.zombies_added += bytes;
        }
    }

    /// When the oldest packet of a bin's sensitive or other traffic came.
    fn oldest(&self, at: BinAt, sensitive: bool) -> Option<Time> {
        let bin = self.queues.bin(at);
        let classes: &[Class] =
            if sensitive { &[Class::Critical, Class::Control, Class::LowLatency] } else { &[Class::Normal] };
        let first = classes.iter().filter_map(|class| bin.first(*class));
        first.filter_map(|place| self.queues.entry(place)).map(|entry| entry.arrived).min()
    }

    /// Hands a packet to the link.
    fn transmit(
        &mut self,
        port: usize,
        mut packet: Packet<B>,
        why: Reason,
        now: Time,
        out: &mut impl Output<B>,
    ) {
        let flow = packet.flow;
        let Some((context, attach)) = self.contexts.used_toward(port, flow, now) else {
            self.counters.discarded += 1;
            return out.discard(packet.body, super::Discard::NoContext);
        };
        packet.visited = packet.visited.with(self.id);
        let link = &mut self.ports[port];
        let most = Bytes::new(LONGEST as u64 + u64::from(packet.body.bytes()));
        let left = packet.due.map(|due| due.since(now).saturating_sub(link.cat.transit(most, now)));
        let header = Header {
            flow,
            sequence: packet.sequence,
            ecn: packet.ecn,
            hops: packet.hops,
            checksum: packet.checksum,
            time_to_go: left,
            visited: packet.visited,
            receivers: packet.receivers,
        };
        let bytes = &mut self.scratch.header;
        bytes.clear();
        header.encode(&context, attach, bytes);
        let whole = bytes.len() as u64 + u64::from(packet.body.bytes());
        self.gates[port].offer(&mut link.cat, Bytes::new(whole), &self.config.zombies, now);
        link.sent.data += whole;
        self.counters.packets += 1;
        self.counters.header_bytes += bytes.len() as u64;
        self.counters.body_bytes += u64::from(packet.body.bytes());
        out.send(port, bytes, packet, why);
    }

    /// Every 5 ms: depth managers, learning of virtual depth, and starvation.
    pub(super) fn tick(&mut self, now: Time, out: &mut impl Output<B>) {
        if now < self.tick_at || self.queues.active().is_empty() {
            return;
        }
        self.tick_at = now + depth::PERIOD;
        self.clean(now, out);
        let slot = self.config.zombies.slot().filter(|_| now >= self.slot_at);
        if let Some(slot) = slot {
            self.slot_at = now + slot;
        }
        let mut index = 0;
        while let Some(at) = self.queues.active().get(index).copied() {
            let nodes = self.queues.bin(at).destinations.nodes();
            if slot.is_some() {
                nodes.iter().for_each(|node| self.learn(at, node));
            }
            self.manage(at, nodes, now);
            if self.queues.active().get(index) == Some(&at) {
                index += 1;
            }
        }
        if self.config.asap {
            self.prevent_starvation(now);
        }
    }

    /// Sets the learned virtual depth of a destination.
    fn learn(&mut self, at: BinAt, node: NodeId) {
        for sensitive in [false, true] {
            let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { return };
            let class = VIRTUAL[usize::from(sensitive)];
            let (seen, now) = (seen(destination, sensitive), destination.bytes(class));
            let state = &mut destination.state.zombies[usize::from(sensitive)];
            let Some(target) = state.on_slot(&self.config.zombies, seen) else { return };
            self.queues.add_zombies(at, node, class, target.saturating_sub(now));
            self.queues.take_zombies(at, node, class, now.saturating_sub(target));
        }
    }

    fn manage(&mut self, at: BinAt, nodes: Nodes, now: Time) {
        if matches!(self.config.depth, depth::Config::Exact(_)) {
            return;
        }
        let oldest = [false, true].map(|sensitive| self.oldest(at, sensitive));
        for node in nodes.iter() {
            let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { continue };
            for sensitive in [false, true] {
                let depth = exact(&self.config, destination, sensitive);
                let state = &mut destination.state.depth[usize::from(sensitive)];
                state.on_period(&self.config.depth, depth, oldest[usize::from(sensitive)], now);
            }
        }
    }

    /// Adds zombies for destinations whose packets have waited too long (digest A 6.7).
    fn prevent_starvation(&mut self, now: Time) {
        let up = self.ports.iter().filter(|port| port.adjacency.up().is_some());
        let capacity: u64 = up.map(|port| port.cat.capacity().bits_per_sec()).sum();
        let bins = self.queues.active().len();
        let threshold = starvation::threshold(Rate::from_bits_per_sec(capacity), bins);
        let mut largest = [None; 2];
        for index in 0..bins {
            let at = self.queues.active()[index];
            for sensitive in [false, true] {
                let Some(oldest) = self.oldest(at, sensitive) else { continue };
                if now.since(oldest) <= threshold {
                    continue;
                }
                for node in self.queues.bin(at).destinations.nodes().iter() {
                    self.feed(at, node, sensitive, (oldest, threshold), &mut largest, now);
                }
            }
        }
    }

    fn feed(
        &mut self,
        at: BinAt,
        node: NodeId,
        sensitive: bool,
        (oldest, threshold): (Time, Span),
        largest: &mut [Option<i64>; 2],
        now: Time,
    ) {
        let Some(destination) = self.queues.bin(at).destinations.get(node) else { return };
        let waits = if sensitive { destination.real(true) } else { destination.bytes(Class::Normal) } > 0;
        let since = oldest.max(destination.last_departure);
        if !waits || now.since(since) <= threshold {
            return;
        }
        let own = self.steepest(Some((at, node)), sensitive, now);
        let largest =
            *largest[usize::from(sensitive)].get_or_insert_with(|| self.steepest(None, sensitive, now));
        let rivals = Rivals { largest, own, hysteresis: self.config.gradients.hysteresis.get() };
        let Some(destination) = self.queues.bin_mut(at).destinations.get_mut(node) else { return };
        let added = destination.state.starvation.on_period(sensitive, since, threshold, rivals, now);
        self.queues.add_zombies(at, node, STARVED[usize::from(sensitive)], added);
        self.counters.zombies_added += added;
    }

    /// The largest gradient of any bin, or that of one destination.
    fn steepest(&mut self, of: Option<(BinAt, NodeId)>, sensitive: bool, now: Time) -> i64 {
        self.look(now);
        let Node { queues, view, advertised, routes, forwarder, config, .. } = self;
        let view = View { queues, ports: view, advertised, routes, now };
        let bins = of.as_ref().map_or(view.queues.active(), |(at, _)| std::slice::from_ref(at));
        let only = of.map(|(_, node)| node);
        forwarder.steepest(&view, bins, only, sensitive, |one, sensitive| forwarded(config, one, sensitive))
    }
}
