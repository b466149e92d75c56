//! An index of the classes by the packets they take, so that no packet needs a search through a thousand classes.

use super::config::Class;
use crate::bands::Filter;
use std::collections::BTreeMap;
use weir_base::{FlowId, Packet};

/// Finds the class of a packet.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The class of each flow that a class names without codepoints and DSCPs.
    by_flow: BTreeMap<u32, u32>,
    /// Classes with codepoints or DSCPs, in the order of their identifiers.
    filters: Vec<(u32, Filter)>,
    /// Leaves that take all packets, in the order of their identifiers: the first takes the packets of no other.
    rest: Vec<u32>,
}

impl Index {
    pub(super) fn add(&mut self, id: u32, config: &Class) {
        if config.has_filter() {
            let Class { ecn, dscp, flows, .. } = config.clone();
            let place = self.filters.partition_point(|(other, _)| *other < id);
            return self.filters.insert(place, (id, Filter { ecn, dscp, flows }));
        }
        match &config.flows {
            None => {
                if let Err(place) = self.rest.binary_search(&id) {
                    self.rest.insert(place, id);
                }
            }
            Some(flows) => {
                for flow in flows {
                    self.by_flow.entry(*flow).or_insert(id);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        self.by_flow.retain(|_, class| *class != id);
        self.filters.retain(|(class, _)| *class != id);
        self.rest.retain(|class| *class != id);
    }

    pub(super) fn class_of(&self, packet: &impl Packet) -> Option<u32> {
        let filtered = self.filters.iter().find(|(_, filter)| filter.takes(packet)).map(|(id, _)| *id);
        filtered.or_else(|| self.of_flow(packet.flow()))
    }

    /// The class that takes all of a flow's packets; `None` if any class has codepoints or DSCPs, or no class takes them.
    pub(super) fn class_of_flow(&self, flow: FlowId) -> Option<u32> {
        if self.has_filters() { None } else { self.of_flow(flow) }
    }

    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    fn of_flow(&self, flow: FlowId) -> Option<u32> {
        self.by_flow.get(&flow.0).copied().or(self.rest.first().copied())
    }
}
