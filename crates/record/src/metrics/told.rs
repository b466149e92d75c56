//! What queues, transports and aggregation points tell of themselves and metrics are made of: by which names, and how it is added up in a window.

use super::View;
use crate::records::Records;
use crate::types::{Component, StateSample};
use std::sync::Arc;

/// What queues with an AQM tell of themselves and metrics are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The probability of a drop.
    Drop,
    /// The probability of a mark, of L4S packets where these are apart.
    Mark,
    /// The probability that a controller keeps, from which the others follow.
    Base,
    /// Whether drops have taken the place of marks.
    Overload,
}

impl QueueState {
    /// All of them, with the names that queues give them.
    pub(super) const ALL: [(QueueState, &str); 4] = [
        (QueueState::Drop, "drop_probability"),
        (QueueState::Mark, "mark_probability"),
        (QueueState::Base, "base_probability"),
        (QueueState::Overload, "overload"),
    ];
}

/// What transports count and tell, beginning with the connection, and metrics are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowCounter {
    /// Packets of the first controller that were delivered.
    First,
    /// Those of the second.
    Second,
    /// Packets of a stream with a deadline that arrived.
    Arrived,
    /// What they delivered, in packets.
    Usable,
    /// Groups of such packets that were sent by retransmissions alone.
    PureArq,
    /// By retransmissions and repair packets.
    CodedArq,
    /// By repair packets in one round.
    Fec,
}

impl FlowCounter {
    /// All of them, with the names that transports give them.
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

/// What aggregation points tell of their estimates and metrics are made of; where a point has one application, which is what the
/// names say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointState {
    /// How many losses its estimator has learned of.
    LossesConsidered,
    /// TFRC's loss event rate; zero before there was a loss.
    LossEventRate,
}

impl PointState {
    /// All of them, with the names that points give them.
    pub(super) const ALL: [(PointState, &str); 2] =
        [(PointState::LossesConsidered, "losses_considered"), (PointState::LossEventRate, "loss_event_rate")];
}

/// What transports call the efficiency of their newest plan, 0 to 1.
const PLANNED: &str = "plan_efficiency";
/// What transports call their estimate of the path's rate.
pub(crate) const ESTIMATE: &str = "capacity_mbps";
/// What transports call the groups of packets that they have sent in each mode of their error control, and what the part of each in all
/// groups is called.
pub(crate) const MODES: [(&str, &str); 3] = [
    ("pure_arq_groups", "pure_arq_percent"),
    ("coded_arq_groups", "coded_arq_percent"),
    ("fec_groups", "fec_percent"),
];

impl View<'_> {
    /// Adds what queues, transports and stations tell of themselves.
    pub(super) fn add_told(&mut self, records: &Records) {
        let end = self.window.to;
        for sample in records.states.iter().filter(|sample| sample.at <= end) {
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
