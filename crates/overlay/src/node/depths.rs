//! Depth messages: what a neighbour is told of this node's bins, and when (digest A 2.3, A 6.1).
//!
//! They take 1 % of a link's capacity: the next one waits until the last one and its headers have used their share. Names that do not fit
//! a datagram are told in the next, from where this one ended.

use super::signal::DATAGRAM;
use super::{Node, Output, exact};
use crate::cat::Cat;
use crate::depth;
use crate::message::{Depth, Depths, Message, Range, Stamp};
use crate::multicast::Forwarding;
use crate::nodes::{NodeId, PerNode};
use crate::packet::{Body, GroupId, Key};
use weir_base::{Bytes, Rate, Span, Time};

/// Headers around a datagram, which count in the share of depths (digest A 6.1).
const OVERHEAD: u64 = 74;
/// The least capacity that paces depths (digest A 6.1).
const LEAST_CAPACITY: Rate = Rate::from_bits_per_sec(256_000);
/// Depths that do not change, and those of empty queues, are repeated this often.
const IDLE: Span = Span::from_millis(100);

/// The depth messages to a neighbour.
#[derive(Debug, Default)]
pub(super) struct DepthsOut {
    pub(super) due: Time,
    sequence: u32,
    /// Where the next message goes on.
    pub(super) cursor: Option<Key>,
}

impl<B: Body, C: Cat> Node<B, C> {
    pub(super) fn tell_depths(&mut self, port: usize, now: Time, out: &mut impl Output<B>) {
        let link = &self.ports[port];
        if link.adjacency.up().is_none() || link.depths.due > now {
            return;
        }
        let capacity = link.cat.capacity().max(LEAST_CAPACITY);
        let (depths, is_idle) = self.depths(port);
        if self.ports[port].adjacency.wants_hello(now) {
            self.add_hello(port, now, out);
        }
        self.append(port, &Message::Depths(depths), now, out);
        let bytes = Bytes::new(self.scratch.datagram.len() as u64 + OVERHEAD);
        self.flush(port, now, out);
        let share = capacity.time_to_send(bytes).scale(1.0 / self.config.depth_share);
        let pause = if is_idle { share.max(IDLE) } else { share.max(depth::PERIOD) };
        self.ports[port].depths.due = now + pause;
    }

    /// The next depth message to a neighbour, and whether all queues are empty.
    fn depths(&mut self, port: usize) -> (Depths, bool) {
        let out = &mut self.ports[port].depths;
        out.sequence = out.sequence.wrapping_add(1);
        let stamp = Stamp { epoch: self.epoch, sequence: out.sequence };
        let first = out.cursor.take().unwrap_or(Range::ALL.first);
        let mut depths = Depths::new(stamp, Range { first, last: Range::ALL.last });
        let is_total = self.config.multicast.forwarding == Forwarding::Total;
        // Stamp, range, the two sets of nodes with their sensitive bits, the number of groups, and a hello.
        let mut bytes = 1 + 8 + 10 + 2 * (17 + 16) + 2 + 11;
        if is_total && first == Range::ALL.first {
            depths.sums = self.sums();
            bytes += 4 * depths.sums.nodes().len();
        }
        let mut members = PerNode::default();
        for bin in self.queues.by_key_from(first).filter(|bin| bin.is_active()) {
            members.clear();
            for (node, one) in bin.destinations.iter() {
                let total = self.advertised(one, false);
                if total > 0 {
                    let sensitive = if bin.has_sensitive() { self.advertised(one, true) } else { 0 };
                    members.set(node, Depth { total, sensitive });
                }
            }
            let Some(node) = members.nodes().first() else { continue };
            let length = match bin.key {
                Key::Node(_) => 4,
                Key::Group(_) if is_total => 8,
                Key::Group(_) => Depths::group_bytes(members.nodes().len()),
            };
            let is_first = depths.nodes.nodes().is_empty() && depths.groups.is_empty();
            if bytes + length > DATAGRAM && !is_first {
                depths.range.last = before(bin.key);
                self.ports[port].depths.cursor = Some(bin.key);
                break;
            }
            bytes += length;
            match bin.key {
                Key::Node(to) => depths.nodes.set(to, members.get(node).copied().unwrap_or_default()),
                Key::Group(group) if is_total => {
                    let total = members.values().iter().map(|depth: &Depth| depth.total).sum();
                    depths.groups.push_total(group, total);
                }
                Key::Group(group) => depths.groups.push_members(group, &members),
            }
        }
        (depths, self.queues.active().is_empty())
    }

    /// Depths by destination, summed over groups.
    fn sums(&self) -> PerNode<Depth> {
        let mut sums: PerNode<Depth> = PerNode::default();
        for at in self.queues.active() {
            let bin = self.queues.bin(*at);
            for (node, one) in bin.destinations.iter().filter(|_| matches!(bin.key, Key::Group(_))) {
                sums.get_or(node, Depth::default).total += exact(&self.config, one, false);
            }
        }
        sums
    }
}

/// The name before another one in the order of names.
fn before(key: Key) -> Key {
    match key {
        Key::Node(node) => {
            node.number().checked_sub(1).and_then(NodeId::new).map_or(Range::ALL.first, Key::Node)
        }
        Key::Group(GroupId(0)) => NodeId::all().last().map_or(Range::ALL.first, Key::Node),
        Key::Group(GroupId(group)) => Key::Group(GroupId(group - 1)),
    }
}
