//! How long transfers took.

use super::value::{Distribution, Value};
use super::view::FlowView;
use super::{Flows, Formula, Level, Metric};
use weir_base::{Span, Time};

/// How long something of a flow that completed took, and when it completed.
type Took = fn(&FlowView) -> Option<(Span, Time)>;

impl Flows<'_> {
    /// Times of those that completed within the window, in seconds.
    fn completed(&self, took: Took) -> impl Iterator<Item = f64> {
        let window = self.view.window;
        self.each()
            .filter_map(took)
            .filter(move |(_, at)| window.holds(*at))
            .map(|(took, _)| took.as_secs_f64())
    }

    /// Of a flow, whenever it completed; of several, the distribution over those that did in the window.
    fn times(&self, took: Took) -> Value {
        match self.level {
            Level::Flow => Value::from(self.each().find_map(took).map(|(took, _)| took.as_secs_f64())),
            _ => Value::from(Distribution::of(self.completed(took))),
        }
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
    formula: Formula::Flows(|f| f.times(|flow| flow.completed)),
};

/// From the first packet to the last, where they arrive.
pub(super) const TRANSACTION_TIME: Metric = Metric {
    name: "transaction_time_s",
    title: "Transaction time",
    unit: "s",
    of: &[Level::Group, Level::Flow],
    definition: "From a connection's first packet reaching the receiving host, the handshake's included, to its last data packet doing so, of flows that completed. Of a flow, whenever it was; of a group, the distribution over flows that completed in the window.",
    source: "Ong 2020 (LBE thesis), section 3.4: time between first and last packet as received by the TCP receiver",
    bound: None,
    formula: Formula::Flows(|f| f.times(FlowView::transaction)),
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
    formula: Formula::Flows(|f| Value::Count(f.completed(|flow| flow.completed).count() as u64)),
};
