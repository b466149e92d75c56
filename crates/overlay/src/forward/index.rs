//! The gradient of every bin toward every neighbour, kept until something that it depends on changes: the bin's depths, what the neighbour
//! has advertised, or the ways. A decision then looks for the largest number instead of computing all of them.

mod peaks;

use super::candidate::{Candidate, Kind, Pass};
use super::{Port, View};
use crate::nodes::Nodes;
use crate::queue::BinAt;
use peaks::Peaks;
use std::cmp::Reverse;

/// What a bin could do toward a neighbour: the destinations that go downhill, and the sum of their differences, for packets and for
/// zombies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slope {
    pub(super) packets: (Nodes, i64),
    pub(super) zombies: (Nodes, i64),
}

/// Toward one neighbour, by bin. A weight of 0 means that nothing goes; weights stand apart from the sets, so that a search is short.
#[derive(Debug, Default)]
struct Toward {
    /// The versions of the neighbour's depths and of the ways from which all of it was computed.
    from: Option<(u64, u64)>,
    packets: Peaks,
    zombies: Peaks,
    sets: Vec<(Nodes, Nodes)>,
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
pub(super) struct Index(Vec<Toward>);

impl Index {
    /// Computes anew what has changed toward neighbours whose links have room. A neighbour that is not there now is forgotten.
    pub(super) fn refresh<B: crate::packet::Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        mut slope: impl FnMut(&Port, BinAt) -> Slope,
    ) {
        if self.0.len() < view.advertised.len() {
            self.0.resize_with(view.advertised.len(), Toward::default);
        }
        let mut next = 0;
        for (number, toward) in self.0.iter_mut().enumerate() {
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
            let told = before.and_then(|(before, _)| advertised.changed_since(before));
            if before.is_none_or(|(before, _)| before != version) && told.is_none() {
                toward.packets.clear();
                toward.zombies.clear();
                view.queues.active().iter().for_each(|at| toward.set(at.index(), slope(port, *at)));
            } else if let Some(range) = told {
                // Depths that the neighbour has told are of bins in a range of names.
                let active = view.queues.active().iter();
                let told = active.filter(|at| range.has(view.queues.bin(**at).key));
                told.for_each(|at| toward.set(at.index(), slope(port, *at)));
            }
            while let Some(at) = toward.stale.pop() {
                toward.is_stale[at.index()] = false;
                toward.set(at.index(), slope(port, at));
            }
        }
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
            let toward = &self.0[port.number];
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
        let candidate = self.0[view.ports[place].number].candidate(kind, place, bin.index());
        Some(Candidate { outweighs: kind == Kind::Zombies, ..candidate })
    }

    /// Adds all candidates.
    pub(super) fn all<B, S>(&self, view: &View<'_, B, S>, into: &mut Vec<Candidate>) {
        for (place, port) in view.ports.iter().enumerate().filter(|(_, port)| port.room > 0) {
            let toward = &self.0[port.number];
            for (kind, weights) in [(Kind::Packets, &toward.packets), (Kind::Zombies, &toward.zombies)] {
                into.extend(weights.above().map(|bin| toward.candidate(kind, place, bin)));
            }
        }
    }
}
