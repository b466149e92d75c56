//! Metrics of aggregation points' estimates of a flowshare (`coord`): the losses that their estimators take into account.
//! They exist only in runs with aggregation points that serve one application each.

use super::state_values::StateValues;
use super::value::{Value, ratio};
use super::{Domain, Level, Metric, Reduction, View};

impl View<'_> {
    /// The values of a state of each station that records it.
    pub(super) fn values_of<'s>(&'s self, states: &'s [&str]) -> impl Iterator<Item = &'s StateValues> {
        self.stations.iter().flat_map(|station| states.iter().filter_map(|name| station.get(name)))
    }

    /// Growth of a counter in the window, summed over all stations.
    pub(super) fn stations_grew(&self, states: &[&str]) -> Value {
        let grown = self.values_of(states).filter(|told| !told.within.is_empty());
        Value::from(grown.map(|told| told.grown().max(0.0) as u64).reduce(|sum, grown| sum + grown))
    }

    /// Mean of the inverse of a value over the samples of all stations in which it was above zero.
    fn stations_inverse(&self, states: &[&str]) -> Value {
        let values = self.values_of(states).flat_map(|told| &told.within).filter(|value| **value > 0.0);
        let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + 1.0 / value));
        Value::from(ratio(sum, count as f64))
    }
}

const RUN: &[Level] = &[Level::Run];
const SOURCE: &str =
    "coordination dissertation, section 4.4.4; the points' own state, read once a sample period";

family! {
    LOSSES_CONSIDERED {
        name: "losses_considered",
        title: "Losses seen by estimators",
        unit: "",
        of: RUN,
        definition: "Losses that the estimators of all aggregation points found in their streams of packets, which the bandwidth filter thins if there is one.",
        source: SOURCE,
        states: &["losses_considered"],
        reduction: Reduction::Stations(|view, states| view.stations_grew(states)),
    }

    LOSS_EVENT_INTERVAL {
        name: "loss_event_interval_packets",
        title: "Loss event interval of estimators",
        unit: "packets",
        of: RUN,
        definition: "Loss event interval, the inverse of the loss event rate, of the TFRC estimators of aggregation points: mean over sample periods. Periods before a point's first loss are left out.",
        source: SOURCE,
        domain: Domain::OneOrMore,
        states: &["loss_event_rate"],
        reduction: Reduction::Stations(|view, states| view.stations_inverse(states)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{RunInfo, StationInfo};
    use crate::records::Records;
    use crate::types::{Component, LinkSample, Recorder, StateSample};
    use weir_base::{Span, Time};

    #[test]
    fn counters_of_points_in_the_window_are_added_up_over_all_points() {
        let station = |name: &str| StationInfo { name: name.into(), ..StationInfo::default() };
        let info = RunInfo {
            duration: Span::from_secs(4),
            stations: vec![station("west"), station("east")],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        for (second, losses, rate) in [(1, 10.0, 0.0), (2, 15.0, 0.0), (3, 40.0, 0.01), (4, 70.0, 0.005)] {
            let at = Time::ZERO + Span::from_secs(second);
            records.link(&LinkSample { at, ..LinkSample::default() });
            records.state(&StateSample {
                at,
                of: Component::Station(0),
                name: "losses_considered",
                value: losses,
            });
            records.state(&StateSample {
                at,
                of: Component::Station(1),
                name: "losses_considered",
                value: 3.0,
            });
            records.state(&StateSample {
                at,
                of: Component::Station(1),
                name: "loss_event_rate",
                value: rate,
            });
            records.state(&StateSample { at, of: Component::Station(0), name: "rtt_ms", value: 50.0 });
        }
        let metrics = View::after(Span::ZERO, &info, &records).of_run();
        assert_eq!(metrics.get("losses_considered"), Value::Count(73));
        assert_eq!(metrics.get("loss_event_interval_packets"), Value::Number(150.0));
        let alone = RunInfo { stations: vec![], ..info };
        let metrics = View::after(Span::ZERO, &alone, &records).of_run();
        assert_eq!(metrics.get("losses_considered"), Value::Undefined);
    }
}
