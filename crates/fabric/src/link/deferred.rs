//! Deferred links: links whose queue and transmitter are caught up on demand, not event by event.
//!
//! While a packet is in a link's pipe, nothing that happens in the link's queue reaches the far end before that packet
//! does. So a link has one event: when the first packet of its pipe arrives or, while the pipe is empty, when the link does
//! something next. Whatever was due before (packets that leave their host for this link, transmissions) is then done in
//! order, each at its own time. The same happens before anything else that could see the difference: another packet that
//! arrives at the queue, an acknowledgement that reaches a host whose packets have yet to leave, a sample.
//!
//! Ties of the same nanosecond go to the lower source number, as in the event queue: a link that is not deferred does the
//! same things in the same order. These links are not deferred: links whose events others must see at once (an observer, a
//! host's card), paced links, links on which packets overtake each other, and all links of a network with stations or
//! scheduled changes. `crates/sim/tests/integration/random` runs random labs both ways.

use super::{Around, Link};
use crate::event::EventQueue;
use crate::tap::Taps;
use crate::wire::Wire;
use std::collections::VecDeque;
use weir_base::Time;

/// Packets that have yet to leave their hosts for a deferred link.
#[derive(Debug)]
pub(crate) struct Departures<P> {
    /// When the first of them leaves, and from which host; [`NOTHING`] if there is none.
    next: (Time, u32),
    /// The first of them: often there is only one.
    first: Option<P>,
    /// The others, with when each leaves, and from which host; soonest first, then the lower host.
    others: VecDeque<(Time, u32, P)>,
    /// When the last of them leaves or, if there is none, when a packet has left; and from which host.
    last: (Time, u32),
}

/// What follows the last departure.
const NOTHING: (Time, u32) = (Time::NEVER, 0);

impl<P> Default for Departures<P> {
    fn default() -> Departures<P> {
        Departures { next: NOTHING, first: None, others: VecDeque::new(), last: (Time::ZERO, 0) }
    }
}

impl<P> Departures<P> {
    /// Number of these packets.
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.first.is_some()) + self.others.len() as u64
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, at: Time, host: u32, packet: P) {
        // Nearly always this packet is the last to leave.
        if at <= self.last.0 && (at, host) < self.last {
            return self.push_between(at, host, packet);
        }
        self.last = (at, host);
        if self.first.is_none() {
            (self.next, self.first) = ((at, host), Some(packet));
        } else {
            self.others.push_back((at, host, packet));
        }
    }

    #[inline(never)]
    fn push_between(&mut self, at: Time, host: u32, packet: P) {
        if (at, host) < self.next {
            let (next, host_of_next) = std::mem::replace(&mut self.next, (at, host));
            if let Some(first) = self.first.replace(packet) {
                self.others.push_front((next, host_of_next, first));
            }
            return;
        }
        let place = self.others.partition_point(|other| (other.0, other.1) <= (at, host));
        self.others.insert(place, (at, host, packet));
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<P> {
        let first = self.first.take();
        match self.others.pop_front() {
            Some((at, host, packet)) => (self.next, self.first) = ((at, host), Some(packet)),
            None => self.next = NOTHING,
        }
        first
    }
}

/// The event up to which a deferred link is caught up, inclusive: that of this source at this time.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    pub(crate) time: Time,
    pub(crate) source: usize,
    /// The source of the first host; the sources of the other hosts follow.
    pub(crate) first_host: usize,
}

impl Until {
    /// Whether an event of this source at this time comes first.
    #[inline(always)]
    fn includes(self, at: Time, source: usize) -> bool {
        at < self.time || (at == self.time && source <= self.source)
    }
}

impl<P: Wire> Link<P> {
    /// Whether anything was due by now in this deferred link.
    #[inline(always)]
    fn is_late(&self, now: Time) -> bool {
        self.departures.next.0 <= now || self.wake <= now
    }

    /// Handles the events of this deferred link that are due.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, until: Until, taps: &mut Taps, around: &mut Around<P>) {
        loop {
            let departs = self.departures.next.0;
            if self.wake <= departs {
                if !until.includes(self.wake, 2 * self.stats.link) {
                    return;
                }
                self.transmit(self.wake, around);
            } else {
                let host = self.departures.next.1 as usize;
                if departs > until.time || !until.includes(departs, until.first_host + host) {
                    return;
                }
                let Some(packet) = self.departures.pop() else { return };
                taps.sent(host, &packet, departs);
                self.arrive(packet, departs, around);
            }
        }
    }

    /// As [`Link::catch_up`], for callers at whose time mostly nothing is due.
    #[inline(always)]
    pub(crate) fn catch_up_if_late(&mut self, until: Until, taps: &mut Taps, around: &mut Around<P>) {
        if self.is_late(until.time) {
            self.catch_up_late(until, taps, around);
        }
    }

    #[inline(never)]
    fn catch_up_late(&mut self, until: Until, taps: &mut Taps, around: &mut Around<P>) {
        self.catch_up(until, taps, around);
    }

    /// When this deferred link needs its event, and the event's source.
    #[inline(always)]
    pub(crate) fn due(&self, first_host: usize) -> (Time, usize) {
        if self.head() != Time::NEVER {
            (self.head(), 2 * self.stats.link + 1)
        } else if self.is_armed() {
            (self.wake, 2 * self.stats.link)
        } else {
            let (departs, host) = self.departures.next;
            (departs, first_host + host as usize)
        }
    }

    /// Puts this deferred link's event into the event queue, if it is earlier than the one there.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, first_host: usize, events: &mut EventQueue) {
        let (due, source) = self.due(first_host);
        if due < self.scheduled {
            self.scheduled = due;
            events.push(due, source);
        }
    }
}
