//! Recorded states of each group's connections over time: their estimates of the path's rate, and the growth of their counters.

use super::{SeriesSet, Values, added};
use crate::metrics::{Metric, Reduction, ratio};
use crate::types::{Component, StateSample};
use std::collections::BTreeMap;
use std::sync::Arc;

impl SeriesSet<'_> {
    /// A metric of a group's recorded states: the mean over the flows and samples of a point, the mean over samples added up over flows,
    /// or the share of a counter's growth in the point. `None` if it is no such metric, or if the transport does not record it.
    pub(super) fn of_states(&self, metric: &Metric, reduction: Reduction, group: u32) -> Option<Values> {
        match reduction {
            Reduction::Estimates => self.of_states(metric, Reduction::StateMean { per: 1.0 }, group),
            Reduction::StateMean { per } => {
                let values = self.values_by(metric.states, group)?;
                Some(self.grid.means_of(values.map(|(sample, ..)| (sample.at, sample.value / per))))
            }
            Reduction::StateSum { per } => {
                let mut flows = BTreeMap::new();
                for (sample, state, _) in self.values_by(metric.states, group)? {
                    let means = flows.entry(state).or_insert_with(|| self.grid.means());
                    means.add(self.grid.point(sample.at), sample.value / per);
                }
                flows.into_values().map(|means| means.values()).reduce(added)
            }
            Reduction::GrowthShare(place) => {
                let mut points = vec![vec![0.0; metric.states.len()]; self.grid.count()];
                let mut before = vec![0.0; self.view.states.all.len()];
                for (sample, state, counter) in self.values_by(metric.states, group)? {
                    let last = std::mem::replace(&mut before[state], sample.value);
                    if let Some(point) = points.get_mut(self.grid.point(sample.at)) {
                        point[counter] += sample.value - last;
                    }
                }
                let share = |point: &Vec<f64>| ratio(100.0 * point.get(place)?, point.iter().sum());
                Some(points.iter().map(share).collect())
            }
            _ => None,
        }
    }

    /// The samples of these states of a group's connections, each with the index of its state in the view, and with the place of
    /// its name. `None` if there are none.
    fn values_by(
        &self,
        names: &[&str],
        group: u32,
    ) -> Option<impl Iterator<Item = (&StateSample<Arc<str>>, usize, usize)>> {
        let view = self.view;
        let place = |(of, name): &(Component, Arc<str>)| {
            let Component::Controller(flow) = of else { return None };
            let own = view.info.flows.get(*flow as usize).is_some_and(|flow| flow.group == group);
            names.iter().position(|known| own && **known == **name)
        };
        let wanted: Vec<Option<usize>> = view.states.all.iter().map(place).collect();
        wanted.iter().any(Option::is_some).then(|| {
            let samples = self.records.states.iter().zip(&view.states.of);
            samples
                .filter_map(move |(sample, state)| Some((sample, *state as usize, wanted[*state as usize]?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::{admission, connection};
    use crate::types::{Component, FlowSample, Recorder, StateSample};
    use crate::{FlowInfo, GroupInfo, Records, RunInfo, Subject, View, series};
    use weir_base::{Span, Time};

    #[test]
    fn modes_are_shares_of_the_groups_begun_in_a_point() {
        let info = RunInfo {
            sample: Span::from_secs(1),
            groups: vec![GroupInfo::default(); 2],
            flows: vec![FlowInfo::default(), FlowInfo { group: 1, ..FlowInfo::default() }],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        // Groups of packets until each second.
        for (second, arq, fec) in [(1, 4.0, 0.0), (2, 7.0, 1.0), (3, 7.0, 1.0)] {
            let at = Time::ZERO + Span::from_secs(second);
            records.flow(&FlowSample { at, flow: 1, ..FlowSample::default() });
            for (name, value) in [("pure_arq_groups", arq), ("fec_groups", fec), ("capacity_mbps", 8.0)] {
                records.state(&StateSample { at, of: Component::Controller(1), name, value });
            }
        }
        let view = View::after(info.warmup, &info, &records);
        let set = series(&view, &records, 600);
        let of = |metric| set.get(metric, Subject::Group(1)).unwrap();
        assert_eq!(of(&connection::PURE_ARQ), [Some(100.0), Some(75.0), None]);
        assert_eq!(of(&connection::FEC), [Some(0.0), Some(25.0), None]);
        assert_eq!(of(&connection::CAPACITY_ESTIMATE), [Some(8.0); 3]);
        assert_eq!(set.get(&connection::FEC, Subject::Group(0)), None);
    }
    #[test]
    fn states_of_flows_are_averaged_or_added_up_over_the_flows_of_a_group() {
        let info = RunInfo {
            sample: Span::from_secs(1),
            groups: vec![GroupInfo::default()],
            flows: vec![FlowInfo::default(); 2],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        // The second flow begins in the second second.
        for (second, flow, rate, price) in
            [(1, 0, 2e6, 8e3), (2, 0, 2e6, 8e3), (2, 1, 3e6, 4e3), (3, 0, 0.0, 6e3), (3, 1, 3e6, 6e3)]
        {
            let at = Time::ZERO + Span::from_secs(second);
            records.flow(&FlowSample { at, flow, ..FlowSample::default() });
            for (name, value) in [("admitted_bit_per_s", rate), ("price_bits", price)] {
                records.state(&StateSample { at, of: Component::Controller(flow), name, value });
            }
        }
        let view = View::after(info.warmup, &info, &records);
        let set = series(&view, &records, 600);
        let of = |metric| set.get(metric, Subject::Group(0)).unwrap();
        assert_eq!(of(&admission::ADMITTED_RATE), [Some(2.0), Some(5.0), Some(3.0)]);
        assert_eq!(of(&admission::PRICE), [Some(8.0), Some(6.0), Some(6.0)]);
    }
}
