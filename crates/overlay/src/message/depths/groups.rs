//! Depths of groups: a row for each group, and the depths of all their members one after another. So a message takes the same two pieces of
//! memory however many groups it names.

use super::{Depth, Range, read_members};
use crate::message::bytes::{Malformed, Reader};
use crate::nodes::{Nodes, PerNode};
use crate::packet::{GroupId, Key};

/// Depths of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroupDepth<'a> {
    /// By member: the members, and their depths in the order of their numbers.
    Members(Nodes, &'a [Depth]),
    /// The sum over members, in bytes.
    Total(u64),
}

/// Depths of groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupDepths {
    rows: Vec<Row>,
    depths: Vec<Depth>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    members: Nodes,
    group: GroupId,
    /// Where its depths begin, and how many there are: one for each member, or one for all.
    first: u32,
    count: u8,
    is_total: bool,
}

impl GroupDepths {
    /// No groups, with memory for so many rows.
    pub(super) fn with_room(rows: usize) -> GroupDepths {
        GroupDepths { rows: Vec::with_capacity(rows), depths: Vec::new() }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a group with a depth for each of these members.
    pub fn push_members(&mut self, group: GroupId, members: &PerNode<Depth>) {
        self.push(group, GroupDepth::Members(members.nodes(), members.values()));
    }
    /// Adds a group with one depth of all its members, in bytes.
    pub fn push_total(&mut self, group: GroupId, total: u64) {
        self.push(group, GroupDepth::Total(total));
    }

    fn push(&mut self, group: GroupId, depth: GroupDepth<'_>) {
        let first = self.depths.len();
        let (members, is_total) = match depth {
            GroupDepth::Members(members, depths) => {
                self.depths.extend_from_slice(depths);
                (members, false)
            }
            GroupDepth::Total(total) => {
                self.depths.push(Depth { total, sensitive: 0 });
                (Nodes::EMPTY, true)
            }
        };
        self.add_row(group, members, first, is_total);
    }

    /// Reads the depths of a group's members, and adds the group.
    pub(super) fn read_members(&mut self, group: GroupId, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let first = self.depths.len();
        let members = read_members(reader, &mut self.depths)?;
        self.add_row(group, members, first, false);
        Ok(())
    }

    /// Adds a row whose depths have been added, from `first` on.
    fn add_row(&mut self, group: GroupId, members: Nodes, first: usize, is_total: bool) {
        let count = (self.depths.len() - first) as u8;
        self.rows.push(Row { members, group, first: first as u32, count, is_total });
    }

    fn of_row(&self, row: &Row) -> GroupDepth<'_> {
        let depths = &self.depths[row.first as usize..][..row.count.into()];
        match depths {
            [all] if row.is_total => GroupDepth::Total(all.total),
            _ => GroupDepth::Members(row.members, depths),
        }
    }

    /// The groups and their depths, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, GroupDepth<'_>)> {
        self.rows.iter().map(|row| (row.group, self.of_row(row)))
    }

    /// The depths of a group, where the groups are in the order of their names.
    #[inline]
    pub(crate) fn find(&self, group: GroupId) -> Option<GroupDepth<'_>> {
        let at = self.rows.binary_search_by_key(&group, |row| row.group).ok()?;
        Some(self.of_row(&self.rows[at]))
    }

    /// Takes what has been told of the groups of a range; those that were not told go. Afterwards the groups are in the order of their names,
    /// and so many at most. Of one that was told twice the last depths count, and what was told of groups outside the range does not.
    pub(crate) fn replace(&mut self, range: Range, mut told: GroupDepths, most: usize) {
        let is_in = |group: GroupId| range.has(Key::Group(group));
        told.rows.retain(|row| is_in(row.group));
        self.iter().filter(|(group, _)| !is_in(*group)).for_each(|(group, depth)| told.push(group, depth));
        told.rows.sort_by_key(|row| row.group);
        told.rows.dedup_by(|later, earlier| {
            let is_same = later.group == earlier.group;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        told.rows.truncate(most);
        *self = told;
    }
}
