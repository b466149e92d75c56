//! What a node tells the records once a sample period. Counters run from the start of the run.

use super::hop::Sent;
use super::{HEADERS, OverlayNode};
use weir_fabric::Wire;

impl<P: Wire> OverlayNode<P> {
    pub(super) fn report(&self, report: &mut dyn FnMut(&str, f64)) {
        let Some(node) = &self.node else { return };
        node.tell(self.now, report);
        let sent = node.counters();
        let mut count = |name: &str, value: u64| report(name, value as f64);
        if self.hops.is_empty() {
            count("header_bytes", sent.header_bytes + HEADERS.get() * sent.packets);
            count("signal_bytes", sent.signal_bytes + HEADERS.get() * sent.signals);
        } else {
            let sum = |of: fn(&Sent) -> u64| self.hops.iter().map(|hop| of(&hop.sent)).sum::<u64>();
            count("header_bytes", sum(|sent| sent.data).saturating_sub(sent.body_bytes));
            count("signal_bytes", sum(|sent| sent.signals));
            count("resent_bytes", sum(|sent| sent.again));
            count("acknowledgement_bytes", sum(|sent| sent.acknowledgements));
        }
        count("expired_packets", self.expired);
        let rates = self.edge.entries().map(|(at, _)| self.edge.rate(at).bits_per_sec());
        count("admitted_bit_per_s", rates.sum());
        if self.details {
            node.tell_parts(self.neighbours.iter().map(|neighbour| neighbour.id), report);
            self.report_links(report);
        }
    }

    /// What the connections to neighbours have repeated and acknowledged, and where each flow leaves.
    fn report_links(&self, report: &mut dyn FnMut(&str, f64)) {
        for (port, neighbour) in self.neighbours.iter().enumerate() {
            let sent = self.hops.get(port).map(|hop| hop.sent).unwrap_or_default();
            for (part, value) in
                [("resent_bytes", sent.again), ("acknowledgement_bytes", sent.acknowledgements)]
            {
                report(&format!("neighbour_{}_{part}", neighbour.id.number()), value as f64);
            }
        }
        for ((source_port, port), bytes) in self.paths.sums() {
            if let Some(neighbour) = self.neighbours.get(port) {
                report(
                    &format!("port_{source_port}_neighbour_{}_bytes", neighbour.id.number()),
                    bytes as f64,
                );
            }
        }
    }
}
