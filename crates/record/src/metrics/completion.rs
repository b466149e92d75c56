//! Completion times of flows.

use super::value::{Distribution, Value, ratio};
use super::view::FlowView;
use super::{Column, Domain, Flows, Level, Metric, Plot, Reduction};
use crate::info::GroupInfo;
use crate::selector::Statistic;
use weir_base::{Span, Time};

/// A duration of a completed flow, and when it completed. `None` if it did not complete.
type Took = fn(&FlowView) -> Option<(Span, Time)>;

impl Flows<'_> {
    /// The flows that completed within the window, each with its duration in seconds.
    pub(super) fn completed(&self, took: Took) -> impl Iterator<Item = (&FlowView, f64)> {
        let window = self.view.window;
        self.each()
            .filter_map(move |flow| Some((flow, took(flow)?)))
            .filter(move |(_, (_, at))| window.holds(*at))
            .map(|(flow, (took, _))| (flow, took.as_secs_f64()))
    }

    /// The description of the flows' group.
    fn described(&self) -> Option<&GroupInfo> {
        self.view.info.groups.get(self.group()? as usize)
    }

    /// The duration of a single flow, whenever it completed; for several flows, the distribution over those that completed
    /// in the window.
    pub(super) fn times(&self, took: Took) -> Value {
        match self.level {
            Level::Flow => Value::from(self.each().find_map(took).map(|(took, _)| took.as_secs_f64())),
            _ => Value::from(Distribution::of(self.completed(took).map(|(_, seconds)| seconds))),
        }
    }
}

/// What flows without a completion time did.
const NEVER: &str = "did not complete";

family! {
    COMPLETION_TIME {
        name: "completion_time_s",
        title: "Completion time",
        unit: "s",
        of: &[Level::Group, Level::Flow],
        definition: "Time from the application's request for the connection until the receiving application has read all data. Of a flow, even if it completed outside the window; of a group, the distribution over flows that completed in the window.",
        source: "RFC 7928, section 2.1 (flow completion time)",
        absent: NEVER,
        columns: &[
            Column::new(4, "completion", "completion p50").of(Statistic::P50).main(),
            Column::new(5, "completion-p99", "completion p99").of(Statistic::P99),
        ],
        plot: Some(Plot { place: 1, key: "completion", title: "Completion time of flows" }),
        reduction: Reduction::Completions,
    }

    TRANSACTION_TIME {
        name: "transaction_time_s",
        title: "Transaction time",
        unit: "s",
        of: &[Level::Group, Level::Flow],
        definition: "Time from a connection's first packet at the receiving host, sent or received there, to the last packet that reaches that host; the packets that open and close the connection are included. Only of flows that completed: of a flow, even outside the window; of a group, the distribution over flows that completed in the window.",
        source: "Ong 2020 (LBE thesis), section 3.4: time between first and last packet as received by the TCP receiver",
        absent: NEVER,
        reduction: Reduction::Flows(|f| f.times(FlowView::transaction)),
    }

    COMPLETED {
        name: "completed_flows",
        title: "Completed flows",
        unit: "flows",
        of: &[Level::Run, Level::Group],
        definition: "Flows that completed in the window.",
        source: "weir",
        reduction: Reduction::Flows(|f| Value::Count(f.completed(|flow| flow.completed).count() as u64)),
    }

    SLOWDOWN {
        name: "slowdown",
        title: "Slowdown of flows",
        unit: "",
        of: &[Level::Group],
        definition: "Completion time over the shortest possible completion time: the distribution over flows that completed in the window. 1 is best. The shortest possible time is the base RTT, if the transport begins each flow with a handshake, plus the delay of the data's path (first byte), plus the time that the slowest link on that path needs for the bytes that the application read; where a schedule changes the path, its shortest delay and highest rate count. It contains no slow start, headers or ACKs. Undefined if no link on the path has a rate that is known beforehand.",
        source: "De Schepper et al. 2017 (Data Centre to the Home), section 4.5: actual over ideal completion time",
        domain: Domain::OneOrMore,
        absent: NEVER,
        reduction: Reduction::Special(|f| {
            let Some((group, rate)) = f.described().and_then(|group| Some((group, group.route.rate?))) else {
                return Value::Undefined;
            };
            let handshake = if group.handshake { group.route.rtt() } else { Span::ZERO };
            let empty = (handshake + group.route.there).as_secs_f64();
            let ideal = |flow: &FlowView| empty + 8.0 * flow.read_in_all as f64 / rate.bits_per_sec() as f64;
            let completed = f.completed(|flow| flow.completed);
            Value::from(Distribution::of(completed.filter_map(|(flow, seconds)| ratio(seconds, ideal(flow)))))
        }),
    }
}
