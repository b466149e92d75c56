//! Completion times of flows.

use super::value::{Distribution, Value, ratio};
use super::view::FlowView;
use super::{Domain, Flows, Formula, Level, Metric};
use crate::info::RouteInfo;
use weir_base::{Span, Time};

/// A duration of a completed flow, and when it completed. `None` if it did not complete.
type Took = fn(&FlowView) -> Option<(Span, Time)>;

impl Flows<'_> {
    /// The flows that completed within the window, each with its duration in seconds.
    fn completed(&self, took: Took) -> impl Iterator<Item = (&FlowView, f64)> {
        let window = self.view.window;
        self.each()
            .filter_map(move |flow| Some((flow, took(flow)?)))
            .filter(move |(_, (_, at))| window.holds(*at))
            .map(|(flow, (took, _))| (flow, took.as_secs_f64()))
    }

    /// The route of the flows' group.
    fn way(&self) -> Option<&RouteInfo> {
        let group = self.view.info.flows.get(*self.members.first()?)?.group;
        Some(&self.view.info.groups.get(group as usize)?.route)
    }

    /// The duration of a single flow, whenever it completed; for several flows, the distribution over those that completed
    /// in the window.
    fn times(&self, took: Took) -> Value {
        match self.level {
            Level::Flow => Value::from(self.each().find_map(took).map(|(took, _)| took.as_secs_f64())),
            _ => Value::from(Distribution::of(self.completed(took).map(|(_, seconds)| seconds))),
        }
    }
}

/// Time from a flow's start to the reading of its last byte.
pub(super) const COMPLETION_TIME: Metric = Metric {
    name: "completion_time_s",
    title: "Completion time",
    unit: "s",
    of: &[Level::Group, Level::Flow],
    definition: "From the application asking for the connection to the receiving application having read everything. Of a flow, whenever it was; of a group, the distribution over flows that completed in the window.",
    source: "RFC 7928, section 2.1 (flow completion time)",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Flows(|f| f.times(|flow| flow.completed)),
};

/// Time from a flow's first packet to its last, as in a capture at the receiver.
pub(super) const TRANSACTION_TIME: Metric = Metric {
    name: "transaction_time_s",
    title: "Transaction time",
    unit: "s",
    of: &[Level::Group, Level::Flow],
    definition: "From a connection's first packet at the receiving host, which that one sends where it asks for the connection, to the last that reaches it; those of the handshake and of the end are included. Of flows that completed. Of a flow, whenever it was; of a group, the distribution over flows that completed in the window.",
    source: "Ong 2020 (LBE thesis), section 3.4: time between first and last packet as received by the TCP receiver",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Flows(|f| f.times(FlowView::transaction)),
};

/// Number of completed flows.
pub(super) const COMPLETED: Metric = Metric {
    name: "completed_flows",
    title: "Completed flows",
    unit: "flows",
    of: &[Level::Run, Level::Group],
    definition: "Flows that completed in the window.",
    source: "weir",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Flows(|f| Value::Count(f.completed(|flow| flow.completed).count() as u64)),
};

/// Completion time relative to the shortest possible.
pub(super) const SLOWDOWN: Metric = Metric {
    name: "slowdown",
    title: "Slowdown of flows",
    unit: "",
    of: &[Level::Group],
    definition: "Distribution, over flows that completed in the window, of the completion time over the shortest that there can be: the base RTT (handshake), the delay of the data's way (the first byte's), and what the application read at the rate of the slowest link on that way; of what a schedule changes, the shortest delay and the greatest rate. 1 is best. Slow start, headers and ACKs are not in the divisor. Undefined where no link on the way has a rate that is known beforehand.",
    source: "De Schepper et al. 2017 (Data Centre to the Home), section 4.5: actual over ideal completion time",
    bound: None,
    domain: Domain::OneOrMore,
    formula: Formula::Messages(|f| {
        let Some((way, rate)) = f.way().and_then(|way| Some((way, way.rate?))) else {
            return Value::Undefined;
        };
        let empty = (way.rtt() + way.there).as_secs_f64();
        let ideal = |flow: &FlowView| empty + 8.0 * flow.read_in_all as f64 / rate.bits_per_sec() as f64;
        let completed = f.completed(|flow| flow.completed);
        Value::from(Distribution::of(completed.filter_map(|(flow, seconds)| ratio(seconds, ideal(flow)))))
    }),
};
