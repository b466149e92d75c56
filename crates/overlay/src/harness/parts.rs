//! Parts of a test network: bodies, receipts, flows, what happens to links and nodes, and short names.

use crate::forward::Reason;
use crate::node::Discard;
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, GroupId, Key};
use crate::utility::log;
use weir_base::{Rate, Span, Time};

/// IP and UDP headers around each datagram.
pub(crate) const OVERHEAD: u64 = 28;

/// A body of a test: its length, and what it has met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    pub(crate) source: usize,
    pub(crate) bytes: u32,
    pub(crate) sent: Time,
    /// The nodes that it was at, by the harness's own account.
    pub(crate) trace: Nodes,
    pub(crate) came_back: bool,
}

impl Body for Load {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn behind(&mut self, _: usize) {}
    fn duplicate(&self, _: Option<Load>) -> Load {
        self.clone()
    }
}

/// A packet at a receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receipt {
    pub(crate) at: Time,
    pub(crate) bytes: u32,
    pub(crate) delay: Span,
    pub(crate) hops: u8,
    pub(crate) came_back: bool,
}

/// Something that happens to the network.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A link's rate, both ways, in kbit/s.
    Rate(u8, u8, u64),
    /// A link's loss, both ways, of packets and of messages.
    Loss(u8, u8, f64),
    /// A node is drained.
    Drain(u8),
    /// A node stops.
    Kill(u8),
    /// It starts again with this epoch.
    Start(u8, u32),
}

/// What links do to packets besides losing them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) damage: f64,
    pub(crate) repeat: f64,
    pub(crate) jitter: Span,
}

/// Packets that are lost with a node that is killed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fates {
    /// They were in its queues. A node that returns has none of them.
    pub(crate) killed: u64,
    /// They came while it was gone.
    pub(crate) unheard: u64,
}

/// A flow of a test.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) from: u8,
    pub(crate) to: Key,
    pub(crate) interested: Option<Nodes>,
    pub(crate) bytes: u32,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) deadline: Option<Span>,
    /// LOG admission; if there is none the source sends at the rate.
    pub(crate) log: Option<log::Config>,
    pub(crate) rate: Rate,
    /// Code point of its inner header.
    pub(crate) dscp: u8,
}

impl Flow {
    pub(crate) fn log(from: u8, to: Key, priority: f64) -> Flow {
        let cap = Rate::from_mbit_per_sec(100);
        Flow {
            from,
            to,
            interested: None,
            bytes: 1024,
            start: at(1000),
            until: Time::NEVER,
            deadline: None,
            log: Some(log::Config { priority, cap, shape: 20.0 }),
            rate: cap,
            dscp: 0,
        }
    }
    pub(crate) fn constant(from: u8, to: Key, kbit: u64, deadline: Option<Span>) -> Flow {
        let rate = Rate::from_bits_per_sec(kbit * 1000);
        Flow { log: None, rate, deadline, ..Flow::log(from, to, 1.0) }
    }
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}
pub(crate) fn id(node: u8) -> NodeId {
    NodeId::new(node).unwrap()
}
pub(crate) fn node(node: u8) -> Key {
    Key::Node(id(node))
}
pub(crate) fn group(group: u32) -> Key {
    Key::Group(GroupId(group))
}
pub(crate) fn set(nodes: &[u8]) -> Nodes {
    nodes.iter().map(|node| id(*node)).collect()
}

pub(crate) fn discard_name(why: Discard) -> &'static str {
    match why {
        Discard::Expired => "expired",
        Discard::Overflow => "overflow",
        Discard::Hops => "hops",
        Discard::Visited => "visited",
        Discard::NoReceiver => "no receiver",
        Discard::NoContext => "no context",
        Discard::Malformed => "malformed",
    }
}

pub(crate) fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Sensitive(_) => "sensitive",
        Reason::Gradient(_) => "gradient",
        Reason::Critical => "critical",
        Reason::Uphill(_) => "uphill",
        Reason::Tree => "tree",
    }
}
