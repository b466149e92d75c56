//! The gradient of every bin toward every neighbour, kept until something that it depends on changes: the bin's depths, what the neighbour
//! has advertised, or the ways. A decision then looks for the largest number instead of computing all of them.

mod peaks;

use super::candidate::{Candidate, Kind, Pass};
use super::sides::{self, Here, Slope, There};
use super::{Config, Port, View};
use crate::nodes::{NodeId, Nodes};
use crate::packet::Body;
use crate::queue::{BinAt, Destination};
use peaks::Peaks;
use std::cmp::Reverse;

/// A neighbour's side of a bin.
#[derive(Debug, Default)]
struct Told {
    /// The destinations that the bin had when it was computed.
    nodes: Nodes,
    is_current: bool,
    sides: Vec<There>,
}

/// Toward one neighbour, by bin. A weight of 0 means that nothing goes; weights stand apart from the sets, so that a search is short.
#[derive(Debug, Default)]
struct Toward {
    /// The versions of the neighbour's depths and of the ways from which all of it was computed.
    from: Option<(u64, u64)>,
    packets: Peaks,
    zombies: Peaks,
    sets: Vec<(Nodes, Nodes)>,
    told: Vec<Told>,
    /// Bins that have changed while the link had no room, when nothing asks for their gradients.
    stale: Vec<BinAt>,
    is_stale: Vec<bool>,
}

impl Toward {
    fn note(&mut self, at: BinAt) {
        if self.is_stale.len() <= at.index() {
            self.is_stale.resize(at.index() + 1, false);
        }
        if !std::mem::replace(&mut self.is_stale[at.index()], true) {
            self.stale.push(at);
        }
    }

    /// Computes the gradient of a bin from this node's side of it.
    fn compute<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        port: &Port,
        at: BinAt,
        here: &[Here],
    ) {
        let (bin, index) = (view.queues.bin(at), at.index());
        if self.told.len() <= index {
            self.told.resize_with(index + 1, Told::default);
        }
        let told = &mut self.told[index];
        let nodes = bin.destinations.nodes();
        if !told.is_current || told.nodes != nodes {
            sides::there(view, &config.gradients, port, bin, Pass::All, &mut told.sides);
            (told.nodes, told.is_current) = (nodes, true);
        }
        let slope = Slope::of(here, &told.sides, bin.key, port, config.zombies_first);
        self.set(index, slope);
    }

    fn set(&mut self, bin: usize, slope: Slope) {
        if self.sets.len() <= bin {
            self.sets.resize(bin + 1, (Nodes::EMPTY, Nodes::EMPTY));
        }
        self.packets.set(bin, slope.packets.1);
        self.zombies.set(bin, slope.zombies.1);
        self.sets[bin] = (slope.packets.0, slope.zombies.0);
    }

    fn candidate(&self, kind: Kind, port: usize, bin: usize) -> Candidate {
        let (packets, zombies) = self.sets[bin];
        let (nodes, weight) = match kind {
            Kind::Packets => (packets, self.packets.get(bin)),
            Kind::Zombies => (zombies, self.zombies.get(bin)),
        };
        Candidate { nodes, weight, ..Candidate::new(kind, port, BinAt::of(bin), Pass::All) }
    }
}

/// All gradients of a node.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// This node's side of each bin.
    here: Vec<Vec<Here>>,
    /// The version of the ways from which it was computed.
    ways: u64,
    towards: Vec<Toward>,
}

impl Index {
    /// Computes anew what has changed toward neighbours whose links have room. A neighbour that is not there now is forgotten.
    pub(super) fn refresh<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        if self.towards.len() < view.advertised.len() {
            self.towards.resize_with(view.advertised.len(), Toward::default);
        }
        self.refresh_here(view, config, depth);
        let Index { here, towards, .. } = self;
        let mut next = 0;
        for (number, toward) in towards.iter_mut().enumerate() {
            // The view has its ports by their numbers.
            let Some(port) = view.ports.get(next).filter(|port| port.number == number) else {
                toward.from = None;
                continue;
            };
            next += 1;
            view.queues.changed().iter().for_each(|at| toward.note(*at));
            if port.room == 0 {
                continue;
            }
            let advertised = &view.advertised[number];
            let (version, ways) = (advertised.version(), view.routes.version());
            let before = toward.from.replace((version, ways)).filter(|(_, before)| *before == ways);
            let range = before.and_then(|(before, _)| advertised.changed_since(before));
            if before.is_none_or(|(before, _)| before != version) && range.is_none() {
                toward.packets.clear();
                toward.zombies.clear();
                toward.told.iter_mut().for_each(|told| told.is_current = false);
                for &at in view.queues.active() {
                    toward.compute(view, config, port, at, &here[at.index()]);
                }
            } else if let Some(range) = range {
                // Depths that the neighbour has told are of bins in a range of names.
                let is_told = |at: BinAt| range.has(view.queues.bin(at).key);
                for (index, told) in toward.told.iter_mut().enumerate() {
                    told.is_current &= !is_told(BinAt::of(index));
                }
                for &at in view.queues.active().iter().filter(|at| is_told(**at)) {
                    toward.compute(view, config, port, at, &here[at.index()]);
                }
            }
            while let Some(at) = toward.stale.pop() {
                toward.is_stale[at.index()] = false;
                toward.compute(view, config, port, at, &here[at.index()]);
            }
        }
    }

    /// Computes this node's side of what has changed.
    fn refresh_here<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let ways = view.routes.version();
        let is_all = std::mem::replace(&mut self.ways, ways) != ways;
        let others = if is_all { view.queues.active() } else { &[] };
        for at in view.queues.changed().iter().chain(others) {
            if self.here.len() <= at.index() {
                self.here.resize_with(at.index() + 1, Vec::new);
            }
            let (bin, into) = (view.queues.bin(*at), &mut self.here[at.index()]);
            sides::here(view, &config.gradients, bin, Pass::All, depth, into);
        }
    }

    /// The differences of a bin that go downhill toward a neighbour.
    pub(super) fn downhill(&self, number: usize, at: BinAt) -> impl Iterator<Item = (NodeId, i64)> {
        let there = &self.towards[number].told[at.index()].sides;
        sides::downhill(&self.here[at.index()], there).map(|(node, _, difference)| (node, difference))
    }

    /// The candidate that comes first. Links that have no time for zombies, though some would go, are added to `waits`.
    pub(super) fn first<B, S>(&self, view: &View<'_, B, S>, waits: &mut u128) -> Option<Candidate> {
        let mut best: Option<(i64, Reverse<Kind>, Reverse<BinAt>, usize)> = None;
        let mut take = |kind, place, of: Option<(usize, i64)>| {
            let Some((bin, weight)) = of else { return };
            let key = (weight, Reverse(kind), Reverse(BinAt::of(bin)));
            // Of equal ones the port that comes first wins.
            if best.is_none_or(|(weight, kind, bin, _)| key > (weight, kind, bin)) {
                best = Some((key.0, key.1, key.2, place));
            }
        };
        for (place, port) in view.ports.iter().enumerate().filter(|(_, port)| port.room > 0) {
            let toward = &self.towards[port.number];
            let (packets, zombies) = (toward.packets.largest(), toward.zombies.largest());
            let is_outweighed = packets.zip(zombies).is_some_and(|(packets, zombies)| packets.1 < zombies.1);
            // The turn is that of the largest gradient. Packets of its own bin go in it, those of other bins wait.
            let is_its_turn = !is_outweighed || packets.map(|of| of.0) == zombies.map(|of| of.0);
            if is_its_turn {
                take(Kind::Packets, place, packets);
            }
            let Some(zombies) = zombies else { continue };
            if port.drains || port.yields && is_outweighed && is_its_turn {
                take(Kind::Zombies, place, Some(zombies));
            } else {
                *waits |= 1 << port.number;
            }
        }
        let (_, Reverse(kind), Reverse(bin), place) = best?;
        let candidate = self.towards[view.ports[place].number].candidate(kind, place, bin.index());
        Some(Candidate { outweighs: kind == Kind::Zombies, ..candidate })
    }

    /// Adds all candidates.
    pub(super) fn all<B, S>(&self, view: &View<'_, B, S>, into: &mut Vec<Candidate>) {
        for (place, port) in view.ports.iter().enumerate().filter(|(_, port)| port.room > 0) {
            let toward = &self.towards[port.number];
            for (kind, weights) in [(Kind::Packets, &toward.packets), (Kind::Zombies, &toward.zombies)] {
                into.extend(weights.above().map(|bin| toward.candidate(kind, place, bin)));
            }
        }
    }
}
