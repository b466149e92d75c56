//! What a node tells the records once a sample period, by the names of states. Counters run from its start.

use super::Node;
use crate::cat::Cat;
use crate::nodes::NodeId;
use crate::packet::{Body, GroupId, Key};
use crate::queue::Class;
use weir_base::{Span, Time};

/// Bins that have states of their own at most: those of the lowest numbers.
const MOST_BINS: usize = 16;
/// The largest age of depths that is told: none may ever have come.
const OLDEST: Span = Span::from_secs(3600);
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

impl<B: Body, C: Cat> Node<B, C> {
    /// Tells what the node has sent, what it holds, and what its links carry, as sums.
    pub fn tell(&self, now: Time, report: &mut dyn FnMut(&str, f64)) {
        let sent = self.counters();
        let mut count = |name: &str, value: u64| report(name, value as f64);
        count("payload_bytes", sent.body_bytes);
        count("data_packets", sent.packets);
        count("signal_packets", sent.signals);
        count("zombie_bytes_added", sent.zombies_added);
        count("zombie_bytes_left", sent.zombies_left);
        count("overflowed_packets", sent.overflowed);
        let (real, zombies) =
            self.bins().fold((0, 0), |(real, zombies), bin| (real + bin.real, zombies + bin.zombies));
        count("real_bytes", real);
        count("zombie_bytes", zombies);
        let ages = (0..self.ports.len())
            .filter(|port| self.neighbour(*port).is_some())
            .filter_map(|port| self.advertised_by(port))
            .map(|told| told.age(now));
        if let Some(age) = ages.max() {
            report("depths_age_ms", age.min(OLDEST).as_millis_f64());
        }
        let capacity: u64 = self.ports.iter().map(|port| port.cat.capacity().bits_per_sec()).sum();
        report("capacity_bit_per_s", capacity as f64);
        report("k", self.k().unwrap_or_default());
    }

    /// Tells of each class, each bin and each neighbour. `ids` are the neighbours in the order of their links, whether they are up or not.
    pub fn tell_parts(&self, ids: impl IntoIterator<Item = NodeId>, report: &mut dyn FnMut(&str, f64)) {
        for (class, name) in CLASSES {
            report(name, self.class_bytes(class) as f64);
        }
        for bin in self.bins().take(MOST_BINS) {
            let name = match bin.key {
                Key::Node(to) => format!("bin_node_{}", to.number()),
                Key::Group(GroupId(group)) => format!("bin_group_{}", group & 0xffff),
            };
            for (part, value) in [("real", bin.real), ("zombie", bin.zombies), ("advertised", bin.advertised)]
            {
                report(&format!("{name}_{part}_bytes"), value as f64);
            }
        }
        for (port, id) in ids.into_iter().enumerate() {
            let (Some(cat), sent) = (self.cat(port), self.sent(port)) else { continue };
            for (part, value) in [
                ("up", f64::from(u8::from(self.neighbour(port).is_some()))),
                ("capacity_bit_per_s", cat.capacity().bits_per_sec() as f64),
                ("delay_ms", cat.delay().mean.as_millis_f64()),
                ("loss_percent", 100.0 * cat.loss()),
                ("data_bytes", sent.data as f64),
                ("signal_bytes", sent.signals as f64),
                ("zombie_bytes", sent.zombies as f64),
            ] {
                report(&format!("neighbour_{}_{part}", id.number()), value);
            }
        }
    }
}
