//! How long transfers took.

use super::value::{Distribution, Value};
use super::{Flows, Formula, Level, Metric};
use weir_base::Span;

impl Flows<'_> {
    /// Times of those that completed within the window.
    fn completed(&self) -> impl Iterator<Item = f64> {
        let window = self.view.window;
        self.each()
            .filter_map(|flow| flow.completed)
            .filter(move |(_, at)| window.holds(*at))
            .map(|(took, _)| took.as_secs_f64())
    }
}

/// From start to the last byte read.
pub(super) const COMPLETION_TIME: Metric = Metric {
    name: "completion_time_s",
    title: "Completion time",
    unit: "s",
    of: &[Level::Group, Level::Flow],
    definition: "From the application asking for the connection to the receiving application having read everything. Of a flow, whenever it was; of a group, the distribution over flows that completed in the window.",
    source: "RFC 7928, section 2.1 (flow completion time)",
    bound: None,
    formula: Formula::Flows(|f| match f.level {
        Level::Flow => {
            Value::from(f.each().find_map(|flow| flow.completed).map(|(took, _)| Span::as_secs_f64(took)))
        }
        _ => Value::from(Distribution::of(f.completed())),
    }),
};

/// How many completed.
pub(super) const COMPLETED: Metric = Metric {
    name: "completed_flows",
    title: "Completed flows",
    unit: "flows",
    of: &[Level::Run, Level::Group],
    definition: "Flows that completed in the window.",
    source: "weir",
    bound: None,
    formula: Formula::Flows(|f| Value::Count(f.completed().count() as u64)),
};
