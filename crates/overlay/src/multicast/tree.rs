//! A shared tree over a rendezvous point, as PIM-SM builds it without switching to source trees: the baseline of digest X 4.5 and G 4.6.
//!
//! A packet goes from its source to the rendezvous point on the shortest path, and from there down the tree of shortest paths. Its set of
//! visited nodes has the rendezvous point once it has passed it. Each link has one queue with tail drop; depths play no part.

use crate::linkstate::{Neighbour, Routes};
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, Packet};
use std::collections::VecDeque;

/// A node's place in the tree, and what waits for each of its links.
#[derive(Debug)]
pub struct Tree<B> {
    root: NodeId,
    limit: usize,
    queues: Vec<VecDeque<Packet<B>>>,
}

impl<B: Body> Tree<B> {
    /// A tree with this rendezvous point, with room for so many packets at each link.
    pub fn new(root: NodeId, limit: usize) -> Tree<B> {
        Tree { root, limit, queues: Vec::new() }
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// The first packet for a link.
    pub fn first(&self, port: usize) -> Option<&Packet<B>> {
        self.queues.get(port)?.front()
    }

    /// Takes the first packet for a link.
    pub fn pop(&mut self, port: usize) -> Option<Packet<B>> {
        self.queues.get_mut(port)?.pop_front()
    }

    /// Puts a packet, or its copies, for which `spares` has space, into the queues of the links that it takes from this node. What has no way or no room is given to
    /// `dropped`.
    pub fn enqueue(
        &mut self,
        mut packet: Packet<B>,
        own: NodeId,
        routes: &Routes,
        neighbours: &[Neighbour],
        spares: &mut Vec<B>,
        mut dropped: impl FnMut(Packet<B>),
    ) {
        if own == self.root {
            packet.visited = packet.visited.with(self.root);
        }
        let is_down = packet.visited.has(self.root);
        let next = |receiver: NodeId| {
            if is_down { routes.tree_child(own, receiver) } else { routes.tree_parent(own) }
        };
        for neighbour in neighbours {
            let is_over = |node: &NodeId| next(*node) == Some(neighbour.node);
            let over: Nodes = packet.receivers.iter().filter(is_over).collect();
            if over.is_empty() {
                continue;
            }
            if over == packet.receivers {
                return self.push(neighbour.port, packet, dropped);
            }
            self.push(neighbour.port, packet.copy_for(over, spares.pop()), &mut dropped);
            packet.receivers = packet.receivers.minus(over);
        }
        dropped(packet);
    }

    fn push(&mut self, port: usize, packet: Packet<B>, mut dropped: impl FnMut(Packet<B>)) {
        if self.queues.len() <= port {
            self.queues.resize_with(port + 1, VecDeque::new);
        }
        if self.queues[port].len() < self.limit {
            self.queues[port].push_back(packet);
        } else {
            dropped(packet);
        }
    }
}
