//! Metrics of an AQM's own state: its probabilities, and whether it is overloaded. They exist only for queues that record
//! such state.

use super::told::QueueState;
use super::value::{Distribution, Value, ratio};
use super::{Domain, Formula, Level, Metric, Queue};

impl Queue<'_> {
    fn states(&self, state: QueueState) -> &[f64] {
        &self.link().states[state as usize]
    }

    /// The distribution of a probability over the samples, in percent.
    fn probabilities(&self, state: QueueState) -> Value {
        Value::from(Distribution::of(self.states(state).iter().map(|probability| 100.0 * probability)))
    }
}

const LINK: &[Level] = &[Level::Run, Level::Link];
const TOLD: &str = "the queue's own state, read once a sample period";

/// Drop probability.
pub(super) const AQM_DROP: Metric = Metric {
    name: "aqm_drop_probability_percent",
    title: "Drop probability set by the AQM",
    unit: "%",
    of: LINK,
    definition: "Probability with which the AQM drops packets that are not ECN-capable, read at the end of each sample period: the distribution over these periods.",
    source: TOLD,
    bound: None,
    domain: Domain::Percent,
    formula: Formula::State(|q| q.probabilities(QueueState::Drop)),
};

/// Mark probability.
pub(super) const AQM_MARK: Metric = Metric {
    name: "aqm_mark_probability_percent",
    title: "Mark probability set by the AQM",
    unit: "%",
    of: LINK,
    definition: "Probability with which the AQM marks packets (L4S packets, if it has a queue of their own), read at the end of each sample period: the distribution over these periods. Marks above a step threshold are not included.",
    source: TOLD,
    bound: None,
    domain: Domain::Percent,
    formula: Formula::State(|q| q.probabilities(QueueState::Mark)),
};

/// Base probability of a PI2 controller.
pub(super) const AQM_BASE: Metric = Metric {
    name: "aqm_base_probability_percent",
    title: "Base probability of the AQM",
    unit: "%",
    of: LINK,
    definition: "Base probability p', whose square is the drop probability, read at the end of each sample period: the distribution over these periods.",
    source: "RFC 9332, section 2.1 (p'); the queue's own state, read once a sample period",
    bound: None,
    domain: Domain::Percent,
    formula: Formula::State(|q| q.probabilities(QueueState::Base)),
};

/// Share of time in overload.
pub(super) const OVERLOAD: Metric = Metric {
    name: "overload_percent",
    title: "Time in overload",
    unit: "%",
    of: LINK,
    definition: "Sample periods at whose end the queue drops L4S packets instead of marking them, as a share of all sample periods.",
    source: "RFC 9332, section 2.5.1 (overload); the queue's own state, once a sample period",
    bound: None,
    domain: Domain::Percent,
    formula: Formula::State(|q| {
        let states = q.states(QueueState::Overload);
        Value::from(ratio(100.0 * states.iter().sum::<f64>(), states.len() as f64))
    }),
};

/// Rate of changes into and out of overload.
pub(super) const OVERLOAD_TOGGLES: Metric = Metric {
    name: "overload_toggles_per_s",
    title: "Overload toggles",
    unit: "1/s",
    of: LINK,
    definition: "Changes into and out of overload from one sample period to the next, over the length of the window. Changes within a period are not counted.",
    source: "RFC 9332, section 2.5.1 (overload); the queue's own state, once a sample period",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::State(|q| {
        let states = q.states(QueueState::Overload);
        let toggles = states.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let length = q.view.window.length().as_secs_f64();
        Value::from(ratio(toggles as f64, length).filter(|_| !states.is_empty()))
    }),
};
