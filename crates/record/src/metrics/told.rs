//! The recorded state of queues, transports and aggregation points from which metrics are computed: its names, and how a
//! window adds it up.

use super::View;
use crate::states::States;
use crate::types::Component;
use weir_base::Time;

/// State of a queue with an AQM that metrics use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueState {
    /// Drop probability.
    Drop,
    /// Mark probability; that of L4S packets if the AQM separates them.
    Mark,
    /// Base probability of the AQM's controller, from which the others follow.
    Base,
    /// Whether the AQM drops packets instead of marking them: 1 or 0.
    Overload,
}

impl QueueState {
    /// All states, with their names in the records.
    pub(super) const ALL: [(QueueState, &str); 4] = [
        (QueueState::Drop, "drop_probability"),
        (QueueState::Mark, "mark_probability"),
        (QueueState::Base, "base_probability"),
        (QueueState::Overload, "overload"),
    ];
}

/// Counters of a transport that metrics use; they count from the start of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowCounter {
    /// Packets of the first controller that were delivered.
    First,
    /// Packets of the second controller that were delivered.
    Second,
    /// Packets of a stream with a deadline that arrived.
    Arrived,
    /// Usable packets' worth of data that they delivered.
    Usable,
    /// Groups of packets of such a stream that are protected by retransmissions alone.
    PureArq,
    /// Groups that are protected by retransmissions and repair packets.
    CodedArq,
    /// Groups that are protected by repair packets in one round.
    Fec,
}

impl FlowCounter {
    /// All counters, with their names in the records.
    pub(super) const ALL: [(FlowCounter, &str); 7] = [
        (FlowCounter::First, "delivered_packets"),
        (FlowCounter::Second, "second_delivered_packets"),
        (FlowCounter::Arrived, "arrived_packets"),
        (FlowCounter::Usable, "usable_packets"),
        (FlowCounter::PureArq, MODES[0].0),
        (FlowCounter::CodedArq, MODES[1].0),
        (FlowCounter::Fec, MODES[2].0),
    ];
}

/// State of an aggregation point's estimator that metrics use; only points that serve one application record it under these
/// names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointState {
    /// Number of losses that its estimator has taken into account.
    LossesConsidered,
    /// TFRC's loss event rate; zero before the first loss.
    LossEventRate,
}

impl PointState {
    /// All states, with their names in the records.
    pub(super) const ALL: [(PointState, &str); 2] =
        [(PointState::LossesConsidered, "losses_considered"), (PointState::LossEventRate, "loss_event_rate")];
}

/// Name of the state with the efficiency of a transport's newest plan, 0 to 1.
const PLANNED: &str = "plan_efficiency";
/// Name of the state with a transport's estimate of the path's rate.
pub(crate) const ESTIMATE: &str = "capacity_mbps";
/// For each mode of the error control: name of the counter of groups sent in it, and name of their share of all groups.
pub(crate) const MODES: [(&str, &str); 3] = [
    ("pure_arq_groups", "pure_arq_percent"),
    ("coded_arq_groups", "coded_arq_percent"),
    ("fec_groups", "fec_percent"),
];

impl View<'_> {
    /// Adds the recorded states of queues, transports and stations.
    pub(super) fn add_told(&mut self, states: &States) {
        let end = self.window.to;
        for state in &states.all {
            let until_end = states.values(state).filter(|(at, _)| *at <= end);
            match state.of {
                Component::Queue(link) => self.add_queue_state(link, &state.name, until_end),
                Component::Controller(flow) => self.add_flow_state(flow, &state.name, until_end),
                Component::Station(station) => self.add_point_state(station, &state.name, until_end),
            }
        }
    }

    fn add_queue_state(&mut self, link: u32, name: &str, values: impl Iterator<Item = (Time, f64)>) {
        let Some(link) = self.links.get_mut(link as usize) else { return };
        if let Some((state, _)) = QueueState::ALL.iter().find(|(_, known)| *known == name) {
            let within = values.filter(|(at, _)| self.window.holds(*at));
            link.states[*state as usize].extend(within.map(|(_, value)| value));
        }
    }

    fn add_point_state(&mut self, station: u32, name: &str, values: impl Iterator<Item = (Time, f64)>) {
        let Some(point) = self.points.get_mut(station as usize) else { return };
        let Some((state, _)) = PointState::ALL.iter().find(|(_, known)| *known == name) else { return };
        let state = &mut point[*state as usize];
        for (at, value) in values {
            match self.window.holds(at) {
                true => state.within.push(value),
                false => state.before = value,
            }
        }
    }

    fn add_flow_state(&mut self, flow: u32, name: &str, values: impl Iterator<Item = (Time, f64)>) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        let within = |at: &Time| self.window.holds(*at);
        if name == ESTIMATE {
            flow.estimates.extend(values.filter(|(at, _)| within(at)));
        } else if name == PLANNED {
            let planned = values.filter(|(at, _)| within(at));
            flow.planned = planned.fold(flow.planned, |(count, sum), (_, value)| (count + 1, sum + value));
        } else if let Some((counter, _)) = FlowCounter::ALL.iter().find(|(_, known)| *known == name) {
            let counter = &mut flow.counters[*counter as usize];
            for (at, value) in values {
                let from = if within(&at) { counter.map_or(0.0, |(from, _)| from) } else { value };
                *counter = Some((from, value));
            }
        }
    }
}
