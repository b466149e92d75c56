//! Metrics of an AQM's own state: its probabilities, and whether it is overloaded. They exist only for queues that record
//! such state.

use super::value::{Distribution, Value, ratio};
use super::{Domain, Level, Metric, Reduction};

/// The distribution of a probability over the samples, in percent.
fn probabilities(values: &[f64]) -> Value {
    Value::from(Distribution::of(values.iter().map(|probability| 100.0 * probability)))
}

const LINK: &[Level] = &[Level::Run, Level::Link];
const TOLD: &str = "the queue's own state, read once a sample period";

family! {
    AQM_DROP {
        name: "aqm_drop_probability_percent",
        title: "Drop probability set by the AQM",
        unit: "%",
        of: LINK,
        definition: "Probability with which the AQM drops packets that are not ECN-capable, read at the end of each sample period: the distribution over these periods.",
        source: TOLD,
        domain: Domain::Percent,
        states: &["drop_probability"],
        reduction: Reduction::State(|_, values| probabilities(values)),
    }

    AQM_MARK {
        name: "aqm_mark_probability_percent",
        title: "Mark probability set by the AQM",
        unit: "%",
        of: LINK,
        definition: "Probability with which the AQM marks packets (L4S packets, if it has a queue of their own), read at the end of each sample period: the distribution over these periods. Marks above a step threshold are not included.",
        source: TOLD,
        domain: Domain::Percent,
        states: &["mark_probability"],
        reduction: Reduction::State(|_, values| probabilities(values)),
    }

    AQM_BASE {
        name: "aqm_base_probability_percent",
        title: "Base probability of the AQM",
        unit: "%",
        of: LINK,
        definition: "Base probability p', whose square is the drop probability, read at the end of each sample period: the distribution over these periods.",
        source: "RFC 9332, section 2.1 (p'); the queue's own state, read once a sample period",
        domain: Domain::Percent,
        states: &["base_probability"],
        reduction: Reduction::State(|_, values| probabilities(values)),
    }

    OVERLOAD {
        name: "overload_percent",
        title: "Time in overload",
        unit: "%",
        of: LINK,
        definition: "Sample periods at whose end the queue drops L4S packets instead of marking them, as a share of all sample periods.",
        source: "RFC 9332, section 2.5.1 (overload); the queue's own state, once a sample period",
        domain: Domain::Percent,
        states: &["overload"],
        reduction: Reduction::State(|_, values| {
            Value::from(ratio(100.0 * values.iter().sum::<f64>(), values.len() as f64))
        }),
    }

    OVERLOAD_TOGGLES {
        name: "overload_toggles_per_s",
        title: "Overload toggles",
        unit: "1/s",
        of: LINK,
        definition: "Changes into and out of overload from one sample period to the next, over the length of the window. Changes within a period are not counted.",
        source: "RFC 9332, section 2.5.1 (overload); the queue's own state, once a sample period",
        states: &["overload"],
        reduction: Reduction::State(|q, values| {
            let toggles = values.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let length = q.view.window.length().as_secs_f64();
            Value::from(ratio(toggles as f64, length).filter(|_| !values.is_empty()))
        }),
    }
}
