//! A packet as the overlay carries it: its flow's name, where it goes, until when, where it has been, and its body.
//!
//! Source: digest A 1.1 (bins, groups, destination vector), A 2.2 (packet id, history, latency). A body is whatever the driver
//! carries: a pooled packet of the simulator or a real frame.

use crate::nodes::{NodeId, Nodes};
use std::fmt::Debug;
use weir_base::{Span, Time};

/// A multicast group, as its IPv4 address names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Where a packet goes, which names its bin: a node or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// One node.
    Node(NodeId),
    /// The receivers of a group.
    Group(GroupId),
}

/// A flow's name: the node at which it enters, a byte of that node's boot epoch, and a number. So a number that a node uses again
/// after a reboot is another flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The node at which the flow enters.
    pub source: NodeId,
    /// The lowest byte of that node's boot epoch.
    pub generation: u8,
    /// The flow's number there.
    pub number: u16,
}

impl Flow {
    /// Its fields in one number, in the order in which flows are.
    pub fn bits(self) -> u32 {
        u32::from_be_bytes([
            self.source.number(),
            self.generation,
            (self.number >> 8) as u8,
            self.number as u8,
        ])
    }
}

/// What a node needs of a packet's body.
pub trait Body: Debug {
    /// Its length in bytes, without the overlay's header. Queues count it.
    fn bytes(&self) -> u32;
    /// A header of so many bytes before it has been read, and another one will take its place.
    fn behind(&mut self, header: usize);
    /// It has waited in a node's queue for so long.
    fn waited(&mut self, time: Span) {
        let _ = time;
    }
    /// A copy, for a multicast packet whose receivers part; it may use the space of a body that nothing holds.
    fn duplicate(&self, spare: Option<Self>) -> Self
    where
        Self: Sized;
}

/// A packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet<B> {
    /// Its flow.
    pub flow: Flow,
    /// Its number within the flow, 24 bits.
    pub sequence: u32,
    /// Its bin.
    pub to: Key,
    /// The receivers that it is still for: the bin's node, or some of the group.
    pub receivers: Nodes,
    /// By this node's clock, when it is late; `None` if it never is.
    pub due: Option<Time>,
    /// Whether its flow is sensitive to latency. A packet with a due time always is.
    pub is_sensitive: bool,
    /// The nodes that it has visited.
    pub visited: Nodes,
    /// The links that it has passed.
    pub hops: u8,
    /// The ECN field of the inner IP header, 2 bits.
    pub ecn: u8,
    /// The checksum of the inner UDP header.
    pub checksum: u16,
    /// What it carries.
    pub body: B,
}

impl<B: Body> Packet<B> {
    /// A copy for some of its receivers.
    pub(crate) fn copy_for(&self, receivers: Nodes, spare: Option<B>) -> Packet<B> {
        let Packet { flow, sequence, to, due, is_sensitive, visited, hops, ecn, checksum, .. } = *self;
        let body = self.body.duplicate(spare);
        Packet { flow, sequence, to, receivers, due, is_sensitive, visited, hops, ecn, checksum, body }
    }
}
