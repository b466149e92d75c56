//! The packets of all bins in one slab, and lists within it from which a packet can leave at any place. Once the slab has grown to
//! the largest backlog so far, no packet needs an allocation.

use crate::packet::Packet;
use weir_base::Time;

/// How far from its end a list is searched at most.
const FAR: u32 = 200;
/// The slot of no packet.
const NONE: u32 = u32::MAX;

/// A packet's slot in the slab, valid while it stays queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// A packet in a queue.
#[derive(Debug)]
pub struct Entry<B> {
    /// The packet.
    pub packet: Packet<B>,
    /// When it came.
    pub arrived: Time,
    /// Its rank in an ordered list: the lower goes first.
    pub rank: Time,
}

#[derive(Debug)]
struct Held<B> {
    entry: Option<Entry<B>>,
    before: u32,
    after: u32,
    /// Grows from one packet to the next: its age.
    age: u64,
    /// The packets before and behind it in its row ([`super::alike`]).
    alike: (Option<Slot>, Option<Slot>),
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Slab<B> {
    slots: Vec<Held<B>>,
    free: u32,
    used: u32,
    stored: u64,
}

/// A list of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    packets: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE, packets: 0 };

    pub(crate) fn packets(self) -> u32 {
        self.packets
    }
    pub(crate) fn first(self) -> Option<Slot> {
        (self.head != NONE).then_some(Slot(self.head))
    }
    pub(crate) fn last(self) -> Option<Slot> {
        (self.tail != NONE).then_some(Slot(self.tail))
    }
}

impl<B> Slab<B> {
    pub(crate) fn new() -> Slab<B> {
        Slab { slots: Vec::new(), free: NONE, used: 0, stored: 0 }
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    #[inline]
    pub(crate) fn entry(&self, place: Slot) -> Option<&Entry<B>> {
        self.slots.get(place.0 as usize)?.entry.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, place: Slot) -> Option<&mut Entry<B>> {
        self.slots.get_mut(place.0 as usize)?.entry.as_mut()
    }

    /// The place behind this one in its list.
    #[inline]
    pub(crate) fn after(&self, place: Slot) -> Option<Slot> {
        let after = self.slots.get(place.0 as usize)?.after;
        (after != NONE).then_some(Slot(after))
    }

    /// A number that is higher for packets that were stored later.
    #[inline]
    pub(crate) fn age(&self, place: Slot) -> u64 {
        self.slots.get(place.0 as usize).map_or(0, |slot| slot.age)
    }

    /// The packets before and behind this one in its row.
    pub(crate) fn alike(&self, place: Slot) -> (Option<Slot>, Option<Slot>) {
        self.slots.get(place.0 as usize).map_or((None, None), |slot| slot.alike)
    }

    pub(crate) fn set_alike(&mut self, place: Slot, alike: (Option<Slot>, Option<Slot>)) {
        if let Some(slot) = self.slots.get_mut(place.0 as usize) {
            slot.alike = alike;
        }
    }

    /// The packet at this place from the end, which is 1 for the last; `None` if it is farther than [`FAR`] or there is none.
    pub(crate) fn nth_last(&self, list: List, place: u32) -> Option<Slot> {
        if place == 0 || place > FAR.min(list.packets) {
            return None;
        }
        let mut at = list.tail;
        for _ in 1..place {
            at = self.slots.get(at as usize)?.before;
        }
        Some(Slot(at))
    }

    fn store(&mut self, entry: Entry<B>) -> u32 {
        self.used += 1;
        self.stored += 1;
        let (age, alike) = (self.stored, (None, None));
        let slot = Held { entry: Some(entry), before: NONE, after: NONE, age, alike };
        let at = self.free;
        if let Some(place) = self.slots.get_mut(at as usize) {
            self.free = place.after;
            *place = slot;
            return at;
        }
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    /// Adds a packet behind all others.
    pub(crate) fn push(&mut self, list: &mut List, entry: Entry<B>) -> Slot {
        let at = self.store(entry);
        self.link(list, list.tail, at);
        Slot(at)
    }

    /// Adds a packet behind those of the same or a lower rank. The search begins at the end, where a packet usually belongs.
    pub(crate) fn insert(&mut self, list: &mut List, entry: Entry<B>) {
        let mut before = list.tail;
        while let Some(slot) = self.slots.get(before as usize)
            && slot.entry.as_ref().is_some_and(|other| other.rank > entry.rank)
        {
            before = slot.before;
        }
        let at = self.store(entry);
        self.link(list, before, at);
    }

    /// Puts the slot `at` behind `before`, which is [`NONE`] for the head.
    fn link(&mut self, list: &mut List, before: u32, at: u32) {
        let after = self.slots.get(before as usize).map_or(list.head, |slot| slot.after);
        self.slots[at as usize].before = before;
        self.slots[at as usize].after = after;
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.after = at,
            None => list.head = at,
        }
        match self.slots.get_mut(after as usize) {
            Some(slot) => slot.before = at,
            None => list.tail = at,
        }
        list.packets += 1;
    }

    /// Takes a packet out of its list.
    pub(crate) fn remove(&mut self, list: &mut List, place: Slot) -> Option<Entry<B>> {
        let slot = self.slots.get_mut(place.0 as usize)?;
        let entry = slot.entry.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.after = self.free;
        self.free = place.0;
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.after = after,
            None => list.head = after,
        }
        match self.slots.get_mut(after as usize) {
            Some(slot) => slot.before = before,
            None => list.tail = before,
        }
        list.packets -= 1;
        self.used -= 1;
        Some(entry)
    }
}
