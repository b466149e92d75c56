//! What a node tells the records once a sample period. Counters run from the start of the run.

use super::hop::Sent;
use super::{HEADERS, OverlayNode};
use weir_base::Span;
use weir_fabric::Wire;
use weir_overlay::queue::Class;
use weir_overlay::{Cat, GroupId, Key};

/// Bins that have states of their own at most: those of the lowest numbers.
const MOST_BINS: usize = 16;
/// The classes, each with the name of its state.
const CLASSES: [(Class, &str); 10] = [
    (Class::Critical, "class_critical_bytes"),
    (Class::Control, "class_control_bytes"),
    (Class::LowLatency, "class_low_latency_bytes"),
    (Class::Expired, "class_expired_zombie_bytes"),
    (Class::StarvedSensitive, "class_starved_sensitive_zombie_bytes"),
    (Class::VirtualSensitive, "class_virtual_sensitive_zombie_bytes"),
    (Class::Normal, "class_normal_bytes"),
    (Class::Received, "class_received_zombie_bytes"),
    (Class::Starved, "class_starved_zombie_bytes"),
    (Class::Virtual, "class_virtual_zombie_bytes"),
];

impl<P: Wire> OverlayNode<P> {
    pub(super) fn report(&self, report: &mut dyn FnMut(&str, f64)) {
        let Some(node) = &self.node else { return };
        let sent = node.counters();
        let mut count = |name: &str, value: u64| report(name, value as f64);
        count("payload_bytes", sent.body_bytes);
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
        count("data_packets", sent.packets);
        count("signal_packets", sent.signals);
        count("zombie_bytes_added", sent.zombies_added);
        count("zombie_bytes_left", sent.zombies_left);
        count("expired_packets", self.expired);
        count("overflowed_packets", sent.overflowed);
        let rates = self.edge.entries().map(|(_, entry)| entry.admission.rate().bits_per_sec());
        count("admitted_bit_per_s", rates.sum());
        let (real, zombies) =
            node.bins().fold((0, 0), |(real, zombies), bin| (real + bin.real, zombies + bin.zombies));
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
        if self.details {
            self.report_parts(report);
        }
    }

    /// The queues by class and by bin, each neighbour, and where each flow leaves.
    fn report_parts(&self, report: &mut dyn FnMut(&str, f64)) {
        let Some(node) = &self.node else { return };
        for (class, name) in CLASSES {
            report(name, node.class_bytes(class) as f64);
        }
        for bin in node.bins().take(MOST_BINS) {
            let name = match bin.key {
                Key::Node(to) => format!("bin_node_{}", to.number()),
                Key::Group(GroupId(group)) => format!("bin_group_{}", group & 0xffff),
            };
            for (part, value) in [("real", bin.real), ("zombie", bin.zombies), ("advertised", bin.advertised)]
            {
                report(&format!("{name}_{part}_bytes"), value as f64);
            }
        }
        for (port, neighbour) in self.neighbours.iter().enumerate() {
            let (Some(cat), sent) = (node.cat(port), node.sent(port)) else { continue };
            let hop = self.hops.get(port).map(|hop| hop.sent).unwrap_or_default();
            let is_up = node.neighbour(port).is_some();
            for (part, value) in [
                ("up", f64::from(u8::from(is_up))),
                ("capacity_bit_per_s", cat.capacity().bits_per_sec() as f64),
                ("delay_ms", cat.delay().mean.as_millis_f64()),
                ("loss_percent", 100.0 * cat.loss()),
                ("data_bytes", sent.data as f64),
                ("signal_bytes", sent.signals as f64),
                ("zombie_bytes", sent.zombies as f64),
                ("resent_bytes", hop.again as f64),
                ("acknowledgement_bytes", hop.acknowledgements as f64),
            ] {
                report(&format!("neighbour_{}_{part}", neighbour.id.number()), value);
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
