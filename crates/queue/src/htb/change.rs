//! Adding, changing and removing classes while others send.

use super::{Class, Config, DEPTH, Feed, Htb, Mode, Working};
use crate::{DropReason, Fate};
use std::collections::{BTreeMap, BTreeSet};
use weir_base::{Packet, Random, Time};

impl<P: Packet> Htb<P> {
    /// Adds a class below another, or a root, and returns its identifier; `None` if there is no such parent, or the tree would be
    /// too deep. A leaf that becomes a parent drops the packets that it holds, as in the kernel, and takes no more.
    pub fn add(
        &mut self,
        config: &Class,
        parent: Option<u32>,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<u32> {
        if let Some(id) = parent {
            let parent = self.get(id)?;
            let level =
                parent.parent.map_or(DEPTH, |above| self.get(above).map_or(DEPTH, |above| above.level));
            if parent.is_leaf() {
                if level < 2 {
                    return None;
                }
                self.empty(id, now, fate);
                self.forget_wait(id);
                self.index.remove(id);
                let parent = self.class(id)?;
                (parent.level, parent.mode) = (level - 1, Mode::CanSend);
            }
            self.class(id)?.children += 1;
        }
        let free = self.classes.iter().skip(1).position(Option::is_none).map(|place| place + 1);
        let id = free.unwrap_or(self.classes.len());
        if free.is_none() {
            self.classes.push(None);
        }
        let random = Random::stream_of(self.random.bits(), "class", id as u64);
        let queue = config.queue.build(&self.link, random);
        self.leaves_wait |= !queue.is_work_conserving();
        self.classes[id] = Some(Box::new(Working::new(config, parent, queue, now)));
        self.index.add(id as u32, config);
        Some(id as u32)
    }

    /// Changes a class's rates, bursts, quantum and priority; the class keeps its tokens and its packets. False if there is no such
    /// class.
    pub fn change(&mut self, id: u32, config: &Class) -> bool {
        let Some(class) = self.class(id) else { return false };
        let turned = (class.active != 0 && class.is_leaf() && class.prio != config.prio).then_some(());
        if turned.is_some() {
            self.deactivate(id);
        }
        if let Some(class) = self.class(id) {
            class.change(config);
        }
        if turned.is_some() {
            self.activate(id);
        }
        if self.get(id).is_some_and(Working::is_leaf) {
            self.index.remove(id);
            self.index.add(id, config);
        }
        true
    }

    /// The identifier of each class by its name.
    fn by_name(&self) -> BTreeMap<String, u32> {
        let named = |(id, class): (usize, &Option<Box<Working<P>>>)| {
            class.as_ref().map(|class| (class.name.clone(), id as u32))
        };
        self.classes.iter().enumerate().filter_map(named).collect()
    }

    /// Removes a class without children and drops its packets. If it was its parent's last child, the parent becomes a leaf and
    /// takes the packets that no other leaf takes. False if there is no such class, or it has children.
    pub fn remove(&mut self, id: u32, now: Time, fate: &mut dyn Fate<P>) -> bool {
        let Some(class) = self.get(id).filter(|class| class.children == 0) else { return false };
        let parent = class.parent;
        self.empty(id, now, fate);
        self.forget_wait(id);
        self.index.remove(id);
        if let Some(slot) = self.classes.get_mut(id as usize) {
            *slot = None;
        }
        if let Some(above) = parent.and_then(|parent| self.class(parent)) {
            above.children -= 1;
            if above.children == 0 {
                above.become_leaf(now);
                above.feeds.iter_mut().for_each(Feed::clear);
                if let Some(parent) = parent {
                    self.forget_wait(parent);
                    self.index.add(parent, &Class::default());
                }
            }
        }
        true
    }

    /// Drops a leaf's packets and deactivates the leaf.
    fn empty(&mut self, id: u32, now: Time, fate: &mut dyn Fate<P>) {
        if self.get(id).is_some_and(|class| class.active != 0) {
            self.deactivate(id);
        }
        let Some(class) = self.classes.get_mut(id as usize).and_then(Option::as_deref_mut) else { return };
        let before = class.queue.backlog();
        while let Some(packet) = class.queue.dequeue(now, fate) {
            fate.dropped(packet, DropReason::Full, now);
        }
        self.backlog.packets -= before.packets;
        self.backlog.bytes = self.backlog.bytes - before.bytes;
    }

    /// Applies new parameters: removes the classes that they do not name, with their packets, adds new ones, and changes the others.
    pub(super) fn become_like(&mut self, config: &Config, now: Time, fate: &mut dyn Fate<P>) {
        (self.overhead, self.direct_limit) = (config.overhead.get(), config.direct_limit as usize);
        let mut there = self.by_name();
        let named: BTreeSet<&str> = config.classes.iter().map(|class| class.name.as_str()).collect();
        let mut gone: Vec<u32> =
            there.iter().filter(|(name, _)| !named.contains(name.as_str())).map(|(_, id)| *id).collect();
        // Children are removed before their parents.
        while !gone.is_empty() {
            let before = gone.len();
            gone.retain(|id| !self.remove(*id, now, fate));
            if gone.len() == before {
                break;
            }
        }
        for class in &config.classes {
            if let Some(id) = there.get(&class.name) {
                self.change(*id, class);
                continue;
            }
            let parent = class.parent.as_ref().and_then(|parent| there.get(parent).copied());
            if let Some(id) = self.add(class, parent, now, fate) {
                there.insert(class.name.clone(), id);
            }
        }
    }
}
