//! What a planner is told (digest A 9.1).

use crate::admission::{Admission, Standing, Terms};
use crate::packet::Key;
use weir_base::{Bytes, Rate, Span, Time};

/// A flow that has begun and has not ended.
pub struct FlowSeen<'a> {
    /// Its number.
    pub number: u32,
    /// Its bin.
    pub bin: Key,
    /// What it is and asks for.
    pub terms: &'a Terms,
    /// How it stands, and since when.
    pub standing: Standing,
    /// Since then.
    pub since: Time,
    /// How often it was started or stopped.
    pub toggles: u32,
    /// The rate at which it is admitted.
    pub rate: Rate,
    /// By how much inertia raises the price at which it yields: from 1.
    pub hold: f64,
    /// The set of flows that are on together or not at all.
    pub coupled: Option<u32>,
    /// The LOG priority that a transfer needs, given the rate that elastic flows have.
    pub needed: Box<dyn Fn(Rate) -> Option<f64> + 'a>,
}

impl FlowSeen<'_> {
    /// Whether it takes what there is.
    pub(super) fn is_elastic(&self) -> bool {
        self.terms.utility.whole(self.terms.offered).is_none()
    }

    /// What is seen of an admission.
    pub fn of<'a>(number: u32, bin: Key, coupled: Option<u32>, admission: &'a Admission) -> FlowSeen<'a> {
        FlowSeen {
            number,
            bin,
            terms: admission.terms(),
            standing: admission.standing(),
            since: admission.since(),
            toggles: admission.toggles(),
            rate: admission.rate(),
            hold: admission.hold(),
            coupled,
            needed: Box::new(|_| None),
        }
    }
}

/// A bin in which flows of the node enter.
#[derive(Debug, Clone)]
pub struct BinSeen {
    /// Its name.
    pub key: Key,
    /// Its depth now, and the most since the last report.
    pub depth: Bytes,
    /// The most since the last report.
    pub peak: Bytes,
    /// For each receiver, the delay over each link; `None` where no way leads.
    pub ways: Vec<Vec<Option<Span>>>,
}

/// All of it.
pub struct NodeSeen<'a> {
    /// K in bits squared per second.
    pub k: f64,
    /// What each link can carry of payload; zero of one that is down.
    pub capacities: &'a [Rate],
    /// The flows, in the order of their numbers.
    pub flows: &'a [FlowSeen<'a>],
    /// The bins.
    pub bins: &'a [BinSeen],
}
