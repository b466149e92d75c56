//! Queues of a node: a bin for each destination or group, ten latency classes in each, and bytes counted by destination.
//!
//! Source: digest A 1.1, A 1.2, A 6.4. Four classes hold packets, six are counters of zombie bytes. A bin for a node is a group of
//! one, so the same code serves both. Here a zombie never crosses a link, so the class of received ones stays empty.

mod alike;
mod class;
mod destination;
mod list;

pub use class::Class;
pub use destination::Destination;
pub use list::{Entry, Slot};

use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::{Body, GroupId, Key, Packet};
use alike::Alike;
use list::{List, Slab};
use std::collections::BTreeMap;
use weir_base::Time;

/// Which packet goes when a list is full (digest A 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The arriving one is refused.
    #[default]
    Refuse,
    /// The one at the head is dropped.
    DropHead,
    /// The one at the tail is dropped.
    DropTail,
}

/// Limits of a node's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most packets of a list. The study has 50,000 a bin and class.
    pub packets: u32,
    /// Most packets of the node. The study's pool has 135,167 places.
    pub total: u32,
    /// Most bins for groups.
    pub groups: usize,
    /// What gives way when a list is full.
    pub overflow: Overflow,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { packets: 50_000, total: 135_167, groups: 4096, overflow: Overflow::Refuse }
    }
}

/// A bin.
#[derive(Debug)]
pub struct Bin<S> {
    /// Its name.
    pub key: Key,
    /// Its destinations.
    pub destinations: PerNode<Destination<S>>,
    lists: [List; 4],
    /// Of a group: its normal packets by their receivers.
    alike: Alike,
    /// Bytes of sensitive classes, of all destinations.
    sensitive: u64,
    /// Its place in the list of active bins.
    active: Option<u32>,
    /// Whether it is among those that have changed.
    has_changed: bool,
}

impl<S> Bin<S> {
    /// The first packet of a class.
    pub fn first(&self, class: Class) -> Option<Slot> {
        self.lists[class.list()].first()
    }
    /// The number of packets of a class.
    pub fn packets(&self, class: Class) -> u32 {
        self.lists[class.list()].packets()
    }
    /// Whether it holds packets or zombies.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }
    /// Whether it holds anything of a sensitive class.
    pub fn has_sensitive(&self) -> bool {
        self.sensitive > 0
    }
    /// Of a group: the sets of receivers that its normal packets are for, each with its oldest packet.
    pub fn sets(&self) -> impl Iterator<Item = (Nodes, Slot)> {
        self.alike.sets()
    }
    fn is_group(&self) -> bool {
        matches!(self.key, Key::Group(_))
    }
    fn holds_nothing(&self) -> bool {
        self.lists.iter().all(|list| list.packets() == 0)
            && self.destinations.iter().all(|(_, destination)| destination.total() == 0)
    }
}

/// A bin's place; valid as long as the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BinAt(u32);

impl BinAt {
    /// The bin of this number.
    pub(crate) fn of(index: usize) -> BinAt {
        BinAt(index as u32)
    }
    /// Its number, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What became of a packet that was to be queued.
#[derive(Debug)]
pub enum Queued<B> {
    /// It waits in this bin.
    Waits(BinAt),
    /// It has no room.
    Refused(Packet<B>),
    /// It waits in this bin, and this one has had to give way.
    Displaced(BinAt, Packet<B>),
}

/// All queues of a node. `S` is what the node keeps for each destination of a bin.
#[derive(Debug)]
pub struct Queues<B, S> {
    limits: Limits,
    slab: Slab<B>,
    bins: Vec<Bin<S>>,
    nodes: PerNode<BinAt>,
    groups: BTreeMap<GroupId, BinAt>,
    active: Vec<BinAt>,
    changed: Vec<BinAt>,
    /// Bytes of sensitive classes, of all bins and destinations.
    sensitive: u64,
    /// Bodies that nothing holds, for copies.
    spares: Vec<B>,
}

impl<B: Body, S: Default> Queues<B, S> {
    /// Empty queues.
    pub fn new(limits: Limits) -> Queues<B, S> {
        Queues {
            limits,
            slab: Slab::new(),
            bins: Vec::new(),
            nodes: PerNode::default(),
            groups: BTreeMap::new(),
            active: Vec::new(),
            changed: Vec::new(),
            sensitive: 0,
            spares: Vec::new(),
        }
    }

    /// The bins whose depths have changed since [`Queues::settle`].
    pub fn changed(&self) -> &[BinAt] {
        &self.changed
    }
    /// All changes have been seen.
    pub fn settle(&mut self) {
        for at in self.changed.drain(..) {
            self.bins[at.0 as usize].has_changed = false;
        }
    }
    /// Whether anything of a sensitive class is held.
    pub fn has_sensitive(&self) -> bool {
        self.sensitive > 0
    }
    /// Bodies that are there for copies.
    pub fn spares(&mut self) -> &mut Vec<B> {
        &mut self.spares
    }

    /// The bins that hold packets or zombies.
    pub fn active(&self) -> &[BinAt] {
        &self.active
    }
    /// A bin.
    pub fn bin(&self, at: BinAt) -> &Bin<S> {
        &self.bins[at.0 as usize]
    }
    /// A bin, of which the destinations' states may be changed.
    pub fn bin_mut(&mut self, at: BinAt) -> &mut Bin<S> {
        let bin = &mut self.bins[at.0 as usize];
        if !std::mem::replace(&mut bin.has_changed, true) {
            self.changed.push(at);
        }
        bin
    }
    /// The bin of this name, if it has been used.
    pub fn find(&self, key: Key) -> Option<BinAt> {
        match key {
            Key::Node(node) => self.nodes.get(node).copied(),
            Key::Group(group) => self.groups.get(&group).copied(),
        }
    }
    /// All bins in the order of their names.
    pub fn by_key(&self) -> impl Iterator<Item = &Bin<S>> {
        self.nodes.iter().map(|(_, at)| at).chain(self.groups.values()).map(|at| self.bin(*at))
    }
    /// The bins from a name on, in the order of their names.
    pub fn by_key_from(&self, from: Key) -> impl Iterator<Item = &Bin<S>> {
        let (node, group) = match from {
            Key::Node(node) => (node.number(), GroupId(0)),
            Key::Group(group) => (u8::MAX, group),
        };
        let nodes = self.nodes.iter().filter(move |(other, _)| other.number() >= node).map(|(_, at)| at);
        nodes.chain(self.groups.range(group..).map(|(_, at)| at)).map(|at| self.bin(*at))
    }
    /// Packets that wait.
    pub fn packets(&self) -> u32 {
        self.slab.used()
    }
    /// The packet at a place.
    #[inline]
    pub fn entry(&self, place: Slot) -> Option<&Entry<B>> {
        self.slab.entry(place)
    }
    /// A number that is higher for packets that came later.
    pub fn age(&self, place: Slot) -> u64 {
        self.slab.age(place)
    }
    /// The place behind this one in the same class.
    pub fn after(&self, place: Slot) -> Option<Slot> {
        self.slab.after(place)
    }

    /// The bin of this name, made at its first use; `None` if there are too many.
    fn bin_of(&mut self, key: Key) -> Option<BinAt> {
        if let Some(at) = self.find(key) {
            return Some(at);
        }
        let at = BinAt(self.bins.len() as u32);
        match key {
            Key::Node(node) => self.nodes.set(node, at),
            Key::Group(_) if self.groups.len() >= self.limits.groups => return None,
            Key::Group(group) => _ = self.groups.insert(group, at),
        }
        self.bins.push(Bin {
            key,
            destinations: PerNode::default(),
            lists: [List::EMPTY; 4],
            alike: Alike::default(),
            sensitive: 0,
            active: None,
            has_changed: false,
        });
        Some(at)
    }

    /// Queues a packet. In [`Class::LowLatency`] it stands by its rank, in the others behind all.
    pub fn enqueue(&mut self, packet: Packet<B>, class: Class, rank: Time, now: Time) -> Queued<B> {
        let Some(at) = self.bin_of(packet.to) else { return Queued::Refused(packet) };
        if self.slab.used() >= self.limits.total {
            return Queued::Refused(packet);
        }
        let list = self.bins[at.0 as usize].lists[class.list()];
        let mut victim = None;
        if list.packets() >= self.limits.packets {
            let place = match self.limits.overflow {
                Overflow::Refuse => None,
                Overflow::DropHead => list.first(),
                Overflow::DropTail => list.last(),
            };
            let Some(place) = place else { return Queued::Refused(packet) };
            victim = self.remove(at, class, place);
        }
        self.count(at, class, &packet, now);
        let receivers = packet.receivers;
        let entry = Entry { packet, arrived: now, rank };
        let bin = &mut self.bins[at.0 as usize];
        let list = &mut bin.lists[class.list()];
        if class == Class::LowLatency {
            self.slab.insert(list, entry);
        } else {
            let place = self.slab.push(list, entry);
            if class == Class::Normal && bin.is_group() {
                bin.alike.add(&mut self.slab, place, receivers);
            }
        }
        self.activate(at);
        victim.map_or(Queued::Waits(at), |victim| Queued::Displaced(at, victim))
    }

    fn count(&mut self, at: BinAt, class: Class, packet: &Packet<B>, now: Time) {
        let bytes = u64::from(packet.body.bytes());
        let bin = self.bin_mut(at);
        for node in packet.receivers.iter() {
            let destination = bin.destinations.get_or(node, || Destination {
                classes: [0; 10],
                packets: 0,
                last_departure: now,
                state: S::default(),
            });
            destination.classes[class as usize] += bytes;
            destination.packets += 1;
        }
        if class.is_sensitive() {
            let all = bytes * packet.receivers.len() as u64;
            bin.sensitive += all;
            self.sensitive += all;
        }
    }

    fn discount(&mut self, at: BinAt, class: Class, bytes: u64, nodes: Nodes) {
        let bin = self.bin_mut(at);
        let mut sensitive = 0;
        for node in nodes.iter() {
            if let Some(destination) = bin.destinations.get_mut(node) {
                let left = &mut destination.classes[class as usize];
                let gone = bytes.min(*left);
                *left -= gone;
                destination.packets = destination.packets.saturating_sub(1);
                sensitive += if class.is_sensitive() { gone } else { 0 };
            }
        }
        bin.sensitive -= sensitive;
        self.sensitive -= sensitive;
    }

    /// The packet at a place of a group's normal class joins, or leaves, those that are for the same receivers.
    fn arrange(&mut self, at: BinAt, class: Class, place: Slot, receivers: Nodes, joins: bool) {
        let bin = &mut self.bins[at.0 as usize];
        if class != Class::Normal || !bin.is_group() {
            return;
        }
        if joins {
            bin.alike.add(&mut self.slab, place, receivers);
        } else {
            bin.alike.remove(&mut self.slab, place, receivers);
        }
    }

    /// Notes that bytes for these destinations have left now.
    fn departed(&mut self, at: BinAt, nodes: Nodes, now: Time) {
        for node in nodes.iter() {
            if let Some(destination) = self.bins[at.0 as usize].destinations.get_mut(node) {
                destination.last_departure = now;
            }
        }
    }

    /// Takes a packet out for some of its receivers. If others remain, it stays for them and a copy leaves.
    pub fn take(
        &mut self,
        at: BinAt,
        class: Class,
        place: Slot,
        nodes: Nodes,
        now: Time,
    ) -> Option<Packet<B>> {
        let receivers = self.slab.entry(place)?.packet.receivers;
        let left = receivers.minus(nodes);
        let packet = if left.is_empty() {
            self.remove(at, class, place)?
        } else {
            self.arrange(at, class, place, receivers, false);
            let entry = self.slab.entry_mut(place)?;
            let leaving = receivers.and(nodes);
            let copy = entry.packet.copy_for(leaving, self.spares.pop());
            entry.packet.receivers = left;
            self.arrange(at, class, place, left, true);
            self.discount(at, class, copy.body.bytes().into(), leaving);
            copy
        };
        self.departed(at, packet.receivers, now);
        self.rest(at);
        Some(packet)
    }

    /// Takes a coded packet for these destinations (digest G 2.1, coding as counters). Packets of the bin are interchangeable: each
    /// destination is owed a number of them, and the list is as long as the largest number.
    pub fn take_coded(&mut self, at: BinAt, class: Class, nodes: Nodes, now: Time) -> Option<Packet<B>> {
        let place = self.bin(at).first(class)?;
        let bytes = u64::from(self.slab.entry(place)?.packet.body.bytes());
        let waiting = nodes.iter().filter_map(|node| self.bin(at).destinations.get(node));
        let next = waiting.map(|destination| destination.packets).max().unwrap_or(0);
        self.discount(at, class, bytes, nodes);
        self.departed(at, nodes, now);
        let owed = self.bin(at).destinations.iter().map(|(_, destination)| destination.packets).max();
        let list = &mut self.bins[at.0 as usize].lists[class.list()];
        let packet = if list.packets() > owed.unwrap_or(0) {
            let entry = self.slab.remove(list, place)?;
            self.arrange(at, class, place, entry.packet.receivers, false);
            Packet { receivers: nodes, ..entry.packet }
        } else {
            // Of as many packets as the destination is owed the first: it has had those before.
            let place = self.slab.nth_last(*list, next).unwrap_or(place);
            self.slab.entry(place)?.packet.copy_for(nodes, self.spares.pop())
        };
        self.rest(at);
        Some(packet)
    }

    /// Takes a whole packet out without noting a departure.
    pub fn remove(&mut self, at: BinAt, class: Class, place: Slot) -> Option<Packet<B>> {
        let receivers = self.slab.entry(place)?.packet.receivers;
        self.arrange(at, class, place, receivers, false);
        let entry = self.slab.remove(&mut self.bins[at.0 as usize].lists[class.list()], place)?;
        self.discount(at, class, entry.packet.body.bytes().into(), entry.packet.receivers);
        self.rest(at);
        Some(entry.packet)
    }

    /// Moves a packet to the critical queue.
    pub fn make_critical(&mut self, at: BinAt, place: Slot) {
        _ = self.bin_mut(at);
        let bin = &mut self.bins[at.0 as usize];
        let Some(entry) = self.slab.remove(&mut bin.lists[Class::LowLatency.list()], place) else { return };
        let bytes = u64::from(entry.packet.body.bytes());
        for node in entry.packet.receivers.iter() {
            if let Some(destination) = bin.destinations.get_mut(node) {
                destination.classes[Class::LowLatency as usize] -= bytes;
                destination.classes[Class::Critical as usize] += bytes;
            }
        }
        self.slab.push(&mut bin.lists[Class::Critical.list()], entry);
    }

    /// Adds zombie bytes for a destination that the bin has.
    pub fn add_zombies(&mut self, at: BinAt, node: NodeId, class: Class, bytes: u64) {
        debug_assert!(!class.is_real(), "a class of packets is no counter");
        if bytes == 0 {
            return;
        }
        let bin = self.bin_mut(at);
        if let Some(destination) = bin.destinations.get_mut(node) {
            destination.classes[class as usize] += bytes;
            let sensitive = if class.is_sensitive() { bytes } else { 0 };
            bin.sensitive += sensitive;
            self.sensitive += sensitive;
            self.activate(at);
        }
    }

    /// Takes up to so many zombie bytes of a class from a destination; returns how many.
    pub fn take_zombies(&mut self, at: BinAt, node: NodeId, class: Class, most: u64) -> u64 {
        let bin = self.bin_mut(at);
        let Some(destination) = bin.destinations.get_mut(node) else { return 0 };
        let left = &mut destination.classes[class as usize];
        let taken = most.min(*left);
        *left -= taken;
        let sensitive = if class.is_sensitive() { taken } else { 0 };
        bin.sensitive -= sensitive;
        self.sensitive -= sensitive;
        self.rest(at);
        taken
    }

    fn activate(&mut self, at: BinAt) {
        let bin = &mut self.bins[at.0 as usize];
        if bin.active.is_none() {
            bin.active = Some(self.active.len() as u32);
            self.active.push(at);
        }
    }

    /// Takes a bin that holds nothing off the list of active ones.
    fn rest(&mut self, at: BinAt) {
        let bin = &mut self.bins[at.0 as usize];
        if let Some(place) = bin.active.filter(|_| bin.holds_nothing()) {
            bin.active = None;
            self.active.swap_remove(place as usize);
            if let Some(moved) = self.active.get(place as usize) {
                self.bins[moved.0 as usize].active = Some(place);
            }
        }
    }
}

#[cfg(test)]
mod tests;
