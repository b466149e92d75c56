//! What a fabric is built from: nodes and directed links, all values spelled out.

use crate::{Jitter, Loss, Playback, Wifi};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Rate, Span};

/// A network between hosts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Directed links between them.
    pub links: Vec<Link>,
    /// Given ways; packets for other hosts take the way of least delay.
    pub ways: Vec<Way>,
    /// Flows, by number: where their data comes from.
    pub flows: Vec<Flow>,
    /// Number of traffic groups.
    pub groups: usize,
    /// RTT that limits in BDP are computed from.
    pub base_rtt: Option<Span>,
    /// What gives an RTT sample.
    pub round_trips: RoundTrips,
    /// Seed of every random stream.
    pub seed: u64,
}

/// What gives an RTT sample at the taps. Segments that were sent more than once never do (Karn).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTrips {
    /// Each segment, with the first acknowledgement that covers it, cumulative or selective.
    #[default]
    Segments,
    /// Each cumulative acknowledgement, with the segment that it ends with, as Wireshark's `tcp.analysis.ack_rtt` does. It knows no
    /// SACK: what arrived behind a hole waits until the hole is filled.
    Acknowledgements,
}

/// A host or a router.
#[derive(Debug, Clone)]
pub struct Node {
    /// Whether traffic begins and ends there.
    pub host: bool,
    /// Most that a packet is held before it leaves the host; order is preserved.
    pub jitter: Span,
    /// Whether its first link is its card: what the card's queue has no room for stays in the host.
    pub card: bool,
}

/// The links that packets for a host take, wherever on them they are.
#[derive(Debug, Clone)]
pub struct Way {
    /// The host.
    pub to: usize,
    /// Links, each beginning where the one before ends; no node is passed twice.
    pub links: Vec<usize>,
}

/// A flow as the taps know it. They count its packets at these two ends, whichever other hosts they cross.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// The host that its data comes from.
    pub from: usize,
    /// The host, or the node of a station, that its data is for.
    pub to: usize,
    /// Its traffic group.
    pub group: usize,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link {
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Largest IP packet that it carries.
    pub mtu: Bytes,
    /// Rate, of a trace its mean; none is no limit, and no queue.
    pub rate: Option<Rate>,
    /// What says how fast it is, instead of a constant rate.
    pub trace: Option<Playback>,
    /// How it contends for a radio channel whose rate the link's is, if it does; not with a trace of opportunities.
    pub wifi: Option<Wifi>,
    /// Propagation delay.
    pub delay: Span,
    /// Which packets are lost on the way.
    pub loss: Loss,
    /// What is added to each packet's delay.
    pub jitter: Option<Jitter>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives damaged.
    pub corrupt: f64,
    /// When it sends nothing: (from, how long), ascending and apart. What was begun is finished. Only with a rate.
    pub outages: Vec<(Span, Span)>,
    /// Bytes that each packet costs beside its IP length.
    pub overhead: Bytes,
    /// The queue before it.
    pub queue: weir_queue::Config,
    /// Numbers of the packets that are lost on arrival, from 1, ascending.
    pub drop: Vec<u64>,
    /// Packets that others overtake: (number, how many later packets pass it), ascending.
    pub hold: Vec<(u64, u64)>,
    /// Changes over time, ascending.
    pub schedule: Vec<Change>,
    /// Whether delays are recorded.
    pub measured: bool,
}

/// From a time on, a link has other properties; what is none stays.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// When, from the start.
    pub at: Span,
    /// New rate; a trace ends with it, unless it comes with one.
    pub rate: Option<Rate>,
    /// A trace that begins now; its mean comes as the rate.
    pub trace: Option<Playback>,
    /// New delay.
    pub delay: Option<Span>,
    /// New loss.
    pub loss: Option<Loss>,
    /// New jitter.
    pub jitter: Option<Jitter>,
    /// New probability that a packet arrives twice.
    pub duplicate: Option<f64>,
    /// New probability that a packet arrives damaged.
    pub corrupt: Option<f64>,
}
