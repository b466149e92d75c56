//! Which links each flow's packets leave over. A flow of the overlay is known by its name alone until its context is asked for; flows of
//! one host, whose receivers have changed, have the same source port, by which the records name them.

use std::collections::BTreeMap;
use weir_overlay::Flow;

/// Flows that are counted at most: those that come first.
const MOST_FLOWS: usize = 64;

/// The bytes that left for each neighbour, by flow.
#[derive(Debug, Default)]
pub(super) struct Paths {
    flows: BTreeMap<Flow, Counted>,
    /// Whether there are flows without a port.
    has_new: bool,
}

#[derive(Debug, Default)]
struct Counted {
    source_port: Option<u16>,
    /// By the neighbour's port.
    bytes: Vec<u64>,
}

impl Paths {
    /// A packet of so many bytes has left for a neighbour.
    pub(super) fn count(&mut self, flow: Flow, port: usize, bytes: u64) {
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= MOST_FLOWS {
                return;
            }
            self.has_new = true;
        }
        let counted = self.flows.entry(flow).or_default();
        if counted.bytes.len() <= port {
            counted.bytes.resize(port + 1, 0);
        }
        counted.bytes[port] += bytes;
    }

    /// Asks for the source ports of new flows.
    pub(super) fn name(&mut self, source_port: impl Fn(Flow) -> Option<u16>) {
        if std::mem::take(&mut self.has_new) {
            for (flow, counted) in &mut self.flows {
                counted.source_port = counted.source_port.or_else(|| source_port(*flow));
            }
        }
    }

    /// The bytes since the start by source port and neighbour's port.
    pub(super) fn sums(&self) -> BTreeMap<(u16, usize), u64> {
        let mut sums = BTreeMap::new();
        for counted in self.flows.values() {
            let Some(source_port) = counted.source_port else { continue };
            for (port, bytes) in counted.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                *sums.entry((source_port, port)).or_default() += bytes;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_overlay::NodeId;

    #[test]
    fn flows_of_one_source_port_are_one_and_flows_beyond_the_bound_are_left_out() {
        let flow = |number| Flow { source: NodeId::new(1).unwrap(), generation: 1, number };
        let mut paths = Paths::default();
        paths.count(flow(0), 1, 100);
        paths.count(flow(1), 1, 10);
        paths.count(flow(1), 0, 1);
        assert_eq!(paths.sums(), BTreeMap::new(), "before they are named");
        paths.name(|_| Some(23_000));
        assert_eq!(paths.sums(), BTreeMap::from([((23_000, 0), 1), ((23_000, 1), 110)]));
        for number in 2..200 {
            paths.count(flow(number), 0, 1000);
        }
        paths.name(|flow| Some(23_000 + flow.number));
        assert_eq!(paths.sums().len(), 2 + MOST_FLOWS - 2);
    }
}
