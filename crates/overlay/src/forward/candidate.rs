//! What a bin could do toward a neighbour in a pass of the forwarder: send packets, or let zombies leave.

use crate::nodes::Nodes;
use crate::queue::{BinAt, Class, Destination};
use std::cmp::Reverse;

/// A pass over all bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Sensitive classes by their depths.
    Sensitive,
    /// The other classes, by all depths.
    All,
}

impl Pass {
    /// Whether it is the pass of sensitive classes.
    pub fn is_sensitive(self) -> bool {
        self == Pass::Sensitive
    }
    /// Bytes of packets that it may send.
    pub(super) fn packets<S>(self, destination: &Destination<S>) -> u64 {
        match self {
            Pass::Sensitive => destination.bytes(Class::Control) + destination.bytes(Class::LowLatency),
            Pass::All => destination.bytes(Class::Normal),
        }
    }
    /// Bytes of zombies that it may let go.
    pub(super) fn zombies<S>(self, destination: &Destination<S>) -> u64 {
        let classes = if self.is_sensitive() { Class::SENSITIVE_ZOMBIES } else { Class::NORMAL_ZOMBIES };
        classes.iter().map(|class| destination.bytes(*class)).sum()
    }
}

/// Packets or zombies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Packets.
    Packets,
    /// Zombies.
    Zombies,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) kind: Kind,
    /// The place of the neighbour in the view.
    pub(super) port: usize,
    pub(super) bin: BinAt,
    pub(super) is_sensitive: bool,
    /// The destinations that go downhill.
    pub(super) nodes: Nodes,
    /// The sum of their differences.
    pub(super) weight: i64,
    /// Of zombies: whether they leave in place of packets, which they outweigh.
    pub(super) outweighs: bool,
}

impl Candidate {
    pub(super) fn new(kind: Kind, port: usize, bin: BinAt, pass: Pass) -> Candidate {
        Candidate {
            kind,
            port,
            bin,
            is_sensitive: pass.is_sensitive(),
            nodes: Nodes::EMPTY,
            weight: 0,
            outweighs: false,
        }
    }

    /// The largest weight first; then packets before zombies, and by number, so that the order is total.
    pub(super) fn order(&self) -> (Reverse<i64>, Kind, BinAt, usize) {
        (Reverse(self.weight), self.kind, self.bin, self.port)
    }
}
