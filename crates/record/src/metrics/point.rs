//! Metrics of aggregation points' estimates of a flowshare (`coord`): the losses that their estimators take into account.
//! They exist only in runs with aggregation points that serve one application each.

use super::told::PointState;
use super::value::Value;
use super::{Domain, Formula, Level, Metric, View};

impl View<'_> {
    /// Growth of a counter in the window, summed over all points.
    fn points_grew(&self, state: PointState) -> Value {
        let grown = |point: &[super::view::PointView]| {
            let state = &point[state as usize];
            Some((state.within.last()? - state.before).max(0.0) as u64)
        };
        let told: Vec<u64> = self.points.iter().filter_map(|point| grown(point)).collect();
        if told.is_empty() { Value::Undefined } else { Value::Count(told.iter().sum()) }
    }

    /// Mean of the inverse of a value over the samples of all points in which it was above zero.
    fn points_inverse(&self, state: PointState) -> Value {
        let values = self.points.iter().flat_map(|point| &point[state as usize].within);
        let (count, sum) = values
            .filter(|value| **value > 0.0)
            .fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + 1.0 / value));
        if count == 0 { Value::Undefined } else { Value::Number(sum / count as f64) }
    }
}

const RUN: &[Level] = &[Level::Run];
const SOURCE: &str =
    "coordination dissertation, section 4.4.4; the points' own state, read once a sample period";

/// Losses that the estimators took into account.
pub(super) const LOSSES_CONSIDERED: Metric = Metric {
    name: "losses_considered",
    title: "Losses seen by estimators",
    unit: "",
    of: RUN,
    definition: "Losses that the estimators of all aggregation points found in their streams of packets, which the bandwidth filter thins if there is one.",
    source: SOURCE,
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Stations(|view| view.points_grew(PointState::LossesConsidered)),
};

/// The loss event interval of TFRC's estimators.
pub(super) const LOSS_EVENT_INTERVAL: Metric = Metric {
    name: "loss_event_interval_packets",
    title: "Loss event interval of estimators",
    unit: "packets",
    of: RUN,
    definition: "Loss event interval, the inverse of the loss event rate, of the TFRC estimators of aggregation points: mean over sample periods. Periods before a point's first loss are left out.",
    source: SOURCE,
    bound: None,
    domain: Domain::OneOrMore,
    formula: Formula::Stations(|view| view.points_inverse(PointState::LossEventRate)),
};

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
