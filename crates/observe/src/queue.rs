//! What a running queue does, from what the kernel says of each packet: arrivals, departures, drops. A pure state machine pairs them; its
//! sojourn is from the moment that the queue has accepted a packet to the moment at which it hands the packet to the device.
//!
//! Packets are told apart by the address of the kernel's buffer. An address is used again after its packet is gone, and a queue may split a
//! large packet (TBF does) whose parts have other addresses. So an address counts only with the same flow and length, and parts are
//! found by their flow and their sequence number in it.

mod counts;
mod pairing;
mod sighting;
mod sums;
#[cfg(test)]
mod tests;
mod verdict;

pub use counts::QueueCounts;
pub use sighting::{Sighting, What};
pub use sums::{Backlog, ByCodepoint, Drops, QueuePeriod};
pub use verdict::{Bracket, KernelCounts, QueueChecks, QueueReport};

use pairing::{Found, Pairing};
use sums::Sums;
use weir_base::{Span, Time};

/// What is known before the first event.
#[derive(Debug, Clone, Copy)]
pub struct WatchSettings {
    /// When the observation begins.
    pub start: Time,
    /// The time over which each value of the series is taken.
    pub period: Span,
}

/// A queue under observation: [`Sighting`]s go in, a [`QueueReport`] comes out.
#[derive(Debug)]
pub struct Watched {
    pairing: Pairing,
    sums: Sums,
    last: Time,
}

impl Watched {
    /// A queue of which nothing is known yet.
    pub fn new(settings: WatchSettings) -> Watched {
        Watched {
            pairing: Pairing::default(),
            sums: Sums::new(settings.start, settings.period),
            last: settings.start,
        }
    }

    /// Takes an event in. Events of several processors may be a little out of order; a time never goes back for the sums.
    pub fn see(&mut self, sighting: &Sighting) {
        self.last = self.last.max(sighting.at);
        let (now, sums) = (self.last, &mut self.sums);
        match sighting.what {
            What::Enqueued => {
                sums.arrived(now, sighting);
                if let Some(forgotten) = self.pairing.arrive(sighting) {
                    sums.forgotten(now, &forgotten);
                }
            }
            What::Passed => {
                sums.arrived(now, sighting);
                sums.left(now, sighting, Some(&Found::at_once(sighting)));
            }
            What::Dequeued => {
                let found = self.pairing.leave(sighting);
                sums.left(now, sighting, found.as_ref());
            }
            What::Dropped { reason } => {
                let found = self.pairing.leave(sighting);
                sums.dropped(now, sighting, reason, found.as_ref());
            }
        }
    }

    /// Packets that wait, the parts of a large one each.
    pub fn waiting(&self) -> u64 {
        self.pairing.waiting()
    }

    /// The report at a time, by the kernel's own counts; `reason` names a number of the kernel's drop reasons.
    pub fn report(
        &self,
        end: Time,
        kernel: &KernelCounts,
        lost_events: u64,
        reason: &dyn Fn(u16) -> String,
    ) -> QueueReport {
        verdict::report(&self.sums, self.waiting(), end.max(self.last), kernel, lost_events, reason)
    }

    /// What happened so far.
    pub fn totals(&self) -> QueuePeriod {
        self.sums.totals()
    }

    /// The counts of packets since they were last taken. The report is of all of them.
    pub fn take_counts(&mut self) -> QueueCounts {
        self.sums.take_counts()
    }

    /// Bytes that wait.
    pub fn backlog(&self) -> u64 {
        self.sums.backlog
    }
}
