//! The recorded states of queues, transports and stations from which metrics are computed. The metrics name them; each counts, or is
//! read, once a sample period.

use super::{METRICS, View};
use crate::records::Records;
use crate::states::States;
use crate::types::Component;
use weir_base::Time;

const fn count() -> usize {
    let (mut count, mut metric) = (0, 0);
    while metric < METRICS.len() {
        count += METRICS[metric].states.len();
        metric += 1;
    }
    count
}

const fn names() -> [&'static str; count()] {
    let (mut names, mut count, mut metric) = ([""; count()], 0, 0);
    while metric < METRICS.len() {
        let mut place = 0;
        while place < METRICS[metric].states.len() {
            names[count] = METRICS[metric].states[place];
            (count, place) = (count + 1, place + 1);
        }
        metric += 1;
    }
    names
}

/// The names of all states that metrics use; some are there more than once.
const NAMES: [&str; count()] = names();

/// The values of one state of one component.
#[derive(Debug, Clone, Default)]
pub(super) struct StateValues {
    /// The last value at or before the window's begin.
    pub(super) before: f64,
    /// The values in the window, one for each sample period.
    pub(super) within: Vec<f64>,
    /// When they were read.
    pub(super) at: Vec<Time>,
}

impl StateValues {
    /// Growth in the window.
    pub(super) fn grown(&self) -> f64 {
        self.within.last().map_or(0.0, |last| last - self.before)
    }
}

/// The states of one component that metrics use.
#[derive(Debug, Clone, Default)]
pub(super) struct StateTable(Vec<(&'static str, StateValues)>);

impl StateTable {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values of a state; `None` if the component does not record it.
    pub(super) fn get(&self, name: &str) -> Option<&StateValues> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, told)| told)
    }

    fn entry(&mut self, name: &'static str) -> &mut StateValues {
        let place = self.0.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.0.push((name, StateValues::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

impl View<'_> {
    /// Adds the recorded states of queues, transports and stations.
    pub(super) fn add_told(&mut self, records: &Records, states: &States) {
        let known = |name: &str| NAMES.iter().find(|known| **known == name).copied();
        let used: Vec<Option<&'static str>> = states.all.iter().map(|(_, name)| known(name)).collect();
        for (sample, state) in records.states.iter().zip(&states.of) {
            let Some(name) = used[*state as usize].filter(|_| sample.at <= self.window.to) else { continue };
            let of = match sample.of {
                Component::Queue(link) => self.links.get_mut(link as usize).map(|link| &mut link.states),
                Component::Controller(flow) => self.flows.get_mut(flow as usize).map(|flow| &mut flow.states),
                Component::Station(station) => self.stations.get_mut(station as usize),
            };
            let Some(told) = of.map(|of| of.entry(name)) else { continue };
            if self.window.holds(sample.at) {
                told.within.push(sample.value);
                told.at.push(sample.at);
            } else {
                told.before = sample.value;
            }
        }
    }
}
