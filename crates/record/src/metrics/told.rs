//! The recorded state of queues, transports and aggregation points from which metrics are computed: its names, and how a
//! window adds it up.

use super::View;
use crate::records::Records;
use crate::states::States;
use crate::types::{Component, StateSample};
use std::sync::Arc;

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

/// Whether metrics use a state of this name.
fn is_used(name: &str) -> bool {
    let queues = QueueState::ALL.iter().map(|(_, name)| *name);
    let points = PointState::ALL.iter().map(|(_, name)| *name);
    let flows = FlowCounter::ALL.iter().map(|(_, name)| *name).chain([ESTIMATE, PLANNED]);
    queues.chain(points).chain(flows).any(|known| known == name)
}

impl View<'_> {
    /// Adds the recorded states of queues, transports and stations.
    pub(super) fn add_told(&mut self, records: &Records, states: &States) {
        let used: Vec<bool> = states.all.iter().map(|(_, name)| is_used(name)).collect();
        let samples = records.states.iter().zip(&states.of).filter(|(_, state)| used[**state as usize]);
        let end = self.window.to;
        for (sample, _) in samples.filter(|(sample, _)| sample.at <= end) {
            match sample.of {
                Component::Queue(link) => self.add_queue_state(link, sample),
                Component::Controller(flow) => self.add_flow_state(flow, sample),
                Component::Station(station) => self.add_point_state(station, sample),
            }
        }
    }

    fn add_queue_state(&mut self, link: u32, sample: &StateSample<Arc<str>>) {
        let Some(link) = self.links.get_mut(link as usize).filter(|_| self.window.holds(sample.at)) else {
            return;
        };
        if let Some((state, _)) = QueueState::ALL.iter().find(|(_, name)| **name == *sample.name) {
            link.states[*state as usize].push(sample.value);
        }
    }

    fn add_point_state(&mut self, station: u32, sample: &StateSample<Arc<str>>) {
        let Some(point) = self.points.get_mut(station as usize) else { return };
        let Some((state, _)) = PointState::ALL.iter().find(|(_, name)| **name == *sample.name) else {
            return;
        };
        let state = &mut point[*state as usize];
        match self.window.holds(sample.at) {
            true => state.within.push(sample.value),
            false => state.before = sample.value,
        }
    }

    fn add_flow_state(&mut self, flow: u32, sample: &StateSample<Arc<str>>) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        let within = self.window.holds(sample.at);
        if *sample.name == *ESTIMATE && within {
            flow.estimates.push((sample.at, sample.value));
        }
        if *sample.name == *PLANNED && within {
            flow.planned = (flow.planned.0 + 1, flow.planned.1 + sample.value);
        }
        if let Some((counter, _)) = FlowCounter::ALL.iter().find(|(_, name)| **name == *sample.name) {
            let counter = &mut flow.counters[*counter as usize];
            let from = if within { counter.map_or(0.0, |(from, _)| from) } else { sample.value };
            *counter = Some((from, sample.value));
        }
    }
}
