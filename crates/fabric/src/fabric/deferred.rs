//! The fabric's part of deferred links ([`crate::link::Until`]): packets go in, the one event of a link comes due, and a link is caught up
//! before its state is read.

use super::{Delivery, Fabric};
use crate::link::Until;
use crate::wire::Wire;
use weir_base::Time;

impl<P: Wire> Fabric<P> {
    #[inline(always)]
    fn until(&self, time: Time, source: usize) -> Until {
        Until { time, source, first_host: self.first_host }
    }

    /// Lets a packet leave its host for a deferred link at `at`, now or later.
    #[inline(always)]
    pub(crate) fn defer(&mut self, link: usize, at: Time, host: usize, packet: P) {
        let link = &mut self.links[link];
        link.departures.push(at, host as u32, packet);
        link.schedule(self.first_host, &mut self.events);
    }

    /// A packet arrives at a deferred link.
    #[inline(always)]
    pub(crate) fn arrive_deferred(&mut self, link: usize, packet: P, now: Time) {
        let until = self.until(now, self.acting);
        let link = &mut self.links[link];
        link.catch_up_if_late(until, &mut self.taps, &mut self.around);
        link.arrive(packet, now, &mut self.around);
        link.schedule(self.first_host, &mut self.events);
    }

    /// Handles a deferred link's event. A packet at the far end takes its next hop; returns it if it has reached its host.
    #[inline(always)]
    pub(crate) fn deferred_event(&mut self, index: usize, now: Time, source: usize) -> Option<Delivery<P>> {
        let until = self.until(now, source);
        let link = &mut self.links[index];
        if link.scheduled != now {
            self.events.pop();
            return None;
        }
        link.catch_up(until, &mut self.taps, &mut self.around);
        let packet = link.take_arrived(now);
        let ((due, source), to) = (link.due(self.first_host), link.to as usize);
        link.scheduled = due;
        self.next_event(due, source);
        let packet = packet?;
        let hop = self.hops.next(to, packet.destination());
        self.take_hop(hop, to, Some(index), packet, now)
    }

    /// Notes the packets that this host has sent before `now`. Called before the taps see a packet that reaches the host.
    #[inline(always)]
    pub(crate) fn catch_up_with_host(&mut self, host: usize, now: Time) {
        if let Some(link) = self.edges[host].link {
            let until = self.until(now, self.acting);
            self.links[link as usize].catch_up_if_late(until, &mut self.taps, &mut self.around);
        }
    }

    /// Brings all links up to `now`, so that counters and queues are as of that time.
    pub fn settle(&mut self, now: Time) {
        (0..self.links.len()).for_each(|link| self.settle_link(link, now));
    }

    /// Brings one link up to `now`.
    pub(crate) fn settle_link(&mut self, index: usize, now: Time) {
        let until = self.until(now, usize::MAX);
        let link = &mut self.links[index];
        if link.deferred {
            link.catch_up_if_late(until, &mut self.taps, &mut self.around);
        }
    }

    /// From now on no link is deferred. Nothing may have happened yet.
    pub(crate) fn defer_nothing(&mut self) {
        self.links.iter_mut().for_each(|link| link.deferred = false);
        self.edges.iter_mut().for_each(|edge| edge.link = None);
    }
}
