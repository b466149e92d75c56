//! The depth message (digest A 2.3, QLAM): stamp; range as two numbers; nodes; sums over groups; groups.
//!
//! A name's number is its node's, or 128 and the group's. Nodes are a set and a depth each; so are sums and the members of a group. With
//! the approximation of digest G 2.1 a group has one depth of all its members. Behind a set a bit each says who has sensitive depth.
//! A depth is a 16-bit number ([`super::short`]).

use super::bytes::{Malformed, Reader, Writer};
use super::{Stamp, short};
use crate::nodes::{NODES, NodeId, Nodes, PerNode};
use crate::packet::{GroupId, Key};

/// In place of a group's members: one depth for all.
const TOTAL: u8 = 0x40;
/// The most groups of a message; a datagram has room for fewer.
const MOST_GROUPS: u64 = 8192;

/// Bytes that wait for a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// All of them.
    pub total: u64,
    /// Those of sensitive classes.
    pub sensitive: u64,
}

/// Names from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: Key,
    /// The last.
    pub last: Key,
}

impl Range {
    /// All names.
    pub const ALL: Range =
        Range { first: Key::Node(NodeId::new(0).expect("0 is a node")), last: Key::Group(GroupId(u32::MAX)) };

    /// Whether it has the name.
    pub fn has(&self, key: Key) -> bool {
        (self.first..=self.last).contains(&key)
    }
}

/// Depths of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupDepth {
    /// By member.
    Members(PerNode<Depth>),
    /// The sum over members.
    Total(u64),
}

/// Depths of the bins within a range. A bin of the range that is not listed has depth zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Depths {
    /// The sender's epoch and the number of the message.
    pub stamp: Stamp,
    /// The range.
    pub range: Range,
    /// Depths for nodes.
    pub nodes: PerNode<Depth>,
    /// Depths by destination, summed over all groups; for the approximation alone.
    pub sums: PerNode<Depth>,
    /// Depths for groups, by group.
    pub groups: Vec<(GroupId, GroupDepth)>,
}

impl Depths {
    /// An empty message.
    pub fn new(stamp: Stamp, range: Range) -> Depths {
        Depths { stamp, range, nodes: PerNode::default(), sums: PerNode::default(), groups: Vec::new() }
    }

    /// The bytes that a group of so many members takes at most.
    pub(crate) fn group_bytes(members: usize) -> usize {
        5 + 1 + members.min(16) + members.div_ceil(8) + 4 * members
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.stamp(self.stamp);
        writer.varint(number(self.range.first));
        writer.varint(number(self.range.last));
        write_set(writer, &self.nodes);
        write_set(writer, &self.sums);
        writer.varint(self.groups.len() as u64);
        let mut last = 0;
        for (group, depth) in &self.groups {
            writer.varint(u64::from(group.0.wrapping_sub(last)));
            last = group.0;
            match depth {
                GroupDepth::Members(members) => write_set(writer, members),
                GroupDepth::Total(total) => {
                    writer.u8(TOTAL);
                    writer.u16(short::encode(*total));
                }
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Depths, Malformed> {
        let stamp = reader.stamp()?;
        let range = Range { first: key(reader.varint()?)?, last: key(reader.varint()?)? };
        let nodes = read_set(reader)?;
        let sums = read_set(reader)?;
        let count = reader.varint()?;
        if count > MOST_GROUPS {
            return Err(Malformed);
        }
        // A group takes two bytes at least.
        let mut groups = Vec::with_capacity(count.min(reader.0.len() as u64 / 2) as usize);
        let mut last = 0u32;
        for _ in 0..count {
            let step = u32::try_from(reader.varint()?).map_err(|_| Malformed)?;
            last = last.wrapping_add(step);
            let depth = if reader.0.first() == Some(&TOTAL) {
                reader.u8()?;
                GroupDepth::Total(short::decode(reader.u16()?))
            } else {
                GroupDepth::Members(read_set(reader)?)
            };
            groups.push((GroupId(last), depth));
        }
        Ok(Depths { stamp, range, nodes, sums, groups })
    }
}

fn number(key: Key) -> u64 {
    match key {
        Key::Node(node) => node.number().into(),
        Key::Group(group) => NODES as u64 + u64::from(group.0),
    }
}

fn key(number: u64) -> Result<Key, Malformed> {
    match number.checked_sub(NODES as u64) {
        None => NodeId::new(number as u8).map(Key::Node).ok_or(Malformed),
        Some(group) => u32::try_from(group).map(|group| Key::Group(GroupId(group))).map_err(|_| Malformed),
    }
}

fn write_set(writer: &mut Writer<'_>, depths: &PerNode<Depth>) {
    writer.set(depths.nodes());
    let sensitive: Nodes =
        depths.iter().filter(|(_, depth)| depth.sensitive > 0).map(|(node, _)| node).collect();
    writer.subset(sensitive, depths.nodes());
    for (_, depth) in depths.iter() {
        writer.u16(short::encode(depth.total));
        if depth.sensitive > 0 {
            writer.u16(short::encode(depth.sensitive));
        }
    }
}

fn read_set(reader: &mut Reader<'_>) -> Result<PerNode<Depth>, Malformed> {
    let nodes = reader.set()?;
    let sensitive = reader.subset(nodes)?;
    let mut depths = Vec::with_capacity(nodes.len());
    for node in nodes.iter() {
        let total = short::decode(reader.u16()?);
        let sensitive = if sensitive.has(node) { short::decode(reader.u16()?) } else { 0 };
        depths.push(Depth { total, sensitive });
    }
    PerNode::of(nodes, depths).ok_or(Malformed)
}
