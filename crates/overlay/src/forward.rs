//! The forwarder: which packet goes to which neighbour now, or which zombies leave.
//!
//! Source: digest A 6.4 (procedure), A 6.5 (multicast), A 6.6 and G 2.2 (zombies). Sensitive traffic by its own depths comes first, then all
//! traffic by all depths; within a pass the largest gradient that has something to send wins. Differences from the study:
//!
//! - Zombies take no room of a link. They leave when their gradient is the largest, in idle time or in the turn of their own bin's packets,
//!   which go all the same and leave zombies behind. The study sends them, so that packets of other bins wait for their turn; here too.
//!   Otherwise packets would take detours against the prices, over links that are idle for a moment though they are dear.
//! - A critical packet goes to a neighbour that it has not visited, if the mean delay lets it arrive. The study sends it back.
//! - A group's packets have deadlines too: each receiver is judged by its own route. The study has none.
//! - A packet for one node goes to a node that it has visited only if that one is closer to the destination. The study judges sensitive
//!   packets alone; but neighbours know each other's depths only by their last messages, and would pass packets round. A group's packets
//!   may return: where receivers part, a way back over a free link makes up for a wrong turn (measured: 0.73 of the rate without).

mod candidate;
mod index;
mod sides;
mod total;
mod urgent;

pub use candidate::{Kind, Pass};

use crate::advertised::{Advertised, BinDepths};
use crate::gradient::{Gradients, is_closer};
use crate::linkstate::Routes;
use crate::multicast::{self, Forwarding, Offer};
use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::{Body, Key, Packet};
use crate::queue::{BinAt, Class, Destination, Queues, Slot};
use candidate::Candidate;
use index::Index;
use sides::{Here, Slope, There};
use std::cmp::Reverse;
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
    /// Whether the link has time for zombies: it would have sent all that it was given.
    pub drains: bool,
    /// Whether zombies that outweigh packets of their bin leave without that time.
    pub yields: bool,
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
        place: Slot,
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
    index: Index,
    candidates: Vec<Candidate>,
    /// Zombies that wait for a link, by its place and their bin; the heaviest first.
    turns: Vec<(usize, BinAt)>,
    /// A bit for each link whose zombies wait until it has time.
    waits: u128,
    /// Both sides of the bin in question, where they are not kept.
    sides: (Vec<Here>, Vec<There>),
    /// Differences toward the neighbour in question, by destination.
    differences: PerNode<i64>,
    /// Depths by destination over all groups, for the approximation.
    sums: PerNode<u64>,
}

impl Forwarder {
    /// A forwarder.
    pub fn new(config: Config) -> Forwarder {
        Forwarder {
            config,
            index: Index::default(),
            candidates: Vec::new(),
            turns: Vec::new(),
            waits: 0,
            sides: Default::default(),
            differences: PerNode::default(),
            sums: PerNode::default(),
        }
    }

    /// The next thing to do; `None` if nothing can go. `depth` gives the depth that gradients use; it depends on the destination alone.
    /// What the queues say has changed is seen then ([`Queues::settle`]).
    pub fn decide<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        depth: impl Fn(&Destination<S>, bool) -> u64,
    ) -> Option<Decision> {
        self.waits = 0;
        if self.is_indexed() {
            self.index.refresh(view, &self.config, &depth);
        } else {
            self.add_up(view, &depth);
        }
        if view.queues.has_sensitive() {
            let urgent = critical(view).or_else(|| self.pass(view, Pass::Sensitive, &depth));
            if urgent.is_some() {
                return urgent;
            }
        }
        if !self.is_indexed() {
            return self.pass(view, Pass::All, &depth);
        }
        let first = self.index.first(view, &self.config, &mut self.waits)?;
        self.attempt(view, first, Pass::All, &depth).or_else(|| self.pass(view, Pass::All, &depth))
    }

    /// Whether the last decision left zombies that go over a link when it has time.
    pub fn waits_for(&self, port: usize) -> bool {
        self.waits >> port & 1 == 1
    }

    /// Whether all gradients depend on their own bin alone.
    fn is_indexed(&self) -> bool {
        self.config.multicast.forwarding != Forwarding::Total
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
        let pass = if sensitive { Pass::Sensitive } else { Pass::All };
        let (gradients, (here, there)) = (&self.config.gradients, &mut self.sides);
        for bin in bins.iter().map(|at| view.queues.bin(*at)) {
            here.clear();
            here.extend(sides::here(view, gradients, bin, pass, &depth));
            for port in view.ports {
                there.clear();
                there.extend(sides::there(view, gradients, port, (bin.key, bin.destinations.nodes()), pass));
                let differences = sides::downhill(here, there);
                let asked = differences.filter(|(node, ..)| only.is_none_or(|only| only == *node));
                largest = largest.max(asked.map(|(.., difference)| difference).sum());
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
        if self.is_indexed() && pass == Pass::All {
            self.index.all(view, &self.config, &mut self.candidates);
        } else {
            for port in (0..view.ports.len()).filter(|port| view.ports[*port].room > 0) {
                for at in view.queues.active() {
                    self.consider(view, port, *at, pass, depth);
                }
            }
        }
        self.candidates.sort_unstable_by_key(Candidate::order);
        self.turns.clear();
        for index in 0..self.candidates.len() {
            let candidate = self.candidates[index];
            if candidate.kind == Kind::Packets && self.is_turn_of_another(candidate) {
                continue;
            }
            let decision = self.attempt(view, candidate, pass, depth);
            if decision.is_some() {
                return decision;
            }
            if candidate.kind == Kind::Zombies && !pass.is_sensitive() {
                self.turns.push((candidate.port, candidate.bin));
            }
        }
        None
    }

    /// Whether heavier zombies of another bin wait for the candidate's link.
    fn is_turn_of_another(&self, candidate: Candidate) -> bool {
        let turn = self.turns.iter().find(|(port, _)| *port == candidate.port);
        turn.is_some_and(|(_, bin)| *bin != candidate.bin)
    }

    /// What a candidate does, if it can.
    fn attempt<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> Option<Decision> {
        match candidate.kind {
            Kind::Zombies if !view.ports[candidate.port].drains && !candidate.outweighs => {
                self.waits |= 1 << view.ports[candidate.port].number;
                None
            }
            Kind::Zombies => {
                let action = Action::Zombies { sensitive: pass.is_sensitive() };
                Some(self.decision(view, candidate, candidate.nodes, action))
            }
            Kind::Packets => self.choose(view, candidate, pass, depth),
        }
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

    /// Adds what a bin could do toward a neighbour to the candidates.
    fn consider<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        index: usize,
        at: BinAt,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let (port, bin) = (&view.ports[index], view.queues.bin(at));
        if pass.is_sensitive() && !bin.has_sensitive() {
            return;
        }
        if matches!(bin.key, Key::Group(_)) && !self.is_indexed() {
            return self.consider_total(view, index, at, pass, depth);
        }
        let (gradients, (here, there)) = (&self.config.gradients, &mut self.sides);
        here.clear();
        here.extend(sides::here(view, gradients, bin, pass, depth));
        there.clear();
        there.extend(sides::there(view, gradients, port, (bin.key, bin.destinations.nodes()), pass));
        let slope = Slope::of(here, there, bin.key, port, self.config.zombies_first);
        for kind in [Kind::Packets, Kind::Zombies] {
            let weight = slope.weight(kind);
            if weight > 0 {
                let nodes = sides::nodes(here, there, kind);
                self.candidates.push(Candidate { nodes, weight, ..Candidate::new(kind, index, at, pass) });
            }
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
                let (place, offer) = self.best_offer(view, candidate)?;
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
        first: Slot,
        nodes: Nodes,
    ) -> Option<Slot> {
        let is_allowed = |packet: &Packet<B>| {
            !packet.visited.has(port.node) || !closer(view.routes, port, nodes).is_empty()
        };
        self.searched(view, first).find(|(_, packet)| is_allowed(packet)).map(|(at, _)| at)
    }

    /// The packets that a search looks at: from this place on, in their order, as many as the configuration says.
    fn searched<'a, B: Body, S: Default>(
        &self,
        view: &'a View<'_, B, S>,
        first: Slot,
    ) -> impl Iterator<Item = (Slot, &'a Packet<B>)> {
        std::iter::successors(Some(first), |&at| view.queues.after(at))
            .take(self.config.multicast.search as usize)
            .map_while(|at| Some((at, &view.queues.entry(at)?.packet)))
    }

    /// The packet of a group that is worth the most, among the oldest for each set of receivers. Of equal ones one that need not part goes
    /// first, since a packet that leaves over two links takes room twice; then the oldest.
    fn best_offer<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        candidate: Candidate,
    ) -> Option<(Slot, Offer)> {
        let Candidate { nodes: wanted, weight: score, .. } = candidate;
        let sets = || view.queues.bin(candidate.bin).sets();
        let rank =
            |(place, offer): &(Slot, Offer)| (offer.score, offer.is_whole, Reverse(view.queues.age(*place)));
        // Each difference is above 0, so nothing is worth as much as a packet for all that is wanted.
        let full =
            sets().filter(|(receivers, _)| wanted.minus(*receivers).is_empty()).map(|(receivers, place)| {
                (place, Offer { nodes: wanted, score, is_whole: wanted == receivers, is_downhill: true })
            });
        if let Some(best) = full.max_by_key(rank) {
            return Some(best);
        }
        self.differences.clear();
        for (node, difference) in self.index.downhill(view.ports[candidate.port].number, candidate.bin) {
            self.differences.set(node, difference);
        }
        let difference = |node: NodeId| self.differences.get(node).copied().unwrap_or(0);
        let offers = sets()
            .filter_map(|(receivers, place)| Some((place, multicast::offer(receivers, wanted, difference)?)));
        offers.max_by_key(rank)
    }

    /// The packet's other receivers that may go along, so that it need not part: not far uphill, and best served by this neighbour.
    fn opportunity<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        place: Slot,
        sent: Nodes,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> Nodes {
        let Some(entry) = view.queues.entry(place) else { return Nodes::EMPTY };
        let others = entry.packet.receivers.minus(sent);
        if others.is_empty() {
            return Nodes::EMPTY;
        }
        let bin = view.queues.bin(candidate.bin);
        let told = |port: &Port| view.advertised[port.number].bin(bin.key);
        let toward = |port: &Port, told: &BinDepths<'_>, node: NodeId| {
            let own = depth(bin.destinations.get(node)?, false);
            let there = sides::their_side(view.routes, port, node, told.of(node, false));
            self.config.gradients.difference(sides::own_side(view.routes, node, own), there)
        };
        let port = &view.ports[candidate.port];
        let (here, least) = (told(port), -(self.config.multicast.opportunism.get() as i64));
        let mut along: Nodes =
            others.iter().filter(|node| toward(port, &here, *node) >= Some(least)).collect();
        for other in view.ports.iter().filter(|other| other.number != port.number) {
            if along.is_empty() {
                break;
            }
            let there = told(other);
            let is_better = |node: &NodeId| toward(other, &there, *node) > toward(port, &here, *node);
            along = along.minus(along.iter().filter(is_better).collect());
        }
        along
    }
}

/// The nodes of a set to which a neighbour is closer than this node.
fn closer(routes: &Routes, port: &Port, nodes: Nodes) -> Nodes {
    nodes.iter().filter(|node| is_closer(routes.hops(*node), routes.hops_via(port.number, *node))).collect()
}

#[cfg(test)]
mod tests;
