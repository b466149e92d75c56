//! Queues of a node: a bin for each destination or group, ten latency classes in each, and bytes counted by destination.
//!
//! Source: digest A 1.1, A 1.2, A 6.4. Four classes hold packets, six are counters of zombie bytes. A bin for a node is a group of
//! one, so the same code serves both. Here a zombie never crosses a link, so the class of received ones stays empty.

mod list;

pub use list::{Entry, Place};

use crate::nodes::{NodeId, Nodes, PerNode};
use crate::packet::{Body, GroupId, Key, Packet};
use list::{List, Slab};
use std::collections::BTreeMap;
use weir_base::Time;

/// A latency class, in the order of service (digest A 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Sensitive packets whose only useful next hops were already visited.
    Critical,
    /// Packets of the overlay's own control.
    Control,
    /// Sensitive packets, by how little time they have left.
    LowLatency,
    /// Zombies in place of packets that were too late.
    Expired,
    /// Zombies against starvation, sensitive.
    StarvedSensitive,
    /// Zombies that stand for depth without delay, sensitive.
    VirtualSensitive,
    /// All other packets, first in, first out.
    Normal,
    /// Zombies from neighbours.
    Received,
    /// Zombies against starvation.
    Starved,
    /// Zombies that stand for depth without delay.
    Virtual,
}

impl Class {
    /// All classes, in the order of service.
    pub const ALL: [Class; 10] = [
        Class::Critical,
        Class::Control,
        Class::LowLatency,
        Class::Expired,
        Class::StarvedSensitive,
        Class::VirtualSensitive,
        Class::Normal,
        Class::Received,
        Class::Starved,
        Class::Virtual,
    ];
    /// The classes that hold packets.
    pub const REAL: [Class; 4] = [Class::Critical, Class::Control, Class::LowLatency, Class::Normal];
    /// Zombie classes of sensitive traffic, in the order in which they leave.
    pub const SENSITIVE_ZOMBIES: [Class; 3] =
        [Class::Expired, Class::StarvedSensitive, Class::VirtualSensitive];
    /// Zombie classes of other traffic, in the order in which they leave.
    pub const NORMAL_ZOMBIES: [Class; 3] = [Class::Received, Class::Starved, Class::Virtual];

    /// Whether it counts in the depth of sensitive traffic.
    pub const fn is_sensitive(self) -> bool {
        (self as u8) <= Class::VirtualSensitive as u8
    }
    /// Whether it holds packets; if not, it counts zombie bytes.
    pub const fn is_real(self) -> bool {
        matches!(self, Class::Critical | Class::Control | Class::LowLatency | Class::Normal)
    }
    /// The list of a class that holds packets.
    const fn list(self) -> usize {
        match self {
            Class::Critical => 0,
            Class::Control => 1,
            Class::LowLatency => 2,
            _ => 3,
        }
    }
}

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

/// The bytes that wait for one destination of a bin, and what others keep about it.
#[derive(Debug, Clone, Default)]
pub struct Destination<S> {
    classes: [u64; 10],
    packets: u32,
    /// When bytes for it last left or, before that, when it was first used.
    pub last_departure: Time,
    /// What the node keeps about it.
    pub state: S,
}

impl<S> Destination<S> {
    /// Bytes of a class.
    #[inline]
    pub fn bytes(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }
    /// All bytes.
    #[inline]
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }
    /// Bytes of packets: of sensitive classes, or of all.
    #[inline]
    pub fn real(&self, sensitive: bool) -> u64 {
        let normal = if sensitive { 0 } else { self.bytes(Class::Normal) };
        self.bytes(Class::Critical) + self.bytes(Class::Control) + self.bytes(Class::LowLatency) + normal
    }
    /// Bytes of zombies: of sensitive classes, or of all.
    #[inline]
    pub fn zombies(&self, sensitive: bool) -> u64 {
        let sum = |classes: [Class; 3]| classes.iter().map(|class| self.bytes(*class)).sum::<u64>();
        sum(Class::SENSITIVE_ZOMBIES) + if sensitive { 0 } else { sum(Class::NORMAL_ZOMBIES) }
    }
    /// Packets owed to it. Where packets are coded they are interchangeable, and this number is what counts.
    pub fn packets(&self) -> u32 {
        self.packets
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
    /// Bytes of sensitive classes, of all destinations.
    sensitive: u64,
    /// Its place in the list of active bins.
    active: Option<u32>,
}

impl<S> Bin<S> {
    /// The first packet of a class.
    pub fn first(&self, class: Class) -> Option<Place> {
        self.lists[class.list()].first()
    }
    /// The number of packets of a class.
    pub fn packets(&self, class: Class) -> u32 {
        self.lists[class.list()].packets()
    }
    /// Whether it holds anything of a sensitive class.
    pub fn has_sensitive(&self) -> bool {
        self.sensitive > 0
    }
    fn holds_nothing(&self) -> bool {
        self.lists.iter().all(|list| list.packets() == 0)
            && self
                .destinations
                .iter()
                .all(|(_, destination)| destination.classes.iter().all(|bytes| *bytes == 0))
    }
}

/// A bin's place; valid as long as the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BinAt(u32);

/// What became of a packet that was to be queued.
#[derive(Debug)]
pub enum Queued<B> {
    /// It waits.
    Waits,
    /// It has no room.
    Refused(Packet<B>),
    /// It waits, and this one has had to give way.
    Displaced(Packet<B>),
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
        }
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
        &mut self.bins[at.0 as usize]
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
    pub fn entry(&self, place: Place) -> Option<&Entry<B>> {
        self.slab.entry(place)
    }
    /// The place behind this one in the same class.
    pub fn after(&self, place: Place) -> Option<Place> {
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
            sensitive: 0,
            active: None,
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
        let entry = Entry { packet, arrived: now, rank };
        let list = &mut self.bins[at.0 as usize].lists[class.list()];
        if class == Class::LowLatency {
            self.slab.insert(list, entry)
        } else {
            self.slab.push(list, entry)
        }
        self.activate(at);
        victim.map_or(Queued::Waits, Queued::Displaced)
    }

    fn count(&mut self, at: BinAt, class: Class, packet: &Packet<B>, now: Time) {
        let bytes = u64::from(packet.body.bytes());
        for node in packet.receivers.iter() {
            let destination = self.bins[at.0 as usize].destinations.get_or(node, || Destination {
                classes: [0; 10],
                packets: 0,
                last_departure: now,
                state: S::default(),
            });
            destination.classes[class as usize] += bytes;
            destination.packets += 1;
        }
        if class.is_sensitive() {
            self.bins[at.0 as usize].sensitive += bytes * packet.receivers.len() as u64;
        }
    }

    fn discount(&mut self, at: BinAt, class: Class, bytes: u64, nodes: Nodes) {
        let bin = &mut self.bins[at.0 as usize];
        for node in nodes.iter() {
            if let Some(destination) = bin.destinations.get_mut(node) {
                let left = &mut destination.classes[class as usize];
                let gone = bytes.min(*left);
                *left -= gone;
                destination.packets = destination.packets.saturating_sub(1);
                bin.sensitive -= if class.is_sensitive() { gone } else { 0 };
            }
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
        place: Place,
        nodes: Nodes,
        now: Time,
    ) -> Option<Packet<B>> {
        let left = self.slab.entry(place)?.packet.receivers.minus(nodes);
        let packet = if left.is_empty() {
            self.remove(at, class, place)?
        } else {
            let entry = self.slab.entry_mut(place)?;
            let leaving = entry.packet.receivers.and(nodes);
            let copy = entry.packet.copy_for(leaving);
            entry.packet.receivers = left;
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
            Packet { receivers: nodes, ..entry.packet }
        } else {
            // Of as many packets as the destination is owed the first: it has had those before.
            let place = self.slab.nth_last(*list, next).unwrap_or(place);
            self.slab.entry(place)?.packet.copy_for(nodes)
        };
        self.rest(at);
        Some(packet)
    }

    /// Takes a whole packet out without noting a departure.
    pub fn remove(&mut self, at: BinAt, class: Class, place: Place) -> Option<Packet<B>> {
        let entry = self.slab.remove(&mut self.bins[at.0 as usize].lists[class.list()], place)?;
        self.discount(at, class, entry.packet.body.bytes().into(), entry.packet.receivers);
        self.rest(at);
        Some(entry.packet)
    }

    /// Moves a packet to the critical queue.
    pub fn make_critical(&mut self, at: BinAt, place: Place) {
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
        let bin = &mut self.bins[at.0 as usize];
        if let Some(destination) = bin.destinations.get_mut(node).filter(|_| bytes > 0) {
            destination.classes[class as usize] += bytes;
            bin.sensitive += if class.is_sensitive() { bytes } else { 0 };
            self.activate(at);
        }
    }

    /// Takes up to so many zombie bytes of a class from a destination; returns how many.
    pub fn take_zombies(&mut self, at: BinAt, node: NodeId, class: Class, most: u64) -> u64 {
        let bin = &mut self.bins[at.0 as usize];
        let Some(destination) = bin.destinations.get_mut(node) else { return 0 };
        let left = &mut destination.classes[class as usize];
        let taken = most.min(*left);
        *left -= taken;
        bin.sensitive -= if class.is_sensitive() { taken } else { 0 };
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
