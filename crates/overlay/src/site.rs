//! A node with the programs of its site: their datagrams become flows, which are admitted, and what arrives for them leaves as it came.
//!
//! The driver hands in datagrams of programs and what comes from neighbours, calls [`Site::on_timer`] at [`Site::next_time`], and carries
//! out what is said to an [`Outside`]. A [`Cover`] protects bodies and announcements against the nodes between.

mod carried;
mod cut;
pub mod datagram;
mod exit;
mod flows;
pub mod igmp;
mod members;
pub mod parts;
mod places;
mod querier;
pub mod quota;
mod service;
mod signed;
pub mod stream;

pub use carried::Carried;
pub use flows::{Counts, Told};
pub use places::Places;
pub use service::{Fec, Service};
pub use signed::Signature;

use crate::admission::Standing;
use crate::cat::Cat;
use crate::context::Inner;
use crate::edge::{Edge, Entering};
use crate::message::header::{LONGEST, is_packet};
use crate::node::{self, Admitted, Node, Signal};
use crate::nodes::NodeId;
use crate::packet::{GroupId, Key};
use crate::proxy::udp::sending::Sending;
use crate::proxy::udp::{self, Code};
use exit::{Exit, Out};
use flows::{Flows, Waiting};
use members::{Members, Side};
use parts::Incoming;
use quota::Quota;
use signed::Announcements;
use weir_base::{Bytes, ParameterError, Time};

/// What a site is.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node's number.
    pub id: NodeId,
    /// Its boot epoch: beyond that of its last start.
    pub epoch: u32,
    /// Seed of random draws.
    pub seed: u64,
    /// Parameters of the node.
    pub node: node::Config,
    /// Which addresses are behind which node.
    pub places: Places,
    /// The node's address in each network of the site whose hosts may join groups: the node asks them who has (IGMP).
    pub networks: Vec<u32>,
    /// What the programs' flows are and ask for.
    pub services: Vec<Service>,
    /// The longest body of a packet: a longer datagram is carried in parts.
    pub longest: Bytes,
    /// The code of repairs.
    pub code: &'static dyn Code,
    /// Headers around each datagram between nodes, without the overlay's own.
    pub around: Bytes,
}

/// Carries out what a site decides.
pub trait Outside {
    /// A packet goes over a link: its header, and its body.
    fn packet(&mut self, port: usize, header: &[u8], body: &[u8], is_sensitive: bool);
    /// A datagram of messages goes over a link.
    fn signal(&mut self, port: usize, datagram: &[u8], what: Signal);
    /// A datagram leaves for a program.
    fn deliver(&mut self, datagram: &[u8]);
    /// A datagram to a group leaves for the hosts of a network, by its number.
    fn deliver_to_network(&mut self, network: usize, datagram: &[u8]);
    /// A segment of a stream has come from the proxy of another site, in a packet of this flow.
    fn segment(&mut self, flow: &Inner, segment: &[u8]);
}

/// Protects what is said between nodes that are no neighbours: bodies of packets, between the two nodes at which a flow enters and leaves, and
/// announcements, which all nodes pass on.
pub trait Cover {
    /// Seals a body for the node or the group `to`; the flow's fields are authenticated with it. Returns whether that was possible.
    fn seal(&mut self, to: Key, inner: &Inner, body: &mut Vec<u8>) -> bool;
    /// Opens a body of the node `from` in place; `None` if it is not of that node, or has come before.
    fn open<'a>(&mut self, from: NodeId, inner: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]>;
    /// Whether announcements are signed by their origin, in the whole network.
    fn signs(&self) -> bool;
    /// This node's signature of an announcement.
    fn sign(&mut self, announcement: &[u8]) -> Signature;
    /// Whether a signature of an announcement is that of the node `origin`.
    fn verify(&mut self, origin: NodeId, announcement: &[u8], signature: &Signature) -> bool;
}

/// No cover: bodies are carried as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Cover for Plain {
    fn seal(&mut self, _: Key, _: &Inner, _: &mut Vec<u8>) -> bool {
        true
    }
    fn open<'a>(&mut self, _: NodeId, _: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]> {
        Some(body)
    }
    fn signs(&self) -> bool {
        false
    }
    fn sign(&mut self, _: &[u8]) -> Signature {
        [0; signed::LENGTH]
    }
    fn verify(&mut self, _: NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }
}

/// A node with its site.
#[derive(Debug)]
pub struct Site<C, S> {
    config: Config,
    node: Node<Carried, C>,
    edge: Edge,
    flows: Flows,
    /// Of each neighbour, by its link.
    quotas: Vec<Option<Quota>>,
    /// What the node's output needs beside the driver.
    exit: Exit<S>,
    /// The flows that may send from now on, kept for its space.
    opened: Vec<usize>,
    /// The flows of streams that may send from now on, until the driver takes them.
    opened_streams: Vec<Inner>,
    /// The messages that have come in a datagram, and groups that may have members or none now, kept for their space.
    messages: Vec<u8>,
    groups: Vec<u32>,
}

impl<C: Cat, S: Cover> Site<C, S> {
    /// A site without links.
    ///
    /// # Errors
    /// The first fault of the node's configuration.
    pub fn new(config: Config, cover: S) -> Result<Site<C, S>, ParameterError> {
        let node = Node::new(config.id, config.epoch, config.node.clone())?;
        let places = config.places.clone();
        let (counts, spares, datagram) = (Counts::default(), Vec::new(), Vec::new());
        let announcements = Announcements::default();
        let members = Members::new(&config.networks);
        let (incoming, code, whole) = (Incoming::default(), config.code, Vec::new());
        let id = config.id;
        let exit = Exit {
            id,
            places,
            members,
            cover,
            announcements,
            counts,
            spares,
            datagram,
            incoming,
            code,
            whole,
        };
        let is_planned = config
            .services
            .iter()
            .any(|service| service.admit.as_ref().is_some_and(crate::utility::Config::may_be_refused));
        let (edge, flows) = (Edge::new(is_planned), Flows::default());
        let (opened, opened_streams) = (Vec::new(), Vec::new());
        let (messages, groups) = (Vec::new(), Vec::new());
        let quotas = Vec::new();
        Ok(Site { config, node, edge, flows, quotas, exit, opened, opened_streams, messages, groups })
    }

    /// The node.
    pub fn node(&self) -> &Node<Carried, C> {
        &self.node
    }

    /// A link to this neighbour, from which no more is taken than its quota. Links are numbered from 0.
    pub fn connect(&mut self, cat: C, neighbour: NodeId, quota: Option<&quota::Config>) {
        if let Some(port) = self.node.connect(cat) {
            self.node.expect(port, neighbour);
            self.quotas.resize_with(port + 1, || None);
            self.quotas[port] = quota.map(Quota::new);
        }
    }

    /// Packets and datagrams of messages of the neighbour at a link that were beyond its quota.
    pub fn over_quota(&self, port: usize) -> u64 {
        self.quotas.get(port).and_then(Option::as_ref).map_or(0, |quota| quota.exceeded)
    }

    /// The node, to tell it of its links.
    pub fn node_mut(&mut self) -> &mut Node<Carried, C> {
        &mut self.node
    }

    /// What has become of datagrams and packets.
    pub fn counts(&self) -> Counts {
        let Incoming { restored, incomplete, .. } = self.exit.incoming;
        Counts { restored, incomplete, ..self.exit.counts }
    }

    /// A program has sent a datagram.
    pub fn from_program(&mut self, datagram: &[u8], now: Time, outside: &mut impl Outside) {
        self.take(Side::Device, datagram, now, outside);
    }

    /// A host of a network, by its number, has sent a datagram to a group. Those to groups that are not carried are ignored.
    pub fn from_network(&mut self, network: usize, datagram: &[u8], now: Time, outside: &mut impl Outside) {
        let (side, to) = (Side::Network(network), datagram::addresses(datagram).map(|(_, to)| to));
        if to.is_some_and(|to| self.exit.places.is_group(to)) {
            self.take(side, datagram, now, outside);
        } else {
            self.hear_of_groups(side, datagram, now);
        }
    }

    fn take(&mut self, side: Side, datagram: &[u8], now: Time, outside: &mut impl Outside) {
        if self.hear_of_groups(side, datagram, now) {
            return;
        }
        let counts = &mut self.exit.counts;
        let read = match datagram::read(datagram) {
            Ok(read) => read,
            // Hosts announce themselves by IPv6 on each device.
            Err(datagram::Unreadable::OtherVersion) => return counts.other_version += 1,
            Err(_) => return counts.malformed += 1,
        };
        if self.exit.members.has_networks() {
            self.exit.copy_within(&read, side, outside);
        }
        let inner = self.carried_as(&read);
        let Some(at) = self.flow_of(&inner, now, outside) else { return };
        let (Some(flow), Some(entry)) = (self.flows.get_mut(at), self.edge.entry(at)) else { return };
        flow.used = now;
        if !matches!(entry.admission().standing(), Standing::On | Standing::Waiting) {
            flow.refused += 1;
            self.exit.counts.refused += 1;
            return;
        }
        if flow.service.is_some_and(|at| self.config.services[at].newest) {
            for older in flow.give_way() {
                self.exit.counts.overflowed += 1;
                self.exit.keep(older.body);
            }
        }
        if flow.sending.is_some() {
            self.cut(at, &read, now);
        } else {
            let Some(body) = self.exit.seal(entry.to(), &inner, read.body) else { return };
            if let Some(overflow) = flow.push(Waiting { body, ecn: read.ecn, checksum: read.checksum }) {
                self.exit.counts.overflowed += 1;
                self.exit.keep(overflow.body);
            }
        }
        self.send_waiting(at, now, outside);
    }

    /// Joins and leaves the groups of which a host speaks. Returns false if the datagram is not of IGMP.
    fn hear_of_groups(&mut self, side: Side, datagram: &[u8], now: Time) -> bool {
        let (Exit { members, places, .. }, mut groups) = (&mut self.exit, std::mem::take(&mut self.groups));
        let is_igmp =
            members.hear(side, datagram, |group| places.is_group(group), now, |group| groups.push(group));
        self.groups = groups;
        self.settle_groups();
        is_igmp
    }

    /// The node is a member of the groups of which the site has members. Those of `self.groups` may have changed.
    fn settle_groups(&mut self) {
        for group in self.groups.drain(..) {
            match self.exit.members.has(group) {
                true => self.node.join(GroupId(group)),
                false => self.node.leave(GroupId(group)),
            }
        }
    }

    /// Asks the hosts of networks for their groups, when that is due.
    fn ask_for_groups(&mut self, now: Time, outside: &mut impl Outside) {
        let (members, groups) = (&mut self.exit.members, &mut self.groups);
        let ask = |network: usize, datagram: &[u8]| outside.deliver_to_network(network, datagram);
        members.on_timer(now, ask, |group| groups.push(group));
        self.settle_groups();
    }

    /// A packet or a datagram of messages has come over a link.
    pub fn from_neighbour(&mut self, port: usize, bytes: &[u8], now: Time, outside: &mut impl Outside) {
        let is_packet = bytes.first().is_some_and(|first| is_packet(*first));
        let quota = self.quotas.get_mut(port).and_then(Option::as_mut);
        let mut share = None;
        if let Some(quota) = quota {
            if !quota.takes(bytes.len(), is_packet, now) {
                return self.exit.counts.over_quota += 1;
            }
            share = quota.hold(bytes.len());
        }
        if is_packet {
            let body = Carried::of(bytes, self.exit.spares.pop()).within(share);
            let mut out = Out { outside, exit: &mut self.exit, now };
            return self.node.packet(port, &bytes[..bytes.len().min(LONGEST)], body, now, &mut out);
        }
        let mut messages = std::mem::take(&mut self.messages);
        messages.clear();
        let Exit { cover, announcements, counts, .. } = &mut self.exit;
        if cover.signs() {
            let (verified, refused) = announcements.verify(bytes, cover);
            messages.extend_from_slice(verified);
            counts.forged += refused;
        } else {
            messages.extend_from_slice(bytes);
        }
        self.node.message(port, &messages, now, &mut Out { outside, exit: &mut self.exit, now });
        self.messages = messages;
    }

    /// Links may take more than before.
    pub fn refill(&mut self, now: Time, outside: &mut impl Outside) {
        self.node.refill(now, &mut Out { outside, exit: &mut self.exit, now });
    }

    /// When [`Site::on_timer`] is due.
    pub fn next_time(&self, now: Time) -> Time {
        let flows = self.edge.next_time().min(self.flows.look_at());
        let parts = self.flows.repairs.soonest().min(self.exit.incoming.next_time());
        self.node.next_time(now).min(flows).min(parts).min(self.exit.members.next_time())
    }

    /// The time has come.
    pub fn on_timer(&mut self, now: Time, outside: &mut impl Outside) {
        self.admit(now, outside);
        self.note_decisions();
        self.ask_for_groups(now, outside);
        self.repair(now, outside);
        self.exit.release(now, outside);
        for at in self.flows.idle(now) {
            self.close(at);
        }
        self.node.on_timer(now, &mut Out { outside, exit: &mut self.exit, now });
    }

    /// Looks at the flows whose time has come, and sends what waits of those that may send now.
    fn admit(&mut self, now: Time, outside: &mut impl Outside) {
        let mut opened = std::mem::take(&mut self.opened);
        self.edge.on_timer(&self.node, self.config.around, now, |at| opened.push(at));
        for at in opened.drain(..) {
            match self.flows.get(at).map(flows::Flow::inner).filter(|inner| stream::is_segment(inner)) {
                Some(inner) => self.opened_streams.push(*inner),
                None => self.send_waiting(at, now, outside),
            }
        }
        self.opened = opened;
    }

    /// Sends what waits of a flow, as far as it is admitted.
    fn send_waiting(&mut self, at: usize, now: Time, outside: &mut impl Outside) {
        while self.edge.entry(at).is_some_and(crate::edge::Entry::is_open)
            && let Some(waiting) = self.flows.get_mut(at).and_then(flows::Flow::pop)
        {
            self.send(at, waiting, now, outside);
        }
    }

    /// Hands a packet of a flow to the node.
    fn send(&mut self, at: usize, packet: Waiting, now: Time, outside: &mut impl Outside) {
        let Waiting { body, ecn, checksum } = packet;
        let Some(entry) = self.edge.entry(at) else { return self.exit.keep(body) };
        let (name, admitted) = (entry.at, Admitted { ecn, checksum, ..entry.admitted });
        self.edge.has_sent(at, crate::packet::Body::bytes(&body), &self.node, now);
        self.exit.counts.admitted += 1;
        if let Some(flow) = self.flows.get_mut(at) {
            flow.admitted += 1;
        }
        self.node.admit(name, admitted, body, now, &mut Out { outside, exit: &mut self.exit, now });
    }

    /// Keeps what has been decided about flows. What waits of a flow that has stopped goes (digest A 7.4).
    fn note_decisions(&mut self) {
        let Site { edge, flows, exit, .. } = self;
        edge.take_decided(|at, entry| {
            let events = entry.take_events();
            let (Some(flow), false) = (flows.get_mut(at), events.is_empty()) else { return };
            flow.note(events);
            if entry.admission().standing() != Standing::On {
                let waiting = flow.flush();
                exit.counts.refused += waiting.len() as u64;
                flow.refused += waiting.len() as u64;
                waiting.into_iter().for_each(|waiting| exit.keep(waiting.body));
            }
        });
    }

    /// The place of a flow, which is opened if it is new. `None` if its source is not behind this node or its destination behind no other one, or
    /// if there are too many flows.
    fn flow_of(&mut self, inner: &Inner, now: Time, outside: &mut impl Outside) -> Option<usize> {
        if let Some(at) = self.flows.at(inner) {
            // A transfer that has ended begins anew.
            let has_ended = |entry: &crate::edge::Entry| entry.admission().standing() == Standing::Ended;
            if !self.edge.entry(at).is_some_and(has_ended) {
                return Some(at);
            }
            self.close(at);
        }
        if self.exit.places.node_of(inner.source) != Some(self.config.id) {
            self.exit.counts.foreign += 1;
            return None;
        }
        let to = match self.exit.places.node_of(inner.destination).filter(|to| *to != self.config.id) {
            Some(node) => Some(Key::Node(node)),
            None => {
                self.exit.places.is_group(inner.destination).then_some(Key::Group(GroupId(inner.destination)))
            }
        };
        let Some(to) = to else {
            self.exit.counts.unknown += 1;
            return None;
        };
        if self.flows.is_full() {
            self.exit.counts.overflowed += 1;
            return None;
        }
        let service = service::service_of(&self.config.services, inner);
        let terms = service::terms(service.map(|at| &self.config.services[at]), inner, now);
        let terms = stream::terms(inner, terms);
        let is_sensitive = terms.deadline.is_some();
        let number = self.flows.next_number();
        let (interested, coupled, is_answer) = (None, None, stream::only_answers(inner));
        let inner = *inner;
        let entering = Entering { number, to, interested, terms, coupled, is_sensitive, is_answer, inner };
        let at = self.edge.open(&entering, self.config.seed, &mut self.node);
        let sending = parts::whole(&inner).map(|_| {
            let proxied =
                service.map(|at| self.config.services[at].proxied()).unwrap_or_else(udp::Service::whole);
            Sending::new(proxied.within(self.config.longest.get() as usize))
        });
        self.flows.open(at, inner, service, sending, now);
        // Its admission begins now, so that its first packet need not wait.
        self.admit(now, outside);
        Some(at)
    }

    /// Its services; the first one that fits a flow is the flow's.
    pub fn services(&self) -> &[Service] {
        &self.config.services
    }

    /// The site has other services from now on. Flows begin anew with their next datagrams.
    pub fn serve(&mut self, services: Vec<Service>, now: Time) {
        self.flows.places().into_iter().for_each(|at| self.close(at));
        self.edge.set_planned(service::plans(&services), now);
        self.config.services = services;
    }

    /// Gives the flows that are meant this priority. Returns whether there is one.
    pub fn set_priority(&mut self, is_meant: impl Fn(&Inner) -> bool, priority: f64, now: Time) -> bool {
        let inner = |at: &usize| self.flows.get(*at).map(flows::Flow::inner);
        let is_it = |at: &usize| inner(at).is_some_and(|flow| !stream::only_answers(flow) && is_meant(flow));
        let mut meant = self.flows.places();
        meant.retain(is_it);
        meant.iter().for_each(|at| self.edge.set_priority(*at, priority, now));
        !meant.is_empty()
    }

    fn close(&mut self, at: usize) {
        self.edge.close(at, &mut self.node);
        for waiting in self.flows.close(at) {
            self.exit.keep(waiting.body);
        }
    }

    /// The flows that have sent lately, in the order of their places. What only answers a stream is none.
    pub fn told(&self) -> impl Iterator<Item = Told<'_>> {
        self.edge.entries().filter_map(|(at, entry)| {
            let flow = self.flows.get(at).filter(|flow| !stream::only_answers(flow.inner()))?;
            let service = flow.service.and_then(|at| self.config.services.get(at));
            let seen = (self.edge.rate(at), self.edge.price(at));
            Some(Told::new(flow, entry, seen, service.map(|service| service.name.as_str())))
        })
    }
}

#[cfg(test)]
mod tests;
