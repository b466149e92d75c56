//! What a run's numbers are held against: answers of linear and convex programs about its network. They are computed once, as the run ends,
//! and kept in its `run.json`, so that nothing is solved when results are read.

use crate::capacity::by_deadline;
use crate::optimum::{EXACT, Question};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_base::{Rate, Span};
use weir_optimum::Allocation;
use weir_plan::Run;
use weir_record::RunInfo;

/// Most times at which the optimum is computed; a run in which more changes has none.
const MOST_TIMES: usize = 64;
/// Changes that follow one another within this time count as one, from the last of them on: the flows of a group begin within it.
const BURST: Span = Span::from_millis(100);

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
    /// Computes them; empty for a run without an overlay. `answers` holds those to earlier runs' questions.
    pub(crate) fn of(run: &Run, answers: &Answers) -> Yardsticks {
        if run.groups.iter().all(|group| group.overlay.is_none()) {
            return Yardsticks::default();
        }
        Yardsticks { deadline_capacity: by_deadline(run), optimum: optimum(run, answers).unwrap_or_default() }
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

/// Optima that have been computed. Repeats of a cell and times between which nothing that counts has changed ask the same question.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Vec<(Question, Answer)>>);

/// An answer that a thread may still be computing, so that the others wait for it; `None` if there is none.
type Answer = Arc<OnceLock<Option<Allocation>>>;

impl Answers {
    /// Most answers that are kept.
    const MOST: usize = 64;

    fn to(&self, question: &Question) -> Option<Allocation> {
        let answer = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter().find(|(other, _)| other.is_same(question)) {
                Some((_, answer)) => Arc::clone(answer),
                None => {
                    let answer = Answer::default();
                    if known.len() == Answers::MOST {
                        known.remove(0);
                    }
                    known.push((question.clone(), Arc::clone(&answer)));
                    answer
                }
            }
        };
        answer.get_or_init(|| question.answer().ok().filter(|answer| answer.gap <= EXACT)).clone()
    }
}

/// The optimum of each group from each time on at which something changes.
fn optimum(run: &Run, answers: &Answers) -> Option<Vec<Vec<(Span, Rate)>>> {
    let links = run.network.links.iter();
    let changes = links.clone().flat_map(|link| link.schedule.iter().map(|change| change.at));
    let outages = links.flat_map(|link| link.outages.iter().flat_map(|out| [out.at, out.at + out.length]));
    let carried = run.flows.iter().filter(|flow| run.groups[flow.group].overlay.is_some());
    let flows = carried.flat_map(|flow| std::iter::once(flow.start).chain(flow.stop));
    let times: BTreeSet<Span> = changes.chain(outages).chain(flows).filter(|at| *at < run.duration).collect();
    let times = settled(times);
    if times.len() > MOST_TIMES {
        return None;
    }
    let mut steps = vec![Vec::new(); run.groups.len()];
    for at in times {
        let question = Question::new(run, at).ok()?;
        let answer = answers.to(&question)?;
        for (group, rate) in goodputs(run, &question, &answer).into_iter().enumerate() {
            if run.groups[group].overlay.is_some() {
                steps[group].push((at, rate));
            }
        }
    }
    Some(steps)
}

/// The start of the run, and the last time of each burst of changes after it.
fn settled(times: BTreeSet<Span>) -> Vec<Span> {
    let (mut settled, mut burst) = (vec![Span::ZERO], None);
    for at in times.into_iter().filter(|at| !at.is_zero()) {
        match burst {
            Some(first) if at <= first + BURST => _ = settled.pop(),
            _ => burst = Some(at),
        }
        settled.push(at);
    }
    settled
}

/// What each group's receivers get together.
fn goodputs(run: &Run, question: &Question, answer: &Allocation) -> Vec<Rate> {
    let mut goodputs = vec![0.0; run.groups.len()];
    for ((class, share), &group) in question.classes.iter().zip(&answer.shares).zip(&question.groups) {
        goodputs[group] += share.rate * f64::from(share.on) * class.receivers.len() as f64;
    }
    goodputs.into_iter().map(|rate| Rate::from_bits_per_sec(rate.round() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use weir_plan::Lab;

    /// Two nodes with a link of 10 Mbit/s whose rate halves after 2 s and comes back after 4 s; one flow, two repeats.
    const LAB: &str = r#"
format = 1
title = "Two nodes"
[run]
duration = "6 s"
repeats = 2
[graph]
routers = ["n1", "n2"]
[graph.links.there]
from = "n1"
to = "n2"
rate = "10 Mbit/s"
delay = "10 ms"
schedule = [{ at = "2 s", rate = "5 Mbit/s" }, { at = "4 s", rate = "10 Mbit/s" }]
[overlay]
nodes = ["n1", "n2"]
[traffic.one]
from = "n1"
to = "n2"
workload = { kind = "udp", rate = "20 Mbit/s", packet = "1052 B" }
overlay = { priority = 1, cap = "20 Mbit/s" }
"#;

    #[test]
    fn changes_that_follow_one_another_count_as_one_from_the_last_on() {
        let millis = |all: &[u64]| all.iter().map(|at| Span::from_millis(*at)).collect::<Vec<Span>>();
        let times = millis(&[0, 1020, 1090, 1120, 1121, 5000]);
        assert_eq!(settled(times.into_iter().collect()), millis(&[0, 1120, 1121, 5000]));
    }

    #[test]
    fn repeats_and_times_that_ask_the_same_share_an_answer() {
        let lab = Lab::from_str(LAB, "lab.toml", Path::new("."), &[]).unwrap();
        let answers = Answers::default();
        let all: Vec<Yardsticks> = lab.runs().iter().map(|run| Yardsticks::of(run, &answers)).collect();
        // Each repeat has a start of its own, before which nothing is to be carried.
        let rates = |of: &Yardsticks| of.optimum[0].iter().map(|(_, rate)| *rate).collect::<Vec<Rate>>();
        let own = rates(&all[0]);
        assert_eq!(own, rates(&all[1]));
        assert_eq!((own.len(), own[0], own[1]), (4, Rate::default(), own[3]));
        let ratio = own[2].mbit_per_sec() / own[1].mbit_per_sec();
        assert!((ratio - 0.5).abs() < 1e-6, "half of the rate carries {ratio} of the goodput");
        // Three different questions of the eight that were asked.
        assert_eq!(answers.0.lock().unwrap().len(), 3);
    }
}
