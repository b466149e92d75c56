//! One value of one run: its metric, its subject, its part of the run, and the statistic of a distribution.

use crate::{Metrics, RunSummary, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::Ecn;

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean.
    #[default]
    Mean,
    /// The 1st percentile.
    P1,
    /// The 25th percentile.
    P25,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 99th percentile.
    P99,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Statistic; 6] =
        [Statistic::Mean, Statistic::P1, Statistic::P25, Statistic::P50, Statistic::P75, Statistic::P99];

    /// Its name in labs and on the command line.
    pub fn name(self) -> &'static str {
        ["mean", "p1", "p25", "p50", "p75", "p99"][self as usize]
    }

    /// The share of the values that are at or below it; `None` for the mean.
    pub(crate) fn share(self) -> Option<f64> {
        match self {
            Statistic::Mean => None,
            Statistic::P1 => Some(0.01),
            Statistic::P25 => Some(0.25),
            Statistic::P50 => Some(0.5),
            Statistic::P75 => Some(0.75),
            Statistic::P99 => Some(0.99),
        }
    }

    /// This statistic of a value; of a single number only the mean exists.
    pub fn of(self, value: Value) -> Option<f64> {
        let Value::Distribution(of) = value else {
            return value.scalar().filter(|_| self == Statistic::Mean);
        };
        Some(match self {
            Statistic::Mean => of.mean,
            Statistic::P1 => of.p1,
            Statistic::P25 => of.p25,
            Statistic::P50 => of.p50,
            Statistic::P75 => of.p75,
            Statistic::P99 => of.p99,
        })
    }
}

/// The subject of a value: the run, a group, a flow or a link, or two groups; a class of packets; and a part of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken<'c> {
    /// Name of a group, a flow or a link, or names of two groups; empty for the run.
    pub of: &'c [String],
    /// The codepoint of the packets, if the value is of a class.
    pub class: Option<Ecn>,
    /// The name of a window; `None` is the whole run.
    pub window: Option<&'c str>,
}

impl RunSummary {
    /// The value of a metric in this run; `None` if it was not measured.
    pub fn value(&self, metric: &str, taken: Taken<'_>, statistic: Statistic) -> Option<f64> {
        let of_metrics = |metrics: &Metrics| statistic.of(metrics.get(metric));
        let run = self.part(taken.window)?;
        if let Some(class) = taken.class {
            let link = run.queues.iter().find(|queue| taken.of.first().is_none_or(|of| queue.link == *of))?;
            return of_metrics(&link.classes.iter().find(|one| one.class == class)?.metrics);
        }
        match taken.of {
            [] => of_metrics(run.metrics),
            // The order is that in which the plan resolves a name: a group of one flow has the same name as the flow.
            [of] => {
                let groups =
                    run.groups.iter().filter(|group| *group.name == **of).map(|group| &group.metrics);
                let links = run.queues.iter().filter(|queue| queue.link == *of).map(|queue| &queue.metrics);
                let flows = run.flows.iter().filter(|flow| *flow.name == **of).map(|flow| &flow.metrics);
                groups.chain(links).chain(flows).find_map(of_metrics)
            }
            // Metrics of two groups are ratios: if the groups are in the other order, the inverse is returned.
            [first, second, ..] => run.pairs.iter().find_map(|pair| {
                let value = of_metrics(&pair.metrics)?;
                match (
                    *pair.group == **first && *pair.to == **second,
                    *pair.group == **second && *pair.to == **first,
                ) {
                    (true, _) => Some(value),
                    (_, true) => (value != 0.0).then(|| 1.0 / value),
                    _ => None,
                }
            }),
        }
    }
}
