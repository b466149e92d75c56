//! The gradient of every bin toward every neighbour, kept until something that it depends on changes: the bin's depths, what the neighbour
//! has advertised, or the ways. A decision then looks for the largest number instead of computing all of them.

mod peaks;

use super::candidate::{Candidate, Kind, Pass};
use super::sides::{self, Here, Slope, There};
use super::{Config, Port, View};
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, Key};
use crate::queue::{BinAt, Destination};
use peaks::Peaks;
use std::cmp::Reverse;

/// A bin as its gradients see it: its name and its destinations, and where these stand on both sides, from the first on.
#[derive(Debug, Clone, Copy)]
struct Row {
    key: Key,
    nodes: Nodes,
    first: usize,
    count: usize,
}

/// Of a bin whose neighbour's side is not known.
const UNKNOWN: usize = usize::MAX;

/// Toward one neighbour, by bin. A weight of 0 means that nothing goes.
#[derive(Debug, Default)]
struct Toward {
    /// The versions of the neighbour's depths and of the ways from which all of it was computed.
    from: Option<(u64, u64)>,
    /// The last change of bins that it counts. While the link has no room, nothing asks for its gradients.
    seen: u64,
    packets: Peaks,
    zombies: Peaks,
    /// The neighbour's side of all bins, and where each bin's begins if it is what the neighbour has told.
    sides: Vec<There>,
    firsts: Vec<usize>,
}

impl Toward {
    /// Computes the gradient of a bin from this node's side of all of them.
    fn compute<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        port: &Port,
        at: BinAt,
        here: &Sides,
    ) {
        let (index, row) = (at.index(), here.rows[at.index()]);
        if self.firsts.len() <= index {
            self.firsts.resize(index + 1, UNKNOWN);
        }
        if self.firsts[index] != row.first {
            if self.sides.len() < here.all.len() {
                self.sides.resize(here.all.len(), There::default());
            }
            let there = sides::there(view, &config.gradients, port, (row.key, row.nodes), Pass::All);
            self.sides[row.first..].iter_mut().zip(there).for_each(|(place, side)| *place = side);
            self.firsts[index] = row.first;
        }
        let there = &self.sides[row.range()];
        let slope = Slope::of(&here.all[row.range()], there, row.key, port, config.zombies_first);
        self.packets.set(index, slope.packets);
        self.zombies.set(index, slope.zombies);
    }
}

impl Row {
    fn range(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// This node's side of all bins.
#[derive(Debug, Default)]
struct Sides {
    /// By bin.
    rows: Vec<Row>,
    all: Vec<Here>,
    /// How many of them are of a bin's present row.
    used: usize,
    /// The version of the ways from which it was computed.
    ways: u64,
}

impl Sides {
    /// Computes what has changed. Returns whether rows have moved, beside those of bins that have changed.
    fn refresh<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) -> bool {
        let ways = view.routes.version();
        let is_all = std::mem::replace(&mut self.ways, ways) != ways;
        let others = if is_all { view.queues.active() } else { &[] };
        for at in view.queues.changed().iter().chain(others) {
            let bin = view.queues.bin(*at);
            let row = self.row(*at, bin.key, bin.destinations.nodes());
            let here = sides::here(view, &config.gradients, bin, Pass::All, depth);
            self.all[row.range()].iter_mut().zip(here).for_each(|(place, side)| *place = side);
        }
        self.close_up()
    }

    /// Moves the rows together where half of the space is that of former ones. Returns whether it did.
    fn close_up(&mut self) -> bool {
        if self.all.len() <= 2 * self.used {
            return false;
        }
        let all = std::mem::replace(&mut self.all, Vec::with_capacity(self.used));
        for row in &mut self.rows {
            let from = row.range();
            row.first = self.all.len();
            self.all.extend_from_slice(&all[from]);
        }
        true
    }

    /// The row of a bin with these destinations. A bin never loses one; with a new one its row moves to the end.
    fn row(&mut self, at: BinAt, key: Key, nodes: Nodes) -> Row {
        let first = self.all.len();
        if self.rows.len() <= at.index() {
            self.rows.resize(at.index() + 1, Row { key, nodes: Nodes::EMPTY, first, count: 0 });
        }
        let row = &mut self.rows[at.index()];
        if row.nodes != nodes {
            let count = nodes.len();
            self.used += count - row.count;
            *row = Row { key, nodes, first, count };
            self.all.resize(first + count, Here::NOTHING);
        }
        *row
    }
}

/// The bins that have changed, in the order of their last changes.
#[derive(Debug, Default)]
struct Changes {
    /// Numbers of changes, and the bins; of a bin that has changed again the earlier ones say nothing.
    log: Vec<(u64, BinAt)>,
    /// The number of each bin's last change.
    last: Vec<u64>,
    count: u64,
}

impl Changes {
    fn note(&mut self, at: BinAt) {
        if self.last.len() <= at.index() {
            self.last.resize(at.index() + 1, 0);
        }
        self.count += 1;
        self.last[at.index()] = self.count;
        if self.log.len() > 2 * self.last.len() {
            let last = &self.last;
            self.log.retain(|(number, at)| last[at.index()] == *number);
        }
        self.log.push((self.count, at));
    }

    /// The bins that have changed after the change of this number.
    fn after(&self, number: u64) -> impl Iterator<Item = BinAt> {
        let last = &self.last;
        let later = self.log.iter().rev().take_while(move |(change, _)| *change > number);
        later.filter(|(change, at)| last[at.index()] == *change).map(|(_, at)| *at)
    }
}

/// All gradients of a node.
#[derive(Debug, Default)]
pub(super) struct Index {
    here: Sides,
    changes: Changes,
    towards: Vec<Toward>,
}

impl Index {
    /// Computes anew what has changed toward neighbours whose links have room.
    pub(super) fn refresh<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        config: &Config,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        if self.towards.len() < view.advertised.len() {
            self.towards.resize_with(view.advertised.len(), Toward::default);
        }
        let Index { here, changes, towards } = self;
        if here.refresh(view, config, depth) {
            towards.iter_mut().for_each(|toward| *toward = Toward::default());
        }
        view.queues.changed().iter().for_each(|at| changes.note(*at));
        for port in view.ports.iter().filter(|port| port.room > 0) {
            let (toward, advertised) = (&mut towards[port.number], &view.advertised[port.number]);
            let (version, ways) = (advertised.version(), view.routes.version());
            let before = toward.from.replace((version, ways)).filter(|(_, before)| *before == ways);
            let range = before.and_then(|(before, _)| advertised.changed_since(before));
            if before.is_none_or(|(before, _)| before != version) && range.is_none() {
                toward.packets.clear();
                toward.zombies.clear();
                toward.firsts.fill(UNKNOWN);
                for &at in view.queues.active() {
                    toward.compute(view, config, port, at, here);
                }
            } else {
                if let Some(range) = range {
                    // Depths that the neighbour has told are of bins in a range of names.
                    let is_told = |at: usize| range.has(here.rows[at].key);
                    for (_, first) in toward.firsts.iter_mut().enumerate().filter(|(at, _)| is_told(*at)) {
                        *first = UNKNOWN;
                    }
                    for &at in view.queues.active().iter().filter(|at| is_told(at.index())) {
                        toward.compute(view, config, port, at, here);
                    }
                }
                for at in changes.after(toward.seen) {
                    toward.compute(view, config, port, at, here);
                }
            }
            toward.seen = changes.count;
        }
    }

    /// The differences of a bin that go downhill toward a neighbour.
    pub(super) fn downhill(&self, number: usize, at: BinAt) -> impl Iterator<Item = (NodeId, i64)> {
        let range = self.here.rows[at.index()].range();
        let there = &self.towards[number].sides[range.clone()];
        sides::downhill(&self.here.all[range], there).map(|(node, _, difference)| (node, difference))
    }

    /// The candidate that comes first. Links that have no time for zombies, though some would go, are added to `waits`.
    pub(super) fn first<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        config: &Config,
        waits: &mut u128,
    ) -> Option<Candidate> {
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
        let candidate = self.candidate(view, config, kind, place, bin);
        Some(Candidate { outweighs: kind == Kind::Zombies, ..candidate })
    }

    /// Adds all candidates.
    pub(super) fn all<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        config: &Config,
        into: &mut Vec<Candidate>,
    ) {
        for (place, port) in view.ports.iter().enumerate().filter(|(_, port)| port.room > 0) {
            let toward = &self.towards[port.number];
            for (kind, weights) in [(Kind::Packets, &toward.packets), (Kind::Zombies, &toward.zombies)] {
                let bins = weights.above().map(BinAt::of);
                into.extend(bins.map(|at| self.candidate(view, config, kind, place, at)));
            }
        }
    }

    /// What a bin could do toward the neighbour at a place of the view.
    fn candidate<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        config: &Config,
        kind: Kind,
        place: usize,
        at: BinAt,
    ) -> Candidate {
        let port = &view.ports[place];
        let row = self.here.rows[at.index()];
        let there = &self.towards[port.number].sides[row.range()];
        let here = &self.here.all[row.range()];
        let weight = Slope::of(here, there, row.key, port, config.zombies_first).weight(kind);
        Candidate {
            nodes: sides::nodes(here, there, kind),
            weight,
            ..Candidate::new(kind, place, at, Pass::All)
        }
    }
}
