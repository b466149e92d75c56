//! A link as a lab file writes it: `[dumbbell]`, `[chain.links.NAME]`, and the link's keys in other shapes. Doc comments here
//! are the user's documentation.

use crate::link::{Jitters, Losses, Speed};
use crate::per_direction::PerDirection;
use crate::probability::Probability;
use schemars::JsonSchema;
use serde::Deserialize;
use weir_base::{Bytes, Span};
use weir_fabric::{Outage, Report, Wifi};

/// A link in both directions: the dumbbell's bottleneck, or a link of a chain. `{ down = .., up = .. }` gives each direction a
/// value of its own. A plain value of rate, wifi, delay, queue, report or overhead holds for both directions; a plain value of loss,
/// largest, jitter, duplicate, corrupt, outage, drop, reorder or schedule holds for `down` only, the direction of the data.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bottleneck {
    /// Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace = "FILE" }` for a
    /// recorded link. Limits in time and in bdp are computed from a trace's mean rate.
    pub(crate) rate: PerDirection<Speed>,
    /// The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's rate. `{}` takes the
    /// defaults.
    pub(crate) wifi: Option<PerDirection<Wifi>>,
    /// Base round-trip time, without queues and serialisation; half of it is each direction's delay. Give either this or
    /// `delay`.
    pub(crate) rtt: Option<Span>,
    /// Propagation delay, one way.
    pub(crate) delay: Option<PerDirection<Span>>,
    /// The queue in front of the link; by default tail drop of 1000 packets.
    pub(crate) queue: Option<PerDirection<weir_queue::Config>>,
    /// Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %", burst = 5 }`; or bit errors,
    /// `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10 s", bad = "100 ms" }`. A plain value holds for down only.
    pub(crate) loss: Option<PerDirection<Losses>>,
    /// Largest IP packet that the link delivers. Larger packets are lost without a message to anyone, as on a path whose MTU is
    /// smaller than its ends know. A plain value holds for down only.
    pub(crate) largest: Option<PerDirection<Bytes>>,
    /// Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from 0 to 5 ms, or a table.
    /// Packets keep their order unless the table has `reorder = true`. A plain value holds for down only.
    pub(crate) jitter: Option<PerDirection<Jitters>>,
    /// Probability that a packet arrives twice. A plain value holds for down only.
    pub(crate) duplicate: Option<PerDirection<Probability>>,
    /// Probability that a packet arrives damaged; the receiving host discards it. A plain value holds for down only.
    pub(crate) corrupt: Option<PerDirection<Probability>>,
    /// Outages: times in which the link starts no transmission and its queue holds its packets, `[{ at = "10 s", for = "2 s"
    /// }]`. A plain value holds for down only.
    pub(crate) outage: Option<PerDirection<Vec<Outage>>>,
    /// Packets that the link drops on arrival, by number: all packets are numbered from 1 as they arrive at the link. A plain
    /// value holds for down only.
    pub(crate) drop: Option<PerDirection<Vec<u64>>>,
    /// Packets that are held back until later ones have passed them. A plain value holds for down only.
    pub(crate) reorder: Option<PerDirection<Vec<Held>>>,
    /// What packets that leave the queue report of it; by default nothing. With "ip-id" the identification of IPv4 holds how long the
    /// packet has waited, in steps of 32.768 us, and how many were dropped before it: `weir analyze --stamped` reads a capture. Packets
    /// of IPv6 and those that may be fragmented report nothing. A plain value holds for both directions.
    pub(crate) report: Option<PerDirection<Report>>,
    /// Bytes that each packet takes beyond its IP length (14 for an Ethernet header).
    pub(crate) overhead: Option<PerDirection<Bytes>>,
    /// Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger packets than their paths
    /// carry.
    pub(crate) mtu: Option<Bytes>,
    /// Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue over time. A plain value holds
    /// for down only.
    pub(crate) schedule: Option<PerDirection<Vec<Change>>>,
}

/// A packet that others overtake.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    /// Its number in order of arrival at the link, from 1.
    pub(crate) packet: u64,
    /// How many later packets pass it.
    pub(crate) by: u64,
}

/// A change of a link at a time. Properties that it does not name stay as they are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// When, from the start of the run.
    pub(crate) at: Span,
    /// New rate, or a trace that begins then.
    pub(crate) rate: Option<Speed>,
    /// New propagation delay, one way.
    pub(crate) delay: Option<Span>,
    /// New loss.
    pub(crate) loss: Option<Losses>,
    /// New largest IP packet that the link delivers.
    pub(crate) largest: Option<Bytes>,
    /// New jitter.
    pub(crate) jitter: Option<Jitters>,
    /// New probability that a packet arrives twice.
    pub(crate) duplicate: Option<Probability>,
    /// New probability that a packet arrives damaged.
    pub(crate) corrupt: Option<Probability>,
    /// New parameters of the queue, all of them, for a queue of the same kind: `tbf` or `htb`, whose classes are matched by
    /// name. Waiting packets stay, except those of a class that is no longer named.
    pub(crate) queue: Option<weir_queue::Config>,
}
