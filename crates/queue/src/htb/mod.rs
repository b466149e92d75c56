//! Hierarchical token bucket: a shaper with classes in a tree (Linux `sch_htb`), in the kernel's integers. A class may always send at
//! its rate; above that it borrows from its parent, up to its ceiling. Leaves with tokens of their own go before leaves that borrow,
//! and leaves that borrow from a lower level before those that borrow from a higher one. At the same level the lower `prio` goes
//! first, and leaves of equal `prio` take turns by deficit round robin.
//!
//! Differences: the kernel's timer may fire late; here a mode changes at its nanosecond. The kernel's hysteresis, off by default,
//! is left out.

mod change;
mod class;
mod config;
mod feed;
mod index;
#[cfg(test)]
mod tests;

pub use config::{Class, Config};

use crate::{Backlog, DropReason, Fate, Link, Queue};
use class::{Class as Working, Mode};
use config::{DEPTH, PRIORITIES};
use feed::Feed;
use index::Index;
use std::collections::VecDeque;
use weir_base::{FlowId, Packet, Random, Span, Time};

/// A shaper with classes.
#[derive(Debug)]
pub struct Htb<P> {
    /// By identifier, from 1; `None` for a free identifier.
    classes: Vec<Option<Box<Working<P>>>>,
    index: Index,
    overhead: u64,
    link: Link,
    random: Random,
    /// Packets that no class takes.
    direct: VecDeque<P>,
    direct_limit: usize,
    backlog: Backlog,
    /// Whether any leaf's queue is not work-conserving.
    leaves_wait: bool,
    /// Classes that may send with tokens of their own, by level and priority.
    rows: [[Feed; PRIORITIES]; DEPTH],
    /// Classes that wait for a change of mode, by level: the time, a number for the order of equal times, and the class. The
    /// earliest is last.
    waiting: [Vec<(Time, u64, u32)>; DEPTH],
    waits: u64,
}

/// The feed that a search for a leaf has reached: a row's, or a class's.
#[derive(Debug, Clone, Copy)]
enum At {
    Row,
    Class(u32),
}

impl<P: Packet> Htb<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Htb<P> {
        let mut htb = Htb {
            classes: vec![None],
            index: Index::default(),
            overhead: config.overhead.get(),
            link: *link,
            random,
            direct: VecDeque::new(),
            direct_limit: config.direct_limit as usize,
            backlog: Backlog::default(),
            leaves_wait: false,
            rows: Default::default(),
            waiting: Default::default(),
            waits: 0,
        };
        let id_of = |name: &String| {
            let place = config.classes.iter().position(|class| class.name == *name);
            place.map(|place| place as u32 + 1)
        };
        for class in &config.classes {
            let parent = class.parent.as_ref().and_then(id_of);
            htb.add(class, parent, Time::ZERO, &mut Nobody);
        }
        htb
    }

    fn class(&mut self, id: u32) -> Option<&mut Working<P>> {
        self.classes.get_mut(id as usize)?.as_deref_mut()
    }

    fn get(&self, id: u32) -> Option<&Working<P>> {
        self.classes.get(id as usize)?.as_deref()
    }

    fn feed(&mut self, at: At, level: usize, prio: usize) -> Option<&mut Feed> {
        match at {
            At::Row => self.rows.get_mut(level)?.get_mut(prio),
            At::Class(id) => self.class(id)?.feeds.get_mut(prio),
        }
    }

    /// Makes a leaf that holds packets active.
    fn activate(&mut self, id: u32) {
        if let Some(class) = self.class(id).filter(|class| class.active == 0) {
            class.active = 1 << class.prio;
            self.connect(id);
        }
    }

    /// Makes a leaf inactive.
    fn deactivate(&mut self, id: u32) {
        self.disconnect(id);
        if let Some(class) = self.class(id) {
            class.active = 0;
        }
    }

    /// Puts a class where its mode requires: into a row if it can send, or into its parent's feeds if it borrows, and so on up.
    fn connect(&mut self, id: u32) {
        let mut id = id;
        let Some(class) = self.get(id) else { return };
        let (mut active, mut mode, mut parent) = (class.active, class.mode, class.parent);
        while let (Mode::MayBorrow, Some(above), true) = (mode, parent, active != 0) {
            let Some(lender) = self.class(above) else { return };
            for prio in bits(active) {
                if !lender.feeds[prio].is_empty() {
                    active &= !(1 << prio);
                }
                lender.feeds[prio].insert(id);
            }
            lender.active |= active;
            (id, mode, parent) = (above, lender.mode, lender.parent);
        }
        let level = self.get(id).map_or(0, |class| class.level);
        if mode == Mode::CanSend {
            bits(active).for_each(|prio| self.rows[level][prio].insert(id));
        }
    }

    /// Removes a class from the row or the feeds where its mode has put it.
    fn disconnect(&mut self, id: u32) {
        let mut id = id;
        let Some(class) = self.get(id) else { return };
        let (mut active, mut mode, mut parent) = (class.active, class.mode, class.parent);
        while let (Mode::MayBorrow, Some(above), true) = (mode, parent, active != 0) {
            let Some(lender) = self.class(above) else { return };
            let mut emptied = 0;
            for prio in bits(active) {
                lender.feeds[prio].remove(id);
                if lender.feeds[prio].is_empty() {
                    emptied |= 1 << prio;
                }
            }
            lender.active &= !emptied;
            (id, active, mode, parent) = (above, emptied, lender.mode, lender.parent);
        }
        let level = self.get(id).map_or(0, |class| class.level);
        if mode == Mode::CanSend {
            bits(active).for_each(|prio| self.rows[level][prio].remove_from_row(id));
        }
    }

    /// Sets a class to its mode `elapsed` nanoseconds after its tokens were counted; returns how many nanoseconds later the mode may
    /// change.
    fn change_mode(&mut self, id: u32, elapsed: i64) -> i64 {
        let Some(class) = self.get(id) else { return 0 };
        let ((mode, until), old, active) = (class.mode_after(elapsed), class.mode, class.active);
        if mode != old {
            if active != 0 && old != Mode::CannotSend {
                self.disconnect(id);
            }
            if let Some(class) = self.class(id) {
                class.mode = mode;
            }
            if active != 0 && mode != Mode::CannotSend {
                self.connect(id);
            }
        }
        until
    }

    /// Lets a class wait for `delay` nanoseconds, at least one, until its mode may change.
    fn wait(&mut self, id: u32, delay: i64, now: Time) {
        let at = now + Span::from_nanos(delay.max(1) as u64);
        self.waits += 1;
        let order = self.waits;
        let Some(class) = self.class(id) else { return };
        class.waits = Some((at, order));
        let level = class.level;
        let waiting = &mut self.waiting[level];
        let place = waiting.partition_point(|(other, earlier, _)| (*other, *earlier) > (at, order));
        waiting.insert(place, (at, order, id));
    }

    fn forget_wait(&mut self, id: u32) {
        if self.class(id).is_some_and(|class| class.waits.take().is_some()) {
            self.waiting.iter_mut().for_each(|waiting| waiting.retain(|(.., class)| *class != id));
        }
    }

    /// Changes the modes of a level's classes that are due.
    fn do_events(&mut self, level: usize, now: Time) {
        while let Some((_, _, id)) = self.waiting[level].pop_if(|(at, ..)| *at <= now) {
            let Some(class) = self.class(id) else { continue };
            class.waits = None;
            let elapsed = class.elapsed(now);
            let until = self.change_mode(id, elapsed);
            if self.get(id).is_some_and(|class| class.mode != Mode::CanSend) {
                self.wait(id, until, now);
            }
        }
    }

    /// Charges a packet to its leaf and all classes above it.
    fn charge(&mut self, leaf: u32, level: usize, bytes: u64, now: Time) {
        let mut next = Some(leaf);
        while let Some(id) = next {
            let Some(class) = self.class(id) else { return };
            class.charge(bytes, level, now);
            let old = class.mode;
            next = class.parent;
            let until = self.change_mode(id, 0);
            let mode = self.get(id).map_or(old, |class| class.mode);
            if mode != old {
                self.forget_wait(id);
                if mode != Mode::CanSend {
                    self.wait(id, until, now);
                }
            }
        }
    }

    /// The leaf whose turn it is in a row, found through the feeds below it; `None` if the row is empty.
    fn leaf(&mut self, level: usize, prio: usize) -> Option<u32> {
        let mut path = [At::Row; DEPTH + 1];
        let mut depth = 0;
        if self.rows[level][prio].is_empty() {
            return None;
        }
        loop {
            let feed = self.feed(path[depth], level, prio)?;
            match feed.turn() {
                None => {
                    feed.rewind();
                    if depth > 0 {
                        depth -= 1;
                        self.feed(path[depth], level, prio)?.advance();
                    }
                }
                Some(id) if self.get(id)?.is_leaf() => return Some(id),
                Some(id) => {
                    depth += 1;
                    path[depth] = At::Class(id);
                }
            }
        }
    }

    /// Passes a leaf's turn on, in its parent's feed or in the row.
    fn advance(&mut self, leaf: u32, level: usize, prio: usize) {
        let at = match self.get(leaf).and_then(|class| class.parent).filter(|_| level > 0) {
            Some(parent) => At::Class(parent),
            None => At::Row,
        };
        if let Some(feed) = self.feed(at, level, prio) {
            feed.advance();
        }
    }

    /// The next packet of a row's leaves; `None` if none of them can send.
    fn send_from(&mut self, level: usize, prio: usize, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        let mut first = None;
        loop {
            let id = self.leaf(level, prio)?;
            // All leaves have been tried, and none can send yet.
            if first == Some(id) {
                return None;
            }
            let class = self.classes.get_mut(id as usize)?.as_deref_mut()?;
            let before = class.queue.backlog();
            let packet = class.queue.dequeue(now, fate);
            let after = class.queue.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes = self.backlog.bytes - (before.bytes - after.bytes);
            let Some(packet) = packet else {
                if after.packets == 0 {
                    self.deactivate(id);
                } else {
                    first = first.or(Some(id));
                    self.advance(id, level, prio);
                }
                continue;
            };
            let bytes = u64::from(packet.wire_length()) + self.overhead;
            class.deficit[level] -= bytes as i64;
            if class.deficit[level] < 0 {
                class.deficit[level] += class.quantum;
                self.advance(id, level, prio);
            }
            if after.packets == 0 {
                self.deactivate(id);
            }
            self.charge(id, level, bytes, now);
            return Some(packet);
        }
    }
}

/// The numbers of the bits that are set.
fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..PRIORITIES).filter(move |bit| mask & (1 << bit) != 0)
}

/// A fate for the construction of classes, when there are no packets.
struct Nobody;

impl<P> Fate<P> for Nobody {
    fn dropped(&mut self, _: P, _: DropReason, _: Time) {}
    fn marked(&mut self, _: &P, _: Time) {}
}

impl<P: Packet> Queue<P> for Htb<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let leaf = self.index.class_of(&packet);
        let Some((id, class)) =
            leaf.and_then(|id| Some((id, self.classes.get_mut(id as usize)?.as_deref_mut()?)))
        else {
            if self.direct.len() < self.direct_limit {
                self.backlog.add(&packet);
                self.direct.push_back(packet);
            } else {
                fate.dropped(packet, DropReason::Full, now);
            }
            return;
        };
        let before = class.queue.backlog();
        class.queue.enqueue(packet, now, fate);
        let after = class.queue.backlog();
        self.backlog.packets = self.backlog.packets + after.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
        if after.packets > 0 {
            self.activate(id);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        if let Some(packet) = self.direct.pop_front() {
            self.backlog.remove(&packet);
            return Some(packet);
        }
        for level in 0..DEPTH {
            self.do_events(level, now);
            for prio in 0..PRIORITIES {
                if let Some(packet) = self.send_from(level, prio, now, fate) {
                    return Some(packet);
                }
            }
        }
        None
    }

    /// The class of a packet may depend on its codepoint, which is not known here; then the queue counts as having room.
    fn takes(&self, flow: FlowId, length: u32) -> bool {
        match self.index.class_of_flow(flow) {
            Some(id) => self.get(id).is_none_or(|class| class.queue.takes(flow, length)),
            None => self.index.has_filters() || self.direct.len() < self.direct_limit,
        }
    }

    fn update(&mut self, now: Time) {
        self.classes.iter_mut().flatten().for_each(|class| class.queue.update(now));
    }

    fn departs(&self, now: Time) -> Option<Time> {
        if self.backlog.packets == 0 {
            return None;
        }
        let ready = match () {
            () if !self.direct.is_empty() => Some(now),
            () if self.rows.iter().flatten().all(Feed::is_empty) => None,
            () if self.leaves_wait => {
                let active =
                    self.classes.iter().flatten().filter(|class| class.active != 0 && class.is_leaf());
                active.filter_map(|class| class.queue.departs(now)).min()
            }
            () => Some(now),
        };
        // The next change of a mode may not let a leaf send; that is seen at its time.
        let changes =
            self.waiting.iter().filter_map(|waiting| waiting.last()).map(|(at, ..)| (*at).max(now)).min();
        ready.into_iter().chain(changes).min()
    }

    fn reconfigure(&mut self, config: &crate::Config, now: Time, fate: &mut dyn Fate<P>) {
        if let crate::Config::Htb(config) = config {
            self.become_like(config, now, fate);
        }
    }

    fn is_work_conserving(&self) -> bool {
        false
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let mut classes = [0.0; 3];
        for class in self.classes.iter().flatten().filter(|class| class.is_leaf() && class.active != 0) {
            classes[class.mode as usize] += 1.0;
        }
        let [throttled, borrowing, sending] = classes;
        report("direct_packets", self.direct.len() as f64);
        report("sending_classes", sending);
        report("borrowing_classes", borrowing);
        report("throttled_classes", throttled);
    }
}
