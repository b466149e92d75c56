//! Ways through the network: hops and delays from here and from each neighbour, whose ways do not pass this node.
//!
//! Source: digest A 6.2 (breadth-first hops, dead ends), A 6.8 (Dijkstra; a path's delay is the sum of means and 2.2 times the root of the
//! sum of variances). That cost is not additive, so a node's label is the best of those that were tried; the study has the same rule.
//! A path's queue delays, if they count, are added along the path that the links' delays choose.

use super::database::Database;
use crate::cat::Delay;
use crate::nodes::{NODES, NodeId, Nodes};
use weir_base::{Span, Time};

/// A neighbour that is up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its link's number at this node.
    pub port: usize,
    /// The node.
    pub node: NodeId,
    /// The link's delay, as this node announces it.
    pub delay: Delay,
}

/// The ways over one neighbour.
#[derive(Debug, Clone, Default)]
struct Via {
    hops: Vec<Option<u8>>,
    bound: Vec<Option<Span>>,
    mean: Vec<Option<Span>>,
}

/// The ways of a node.
#[derive(Debug, Default)]
pub struct Routes {
    hops: Vec<Option<u8>>,
    /// By port; empty for a link whose neighbour is down.
    via: Vec<Via>,
    best: Vec<Option<Span>>,
    reachable: Nodes,
    /// In the tree of shortest paths from a root: the node before each.
    parents: Vec<Option<NodeId>>,
    /// Grows with each computation.
    version: u64,
    scratch: Scratch,
}

/// Space for a computation, kept from one to the next.
#[derive(Debug, Default)]
struct Scratch {
    /// For each node its neighbours, with links that both ends name.
    adjacent: Vec<Nodes>,
    /// The nodes through which no way leads.
    drained: Nodes,
    delay: Vec<Option<Delay>>,
    /// The bounds of these delays.
    bound: Vec<Span>,
    before: Vec<Option<NodeId>>,
    queue: Vec<NodeId>,
}

impl Routes {
    /// Hops from here to a node; `None` if there is no way.
    #[inline]
    pub fn hops(&self, to: NodeId) -> Option<u8> {
        self.hops.get(to.index()).copied().flatten()
    }
    /// Hops from the neighbour at a port to a node, without this node; `None` if it is a dead end.
    #[inline]
    pub fn hops_via(&self, port: usize, to: NodeId) -> Option<u8> {
        self.via.get(port)?.hops.get(to.index()).copied().flatten()
    }
    /// A bound of the delay over the neighbour at a port, from here to a node.
    pub fn delay_via(&self, port: usize, to: NodeId) -> Option<Span> {
        self.via.get(port)?.bound.get(to.index()).copied().flatten()
    }
    /// The mean delay over the neighbour at a port, from here to a node.
    pub fn mean_via(&self, port: usize, to: NodeId) -> Option<Span> {
        self.via.get(port)?.mean.get(to.index()).copied().flatten()
    }
    /// The least bound of the delay to a node.
    pub fn best_delay(&self, to: NodeId) -> Option<Span> {
        self.best.get(to.index()).copied().flatten()
    }
    /// A number that is another one after each computation.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// The nodes that can be reached, this one included.
    pub fn reachable(&self) -> Nodes {
        self.reachable
    }

    /// The node toward the root of the tree.
    pub fn tree_parent(&self, node: NodeId) -> Option<NodeId> {
        self.parents.get(node.index()).copied().flatten()
    }
    /// The child of a node under which another one is in the tree.
    pub fn tree_child(&self, of: NodeId, below: NodeId) -> Option<NodeId> {
        let mut node = below;
        for _ in 0..NODES {
            let parent = self.tree_parent(node)?;
            if parent == of {
                return Some(node);
            }
            node = parent;
        }
        None
    }
    /// Builds the tree of shortest paths from a root, after [`Routes::compute`]. All nodes with the same database build the same one.
    pub fn build_tree(&mut self, root: NodeId) {
        self.parents.clear();
        self.parents.resize(NODES, None);
        let mut seen = Nodes::of(root);
        self.scratch.queue.clear();
        self.scratch.queue.push(root);
        let mut next = 0;
        while let Some(node) = self.scratch.queue.get(next).copied() {
            next += 1;
            if node != root && self.scratch.drained.has(node) {
                continue;
            }
            for to in self.scratch.adjacent[node.index()].minus(seen).iter() {
                seen = seen.with(to);
                self.parents[to.index()] = Some(node);
                self.scratch.queue.push(to);
            }
        }
    }

    /// Computes all ways anew, for a node with so many ports and these neighbours.
    pub fn compute(
        &mut self,
        own: NodeId,
        ports: usize,
        neighbours: &[Neighbour],
        database: &Database,
        adds_queue_delays: bool,
    ) {
        self.version += 1;
        self.scratch.connect(own, neighbours, database);
        self.scratch.hops_from(own, own, &mut self.hops);
        self.reachable = NodeId::all().filter(|node| self.hops[node.index()].is_some()).collect();
        self.via.resize_with(ports, Via::default);
        self.via.iter_mut().for_each(|via| {
            via.hops.clear();
            via.bound.clear();
            via.mean.clear();
        });
        self.best.clear();
        self.best.resize(NODES, None);
        for neighbour in neighbours {
            let via = &mut self.via[neighbour.port];
            self.scratch.hops_from(neighbour.node, own, &mut via.hops);
            self.scratch.delays_from(neighbour.node, own, database);
            via.bound.resize(NODES, None);
            via.mean.resize(NODES, None);
            for to in NodeId::all() {
                let Some(delay) = self.scratch.delay[to.index()] else { continue };
                let queues = if adds_queue_delays { self.scratch.queueing(to, database) } else { Span::ZERO };
                let bound = neighbour.delay.then(delay).bound() + queues;
                via.bound[to.index()] = Some(bound);
                via.mean[to.index()] = Some(neighbour.delay.then(delay).mean);
                let best = &mut self.best[to.index()];
                *best = Some(best.map_or(bound, |best| best.min(bound)));
            }
        }
    }
}

impl Scratch {
    /// Finds the links that both ends name. This node's own are its neighbours that are up.
    fn connect(&mut self, own: NodeId, neighbours: &[Neighbour], database: &Database) {
        self.adjacent.clear();
        self.adjacent.resize(NODES, Nodes::EMPTY);
        for links in database.all_links().filter(|links| links.origin != own) {
            self.adjacent[links.origin.index()] = links.neighbours.nodes();
        }
        self.drained =
            database.all_links().filter(|links| links.is_drained).map(|links| links.origin).collect();
        let up: Nodes = neighbours.iter().map(|neighbour| neighbour.node).collect();
        for node in NodeId::all() {
            let named = self.adjacent[node.index()];
            let confirmed = named.without(own).iter().filter(|to| self.adjacent[to.index()].has(node));
            let confirmed: Nodes = confirmed.collect();
            let back = if up.has(node) { Nodes::of(own) } else { Nodes::EMPTY };
            self.adjacent[node.index()] = confirmed.or(back);
        }
        self.adjacent[own.index()] = up;
    }

    /// Hops from this node itself, or from a neighbour without passing this node.
    fn hops_from(&mut self, from: NodeId, own: NodeId, hops: &mut Vec<Option<u8>>) {
        hops.clear();
        hops.resize(NODES, None);
        let mut seen = Nodes::of(own).with(from);
        hops[from.index()] = Some(0);
        self.queue.clear();
        self.queue.push(from);
        let mut next = 0;
        while let Some(node) = self.queue.get(next).copied() {
            next += 1;
            if node != own && self.drained.has(node) {
                continue;
            }
            let farther = hops[node.index()].map(|hops| hops + 1);
            for to in self.adjacent[node.index()].minus(seen).iter() {
                seen = seen.with(to);
                hops[to.index()] = farther;
                self.queue.push(to);
            }
        }
    }

    /// Delays from a node to all others, without passing `without`.
    fn delays_from(&mut self, from: NodeId, without: NodeId, database: &Database) {
        self.delay.clear();
        self.delay.resize(NODES, None);
        self.before.clear();
        self.before.resize(NODES, None);
        self.bound.clear();
        self.bound.resize(NODES, Span::ZERO);
        self.delay[from.index()] = Some(Delay::default());
        let (mut done, mut open) = (Nodes::of(without), Nodes::of(from));
        // The nearest of those that have been reached; of equal ones the lowest number.
        while let Some(node) = open.iter().min_by_key(|node| self.bound[node.index()]) {
            (done, open) = (done.with(node), open.without(node));
            let (Some(delay), Some(links)) = (self.delay[node.index()], database.links(node)) else {
                continue;
            };
            if self.drained.has(node) {
                continue;
            }
            for to in self.adjacent[node.index()].minus(done).iter() {
                let Some(link) = links.neighbours.get(to) else { continue };
                let farther = delay.then(link.delay);
                let bound = farther.bound();
                if self.delay[to.index()].is_none() || bound < self.bound[to.index()] {
                    (self.delay[to.index()], self.bound[to.index()]) = (Some(farther), bound);
                    self.before[to.index()] = Some(node);
                    open = open.with(to);
                }
            }
        }
    }

    /// The queue delays for a destination along the path to it.
    fn queueing(&self, to: NodeId, database: &Database) -> Span {
        let mut at = self.before[to.index()];
        let mut sum = Span::ZERO;
        for _ in 0..NODES {
            let Some(node) = at else { break };
            let delay = database.links(node).and_then(|links| links.queue_delays.get(to));
            sum += delay.copied().unwrap_or_default();
            at = self.before[node.index()];
        }
        sum
    }
}

/// Whether a packet with so much time left can still arrive over a path of this bound.
pub fn is_in_time(bound: Option<Span>, due: Option<Time>, now: Time) -> bool {
    match (bound, due) {
        (_, None) => true,
        (Some(bound), Some(due)) => now + bound < due,
        (None, Some(_)) => false,
    }
}

impl Routes {
    /// The ports whose neighbours are up.
    pub fn ports(&self) -> impl Iterator<Item = usize> {
        self.via.iter().enumerate().filter(|(_, via)| !via.hops.is_empty()).map(|(port, _)| port)
    }
    /// The nodes of a set that can be reached over a port.
    pub fn finite(&self, port: usize, of: Nodes) -> Nodes {
        of.iter().filter(|node| self.hops_via(port, *node).is_some()).collect()
    }
}
