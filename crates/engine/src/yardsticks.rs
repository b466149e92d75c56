//! What a run's numbers are held against: answers of linear and convex programs about its network. They are computed once, as the run ends,
//! and kept in its `run.json`, so that nothing is solved when results are read.

use crate::capacity::by_deadline;
use crate::optimum::{EXACT, Question};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_base::{Rate, Span};
use weir_optimum::Allocation;
use weir_plan::Run;
use weir_record::RunInfo;

/// Most times at which the optimum is computed; a run in which more changes has none.
const MOST_TIMES: usize = 64;

/// What a run's groups are held against.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Yardsticks {
    /// For each group, the most that any forwarding can deliver to each receiver by its deadline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deadline_capacity: Vec<Option<Rate>>,
    /// For each group, its goodput where the sum of utilities is largest, from each of these times on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    optimum: Vec<Vec<(Span, Rate)>>,
}

impl Yardsticks {
    /// Computes them; empty for a run without an overlay.
    pub fn of(run: &Run) -> Yardsticks {
        if run.groups.iter().all(|group| group.overlay.is_none()) {
            return Yardsticks::default();
        }
        Yardsticks { deadline_capacity: by_deadline(run), optimum: optimum(run).unwrap_or_default() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Yardsticks::default()
    }

    /// Adds them to the description of the run.
    pub(crate) fn apply(&self, info: &mut RunInfo) {
        for (group, capacity) in info.groups.iter_mut().zip(&self.deadline_capacity) {
            group.deadline_capacity = *capacity;
        }
        for (group, steps) in info.groups.iter_mut().zip(&self.optimum) {
            group.optimum.clone_from(steps);
        }
    }
}

/// The optimum of each group from each time on at which something changes.
fn optimum(run: &Run) -> Option<Vec<Vec<(Span, Rate)>>> {
    let links = run.network.links.iter();
    let changes = links.clone().flat_map(|link| link.schedule.iter().map(|change| change.at));
    let outages = links.flat_map(|link| link.outages.iter().flat_map(|out| [out.at, out.at + out.length]));
    let carried = run.flows.iter().filter(|flow| run.groups[flow.group].overlay.is_some());
    let flows = carried.flat_map(|flow| std::iter::once(flow.start).chain(flow.stop));
    let times: BTreeSet<Span> =
        std::iter::once(Span::ZERO).chain(changes).chain(outages).chain(flows).collect();
    let times: Vec<Span> = times.into_iter().filter(|at| *at < run.duration).collect();
    if times.len() > MOST_TIMES {
        return None;
    }
    let mut steps = vec![Vec::new(); run.groups.len()];
    for at in times {
        let question = Question::new(run, at).ok()?;
        let answer = question.answer().ok().filter(|answer| answer.gap <= EXACT)?;
        for (group, rate) in goodputs(run, &question, &answer).into_iter().enumerate() {
            if run.groups[group].overlay.is_some() {
                steps[group].push((at, rate));
            }
        }
    }
    Some(steps)
}

/// What each group's receivers get together.
fn goodputs(run: &Run, question: &Question, answer: &Allocation) -> Vec<Rate> {
    let mut goodputs = vec![0.0; run.groups.len()];
    for ((class, share), &group) in question.classes.iter().zip(&answer.shares).zip(&question.groups) {
        goodputs[group] += share.rate * f64::from(share.on) * class.receivers.len() as f64;
    }
    goodputs.into_iter().map(|rate| Rate::from_bits_per_sec(rate.round() as u64)).collect()
}
