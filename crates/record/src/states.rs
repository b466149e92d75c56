//! Which state each record of a state is about: in the records the states of all components alternate. Whoever looks for a few of
//! them by name compares names once for each state, not for each record.

use crate::records::Records;
use crate::types::Component;
use std::sync::Arc;

/// The states in a run's records.
#[derive(Debug, Default)]
pub(crate) struct States {
    /// The states by component and name, in the order of their first records.
    pub(crate) all: Vec<(Component, Arc<str>)>,
    /// For each record of a state, in order, the state's index in `all`.
    pub(crate) of: Vec<u32>,
}

impl States {
    /// The states in a run's records.
    pub(crate) fn new(records: &Records) -> States {
        let mut states = States { all: Vec::new(), of: Vec::with_capacity(records.states.len()) };
        // Each period has the same states in the same order: after a state comes nearly always the one that came before.
        let mut followers: Vec<u32> = Vec::new();
        let mut last = 0;
        for sample in &records.states {
            let same = |(of, name): &(Component, Arc<str>)| {
                *of == sample.of && (Arc::ptr_eq(name, &sample.name) || *name == sample.name)
            };
            let guess = followers.get(last).copied().unwrap_or_default();
            let found = match states.all.get(guess as usize) {
                Some(state) if same(state) => guess,
                _ => states.all.iter().position(same).unwrap_or_else(|| {
                    states.all.push((sample.of, Arc::clone(&sample.name)));
                    followers.push(0);
                    followers.len() - 1
                }) as u32,
            };
            followers[last] = found;
            last = found as usize;
            states.of.push(found);
        }
        states
    }
}
