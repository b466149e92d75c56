//! The forwarder: which packet goes to which neighbour now, or which zombies leave.
//!
//! Source: digest A 6.4 (procedure), A 6.5 (multicast), A 6.6 and G 2.2 (zombies). Sensitive traffic by its own depths comes first, then all
//! traffic by all depths; within a pass the largest gradient that has something to send wins. Differences from the study:
//!
//! - Zombies take no room of a link. They leave when their gradient is the largest and the link's drain clock allows; packets follow.
//! - A critical packet goes to a neighbour that it has not visited, if the mean delay lets it arrive. The study sends it back.
//! - A group's packets have deadlines too: each receiver is judged by its own route. The study has none.
//! - A packet for one node goes to a node that it has visited only if that one is closer to the destination. The study judges sensitive
//!   packets alone; but neighbours know each other's depths only by their last messages, and would pass packets round. A group's packets
//!   may return: where receivers part, a way back over a free link makes up for a wrong turn (measured: 0.73 of the rate without).

mod candidate;
mod urgent;

pub use candidate::{Kind, Pass};

use crate::advertised::Advertised;
use crate::gradient::{Gradients, Side, is_closer};
use crate::linkstate::Routes;
use crate::multicast::{self, Forwarding, Offer};
use crate::nodes::{NODES, NodeId, Nodes, PerNode};
use crate::packet::{Body, Key, Packet};
use crate::queue::{BinAt, Class, Destination, Place, Queues};
use candidate::Candidate;
use urgent::{critical, most_urgent};
use weir_base::Time;

/// Bytes of a sensitive queue that are looked at beyond a link's room (digest A 6.4).
pub const SEARCH_BYTES: u64 = 5000;

/// What the forwarder knows of the link to a neighbour that is up.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// Its number.
    pub number: usize,
    /// The neighbour.
    pub node: NodeId,
    /// Bytes that the link takes now; zero if it is not ready.
    pub room: u64,
    /// Whether the link's drain clock lets zombies leave.
    pub drains: bool,
}

/// What a decision is made from.
#[derive(Debug)]
pub struct View<'a, B, S> {
    /// The node's queues.
    pub queues: &'a Queues<B, S>,
    /// Its neighbours that are up.
    pub ports: &'a [Port],
    /// Their depths, by the number of the link.
    pub advertised: &'a [Advertised],
    /// The ways.
    pub routes: &'a Routes,
    /// The time.
    pub now: Time,
}

/// Why a packet goes where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its bin had the largest gradient of sensitive traffic, of so many bytes.
    Sensitive(i64),
    /// Its bin had the largest gradient of all, of so many bytes.
    Gradient(i64),
    /// Its useful next hops were all visited; this is the fastest other one.
    Critical,
    /// Depths by group and by destination disagree: uphill by so many bytes rather than nothing.
    Uphill(i64),
    /// The tree says so.
    Tree,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A packet goes for these destinations.
    Packet {
        /// Its class.
        class: Class,
        /// Its place.
        place: Place,
    },
    /// A coded packet of the bin goes for these destinations.
    Coded,
    /// Zombies for these destinations leave.
    Zombies {
        /// Whether those of sensitive classes.
        sensitive: bool,
    },
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The link.
    pub port: usize,
    /// The bin.
    pub bin: BinAt,
    /// The destinations.
    pub nodes: Nodes,
    /// What is done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

/// Parameters of the forwarder.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Of gradients.
    pub gradients: Gradients,
    /// Of groups.
    pub multicast: multicast::Config,
    /// Whether zombies leave before packets of the same bin where they weigh more.
    pub zombies_first: bool,
}

/// The forwarder, with space for its work.
#[derive(Debug)]
pub struct Forwarder {
    config: Config,
    candidates: Vec<Candidate>,
    /// Differences toward the neighbour in question, by destination.
    differences: Vec<Option<i64>>,
    /// Depths by destination over all groups, for the approximation.
    sums: PerNode<u64>,
}

impl Forwarder {
    /// A forwarder.
    pub fn new(config: Config) -> Forwarder {
        Forwarder { config, candidates: Vec::new(), differences: vec![None; NODES], sums: PerNode::default() }
    }

    /// The next thing to do; `None` if nothing can go. `depth` gives the depth that gradients use.
    pub fn decide<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        depth: impl Fn(&Destination<S>, bool) -> u64,
    ) -> Option<Decision> {
        if let Some(decision) = critical(view) {
            return Some(decision);
        }
        if self.config.multicast.forwarding == Forwarding::Total {
            self.add_up(view, &depth);
        }
        [Pass::Sensitive, Pass::All].into_iter().find_map(|pass| self.pass(view, pass, &depth))
    }

    /// The largest gradient of a bin toward any neighbour, whether it has room or not, or only for one destination (digest A 6.7).
    pub fn steepest<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        bins: &[BinAt],
        only: Option<NodeId>,
        sensitive: bool,
        depth: impl Fn(&Destination<S>, bool) -> u64,
    ) -> i64 {
        let mut largest = 0;
        for port in view.ports {
            for at in bins {
                self.slopes(view, port, *at, sensitive, &depth);
                let bin = view.queues.bin(*at);
                let nodes =
                    bin.destinations.nodes().iter().filter(|node| only.is_none_or(|only| only == *node));
                largest = largest.max(nodes.filter_map(|node| self.differences[node.index()]).sum());
            }
        }
        largest
    }

    fn pass<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> Option<Decision> {
        self.candidates.clear();
        for port in 0..view.ports.len() {
            if view.ports[port].room == 0 {
                continue;
            }
            for at in view.queues.active() {
                self.consider(view, port, *at, pass, depth);
            }
        }
        self.candidates.sort_unstable_by_key(Candidate::order);
        for index in 0..self.candidates.len() {
            let candidate = self.candidates[index];
            let decision = match candidate.kind {
                Kind::Zombies if !view.ports[candidate.port].drains => None,
                Kind::Zombies => Some(self.decision(
                    view,
                    candidate,
                    candidate.nodes,
                    Action::Zombies { sensitive: pass.is_sensitive() },
                )),
                Kind::Packets => self.choose(view, candidate, pass, depth),
            };
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    fn decision<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        nodes: Nodes,
        action: Action,
    ) -> Decision {
        let reason = if candidate.is_sensitive {
            Reason::Sensitive(candidate.weight)
        } else {
            Reason::Gradient(candidate.weight)
        };
        Decision { port: view.ports[candidate.port].number, bin: candidate.bin, nodes, action, reason }
    }

    /// Computes the differences that go downhill toward a neighbour, for the destinations of a bin.
    fn slopes<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        port: &Port,
        at: BinAt,
        sensitive: bool,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let bin = view.queues.bin(at);
        let theirs = view.advertised[port.number].bin(bin.key);
        for (node, destination) in bin.destinations.iter() {
            let own = depth(destination, sensitive);
            self.differences[node.index()] = if own == 0 {
                None
            } else {
                let (own, there) = sides(view.routes, port, node, own, theirs.of(node, sensitive));
                self.config.gradients.downhill(own, there, sensitive)
            };
        }
    }

    /// Adds what a bin could do toward a neighbour to the candidates.
    fn consider<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        index: usize,
        at: BinAt,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let port = &view.ports[index];
        let bin = view.queues.bin(at);
        if pass.is_sensitive() && !bin.has_sensitive() {
            return;
        }
        let is_group = matches!(bin.key, Key::Group(_));
        if is_group && self.config.multicast.forwarding == Forwarding::Total {
            return self.consider_total(view, index, at, pass, depth);
        }
        self.slopes(view, port, at, pass.is_sensitive(), depth);
        let mut packets = Candidate::new(Kind::Packets, index, at, pass);
        let mut zombies = Candidate::new(Kind::Zombies, index, at, pass);
        for (node, destination) in bin.destinations.iter() {
            let Some(difference) = self.differences[node.index()] else { continue };
            let side = if pass.packets(destination) > 0 { &mut packets } else { &mut zombies };
            if side.kind == Kind::Packets || pass.zombies(destination) > 0 {
                side.add(node, difference);
            }
        }
        // At equal gradients the neighbour that is the destination comes first (digest A 6.3).
        if !is_group && packets.nodes.has(port.node) {
            packets.weight += 1;
        }
        let has_packets = !packets.nodes.is_empty();
        if has_packets {
            self.candidates.push(packets);
        }
        if !zombies.nodes.is_empty() && (!has_packets || self.config.zombies_first) {
            self.candidates.push(zombies);
        }
    }

    /// The same by one depth of the group: the sums over the destinations that the neighbour can reach (digest G 2.1).
    fn consider_total<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        index: usize,
        at: BinAt,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let (port, bin) = (&view.ports[index], view.queues.bin(at));
        let (Key::Group(group), false) = (bin.key, pass.is_sensitive()) else { return };
        let finite = view.routes.finite(port.number, bin.destinations.nodes());
        let bias = self.config.gradients.hop_bias.get() as i64;
        let mut weight = -(view.advertised[port.number].group_total(group) as i64);
        let (mut packets, mut zombies) = (Nodes::EMPTY, Nodes::EMPTY);
        for (node, destination) in bin.destinations.iter().filter(|(node, _)| finite.has(*node)) {
            let hops = |hops: Option<u8>| i64::from(hops.unwrap_or(0));
            let gain = hops(view.routes.hops(node)) - hops(view.routes.hops_via(port.number, node));
            weight += depth(destination, false) as i64
                + if depth(destination, false) > 0 { bias * gain } else { 0 };
            if destination.bytes(Class::Normal) > 0 {
                packets = packets.with(node);
            } else if pass.zombies(destination) > 0 {
                zombies = zombies.with(node);
            }
        }
        let kind = if packets.is_empty() { Kind::Zombies } else { Kind::Packets };
        let nodes = if packets.is_empty() { zombies } else { finite };
        if weight > self.config.gradients.hysteresis.get() as i64 && !nodes.is_empty() {
            self.candidates.push(Candidate { weight, nodes, ..Candidate::new(kind, index, at, pass) });
        }
    }

    /// The packet that a candidate sends.
    fn choose<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> Option<Decision> {
        let port = &view.ports[candidate.port];
        let bin = view.queues.bin(candidate.bin);
        if pass.is_sensitive() {
            let (class, place, nodes) = most_urgent(view, port, bin, candidate.nodes)?;
            return Some(self.decision(view, candidate, nodes, Action::Packet { class, place }));
        }
        let first = bin.first(Class::Normal)?;
        match (bin.key, self.config.multicast.forwarding) {
            (Key::Node(_), _) => {
                let place = self.first_allowed(view, port, first, candidate.nodes)?;
                let action = Action::Packet { class: Class::Normal, place };
                Some(self.decision(view, candidate, candidate.nodes, action))
            }
            (_, Forwarding::Coded) => Some(self.decision(view, candidate, candidate.nodes, Action::Coded)),
            (_, Forwarding::Total) => self.choose_by_sums(view, candidate, first),
            _ => {
                self.slopes(view, port, candidate.bin, false, depth);
                let (place, offer) = self.best_offer(view, first, candidate.nodes)?;
                let nodes = offer.nodes.or(self.opportunity(view, candidate, place, offer.nodes, depth));
                Some(self.decision(view, candidate, nodes, Action::Packet { class: Class::Normal, place }))
            }
        }
    }

    /// The first packet that has not been at the neighbour, or may go back.
    fn first_allowed<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        port: &Port,
        first: Place,
        nodes: Nodes,
    ) -> Option<Place> {
        let is_allowed = |packet: &Packet<B>| {
            !packet.visited.has(port.node) || !closer(view.routes, port, nodes).is_empty()
        };
        self.searched(view, first).find(|(_, packet)| is_allowed(packet)).map(|(at, _)| at)
    }

    /// The packets that a search looks at: from this place on, in their order, as many as the configuration says.
    fn searched<'a, B: Body, S: Default>(
        &self,
        view: &'a View<'_, B, S>,
        first: Place,
    ) -> impl Iterator<Item = (Place, &'a Packet<B>)> {
        std::iter::successors(Some(first), |&at| view.queues.after(at))
            .take(self.config.multicast.search as usize)
            .map_while(|at| Some((at, &view.queues.entry(at)?.packet)))
    }

    /// The packet of a group that is worth the most; the search ends at one for all of the wanted destinations.
    fn best_offer<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        first: Place,
        wanted: Nodes,
    ) -> Option<(Place, Offer)> {
        let difference = |node: NodeId| self.differences[node.index()].unwrap_or(0);
        let mut best: Option<(Place, Offer)> = None;
        for (at, packet) in self.searched(view, first) {
            let receivers = packet.receivers;
            let nodes = receivers.and(wanted);
            if best.is_none_or(|(_, best)| best.nodes != nodes)
                && let Some(offer) = multicast::offer(receivers, wanted, difference)
                && best.is_none_or(|(_, best)| offer.beats(&best, false))
            {
                best = Some((at, offer));
                if nodes == wanted {
                    break;
                }
            }
        }
        best
    }

    fn choose_by_sums<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        first: Place,
    ) -> Option<Decision> {
        let port = &view.ports[candidate.port];
        let difference = |node: NodeId| {
            let own = Side { depth: self.sums.get(node).copied().unwrap_or(0), hops: view.routes.hops(node) };
            let hops = view.routes.hops_via(port.number, node);
            let there = Side { depth: view.advertised[port.number].sum(node), hops };
            self.config.gradients.difference(own, there).unwrap_or(0)
        };
        let mut best: Option<(Place, Offer)> = None;
        for (at, packet) in self.searched(view, first) {
            if let Some(offer) = multicast::offer_by_sums(packet.receivers, candidate.nodes, difference)
                && best.is_none_or(|(_, best)| offer.beats(&best, true))
            {
                best = Some((at, offer));
            }
        }
        let (place, offer) = best?;
        let action = Action::Packet { class: Class::Normal, place };
        let decision = self.decision(view, candidate, offer.nodes, action);
        if offer.is_downhill {
            Some(decision)
        } else {
            Some(Decision { reason: Reason::Uphill(offer.score), ..decision })
        }
    }

    /// Depths by destination over all groups.
    fn add_up<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        self.sums.clear();
        for at in view.queues.active() {
            let bin = view.queues.bin(*at);
            if matches!(bin.key, Key::Group(_)) {
                for (node, destination) in bin.destinations.iter() {
                    *self.sums.get_or(node, || 0) += depth(destination, false);
                }
            }
        }
    }

    /// The packet's other receivers that may go along, so that it need not part: not far uphill, and best served by this neighbour.
    fn opportunity<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        place: Place,
        sent: Nodes,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> Nodes {
        let Some(entry) = view.queues.entry(place) else { return Nodes::EMPTY };
        let bin = view.queues.bin(candidate.bin);
        let toward = |port: &Port, node: NodeId| {
            let own = depth(bin.destinations.get(node)?, false);
            let theirs = view.advertised[port.number].bin(bin.key).of(node, false);
            let (own, there) = sides(view.routes, port, node, own, theirs);
            self.config.gradients.difference(own, there)
        };
        let goes_along = |node: &NodeId| {
            let Some(here) = toward(&view.ports[candidate.port], *node) else { return false };
            here >= -(self.config.multicast.opportunism.get() as i64)
                && !view.ports.iter().any(|port| toward(port, *node).is_some_and(|other| other > here))
        };
        entry.packet.receivers.minus(sent).iter().filter(goes_along).collect()
    }
}

/// Both sides of a gradient.
fn sides(routes: &Routes, port: &Port, node: NodeId, own: u64, theirs: u64) -> (Side, Side) {
    // At the destination itself nothing waits.
    let there = if port.node == node { 0 } else { theirs };
    let own = Side { depth: own, hops: routes.hops(node) };
    (own, Side { depth: there, hops: routes.hops_via(port.number, node) })
}

/// The nodes of a set to which a neighbour is closer than this node.
fn closer(routes: &Routes, port: &Port, nodes: Nodes) -> Nodes {
    nodes.iter().filter(|node| is_closer(routes.hops(*node), routes.hops_via(port.number, *node))).collect()
}

#[cfg(test)]
mod tests;
