//! What a node has counted and what it holds, for the records.

use super::Node;
use crate::cat::Cat;
use crate::context::Inner;
use crate::packet::{Body, Flow, Key};
use crate::queue::Class;

/// Counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets sent to neighbours.
    pub packets: u64,
    /// Bytes of their headers.
    pub header_bytes: u64,
    /// Bytes of their bodies.
    pub body_bytes: u64,
    /// Datagrams of signalling.
    pub signals: u64,
    /// Their bytes.
    pub signal_bytes: u64,
    /// Bytes of zombies that were added, and of those that left.
    pub zombies_added: u64,
    /// Bytes of zombies that left.
    pub zombies_left: u64,
    /// Packets that came and were delivered here.
    pub delivered: u64,
    /// Packets that could no longer be in time.
    pub expired: u64,
    /// Packets that found no room.
    pub overflowed: u64,
    /// Other packets that went no further.
    pub discarded: u64,
    /// Signs of life of a neighbour under another node's name.
    pub strangers: u64,
}

/// Bytes that were sent over a link since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Of packets, with the overlay's header.
    pub data: u64,
    /// Of datagrams of messages.
    pub signals: u64,
    /// Of zombies, which take nothing of the link.
    pub zombies: u64,
}

/// What a bin holds for all of its destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinBytes {
    /// The bin.
    pub key: Key,
    /// Bytes of packets.
    pub real: u64,
    /// Bytes of zombies.
    pub zombies: u64,
    /// Bytes as neighbours are told.
    pub advertised: u64,
}

impl<B: Body, C: Cat> Node<B, C> {
    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// What was sent over a link.
    pub fn sent(&self, port: usize) -> Sent {
        self.ports.get(port).map_or_else(Sent::default, |port| port.sent)
    }
    /// The inner headers of a flow that has sent within the last minute.
    pub fn inner(&self, flow: Flow) -> Option<Inner> {
        self.contexts.inner(flow)
    }
    /// Bytes of each bin at this node, summed over its destinations, for the records.
    pub fn bins(&self) -> impl Iterator<Item = BinBytes> {
        self.queues.by_key().map(move |bin| {
            let mut bytes = BinBytes { key: bin.key, real: 0, zombies: 0, advertised: 0 };
            for (_, one) in bin.destinations.iter() {
                bytes.real += one.real(false);
                bytes.zombies += one.zombies(false);
                bytes.advertised += self.advertised(one, false);
            }
            bytes
        })
    }
    /// Bytes of a class at this node, summed over bins and destinations.
    pub fn class_bytes(&self, class: Class) -> u64 {
        let bins = self.queues.by_key();
        bins.flat_map(|bin| bin.destinations.iter()).map(|(_, one)| one.bytes(class)).sum()
    }
}
