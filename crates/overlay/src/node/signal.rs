//! Messages: what is said to neighbours and when, and what theirs do (digest A 2.3, A 3.8, A 6.1).
//!
//! Announcements of others are passed on within 50 ms, many in a datagram; at once if a link came or went.

use super::capacity::{self, differs};
use super::{Node, Output, Signal};
use crate::admission::{derive_k, hold_k};
use crate::cat::Cat;
use crate::linkstate::adjacency::Change;
use crate::linkstate::database::PERIOD;
use crate::linkstate::{Accepted, Neighbour};
use crate::message::{Groups, LinkInfo, Links, Message, Stamp};
use crate::nodes::{NodeId, PerNode};
use crate::packet::Body;
use weir_base::{Bytes, Rate, Span, Time};

/// Bytes of a datagram of messages at most: 625 with the 67 of IP, UDP and SLIQ around it, as the depths of 100 bins may take.
pub(super) const DATAGRAM: usize = 558;
/// Announcements of others wait for so long to share a datagram.
const FLOOD: Span = Span::from_millis(50);
/// Acknowledgements of contexts wait for so long.
const REPLY: Span = Span::from_millis(5);
/// An announcement for a changed delay waits until the last one is so old (digest A 6.1).
const DELAY_HOLD: Span = Span::from_millis(500);
/// Groups are announced this often.
const GROUPS_PERIOD: Span = Span::from_secs(2);
/// The ways are computed anew this often at most, unless a link came or went.
const ROUTES_PERIOD: Span = Span::from_secs(1);
/// The most replies that wait.
const MOST_REPLIES: usize = 64;

/// What is due when.
#[derive(Debug, Default)]
pub(super) struct Timers {
    links: Time,
    links_sent: Option<Time>,
    groups: Time,
    flood: Option<Time>,
    replies: Option<Time>,
    routes: Option<Time>,
    routes_computed: Time,
    /// Whether nothing that the ways depend on has changed since.
    ways_hold: bool,
    links_sequence: u32,
    groups_sequence: u32,
}

impl Timers {
    pub(super) fn groups_changed(&mut self) {
        self.groups = Time::ZERO;
    }
    #[inline]
    fn next(&self) -> Time {
        let optional = [self.flood, self.replies, self.routes];
        let soonest = optional.into_iter().flatten().min().unwrap_or(Time::NEVER);
        soonest.min(self.links).min(self.groups)
    }
}

/// Space that is used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) header: Vec<u8>,
    pub(super) datagram: Vec<u8>,
    /// What the messages in the datagram are worth.
    worth: Signal,
    part: Vec<u8>,
    capacities: Vec<Rate>,
}

impl Timers {
    /// The node's links are announced at the next timer, and ways found anew.
    pub(super) fn announce_soon(&mut self) {
        self.links = Time::ZERO;
        self.ways_hold = false;
    }
}

impl<B: Body, C: Cat> Node<B, C> {
    /// A datagram of messages has come over a link. What is malformed is ignored from there on.
    pub fn message(&mut self, port: usize, datagram: &[u8], now: Time, out: &mut impl Output<B>) {
        if port >= self.ports.len() {
            return;
        }
        let mut rest = datagram;
        while !rest.is_empty() {
            let Ok((message, after)) = Message::decode(rest) else { break };
            rest = after;
            // Depths and what is known of flows make nothing due; what a report makes due, `reply` notes.
            if !matches!(
                message,
                Message::Depths(_) | Message::Known(_) | Message::Unknown(_) | Message::Report(_)
            ) {
                self.chores_at = Time::ZERO;
            }
            self.handle(port, message, now);
        }
        self.on_timer(now, out);
    }

    fn handle(&mut self, port: usize, message: Message, now: Time) {
        let link = &mut self.ports[port];
        link.adjacency.heard(now);
        let is_up = link.adjacency.up().is_some();
        match message {
            Message::Hello(hello) if link.expected.is_some_and(|expected| expected != hello.node) => {
                self.counters.strangers += 1;
            }
            Message::Hello(hello) if hello.node != self.id => {
                let change = link.adjacency.on_hello(hello, self.epoch, now);
                self.changed(port, change, now);
            }
            Message::Depths(depths) if is_up => {
                self.advertised[port].apply(depths, now);
                self.gates[port].has_told(&self.advertised[port]);
            }
            Message::Links(links) if is_up => self.on_links(port, links, now),
            Message::Groups(groups) if is_up => self.on_groups(port, groups, now),
            Message::Report(report) => self.on_report(report, now),
            Message::Capacity(capacity) if is_up => {
                link.cat.told_capacity(capacity);
                self.gates[port].ask();
            }
            Message::Known(flow) => self.contexts.acknowledged(flow, port),
            Message::Unknown(flow) => self.contexts.unknown(flow, port),
            _ => {}
        }
    }

    /// A neighbour has come or gone.
    fn changed(&mut self, port: usize, change: Change, now: Time) {
        if change == Change::None {
            return;
        }
        let link = &mut self.ports[port];
        self.advertised[port].clear();
        self.contexts.forget_neighbour(port);
        link.depths.due = now;
        link.depths.cursor = None;
        link.told = capacity::Sent::default();
        let gate = &mut self.gates[port];
        gate.node = link.adjacency.up();
        gate.has_told(&self.advertised[port]);
        // What the link was given before does not occupy it any more.
        (gate.drains_at, gate.owed) = (now, 0);
        if change == Change::Up {
            // The other end may have been apart from the network: it is told everything.
            link.flood_links = self.database.all_links().map(|links| links.origin).collect();
            link.flood_groups = self.database.all_groups().map(|groups| groups.origin).collect();
            self.timers.flood = Some(now);
        }
        self.timers.links = now;
        self.timers.routes = Some(now);
        self.timers.ways_hold = false;
    }

    fn on_links(&mut self, port: usize, links: Links, now: Time) {
        match self.database.accept_links(self.id, &links, now) {
            Accepted::Old => {}
            Accepted::Own(epoch) => self.outgrow(epoch, now),
            accepted => {
                self.pass_on(port, accepted == Accepted::Changed, now, |port| {
                    port.flood_links = port.flood_links.with(links.origin);
                });
                let due = if accepted == Accepted::Changed {
                    now
                } else {
                    (self.timers.routes_computed + ROUTES_PERIOD).max(now)
                };
                self.timers.routes = Some(self.timers.routes.map_or(due, |other| other.min(due)));
                self.timers.ways_hold &= accepted == Accepted::Same;
            }
        }
    }

    fn on_groups(&mut self, port: usize, groups: Groups, now: Time) {
        match self.database.accept_groups(self.id, &groups, now) {
            Accepted::Old => {}
            Accepted::Own(epoch) => self.outgrow(epoch, now),
            _ => self.pass_on(port, false, now, |port| {
                port.flood_groups = port.flood_groups.with(groups.origin);
            }),
        }
    }

    /// An announcement of this node from an earlier life goes round, newer than its own.
    fn outgrow(&mut self, epoch: u32, now: Time) {
        self.epoch = epoch.wrapping_add(1);
        (self.timers.links, self.timers.groups) = (now, now);
    }

    fn pass_on(&mut self, from: usize, at_once: bool, now: Time, mut mark: impl FnMut(&mut super::Port<C>)) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            if number != from && port.adjacency.up().is_some() {
                mark(port);
            }
        }
        let due = if at_once { now } else { now + FLOOD };
        self.timers.flood = Some(self.timers.flood.map_or(due, |other| other.min(due)));
    }

    /// Something to tell a neighbour soon.
    pub(super) fn reply(&mut self, port: usize, message: Message, now: Time) {
        let Some(port) = self.ports.get_mut(port) else { return };
        if port.replies.len() < MOST_REPLIES && !port.replies.contains(&message) {
            port.replies.push(message);
            let due = *self.timers.replies.get_or_insert(now + REPLY);
            self.chores_at = self.chores_at.min(due);
        }
    }

    /// Does all that is due.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Output<B>) {
        if now >= self.chores_at {
            self.do_chores(now, out);
        }
        self.tick(now, out);
        self.serve(now, out);
    }

    /// Tells neighbours what is due, and does what is due of what they have told.
    fn do_chores(&mut self, now: Time, out: &mut impl Output<B>) {
        for port in 0..self.ports.len() {
            let change = self.ports[port].adjacency.on_timer(now);
            self.changed(port, change, now);
        }
        self.announce(now);
        self.report(now);
        if self.timers.routes.is_some_and(|due| due <= now) {
            self.find_routes(now);
        }
        self.reply_all(now, out);
        self.flood(now, out);
        for port in 0..self.ports.len() {
            self.tell_capacity(port, now, out);
            self.tell_depths(port, now, out);
            self.say_hello(port, now, out);
        }
        let held_back = self.notable_due().min(self.capacity_due());
        self.chores_at = self.next_chore().min(held_back);
    }

    /// When [`Node::on_timer`] is due.
    pub fn next_time(&self, now: Time) -> Time {
        let mut next = Time::NEVER;
        let is_active = !self.queues.active().is_empty();
        for (number, gate) in self.gates.iter().enumerate().filter(|(_, gate)| gate.node.is_some()) {
            let waits = || self.tree.as_ref().is_some_and(|tree| tree.first(number).is_some());
            if is_active || waits() {
                if let Some(ready) = gate.ready(&self.ports[number].cat, now) {
                    next = next.min(ready);
                }
                if gate.drains_at > now && self.forwarder.waits_for(number) {
                    next = next.min(gate.drains_at);
                }
            }
        }
        if is_active {
            next = next.min(self.tick_at);
        }
        if next > self.chores_at {
            next = next.min(self.next_chore());
        }
        next.max(now)
    }

    /// When there is something to tell, or a neighbour is down if nothing comes.
    fn next_chore(&self) -> Time {
        let mut next = self.timers.next().min(self.counted.due());
        for port in &self.ports {
            next = next.min(port.adjacency.silent_at()).min(port.adjacency.hello_due());
            if port.adjacency.up().is_some() {
                next = next.min(port.depths.due);
            }
        }
        next
    }

    /// From when on this node's links are announced with anything else that is done, since one differs from what was announced.
    fn notable_due(&self) -> Time {
        let is_notable = self.ports.iter().any(|port| {
            let (delay, capacity) = port.announced;
            port.adjacency.up().is_some()
                && (differs(delay.mean.as_secs_f64(), port.cat.delay().mean.as_secs_f64())
                    || differs(capacity.bits_per_sec() as f64, port.cat.capacity().bits_per_sec() as f64))
        });
        match self.timers.links_sent {
            _ if !is_notable => Time::NEVER,
            Some(sent) => sent + DELAY_HOLD,
            None => Time::ZERO,
        }
    }

    /// Announces this node's links and groups if that is due.
    fn announce(&mut self, now: Time) {
        if self.notable_due() <= now {
            self.timers.links = now;
        }
        if self.timers.links <= now {
            self.announce_links(now);
        }
        if self.timers.groups <= now {
            self.timers.groups = now + GROUPS_PERIOD;
            self.timers.groups_sequence = self.timers.groups_sequence.wrapping_add(1);
            let stamp = Stamp { epoch: self.epoch, sequence: self.timers.groups_sequence };
            let groups = Groups { origin: self.id, stamp, joined: self.joined.clone() };
            self.database.put_groups(groups, now);
            let own = self.id;
            self.pass_on(usize::MAX, true, now, |port| port.flood_groups = port.flood_groups.with(own));
        }
    }

    fn announce_links(&mut self, now: Time) {
        if self.database.age(self.id, now) {
            self.timers.routes = Some(now);
            self.timers.ways_hold = false;
        }
        self.contexts.expire(now);
        (self.timers.links, self.timers.links_sent) = (now + PERIOD, Some(now));
        self.timers.links_sequence = self.timers.links_sequence.wrapping_add(1);
        let mut neighbours: PerNode<LinkInfo> = PerNode::default();
        for port in &mut self.ports {
            let Some(node) = port.adjacency.up() else { continue };
            let (delay, capacity) = (port.cat.delay(), port.cat.capacity());
            self.timers.ways_hold &= port.announced.0 == delay;
            port.announced = (delay, capacity);
            // Of parallel links to a neighbour the smaller delay counts (digest A 13); their capacities add up.
            let link = neighbours.get_or(node, || LinkInfo { delay, capacity: Rate::from_bits_per_sec(0) });
            let sum = link.capacity.bits_per_sec().saturating_add(capacity.bits_per_sec());
            link.capacity = Rate::from_bits_per_sec(sum);
            if delay.mean < link.delay.mean {
                link.delay = delay;
            }
        }
        let stamp = Stamp { epoch: self.epoch, sequence: self.timers.links_sequence };
        let queue_delays = if self.config.queue_delays { self.queue_delays() } else { PerNode::default() };
        self.timers.ways_hold &= !self.config.queue_delays;
        let k = self.derive_k();
        self.database.put_links(
            Links { origin: self.id, stamp, k, is_drained: self.is_drained, neighbours, queue_delays },
            now,
        );
        let own = self.id;
        self.pass_on(usize::MAX, true, now, |port| port.flood_links = port.flood_links.with(own));
        self.timers.routes = Some(now);
    }

    /// K as this node would have it, from all capacities that are announced; as a power of two.
    fn derive_k(&mut self) -> Option<u8> {
        self.database.capacities(&mut self.scratch.capacities);
        let derived = derive_k(&mut self.scratch.capacities)?;
        let k = hold_k(self.k, derived);
        self.k = Some(k);
        Some(libm::log2(k) as u8)
    }

    fn queue_delays(&self) -> PerNode<Span> {
        let mut delays = PerNode::default();
        for bin in self.queues.by_key() {
            for (node, destination) in bin.destinations.iter() {
                let delay = Span::from_secs_f64(destination.state.queue_delay);
                let longest = delays.get_or(node, || Span::ZERO);
                *longest = delay.max(*longest);
            }
        }
        delays
    }

    fn find_routes(&mut self, now: Time) {
        self.timers.routes = None;
        self.timers.routes_computed = now;
        if std::mem::replace(&mut self.timers.ways_hold, true) {
            return;
        }
        self.neighbours.clear();
        for (number, port) in self.ports.iter().enumerate() {
            if let Some(node) = port.adjacency.up() {
                self.neighbours.push(Neighbour { port: number, node, delay: port.announced.0 });
            }
        }
        let adds_queues = self.config.queue_delays;
        self.routes.compute(self.id, self.ports.len(), &self.neighbours, &self.database, adds_queues);
        if self.tree.is_some()
            && let Some(root) = NodeId::new(self.config.multicast.rendezvous)
        {
            self.routes.build_tree(root);
        }
    }

    fn reply_all(&mut self, now: Time, out: &mut impl Output<B>) {
        if self.timers.replies.is_none_or(|due| due > now) {
            return;
        }
        self.timers.replies = None;
        for port in 0..self.ports.len() {
            let mut replies = std::mem::take(&mut self.ports[port].replies);
            for reply in replies.drain(..) {
                self.append(port, &reply, now, out);
            }
            self.ports[port].replies = replies;
            self.flush(port, now, out);
        }
    }

    fn flood(&mut self, now: Time, out: &mut impl Output<B>) {
        if self.timers.flood.is_none_or(|due| due > now) {
            return;
        }
        self.timers.flood = None;
        for port in 0..self.ports.len() {
            let links = std::mem::take(&mut self.ports[port].flood_links);
            let groups = std::mem::take(&mut self.ports[port].flood_groups);
            let is_up = self.ports[port].adjacency.up().is_some();
            for origin in links.iter().filter(|_| is_up) {
                if let Some(links) = self.database.links(origin).cloned() {
                    self.append(port, &Message::Links(links), now, out);
                }
            }
            for origin in groups.iter().filter(|_| is_up) {
                if let Some(groups) = self.database.groups(origin).cloned() {
                    self.append(port, &Message::Groups(groups), now, out);
                }
            }
            self.flush(port, now, out);
        }
    }

    /// Adds a message to the datagram, which is sent first if it would grow too long.
    pub(super) fn append(&mut self, port: usize, message: &Message, now: Time, out: &mut impl Output<B>) {
        self.scratch.part.clear();
        message.encode(&mut self.scratch.part);
        if self.scratch.datagram.len() + self.scratch.part.len() > DATAGRAM {
            self.flush(port, now, out);
        }
        self.scratch.datagram.extend_from_slice(&self.scratch.part);
        if !matches!(message, Message::Depths(_) | Message::Hello(_)) {
            self.scratch.worth = Signal::Control;
        }
    }

    pub(super) fn flush(&mut self, port: usize, now: Time, out: &mut impl Output<B>) {
        if self.scratch.datagram.is_empty() {
            return;
        }
        let bytes = self.scratch.datagram.len() as u64;
        self.counters.signals += 1;
        self.counters.signal_bytes += bytes;
        let link = &mut self.ports[port];
        self.gates[port].offer(&mut link.cat, Bytes::new(bytes), &self.config.zombies, now);
        link.sent.signals += bytes;
        out.signal(port, &self.scratch.datagram, std::mem::take(&mut self.scratch.worth));
        self.scratch.datagram.clear();
    }

    fn say_hello(&mut self, port: usize, now: Time, out: &mut impl Output<B>) {
        if self.ports[port].adjacency.hello_due() <= now {
            self.add_hello(port, now, out);
            self.flush(port, now, out);
        }
    }

    /// Adds a hello to the datagram.
    pub(super) fn add_hello(&mut self, port: usize, now: Time, out: &mut impl Output<B>) {
        let hello = self.ports[port].adjacency.hello(self.id, self.epoch);
        self.append(port, &Message::Hello(hello), now, out);
        self.ports[port].adjacency.said_hello(now);
    }
}
