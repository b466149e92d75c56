//! Depths that a neighbour has advertised, until it says something newer or falls silent (digest A 6.1).
//!
//! A message states a range, and a bin of the range that it leaves out has depth zero. Nothing goes to a neighbour before it has told
//! all of its names once, since an unknown depth would look like an empty bin.

use crate::linkstate::database::OLDEST;
use crate::message::{Depth, Depths, GroupDepth, GroupDepths, Range, Stamp};
use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::{GroupId, Key};
use weir_base::{Span, Time};

/// The most groups of a neighbour that are kept.
const MOST_GROUPS: usize = 8192;

/// A neighbour's depths.
#[derive(Debug, Clone, Default)]
pub struct Advertised {
    nodes: PerNode<Depth>,
    sums: PerNode<Depth>,
    /// In the order of their names.
    groups: GroupDepths,
    stamp: Option<Stamp>,
    is_whole: bool,
    at: Time,
    /// Grows with each change, and the names that the last one was about.
    version: u64,
    changed: Option<Range>,
}

impl Advertised {
    /// Takes a message, unless it is not newer than the last one. After 5 s without a newer one any is taken.
    pub fn apply(&mut self, depths: Depths, now: Time) -> bool {
        let is_fresh = now.since(self.at) < OLDEST;
        if self.stamp.is_some_and(|stamp| is_fresh && !depths.stamp.is_newer_than(stamp)) {
            return false;
        }
        self.stamp = Some(depths.stamp);
        self.at = now;
        self.version += 1;
        self.changed = Some(depths.range);
        let Range { first, last } = depths.range;
        for node in self.nodes.nodes().iter().filter(|node| depths.range.has(Key::Node(*node))) {
            self.nodes.set(node, Depth::default());
        }
        // What a message says of other names than those of its range does not count.
        for (node, depth) in depths.nodes.iter().filter(|(node, _)| depths.range.has(Key::Node(*node))) {
            self.nodes.set(node, *depth);
        }
        if first == Range::ALL.first {
            self.sums = depths.sums;
        }
        self.groups.replace(depths.range, depths.groups, MOST_GROUPS);
        self.is_whole |= last == Range::ALL.last;
        true
    }

    /// Forgets everything: the neighbour is down or has restarted.
    pub fn clear(&mut self) {
        *self = Advertised { version: self.version + 1, ..Advertised::default() };
    }

    /// A number that grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The names that have changed since this version, if that was the last one.
    #[inline]
    pub fn changed_since(&self, version: u64) -> Option<Range> {
        self.changed.filter(|_| version + 1 == self.version)
    }

    /// Whether the depths are those of a neighbour that has told all of them, not long ago.
    pub fn is_known(&self, now: Time) -> bool {
        now < self.known_until()
    }

    /// Until when they are, if the neighbour tells nothing more.
    pub fn known_until(&self) -> Time {
        if self.is_whole { self.at + OLDEST } else { Time::ZERO }
    }

    /// How old the newest message is.
    pub fn age(&self, now: Time) -> Span {
        now.since(self.at)
    }

    /// The depths of a bin, by destination.
    pub fn bin(&self, key: Key) -> BinDepths<'_> {
        match key {
            Key::Node(node) => BinDepths::One(self.nodes.get(node).copied().unwrap_or_default()),
            Key::Group(group) => match self.groups.find(group) {
                Some(GroupDepth::Members(members, depths)) => BinDepths::Members(members, depths),
                _ => BinDepths::One(Depth::default()),
            },
        }
    }

    /// The depth of a group as one number.
    pub fn group_total(&self, group: GroupId) -> u64 {
        match self.groups.find(group) {
            Some(GroupDepth::Total(total)) => total,
            Some(GroupDepth::Members(_, depths)) => depths.iter().map(|depth| depth.total).sum(),
            None => 0,
        }
    }

    /// The depth for a destination, summed over groups.
    pub fn sum(&self, node: NodeId) -> u64 {
        self.sums.get(node).map_or(0, |depth| depth.total)
    }
}

/// A neighbour's depths of one bin.
#[derive(Debug, Clone, Copy)]
pub enum BinDepths<'a> {
    /// The same for every destination.
    One(Depth),
    /// By member of a group: the members, and their depths in the order of their numbers.
    Members(Nodes, &'a [Depth]),
}

impl BinDepths<'_> {
    /// The depth for a destination.
    #[inline]
    pub fn of(&self, node: NodeId, sensitive: bool) -> u64 {
        let depth = match self {
            BinDepths::One(depth) => *depth,
            BinDepths::Members(members, depths) if members.has(node) => depths[members.rank(node)],
            BinDepths::Members(..) => Depth::default(),
        };
        if sensitive { depth.sensitive } else { depth.total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{at, group, id, node};

    fn depths(epoch: u32, sequence: u32, range: Range, nodes: &[(u8, u64)]) -> Depths {
        let mut depths = Depths::new(Stamp { epoch, sequence }, range);
        nodes
            .iter()
            .for_each(|(node, total)| depths.nodes.set(id(*node), Depth { total: *total, sensitive: 0 }));
        depths
    }
    fn total(advertised: &Advertised, to: u8) -> u64 {
        advertised.bin(node(to)).of(id(to), false)
    }

    #[test]
    fn a_bin_that_a_message_leaves_out_is_empty_within_its_range_alone() {
        let mut advertised = Advertised::default();
        advertised.apply(depths(1, 1, Range::ALL, &[(3, 30), (70, 700)]), at(0));
        let range = Range { first: node(0), last: node(50) };
        advertised.apply(depths(1, 2, range, &[(4, 40)]), at(1));
        assert_eq!([3, 4, 70].map(|to| total(&advertised, to)), [0, 40, 700]);
    }

    #[test]
    fn nothing_is_known_before_the_last_name_has_been_told() {
        let mut advertised = Advertised::default();
        advertised.apply(depths(1, 1, Range { first: node(0), last: node(50) }, &[]), at(0));
        assert!(!advertised.is_known(at(0)));
        advertised.apply(depths(1, 2, Range { first: node(51), last: group(u32::MAX) }, &[]), at(0));
        assert!(advertised.is_known(at(0)) && !advertised.is_known(at(5000)));
    }

    #[test]
    fn an_older_message_changes_nothing_and_one_of_a_new_epoch_does() {
        let mut advertised = Advertised::default();
        assert!(advertised.apply(depths(1, 9, Range::ALL, &[(3, 30)]), at(0)));
        assert!(!advertised.apply(depths(1, 8, Range::ALL, &[(3, 80)]), at(1)));
        assert!(advertised.apply(depths(2, 1, Range::ALL, &[(3, 10)]), at(2)));
        assert_eq!(total(&advertised, 3), 10);
    }
}
