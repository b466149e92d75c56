//! What a group's traffic is judged by: the one number that answers the question which a lab asks of such traffic. The headline, the
//! terminal's table and the index put it first.

use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::ensemble::PER_SECOND;
use weir_record::metrics::message::{ECHO_TIME, FRAMES_ON_TIME, REQUEST_TIME};
use weir_record::{GroupSummary, Metric, Statistic};

/// The number that answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub(crate) metric: Metric,
    pub(crate) statistic: Statistic,
    /// Heading of its column in the terminal.
    pub(crate) head: &'static str,
    /// Its name in a sentence, before and after the group's name.
    about: [&'static str; 2],
}

/// The answers, in the order in which they are looked for.
const ANSWERS: &[Answer] = &[
    Answer {
        metric: FRAMES_ON_TIME,
        statistic: Statistic::Mean,
        head: "on time",
        about: ["frames of ", " on time"],
    },
    Answer {
        metric: REQUEST_TIME,
        statistic: Statistic::P99,
        head: "answer p99",
        about: ["request time of ", " (99th percentile)"],
    },
    Answer {
        metric: ECHO_TIME,
        statistic: Statistic::P50,
        head: "echo p50",
        about: ["echo time of ", " (median)"],
    },
    Answer {
        metric: PER_SECOND,
        statistic: Statistic::Mean,
        head: "ensembles",
        about: ["ensembles of ", ""],
    },
];

/// The answer of many flows that are to complete.
const MANY: Answer = Answer {
    metric: COMPLETION_TIME,
    statistic: Statistic::P99,
    head: "done p99",
    about: ["completion time of ", "’s flows (99th percentile)"],
};
/// The answer of a few transfers.
const FEW: Answer =
    Answer { statistic: Statistic::Mean, head: "done", about: ["completion time of ", ""], ..MANY };
/// Largest number of flows whose mean is told, instead of a percentile.
const MOST_FEW: usize = 20;

/// The answer for a group, seen in any of its runs; `None` if its rate is what counts.
pub(crate) fn of<'g>(mut runs: impl Iterator<Item = &'g GroupSummary> + Clone) -> Option<Answer> {
    let found = ANSWERS.iter().find(|answer| runs.clone().any(|group| answer.value(group).is_some()));
    let completes = runs.find(|group| group.completes);
    found.copied().or_else(|| Some(if completes?.flows <= MOST_FEW { FEW } else { MANY }))
}

impl Answer {
    /// Its value for a group of a run.
    pub(crate) fn value(&self, group: &GroupSummary) -> Option<f64> {
        self.statistic.of(group.metrics.value(&self.metric))
    }

    /// Its name in a sentence.
    pub(crate) fn about(&self, group: &str) -> String {
        let [before, after] = self.about;
        format!("{before}{group}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::metrics::rate::GOODPUT;
    use weir_record::{Metrics, Value};

    fn group(flows: usize, completes: bool, metric: Metric) -> GroupSummary {
        let metrics: Metrics = [(metric.name, Value::Number(1.0))].into_iter().collect();
        GroupSummary {
            name: "g".into(),
            controller: None,
            transport: "tcp".into(),
            flows,
            completes,
            metrics,
        }
    }

    #[test]
    fn traffic_is_judged_by_what_it_is_for() {
        let head = |group: GroupSummary| of([group].iter()).map(|answer| answer.head);
        assert_eq!(head(group(1, false, FRAMES_ON_TIME)), Some("on time"));
        assert_eq!(head(group(1, false, GOODPUT)), None, "of bulk data the rate counts");
        assert_eq!(head(group(1, true, GOODPUT)), Some("done"), "even if it did not complete");
        assert_eq!(head(group(500, true, GOODPUT)), Some("done p99"));
    }
}
