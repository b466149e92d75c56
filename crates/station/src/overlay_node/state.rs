//! What a node tells the records once a sample period. Counters run from the start of the run.

use super::OverlayNode;
use weir_base::Span;
use weir_fabric::Wire;
use weir_overlay::Cat;

/// IPv4 and UDP headers of a datagram between nodes, in bytes.
const HEADERS: u64 = 28;

impl<P: Wire> OverlayNode<P> {
    pub(super) fn report(&self, report: &mut dyn FnMut(&str, f64)) {
        let Some(node) = &self.node else { return };
        let sent = node.counters();
        let mut count = |name: &str, value: u64| report(name, value as f64);
        count("payload_bytes", sent.body_bytes);
        count("header_bytes", sent.header_bytes + HEADERS * sent.packets);
        count("signal_bytes", sent.signal_bytes + HEADERS * sent.signals);
        count("data_packets", sent.packets);
        count("signal_packets", sent.signals);
        count("zombie_bytes_added", sent.zombies_added);
        count("zombie_bytes_left", sent.zombies_left);
        count("expired_packets", self.expired);
        count("overflowed_packets", sent.overflowed);
        count("admitted_bit_per_s", self.entries.iter().map(super::Entry::rate).sum());
        let (real, zombies) = node.bins().fold((0, 0), |(real, zombies), (_, _, here, virtual_bytes)| {
            (real + here, zombies + virtual_bytes)
        });
        count("real_bytes", real);
        count("zombie_bytes", zombies);
        let up = |port: &usize| node.neighbour(*port).is_some();
        let ages = (0..self.neighbours.len()).filter(up).filter_map(|port| node.depths_age(port, self.now));
        if let Some(age) = ages.max() {
            report("depths_age_ms", age.min(Span::from_secs(3600)).as_millis_f64());
        }
        let carriers = (0..self.neighbours.len()).filter_map(|port| node.cat(port));
        let capacity: u64 = carriers.map(|carrier| carrier.capacity().bits_per_sec()).sum();
        report("capacity_bit_per_s", capacity as f64);
        report("k", node.k().unwrap_or_default());
    }
}
