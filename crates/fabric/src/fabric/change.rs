//! Changes of links: those of the schedule, and those that a driver asks for while the network works.

use super::{Fabric, both_hops};
use crate::config::{self, Config};
use crate::wire::Wire;
use weir_base::{Span, Time};

/// A scheduled event of a link.
#[derive(Debug)]
pub(super) enum Event {
    /// Its properties change.
    Change(Box<config::Change>),
    /// An outage begins (true) or ends (false) at this time.
    Outage(bool, Span),
}

impl Event {
    pub(super) fn at(&self) -> Span {
        match self {
            Event::Change(change) => change.at,
            Event::Outage(_, at) => *at,
        }
    }
}

impl<P: Wire> Fabric<P> {
    /// From now on the instrumented links of this configuration may change at any time ([`Fabric::change_now`]). Must be called before
    /// any packet is handed in.
    pub fn expect_changes(&mut self, config: &Config) {
        self.defer_nothing();
        let links = self.links.iter_mut().zip(&config.network.links);
        links
            .filter(|(_, plan)| plan.instrumented)
            .for_each(|(link, plan)| link.expect_changes(plan, config.seed));
    }

    /// Changes an instrumented link at `change.at`, to which the fabric has been advanced. Its changes must have been expected.
    pub fn change_now(&mut self, link: usize, change: config::Change) {
        if let Some((due, transmitter)) = self.change_link(link, Event::Change(Box::new(change))) {
            self.events.push(due, transmitter);
        }
    }

    /// Makes the next change of the schedule, whose source this is.
    pub(super) fn change(&mut self, number: usize) {
        let changed = self.changes.pop();
        let wake = changed.and_then(|(index, event)| self.change_link(index, event));
        let next = self.changes.last().map_or(Time::NEVER, |(_, event)| Time::ZERO + event.at());
        self.next_event(next, number);
        if let Some((due, transmitter)) = wake {
            self.events.push(due, transmitter);
        }
    }

    /// Changes a link. Returns the time and the source of its transmitter's new event, if it needs one.
    fn change_link(&mut self, index: usize, event: Event) -> Option<(Time, usize)> {
        self.changed += 1;
        let link = &mut self.links[index];
        let through = link.through();
        let due = match event {
            Event::Change(change) => link.change(&change, &mut self.around),
            Event::Outage(begins, at) => link.outage(begins, Time::ZERO + at),
        };
        if self.links[index].through() != through {
            (self.hops, self.exits) = both_hops(&self.routes, &self.links, &self.stations);
        }
        due.map(|due| (due, 2 * index))
    }
}
