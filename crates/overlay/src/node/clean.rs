//! Sensitive packets that can no longer be in time, and those whose useful next hops were all visited (digest A 6.4, step 1).
//!
//! A packet that is late for a destination becomes a zombie for it, so that the price of what was asked for stays. For a group each
//! receiver is judged alone.

use super::{Discard, Node, Output};
use crate::cat::Cat;
use crate::forward::SEARCH_BYTES;
use crate::linkstate::routes::is_in_time;
use crate::nodes::Nodes;
use crate::packet::Body;
use crate::queue::{BinAt, Class, Slot};
use weir_base::Time;

/// What becomes of a packet.
enum Fate {
    Stays,
    /// It is late for these.
    Late(Nodes),
    Critical,
}

impl<B: Body, C: Cat> Node<B, C> {
    /// Goes over the heads of all sensitive queues.
    pub(super) fn clean(&mut self, now: Time, out: &mut impl Output<B>) {
        if !self.queues.has_sensitive() {
            return;
        }
        let mut index = 0;
        while let Some(at) = self.queues.active().get(index).copied() {
            for class in [Class::Critical, Class::LowLatency] {
                if self.queues.bin(at).packets(class) > 0 {
                    self.clean_class(at, class, now, out);
                }
            }
            // A bin that is empty now has been replaced by another one at its place.
            if self.queues.active().get(index) == Some(&at) {
                index += 1;
            }
        }
    }

    fn clean_class(&mut self, at: BinAt, class: Class, now: Time, out: &mut impl Output<B>) {
        let mut place = self.queues.bin(at).first(class);
        let mut left = SEARCH_BYTES;
        while let Some(here) = place.filter(|_| left > 0) {
            let Some(entry) = self.queues.entry(here) else { return };
            let bytes = u64::from(entry.packet.body.bytes());
            left = left.saturating_sub(bytes);
            place = self.queues.after(here);
            match self.fate(here, class, now) {
                Fate::Stays => {}
                Fate::Critical => self.queues.make_critical(at, here),
                Fate::Late(nodes) => self.expire(at, class, here, nodes, bytes, now, out),
            }
        }
    }

    fn fate(&self, place: Slot, class: Class, now: Time) -> Fate {
        let Some(packet) = self.queues.entry(place).map(|entry| &entry.packet) else { return Fate::Stays };
        if packet.due.is_none() {
            return Fate::Stays;
        }
        // A critical packet goes by mean delays: it is late only when they do not let it arrive.
        let best = |node| match class {
            Class::Critical => self.routes.ports().filter_map(|port| self.routes.mean_via(port, node)).min(),
            _ => self.routes.best_delay(node),
        };
        let is_late = |node: &crate::nodes::NodeId| !is_in_time(best(*node), packet.due, now);
        let late: Nodes = packet.receivers.iter().filter(is_late).collect();
        if !late.is_empty() {
            return Fate::Late(late);
        }
        let is_useful = |node, port| is_in_time(self.routes.delay_via(port, node), packet.due, now);
        let mut open = self.neighbours.iter().filter(|one| !packet.visited.has(one.node));
        let can_go = open.any(|one| packet.receivers.iter().any(|node| is_useful(node, one.port)));
        if class == Class::LowLatency && !can_go { Fate::Critical } else { Fate::Stays }
    }

    #[expect(clippy::too_many_arguments, reason = "a packet's place has three parts")]
    fn expire(
        &mut self,
        at: BinAt,
        class: Class,
        place: Slot,
        late: Nodes,
        bytes: u64,
        now: Time,
        out: &mut impl Output<B>,
    ) {
        let Some(packet) = self.queues.take(at, class, place, late, now) else { return };
        for node in late.iter() {
            self.queues.add_zombies(at, node, Class::Expired, bytes);
            self.counters.zombies_added += bytes;
        }
        self.counters.expired += 1;
        out.discard(packet.body, Discard::Expired);
    }
}
