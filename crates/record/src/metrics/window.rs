//! Windows of time, on the boundaries of sample periods.

use crate::info::RunInfo;
use crate::records::Records;
use weir_base::{Span, Time};

/// Length of the seconds of which means are taken.
const SECOND: Span = Span::from_secs(1);

/// A window of time, from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Its begin.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }

    /// Whether a sample period that ended at `at`, or an instant at `at`, lies in the window.
    pub fn holds(&self, at: Time) -> bool {
        self.from < at && at <= self.to
    }

    /// The window of a run after this warm-up, on the boundaries of its sample periods.
    pub(super) fn after(warmup: Span, info: &RunInfo, bounds: &[Time]) -> Window {
        let to = bounds.last().copied().unwrap_or(Time::ZERO + info.duration);
        let from = first_from(Time::ZERO + warmup, bounds).unwrap_or(to);
        Window { from, to }
    }

    /// The sample periods that lie wholly between two times from the start of the run.
    pub(super) fn between(from: Span, to: Span, bounds: &[Time]) -> Window {
        let to = last_until(Time::ZERO + to, bounds).unwrap_or(Time::ZERO);
        let from = first_from(Time::ZERO + from, bounds).unwrap_or(to).min(to);
        Window { from, to }
    }

    /// The whole seconds of the window, from its begin, each in whole sample periods: a second holds the periods that end in it.
    /// If a second is no multiple of the period, some seconds are a period longer or shorter, or empty.
    pub(super) fn seconds(&self, bounds: &[Time]) -> Vec<Window> {
        let whole = self.length().as_nanos() / SECOND.as_nanos();
        let edge = |second: u64| {
            let at = self.from + SECOND * second;
            last_until(at, bounds).unwrap_or(self.from).max(self.from)
        };
        (0..whole).map(|second| Window { from: edge(second), to: edge(second + 1) }).collect()
    }

    /// Index of the second of the window in which a period that ended at `at`, or an instant at `at`, lies.
    pub(super) fn second(&self, at: Time) -> usize {
        (at.since(self.from).as_nanos().saturating_sub(1) / SECOND.as_nanos()) as usize
    }

    /// The ends of all sample periods, and the start of the run, ascending.
    pub(super) fn bounds(records: &Records) -> Vec<Time> {
        let links = records.links.iter().map(|sample| sample.at);
        let mut bounds = vec![Time::ZERO];
        bounds.extend(links.chain(records.flows.iter().map(|sample| sample.at)));
        // Records are in the order of time, so that nearly all are of the same period as the one before.
        bounds.dedup();
        bounds.sort();
        bounds.dedup();
        bounds
    }
}

/// The first of ascending bounds that is not before a time.
fn first_from(at: Time, bounds: &[Time]) -> Option<Time> {
    bounds.get(bounds.partition_point(|bound| *bound < at)).copied()
}

/// The last of ascending bounds that is not after a time.
fn last_until(at: Time, bounds: &[Time]) -> Option<Time> {
    bounds[..bounds.partition_point(|bound| *bound <= at)].last().copied()
}
