//! The depth message (digest A 2.3, QLAM): stamp; range as two numbers; nodes; sums over groups; groups.
//!
//! A name's number is its node's, or 128 and the group's. Nodes are a set and a depth each; so are sums and the members of a group. With
//! the approximation of digest G 2.1 a group has one depth of all its members. Behind a set a bit each says who has sensitive depth.
//! A depth is a 16-bit number ([`super::short`]).

mod groups;

pub use groups::{GroupDepth, GroupDepths};

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
    #[inline]
    pub fn has(&self, key: Key) -> bool {
        (self.first..=self.last).contains(&key)
    }
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
    pub groups: GroupDepths,
}

impl Depths {
    /// An empty message.
    pub fn new(stamp: Stamp, range: Range) -> Depths {
        Depths {
            stamp,
            range,
            nodes: PerNode::default(),
            sums: PerNode::default(),
            groups: GroupDepths::default(),
        }
    }

    /// The bytes that a group of so many members takes at most.
    pub(crate) fn group_bytes(members: usize) -> usize {
        5 + 1 + members.min(16) + members.div_ceil(8) + 4 * members
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.stamp(self.stamp);
        writer.varint(number(self.range.first));
        writer.varint(number(self.range.last));
        write_members(writer, self.nodes.nodes(), self.nodes.values());
        write_members(writer, self.sums.nodes(), self.sums.values());
        writer.varint(self.groups.len() as u64);
        let mut last = 0;
        for (group, depth) in self.groups.iter() {
            writer.varint(u64::from(group.0.wrapping_sub(last)));
            last = group.0;
            match depth {
                GroupDepth::Members(members, depths) => write_members(writer, members, depths),
                GroupDepth::Total(total) => {
                    writer.u8(TOTAL);
                    writer.u16(short::encode(total));
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
        let mut groups = GroupDepths::with_room(count.min(reader.0.len() as u64 / 2) as usize);
        let mut last = 0u32;
        for _ in 0..count {
            let step = u32::try_from(reader.varint()?).map_err(|_| Malformed)?;
            last = last.wrapping_add(step);
            if reader.0.first() == Some(&TOTAL) {
                reader.u8()?;
                groups.push_total(GroupId(last), short::decode(reader.u16()?));
            } else {
                groups.read_members(GroupId(last), reader)?;
            }
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

fn write_members(writer: &mut Writer<'_>, members: Nodes, depths: &[Depth]) {
    writer.set(members);
    let with_sensitive = members.iter().zip(depths).filter(|(_, depth)| depth.sensitive > 0);
    writer.subset(with_sensitive.map(|(node, _)| node).collect(), members);
    for depth in depths {
        writer.u16(short::encode(depth.total));
        if depth.sensitive > 0 {
            writer.u16(short::encode(depth.sensitive));
        }
    }
}

/// Reads members and adds their depths to `into`.
fn read_members(reader: &mut Reader<'_>, into: &mut Vec<Depth>) -> Result<Nodes, Malformed> {
    let members = reader.set()?;
    let with_sensitive = reader.subset(members)?;
    for node in members.iter() {
        let total = short::decode(reader.u16()?);
        let sensitive = if with_sensitive.has(node) { short::decode(reader.u16()?) } else { 0 };
        into.push(Depth { total, sensitive });
    }
    Ok(members)
}

fn read_set(reader: &mut Reader<'_>) -> Result<PerNode<Depth>, Malformed> {
    let mut depths = Vec::new();
    let nodes = read_members(reader, &mut depths)?;
    PerNode::of(nodes, depths).ok_or(Malformed)
}
