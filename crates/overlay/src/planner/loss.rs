//! Flows that stopped because of loss: one of a destination probes at a time (digest A 9.3).
//!
//! Where a bottleneck elsewhere, or a way that is too slow, lets packets expire, no price says so. The flow stops itself and tries again by
//! itself; the planner stops the others that did, and passes the probe on.

use super::Planner;
use super::capacity::Left;
use super::seen::{BinSeen, FlowSeen, NodeSeen};
use crate::admission::{Command, Standing};
use crate::utility::Rule;
use std::cmp::Ordering;
use weir_base::{Span, Time};

/// A probe is started this long after the last one at the soonest (digest A 9.3).
const BETWEEN: Span = Span::from_secs(10);
/// A probe that is on for so many deadlines is stable (digest A 9.3).
const STABLE: u64 = 40;
/// What a flow is worth that is easier in both ways than the probe that failed (digest A 9.3).
const EASIER: f64 = 3.0;
/// What another flow must be worth beyond the probe that failed (digest A 9.3).
const BETTER: f64 = 1.1;

/// The probe of a destination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Probe {
    flow: u32,
    /// When it was chosen.
    at: Time,
}

fn rate(flow: &FlowSeen<'_>) -> f64 {
    flow.terms.utility.whole(flow.terms.offered).unwrap_or(flow.terms.offered).bits_per_sec() as f64
}
fn deadline(flow: &FlowSeen<'_>) -> f64 {
    flow.terms.deadline.unwrap_or(Span::MAX).as_secs_f64()
}
/// Priority for a bit per second.
fn density(flow: &FlowSeen<'_>) -> f64 {
    flow.terms.utility.priority() / rate(flow)
}

/// How much easier a flow is to carry than the probe that failed: 1 is as easy.
fn ease(flow: &FlowSeen<'_>, failed: &FlowSeen<'_>) -> f64 {
    let (longer, smaller) = (deadline(flow) / deadline(failed), rate(failed) / rate(flow));
    if longer >= 1.0 && smaller >= 1.0 && (longer > 1.0 || smaller > 1.0) {
        return EASIER;
    }
    (longer / 2.0).min(1.0) + (smaller / 2.0).min(1.0)
}

impl Planner {
    /// Chooses and judges the probe of a bin. `left` is without what is kept for the flows `kept`.
    pub(super) fn probe(&mut self, seen: &NodeSeen<'_>, bin: &BinSeen, left: &Left, kept: &[u32], now: Time) {
        let of_bin = |flow: &&FlowSeen<'_>| flow.bin == bin.key;
        for flow in seen.flows.iter().filter(of_bin) {
            let on = if flow.standing == Standing::On { now.since(flow.since) } else { Span::ZERO };
            let stable = flow.terms.deadline.map(|deadline| deadline * STABLE).filter(|stable| on >= *stable);
            if let (Some(memory), Some(_)) = (self.flows.get_mut(&flow.number), stable) {
                memory.is_lossy = false;
                if self.probes.get(&bin.key).is_some_and(|probe| probe.flow == flow.number) {
                    self.probes.remove(&bin.key);
                }
            }
        }
        let is_lossy =
            |flow: &&FlowSeen<'_>| self.flows.get(&flow.number).is_some_and(|memory| memory.is_lossy);
        let lossy: Vec<&FlowSeen<'_>> = seen.flows.iter().filter(of_bin).filter(is_lossy).collect();
        let last = self.probes.get(&bin.key).copied();
        let probing = last.and_then(|probe| lossy.iter().find(|flow| flow.number == probe.flow).copied());
        let is_running = probing.is_some_and(|flow| flow.standing == Standing::On);
        let waited = last.map_or(BETWEEN, |probe| now.since(probe.at));
        let fits = |flow: &&&FlowSeen<'_>| {
            kept.contains(&flow.number) || rate(flow) <= left.toward(bin, flow.terms.deadline)
        };
        // Of equal ones the one that is worth most for a bit, as everywhere in the planner.
        let of_equal = |order: Ordering, a: &FlowSeen<'_>, b: &FlowSeen<'_>| {
            order.then(density(a).total_cmp(&density(b)))
        };
        let mut chosen = probing;
        if !is_running && waited >= BETWEEN {
            chosen = match probing {
                Some(failed) => {
                    let worth = |flow: &&FlowSeen<'_>| ease(flow, failed);
                    let others = lossy.iter().filter(|flow| flow.number != failed.number).filter(fits);
                    let best = others.max_by(|a, b| of_equal(worth(a).total_cmp(&worth(b)), a, b));
                    let may_stay = probing.filter(|flow| fits(&flow));
                    best.filter(|flow| worth(flow) >= BETTER || may_stay.is_none()).copied().or(may_stay)
                }
                None => lossy
                    .iter()
                    .filter(fits)
                    .max_by(|a, b| of_equal(deadline(a).total_cmp(&deadline(b)), a, b))
                    .copied(),
            };
            if let Some(flow) = chosen {
                self.probes.insert(bin.key, Probe { flow: flow.number, at: now });
                if flow.standing == Standing::Off {
                    let (value, bound) = (waited.as_secs_f64(), BETWEEN.as_secs_f64());
                    self.say(flow.number, Command::Start, Rule::Probe, value, bound);
                }
            }
        }
        let Some(chosen) = chosen.map(|flow| flow.number) else { return };
        let held = self.probes.get(&bin.key).map_or(Span::ZERO, |probe| now.since(probe.at)).as_secs_f64();
        for flow in lossy.iter().filter(|flow| flow.number != chosen && flow.standing.is_triaged()) {
            self.say(flow.number, Command::Stop, Rule::Rotation, held, BETWEEN.as_secs_f64());
        }
    }
}
