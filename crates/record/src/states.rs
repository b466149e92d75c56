//! A run's recorded states by component and name. In the records the states of all components alternate, the same in each sample
//! period; whoever looks for a few of them by name then compares names once, not in each period.

use crate::records::Records;
use crate::types::Component;
use std::sync::Arc;
use weir_base::Time;

/// The recorded states of a run, each with its values over time.
#[derive(Debug, Default)]
pub(crate) struct States {
    /// The times at which states were recorded, ascending.
    pub(crate) times: Vec<Time>,
    /// The states, in the order of their first values.
    pub(crate) all: Vec<State>,
}

/// A state of a component over time.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) of: Component,
    pub(crate) name: Arc<str>,
    /// The values, each with the index of its time.
    pub(crate) values: Vec<(u32, f64)>,
}

impl States {
    /// The states in a run's records.
    pub(crate) fn of(records: &Records) -> States {
        let mut states = States::default();
        // Each period has the same states in the same order, so that the first guess is nearly always right.
        let mut next = 0;
        for sample in &records.states {
            if states.times.last() != Some(&sample.at) {
                states.times.push(sample.at);
                next = 0;
            }
            let all = &mut states.all;
            let same = |state: &State| {
                state.of == sample.of && (Arc::ptr_eq(&state.name, &sample.name) || state.name == sample.name)
            };
            let found = match all.get(next) {
                Some(state) if same(state) => next,
                _ => all.iter().position(same).unwrap_or_else(|| {
                    all.push(State { of: sample.of, name: Arc::clone(&sample.name), values: Vec::new() });
                    all.len() - 1
                }),
            };
            all[found].values.push((states.times.len() as u32 - 1, sample.value));
            next = found + 1;
        }
        states
    }

    /// The values of a state, each with its time.
    pub(crate) fn values<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (Time, f64)> + 's {
        state.values.iter().map(|&(time, value)| (self.times[time as usize], value))
    }
}
