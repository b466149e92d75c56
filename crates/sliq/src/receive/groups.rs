//! Groups of coded segments: repair packets restore their lost segments.

use super::Incoming;
use crate::aec::code;
use crate::send::{SYMBOL_HEADER, WINDOW};
use crate::wire::{Flags, Repair};

/// Maximum number of groups whose repair packets are kept.
const MOST_GROUPS: usize = 256;

/// A group with missing segments, and its repair packets: number and first bytes of each.
#[derive(Debug)]
pub(super) struct Group {
    start: u32,
    k: u8,
    repairs: Vec<(usize, Vec<u8>)>,
}

impl Incoming {
    /// Takes a repair packet that begins with `head`. Returns `false` if it cannot belong to the stream.
    pub(crate) fn repair(&mut self, repair: &Repair, head: &[u8]) -> bool {
        if repair.k == 0
            || usize::from(repair.k) > code::MOST_SOURCES
            || usize::from(repair.number) >= code::MOST_REPAIRS
        {
            return false;
        }
        self.forward(repair.start.wrapping_sub(repair.distance.into()));
        let place = repair.start.wrapping_sub(self.base) as usize;
        if place + usize::from(repair.k) > WINDOW {
            return place > u32::MAX as usize / 2;
        }
        if !self.reach(repair.start.wrapping_add(repair.k.into())) {
            return false;
        }
        let at = match self.groups.iter().position(|group| group.start == repair.start) {
            Some(at) if self.groups[at].k != repair.k => return false,
            Some(at) => at,
            None => {
                if self.groups.len() >= MOST_GROUPS {
                    self.groups.remove(0);
                }
                self.groups.push(Group { start: repair.start, k: repair.k, repairs: Vec::new() });
                self.groups.len() - 1
            }
        };
        let repairs = &mut self.groups[at].repairs;
        let number = usize::from(repair.number);
        if repairs.len() < usize::from(repair.k) && repairs.iter().all(|(other, _)| *other != number) {
            let mut own = self.spare.pop().unwrap_or_default();
            own.clear();
            own.extend_from_slice(head);
            repairs.push((number, own));
        }
        self.restore(repair.start);
        self.deliver();
        true
    }

    /// Restores the group that this segment belongs to, if enough of its packets have arrived.
    pub(super) fn restore(&mut self, sequence: u32) {
        let Some(at) =
            self.groups.iter().position(|group| sequence.wrapping_sub(group.start) < u32::from(group.k))
        else {
            return;
        };
        let group = &self.groups[at];
        let (place, k) = (group.start.wrapping_sub(self.base) as usize, usize::from(group.k));
        let here = |n: &usize| self.slots.get(place + n).is_some_and(|slot| slot.here);
        let missing = (0..k).filter(|n| !here(n)).count();
        if missing == 0 {
            self.drop_group(at);
            return;
        }
        if missing > group.repairs.len() {
            return;
        }
        let mut symbols: Vec<Option<Vec<u8>>> = (0..k)
            .map(|n| {
                let slot = self.slots.get(place + n).filter(|slot| slot.here)?;
                let mut symbol = (slot.bytes as u16).to_be_bytes().to_vec();
                symbol.push(slot.flags.bits());
                symbol.extend(slot.due.unwrap_or_default().to_be_bytes());
                symbol.extend_from_slice(&slot.head);
                Some(symbol)
            })
            .collect();
        let lost: Vec<usize> = (0..k).filter(|n| symbols[*n].is_none()).collect();
        let repairs: Vec<(usize, &[u8])> =
            group.repairs.iter().map(|(number, head)| (*number, head.as_slice())).collect();
        if code::restore(&mut symbols, &repairs) {
            for n in lost {
                let Some(symbol) = symbols[n].take().filter(|symbol| symbol.len() >= SYMBOL_HEADER) else {
                    continue;
                };
                let bytes = u16::from_be_bytes([symbol[0], symbol[1]]);
                let due = u32::from_be_bytes([symbol[3], symbol[4], symbol[5], symbol[6]]);
                if let Some(flags) = Flags::from_bits(symbol[2]) {
                    self.put(place + n, flags, bytes.into(), Some(due), &symbol[SYMBOL_HEADER..]);
                }
            }
        }
        self.drop_group(at);
    }

    /// Drops the groups whose first segment number satisfies `from`.
    pub(super) fn drop_groups(&mut self, from: impl Fn(u32) -> bool) {
        while let Some(at) = self.groups.iter().position(|group| from(group.start)) {
            self.drop_group(at);
        }
    }

    /// Drops a group and keeps its buffers.
    fn drop_group(&mut self, at: usize) {
        let group = self.groups.swap_remove(at);
        self.spare.extend(group.repairs.into_iter().map(|(_, head)| head));
    }
}
