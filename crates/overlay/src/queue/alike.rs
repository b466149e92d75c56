//! Packets of a group's bin by the receivers that they are still for: for each set of receivers a list, the oldest packet first. A choice
//! among all packets then looks at each set once. Few sets occur at a time, since packets part at the same places.

use super::list::{Slab, Slot};
use crate::nodes::Nodes;

/// The packets for one set of receivers.
#[derive(Debug, Clone, Copy)]
struct Row {
    receivers: Nodes,
    first: Slot,
    last: Slot,
}

/// The sets of a bin.
#[derive(Debug, Default)]
pub(crate) struct Alike(Vec<Row>);

impl Alike {
    /// The sets, each with its oldest packet.
    pub(crate) fn sets(&self) -> impl Iterator<Item = (Nodes, Slot)> {
        self.0.iter().map(|row| (row.receivers, row.first))
    }

    /// A packet is for this set of receivers now. It stands by its age, which is usually the lowest.
    pub(crate) fn add<B>(&mut self, slab: &mut Slab<B>, place: Slot, receivers: Nodes) {
        let Some(row) = self.0.iter_mut().find(|row| row.receivers == receivers) else {
            slab.set_alike(place, (None, None));
            self.0.push(Row { receivers, first: place, last: place });
            return;
        };
        let age = slab.age(place);
        let (mut before, mut after) = (Some(row.last), None);
        if slab.age(row.first) > age {
            (before, after) = (None, Some(row.first));
        }
        while let Some(at) = before.filter(|at| slab.age(*at) > age) {
            (before, after) = (slab.alike(at).0, Some(at));
        }
        slab.set_alike(place, (before, after));
        match before {
            Some(at) => slab.set_alike(at, (slab.alike(at).0, Some(place))),
            None => row.first = place,
        }
        match after {
            Some(at) => slab.set_alike(at, (Some(place), slab.alike(at).1)),
            None => row.last = place,
        }
    }

    /// A packet is no longer for this set of receivers.
    pub(crate) fn remove<B>(&mut self, slab: &mut Slab<B>, place: Slot, receivers: Nodes) {
        let Some(at) = self.0.iter().position(|row| row.receivers == receivers) else { return };
        let (before, after) = slab.alike(place);
        let row = &mut self.0[at];
        match (before, after) {
            (None, None) => {
                self.0.swap_remove(at);
                return;
            }
            (None, Some(after)) => row.first = after,
            (Some(before), None) => row.last = before,
            _ => {}
        }
        if let Some(before) = before {
            slab.set_alike(before, (slab.alike(before).0, after));
        }
        if let Some(after) = after {
            slab.set_alike(after, (before, slab.alike(after).1));
        }
    }
}
