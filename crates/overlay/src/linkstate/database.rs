//! What all nodes have announced: the newest of each, until it is 5 s old.
//!
//! Source: digest A 6.1: an announcement is accepted if it is newer and then passed to all neighbours but the one that it came from. The
//! study's do not age and have no boot epoch. A node that hears itself with a newer stamp than its own takes an epoch beyond it, so it is
//! believed even if its clock has gone back.

use crate::message::{Groups, Links, Stamp};
use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::GroupId;
use std::collections::BTreeMap;
use weir_base::{Rate, Span, Time};

/// How often a node repeats its links (digest A 6.1) and its groups.
pub const PERIOD: Span = Span::from_secs(1);
/// What is older is forgotten.
pub const OLDEST: Span = Span::from_secs(5);

/// What became of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is not newer than what is known.
    Old,
    /// It is newer, and to be passed on, but says nothing that ways depend on.
    Same,
    /// It is newer, and to be passed on.
    New,
    /// It is newer and says something else than the last one.
    Changed,
    /// It is this node's own, newer than what it has sent; it must announce itself again, with an epoch beyond this one.
    Own(u32),
}

#[derive(Debug, Clone)]
struct Held<T> {
    value: T,
    at: Time,
}

/// The database.
#[derive(Debug, Default)]
pub struct Database {
    links: PerNode<Held<Links>>,
    groups: PerNode<Held<Groups>>,
    members: BTreeMap<GroupId, Nodes>,
}

fn judge(own: NodeId, origin: NodeId, held: Option<Stamp>, stamp: Stamp) -> Option<Accepted> {
    let is_newer = held.is_none_or(|held| stamp.is_newer_than(held));
    if !is_newer {
        return Some(Accepted::Old);
    }
    (origin == own).then_some(Accepted::Own(stamp.epoch))
}

impl Database {
    /// Takes the links of a node. This node's own, as it sends them, are put in by [`Database::put_links`].
    pub fn accept_links(&mut self, own: NodeId, links: &Links, now: Time) -> Accepted {
        let held = self.links.get(links.origin);
        if let Some(verdict) = judge(own, links.origin, held.map(|held| held.value.stamp), links.stamp) {
            return verdict;
        }
        let is_same = held.is_some_and(|held| {
            let old = &held.value;
            old.k == links.k
                && old.is_drained == links.is_drained
                && old.neighbours.nodes() == links.neighbours.nodes()
        });
        let has_same_ways = held.is_some_and(|held| {
            let (old, new) = (&held.value, links);
            old.queue_delays == new.queue_delays
                && old
                    .neighbours
                    .iter()
                    .map(|(_, link)| link.delay)
                    .eq(new.neighbours.iter().map(|(_, link)| link.delay))
        });
        self.put_links(links.clone(), now);
        match (is_same, has_same_ways) {
            (true, true) => Accepted::Same,
            (true, false) => Accepted::New,
            (false, _) => Accepted::Changed,
        }
    }

    /// Takes the groups of a node.
    pub fn accept_groups(&mut self, own: NodeId, groups: &Groups, now: Time) -> Accepted {
        let held = self.groups.get(groups.origin);
        if let Some(verdict) = judge(own, groups.origin, held.map(|held| held.value.stamp), groups.stamp) {
            return verdict;
        }
        self.put_groups(groups.clone(), now);
        Accepted::New
    }

    /// Sets what a node has announced of its links.
    pub fn put_links(&mut self, links: Links, now: Time) {
        self.links.set(links.origin, Held { value: links, at: now });
    }

    /// Sets what a node has announced of its groups.
    pub fn put_groups(&mut self, groups: Groups, now: Time) {
        let origin = groups.origin;
        let old = self.groups.remove(origin);
        if old.as_ref().map(|old| &old.value.joined) != Some(&groups.joined) {
            self.leave_all(origin, old.map(|old| old.value.joined).unwrap_or_default());
            for group in &groups.joined {
                let members = self.members.entry(*group).or_default();
                *members = members.with(origin);
            }
        }
        self.groups.set(origin, Held { value: groups, at: now });
    }

    fn leave_all(&mut self, node: NodeId, joined: Vec<GroupId>) {
        for group in joined {
            if let Some(members) = self.members.get_mut(&group) {
                *members = members.without(node);
                if members.is_empty() {
                    self.members.remove(&group);
                }
            }
        }
    }

    /// Forgets what is too old, except of this node. Returns whether links went.
    pub fn age(&mut self, own: NodeId, now: Time) -> bool {
        let mut changed = false;
        for node in self.links.nodes().without(own).iter() {
            if self.links.get(node).is_some_and(|held| now.since(held.at) >= OLDEST) {
                self.links.remove(node);
                changed = true;
            }
        }
        for node in self.groups.nodes().without(own).iter() {
            if self.groups.get(node).is_some_and(|held| now.since(held.at) >= OLDEST)
                && let Some(old) = self.groups.remove(node)
            {
                self.leave_all(node, old.value.joined);
            }
        }
        changed
    }

    /// The links of a node.
    pub fn links(&self, node: NodeId) -> Option<&Links> {
        self.links.get(node).map(|held| &held.value)
    }
    /// The links of all nodes.
    pub fn all_links(&self) -> impl Iterator<Item = &Links> {
        self.links.iter().map(|(_, held)| &held.value)
    }
    /// The groups of all nodes.
    pub fn all_groups(&self) -> impl Iterator<Item = &Groups> {
        self.groups.iter().map(|(_, held)| &held.value)
    }
    /// The groups of a node.
    pub fn groups(&self, node: NodeId) -> Option<&Groups> {
        self.groups.get(node).map(|held| &held.value)
    }
    /// The members of a group.
    #[inline]
    pub fn members(&self, group: GroupId) -> Nodes {
        self.members.get(&group).copied().unwrap_or_default()
    }
    /// The capacities of all links that are announced.
    pub fn capacities(&self, into: &mut Vec<Rate>) {
        into.clear();
        for links in self.all_links() {
            into.extend(links.neighbours.iter().map(|(_, link)| link.capacity));
        }
    }
}
