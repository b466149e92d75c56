//! What adds up: sojourns, drops by reason, marks by the codepoint at arrival, bytes, backlog, and a series of periods.

use super::Sighting;
use super::counts::QueueCounts;
use super::pairing::{Found, Waiting};
use crate::rate::{Merge, Periods, elapsed};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_base::{Ecn, Span, Time};

/// Drops for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Packets that the queue refused.
    pub at_arrival: u64,
    /// Packets that it had accepted.
    pub after_waiting: u64,
}

/// Packets that arrived with one codepoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ByCodepoint {
    /// Packets that left.
    pub packets: u64,
    /// Of these, the ones that the queue marked CE.
    pub marked: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// Bytes that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Backlog {
    /// Mean over time.
    pub mean_bytes: f64,
    /// Most.
    pub max_bytes: u64,
}

/// What happened in one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueuePeriod {
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their sojourns in ns.
    pub sojourn_ns: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Packets that were marked.
    pub marks: u64,
    /// The most bytes that waited.
    pub backlog_bytes: u64,
}

impl QueuePeriod {
    /// The mean sojourn; `None` if no packet left.
    pub fn mean_sojourn(&self) -> Option<Span> {
        self.sojourn_ns.checked_div(self.packets).map(Span::from_nanos)
    }
}

impl Merge for QueuePeriod {
    fn merge(&mut self, other: &QueuePeriod) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.sojourn_ns = self.sojourn_ns.saturating_add(other.sojourn_ns);
        self.drops += other.drops;
        self.marks += other.marks;
        self.backlog_bytes = self.backlog_bytes.max(other.backlog_bytes);
    }
}

#[derive(Debug)]
pub(super) struct Sums {
    pub(super) start: Time,
    pub(super) arrivals: u64,
    pub(super) departures: u64,
    pub(super) passed: u64,
    pub(super) bytes: u64,
    pub(super) drops: BTreeMap<u16, Drops>,
    /// Counts by codepoint, since they were last taken, and those that were taken.
    pub(super) counts: QueueCounts,
    taken: QueueCounts,
    /// Departures without an arrival, and arrivals that cannot be there any more.
    pub(super) unmatched_departures: u64,
    pub(super) unmatched_arrivals: u64,
    pub(super) backlog: u64,
    backlog_max: u64,
    /// Bytes times nanoseconds, until the last change.
    backlog_area: u128,
    changed: Time,
    pub(super) periods: Periods<QueuePeriod>,
}

impl Sums {
    pub(super) fn new(start: Time, period: Span) -> Sums {
        Sums {
            start,
            arrivals: 0,
            departures: 0,
            passed: 0,
            bytes: 0,
            drops: BTreeMap::new(),
            counts: QueueCounts::default(),
            taken: QueueCounts::default(),
            unmatched_departures: 0,
            unmatched_arrivals: 0,
            backlog: 0,
            backlog_max: 0,
            backlog_area: 0,
            changed: start,
            periods: Periods::new(period.max(Span::from_micros(1))),
        }
    }

    /// A packet comes in. Its bytes wait until it leaves, which may be at once.
    pub(super) fn arrived(&mut self, now: Time, sighting: &Sighting) {
        self.arrivals += u64::from(sighting.segments);
        self.counts.arrived(sighting.ecn, sighting.segments.into());
        self.passed += if sighting.what == super::What::Passed { sighting.segments.into() } else { 0 };
        self.change(now, self.backlog + u64::from(sighting.bytes));
    }

    /// A packet leaves; without an arrival it waited before the observation began, or its arrival was lost.
    pub(super) fn left(&mut self, now: Time, sighting: &Sighting, found: Option<&Found>) {
        let packets = u64::from(sighting.segments);
        self.departures += packets;
        self.bytes += u64::from(sighting.bytes);
        self.counts.left(found.map_or(sighting.ecn, |found| found.ecn), packets, sighting.bytes);
        let period = self.at(now);
        period.packets += packets;
        period.bytes += u64::from(sighting.bytes);
        let Some(found) = found else {
            self.unmatched_departures += packets;
            return;
        };
        let sojourn = elapsed(found.since, now);
        let is_marked = sighting.ecn == Ecn::Ce && found.ecn != Ecn::Ce;
        self.counts.waited(found.ecn, packets, sojourn, is_marked);
        let period = self.at(now);
        period.sojourn_ns = period.sojourn_ns.saturating_add(sojourn.as_nanos().saturating_mul(packets));
        period.marks += if is_marked { packets } else { 0 };
        self.change(now, self.backlog.saturating_sub(found.bytes.into()));
    }

    /// A packet is dropped: one of those that wait, or one that was refused. A large one counts once, as the kernel counts it.
    pub(super) fn dropped(&mut self, now: Time, sighting: &Sighting, reason: u16, found: Option<&Found>) {
        let drops = self.drops.entry(reason).or_default();
        let ecn = match found {
            Some(found) => {
                drops.after_waiting += 1;
                found.ecn
            }
            None => {
                drops.at_arrival += 1;
                self.counts.arrived(sighting.ecn, 1);
                sighting.ecn
            }
        };
        self.counts.dropped(ecn);
        self.at(now).drops += 1;
        let bytes = found.map_or(0, |found| u64::from(found.bytes));
        self.change(now, self.backlog.saturating_sub(bytes));
    }

    /// A packet that waits has left or was dropped without an event.
    pub(super) fn forgotten(&mut self, now: Time, waiting: &Waiting) {
        self.unmatched_arrivals += u64::from(waiting.parts);
        self.change(now, self.backlog.saturating_sub(waiting.bytes_left.into()));
    }

    /// The counts since they were last taken.
    pub(super) fn take_counts(&mut self) -> QueueCounts {
        let counts = std::mem::take(&mut self.counts);
        self.taken.merge(&counts);
        counts
    }

    /// The counts since the beginning.
    pub(super) fn all_counts(&self) -> QueueCounts {
        let mut all = self.taken.clone();
        all.merge(&self.counts);
        all
    }

    pub(super) fn totals(&self) -> QueuePeriod {
        let mut total = QueuePeriod::default();
        self.periods.periods.iter().for_each(|period| total.merge(period));
        total
    }

    /// What waited, until a time.
    pub(super) fn backlog_until(&self, end: Time) -> Backlog {
        let area = self.backlog_area + self.area_until(end);
        let time = elapsed(self.start, end).as_nanos().max(1);
        Backlog { mean_bytes: area as f64 / time as f64, max_bytes: self.backlog_max }
    }

    fn area_until(&self, now: Time) -> u128 {
        u128::from(self.backlog) * u128::from(elapsed(self.changed, now).as_nanos())
    }

    fn change(&mut self, now: Time, backlog: u64) {
        self.backlog_area += self.area_until(now);
        self.changed = self.changed.max(now);
        self.backlog = backlog;
        self.backlog_max = self.backlog_max.max(backlog);
        let period = self.at(now);
        period.backlog_bytes = period.backlog_bytes.max(backlog);
    }

    /// The period of a time.
    fn at(&mut self, now: Time) -> &mut QueuePeriod {
        self.periods.at(elapsed(self.start, now))
    }
}
