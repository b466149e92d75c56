//! Harm: what a group loses by the presence of other groups, against its own run alone. Metrics across runs: the run alone is that of
//! the same engine and repeat in the cell that differs on the fewest levels and in which no other group has flows
//! (`"traffic.OTHER.flows" = [0, 1]` in `[vary]` makes both). [`crate::add_harm`] finds it.

use super::{Column, Domain, Level, Metric, Reduction, completion, rate, tcp};

/// The metric whose value alone is compared with that beside others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Harm {
    pub(crate) of: &'static Metric,
    /// Whether less of it is better.
    less_is_better: bool,
}

impl Harm {
    /// The loss as a share of the better value, in percent; 0 if nothing is lost.
    pub(crate) fn percent(self, alone: f64, beside: f64) -> Option<f64> {
        let (good, bad) = if self.less_is_better { (1.0 / alone, 1.0 / beside) } else { (alone, beside) };
        (good > 0.0 && good.is_finite() && bad.is_finite()).then(|| (100.0 * (good - bad) / good).max(0.0))
    }
}

const OF: &[Level] = &[Level::Group];
const SOURCE: &str = "Ware, Mukerjee, Seshan, Sherry: Beyond Jain's Fairness Index (HotNets 2019), section 3: (x - y) / x, and (y - x) / y where less is better";

family! {
    HARM_GOODPUT {
        name: "harm_goodput_percent",
        title: "Harm to goodput",
        unit: "%",
        of: OF,
        definition: "Goodput that the group loses beside other groups, as a share of its goodput alone; 0 if it loses none. Alone it is in the run of the same engine and repeat whose cell differs on the fewest levels and in which it has as many flows and no other group has any; left out if there is no such run, or more than one.",
        source: SOURCE,
        domain: Domain::Percent,
        columns: &[Column::new(15, "harm", "harm to goodput by others")],
        reduction: Reduction::Alone(Harm { of: &rate::GOODPUT, less_is_better: false }),
    }

    HARM_RTT {
        name: "harm_rtt_percent",
        title: "Harm to the round-trip time",
        unit: "%",
        of: OF,
        definition: "The same for the mean round-trip time: what it is longer beside other groups, as a share of what it is beside them.",
        source: SOURCE,
        domain: Domain::Percent,
        reduction: Reduction::Alone(Harm { of: &tcp::RTT, less_is_better: true }),
    }

    HARM_COMPLETION {
        name: "harm_completion_percent",
        title: "Harm to the completion time",
        unit: "%",
        of: OF,
        definition: "The same for the mean completion time of the group's flows.",
        source: SOURCE,
        domain: Domain::Percent,
        reduction: Reduction::Alone(Harm { of: &completion::COMPLETION_TIME, less_is_better: true }),
    }
}
