//! A link, as it is written: `[dumbbell]`, `[chain.links.NAME]`, and what stands beside the keys of other shapes. Doc comments here are the user's documentation.

use crate::link::{Jitters, Losses, Speed};
use crate::probability::Probability;
use crate::ways::Ways;
use schemars::JsonSchema;
use serde::Deserialize;
use weir_base::{Bytes, Span};
use weir_fabric::{Outage, Wifi};

/// A link in both directions: the dumbbell's bottleneck, or one of a chain. A value for each direction is written
/// `{ down = .., up = .. }`. Written plainly, what the link is (rate, wifi, delay, queue, overhead) holds both ways; what it
/// does to packets beside (loss, largest, jitter, duplicate, corrupt, outage, drop, reorder, schedule) holds for `down`, the way
/// of the data.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bottleneck {
    /// How fast it sends, counted in IP bytes and `overhead`: a rate, or `{ trace = "FILE" }` for a recorded link. Limits in
    /// time and in bdp are computed from a trace's mean rate.
    pub(crate) rate: Ways<Speed>,
    /// How it contends for a radio channel, as a station of 802.11n does: `rate` is then the radio's. `{}` takes the
    /// defaults.
    pub(crate) wifi: Option<Ways<Wifi>>,
    /// Base round-trip time, without queues and serialisation: half of it each way. Either this or `delay`.
    pub(crate) rtt: Option<Span>,
    /// Propagation delay, one way.
    pub(crate) delay: Option<Ways<Span>>,
    /// The queue before it; by default tail drop of 1000 packets.
    pub(crate) queue: Option<Ways<weir_queue::Config>>,
    /// Which packets are lost on the way: each with a probability, 0.01 or "1 %", or in bursts, `{ mean = "1 %", burst = 5 }`.
    /// Plain: down only.
    pub(crate) loss: Option<Ways<Losses>>,
    /// Longest IP packet that arrives. Longer ones are lost and nobody is told, as on a path that carries less than its ends know of.
    /// Plain: down only.
    pub(crate) largest: Option<Ways<Bytes>>,
    /// Delay that is drawn for each packet on top of the propagation delay: "5 ms" for a uniform one below that, or a table.
    /// Packets keep their order unless it says `reorder = true`. Plain: down only.
    pub(crate) jitter: Option<Ways<Jitters>>,
    /// Probability that a packet arrives twice. Plain: down only.
    pub(crate) duplicate: Option<Ways<Probability>>,
    /// Probability that a packet arrives damaged, and is thrown away by the host that it reaches. Plain: down only.
    pub(crate) corrupt: Option<Ways<Probability>>,
    /// Times in which it begins to send nothing, and its queue holds: `[{ at = "10 s", for = "2 s" }]`. Plain: down only.
    pub(crate) outage: Option<Ways<Vec<Outage>>>,
    /// Packets that are lost on arrival, by their number in order of arrival at the link, from 1, all packets counted.
    /// Plain: down only.
    pub(crate) drop: Option<Ways<Vec<u64>>>,
    /// Packets that are held back until others have passed them. Plain: down only.
    pub(crate) reorder: Option<Ways<Vec<Held>>>,
    /// Bytes that each packet costs beside its IP length (14 for an Ethernet header).
    pub(crate) overhead: Option<Ways<Bytes>>,
    /// Largest IP packet that it carries; by default "1500 B", as Ethernet. Hosts send no larger packets than their paths carry.
    pub(crate) mtu: Option<Bytes>,
    /// Changes of rate, delay, loss, the longest packet, jitter, duplication, corruption or queue over time. Plain: down only.
    pub(crate) schedule: Option<Ways<Vec<Change>>>,
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

/// A change of a link at a time; what is not named stays.
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
    /// New length of the longest IP packet that arrives.
    pub(crate) largest: Option<Bytes>,
    /// New jitter.
    pub(crate) jitter: Option<Jitters>,
    /// New probability that a packet arrives twice.
    pub(crate) duplicate: Option<Probability>,
    /// New probability that a packet arrives damaged.
    pub(crate) corrupt: Option<Probability>,
    /// New parameters of its queue, all of them, of the same kind: `tbf` or `htb`, whose classes are told apart by their names. What
    /// waits stays, but for what waits in a class that is named no more.
    pub(crate) queue: Option<weir_queue::Config>,
}
