//! The planner of a node (AMP): which of its flows fit, which one of those that do not may probe, and what loss means.
//!
//! Source: digest A 9.1 to A 9.4, G 2.6. Each half second it is told how flows, bins and links are; first after ten seconds and then each
//! two seconds it decides. It knows its own node alone: a bottleneck elsewhere shows in what is admitted, in depths and in loss.
//!
//! | room | what it is |
//! |---|---|
//! | [`seen`] | what it is told |
//! | [`trend`] | whether depth still rises, and how many flows may start at once |
//! | [`capacity`] | what links have left by their delays, and the price that a flow would bring |
//! | [`fit`] | which flows fit |
//! | [`loss`] | flows that stopped because of loss: one probe a destination |
//!
//! Mended, against the study's source: the first bin has loss probes; the number of starts really doubles; FLOG flows are started again; a
//! flow with a deadline fits in what links have that are fast enough, and does not probe where it does not; groups have deadlines, toward
//! their slowest member; inertia counts in the order of flows. Low-volume flows are known by what they offer, not by a share of the capacity.

mod capacity;
mod fit;
mod loss;
mod seen;
#[cfg(test)]
mod tests;
mod trend;

pub use seen::{BinSeen, FlowSeen, NodeSeen};

use crate::admission::{Command, Reason, Standing};
use crate::packet::Key;
use crate::utility::{Config, Rule};
use std::collections::BTreeMap;
use weir_base::{Rate, Span, Time};

/// Time between reports (digest A 9.1).
pub const REPORT: Span = Span::from_millis(500);
/// The time of the first decision (digest A 9.1).
const FIRST: Span = Span::from_secs(10);
/// Time between decisions (digest A 9.1).
const PERIOD: Span = Span::from_secs(2);
/// Weight of the newest report (digest A 9.1).
const GAIN: f64 = 0.2;
/// A flow thrashes if it was started or stopped within this time (digest A 9.1).
const THRASH: Span = Span::from_secs(3);
/// With less capacity than this nothing is decided (digest A 9.2).
const LEAST: f64 = 750_000.0;

/// What is to become of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The flow's number.
    pub flow: u32,
    /// What is said to it.
    pub command: Command,
    /// Why.
    pub reason: Reason,
}

/// What is kept of a flow.
#[derive(Debug, Clone, Default)]
struct Memory {
    /// The mean of its admitted rate, in bits per second.
    rate: Option<f64>,
    toggles: u32,
    /// When it was started or stopped last.
    toggled: Option<Time>,
    /// It stopped because of loss and has not been stable since.
    is_lossy: bool,
}

/// A planner.
#[derive(Debug, Clone)]
pub struct Planner {
    report_at: Time,
    plan_at: Time,
    flows: BTreeMap<u32, Memory>,
    trends: BTreeMap<Key, trend::Trend>,
    probes: BTreeMap<Key, loss::Probe>,
    decisions: Vec<Decision>,
}

impl Planner {
    /// A planner that begins now.
    pub fn new(now: Time) -> Planner {
        Planner {
            report_at: now + REPORT,
            plan_at: now + FIRST,
            flows: BTreeMap::new(),
            trends: BTreeMap::new(),
            probes: BTreeMap::new(),
            decisions: Vec::new(),
        }
    }

    /// When it wants the next report.
    pub fn next_time(&self) -> Time {
        self.report_at
    }

    /// Takes a report. Returns what it decides, in the order in which that is to be done.
    pub fn on_report(&mut self, seen: &NodeSeen<'_>, now: Time) -> &[Decision] {
        self.report_at = now + REPORT;
        self.decisions.clear();
        self.learn(seen, now);
        self.couple(seen);
        if now >= self.plan_at {
            self.plan_at = now + PERIOD;
            self.plan(seen, now);
        }
        &self.decisions
    }

    fn learn(&mut self, seen: &NodeSeen<'_>, now: Time) {
        for flow in seen.flows {
            let memory = self.flows.entry(flow.number).or_default();
            let sample = flow.rate.bits_per_sec() as f64;
            memory.rate = Some(memory.rate.map_or(sample, |mean| mean + GAIN * (sample - mean)));
            // The first start of a flow is no sign of thrashing.
            if memory.toggles != flow.toggles && flow.toggles > 1 {
                memory.toggled = Some(flow.since.min(now));
            }
            memory.toggles = flow.toggles;
            memory.is_lossy |= flow.standing == Standing::LossTriaged;
        }
        self.flows.retain(|number, _| seen.flows.iter().any(|flow| flow.number == *number));
        for bin in seen.bins {
            self.trends.entry(bin.key).or_default().on_report(bin);
        }
    }

    /// Flows of a set are on together or not at all: where one has stopped, the others are.
    fn couple(&mut self, seen: &NodeSeen<'_>) {
        for flow in seen.flows.iter().filter(|flow| flow.standing == Standing::On) {
            let Some(set) = flow.coupled else { continue };
            let is_off = |other: &&FlowSeen<'_>| other.coupled == Some(set) && other.standing != Standing::On;
            let off = seen.flows.iter().filter(is_off).count();
            if off > 0 {
                self.say(flow.number, Command::Stop, Rule::Coupled, off as f64, 0.0);
            }
        }
    }

    fn say(&mut self, flow: u32, command: Command, rule: Rule, value: f64, bound: f64) {
        if self.decisions.iter().all(|decision| decision.flow != flow) {
            self.decisions.push(Decision { flow, command, reason: Reason { rule, value, bound } });
        }
    }

    fn mean(&self, flow: u32) -> f64 {
        self.flows.get(&flow).and_then(|memory| memory.rate).unwrap_or_default()
    }

    /// Whether a flow comes and goes.
    fn thrashes(&self, flow: &FlowSeen<'_>, now: Time) -> bool {
        let Some(memory) = self.flows.get(&flow.number) else { return false };
        let recent = || memory.toggled.is_some_and(|toggled| now.since(toggled) < THRASH);
        match flow.standing {
            Standing::Triaged => flow.terms.utility.whole(flow.terms.offered).is_some(),
            Standing::On => recent(),
            _ => false,
        }
    }

    /// The LOG priorities of the transfers: what the rest of the one needs whose time comes first, and 1 of the others.
    pub fn transfers(&self, seen: &NodeSeen<'_>) -> Vec<(u32, f64)> {
        let end = |flow: &FlowSeen<'_>| match &flow.terms.utility {
            Config::File(config) if flow.standing == Standing::On => Some(flow.terms.begins + config.within),
            _ => None,
        };
        let first = seen.flows.iter().filter(|flow| end(flow).is_some()).min_by_key(|flow| end(flow));
        let elastic: f64 =
            seen.flows.iter().filter(|flow| flow.is_elastic()).map(|flow| self.mean(flow.number)).sum();
        let elastic = Rate::from_bits_per_sec(elastic as u64);
        let others = seen.flows.iter().filter(|flow| end(flow).is_some());
        let priority = |flow: &FlowSeen<'_>| {
            let is_first = first.is_some_and(|first| first.number == flow.number);
            if is_first { (flow.needed)(elastic).unwrap_or(1.0) } else { 1.0 }
        };
        others.map(|flow| (flow.number, priority(flow))).collect()
    }
}
