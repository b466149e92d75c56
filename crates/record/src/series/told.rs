//! Recorded states of each group's connections over time: their estimates of the path's rate, and the modes of the error
//! control of streams with a deadline.

use super::Values;
use super::grid::{Grid, Means};
use crate::metrics::told::{ESTIMATE, MODES};
use crate::metrics::{View, ratio};
use crate::records::Records;
use crate::types::Component;

/// Recorded states of one group's connections.
#[derive(Default)]
pub(super) struct Told {
    /// The estimated rate, a mean over the flows and samples of a point; `None` if the transport does not record it.
    estimates: Option<Means>,
    /// For each point, the number of groups of packets that began in each mode of the error control; empty if the transport does
    /// not record it.
    modes: Vec<[f64; MODES.len()]>,
}

impl Told {
    /// Recorded states of each group's connections.
    pub(super) fn of_groups(grid: &Grid, view: &View<'_>, records: &Records) -> Vec<Told> {
        let info = view.info;
        let mut told: Vec<Told> = info.groups.iter().map(|_| Told::default()).collect();
        // Few transports record any.
        let is_told = |name: &str| name == ESTIMATE || MODES.iter().any(|(groups, _)| *groups == name);
        if !view.states.all.iter().any(|(_, name)| is_told(name)) {
            return told;
        }
        let mut before = vec![[0.0; MODES.len()]; info.flows.len()];
        for state in &records.states {
            let Component::Controller(number) = state.of else { continue };
            let Some(flow) = info.flows.get(number as usize) else { continue };
            let Some(of) = told.get_mut(flow.group as usize) else { continue };
            if *state.name == *ESTIMATE {
                of.estimates.get_or_insert_with(|| grid.means()).add(grid.point(state.at), state.value);
            }
            if let Some(mode) = MODES.iter().position(|(groups, _)| **groups == *state.name) {
                of.modes.resize(grid.count(), Default::default());
                let last = std::mem::replace(&mut before[number as usize][mode], state.value);
                if let Some(point) = of.modes.get_mut(grid.point(state.at)) {
                    point[mode] += state.value - last;
                }
            }
        }
        told
    }

    /// The values of the series of this name: the estimated rate, or the share of a mode in the groups of packets that began in
    /// each point. `None` if the transport does not record it.
    pub(super) fn values(&self, name: &str) -> Option<Values> {
        if name == "capacity_estimate_mbps" {
            return self.estimates.as_ref().map(Means::values);
        }
        let mode = MODES.iter().position(|(_, part)| *part == name)?;
        let share = |point: &[f64; MODES.len()]| ratio(100.0 * point[mode], point.iter().sum());
        (!self.modes.is_empty()).then(|| self.modes.iter().map(share).collect())
    }
}

#[cfg(test)]
mod tests {
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
        let of = |name| set.get(name, Subject::Group(1)).unwrap();
        assert_eq!(of("pure_arq_percent"), [Some(100.0), Some(75.0), None]);
        assert_eq!(of("fec_percent"), [Some(0.0), Some(25.0), None]);
        assert_eq!(of("capacity_estimate_mbps"), [Some(8.0); 3]);
        assert_eq!(set.get("fec_percent", Subject::Group(0)), None);
    }
}
