//! What a fabric is built from: nodes and directed links, all values spelled out. It is also how a run describes its network.

use crate::{Jitter, Loss, Playback, Wifi};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Rate, Span};

/// What a fabric is built from, beside its stations.
#[derive(Debug, Clone)]
pub struct Config {
    /// Nodes and links.
    pub network: Network,
    /// Flows, by number: where their data comes from.
    pub flows: Vec<Flow>,
    /// Number of traffic groups.
    pub groups: usize,
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

/// Largest IP packet over Ethernet (RFC 894).
pub const MTU: Bytes = Bytes::new(1500);

/// A network between hosts: a graph of nodes and directed links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Directed links. Packets between two nodes follow the path of least total delay, where no way is given.
    pub links: Vec<Link>,
    /// Given routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The dumbbell's base RTT, or what the lab gives for one: what `bdp` is computed from.
    pub base_rtt: Option<Span>,
}

impl Network {
    /// The largest IP packet that any of its links carries.
    pub fn mtu(&self) -> Bytes {
        self.links.iter().map(|link| link.mtu).max().unwrap_or(Bytes::ZERO)
    }
}

/// A host or a router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it is a host: traffic begins and ends there.
    pub host: bool,
    /// Most that a packet is held at this host before it leaves, drawn for each packet, order preserved.
    pub jitter: Span,
    /// Largest IP packet that it sends or takes; Ethernet's where it is not written.
    #[serde(default = "usual_mtu", skip_serializing_if = "is_usual_mtu")]
    pub mtu: Bytes,
    /// The host's network card, where the lab gives it one: its first link is the card's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
}

impl Node {
    /// A router.
    pub fn router(name: impl Into<String>) -> Node {
        Node { name: name.into(), host: false, jitter: Span::ZERO, mtu: MTU, card: None }
    }

    /// A host without a card of its own.
    pub fn host(name: impl Into<String>) -> Node {
        Node { host: true, ..Node::router(name) }
    }
}

/// A host's network card: its first link is the card's, with a rate and a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Whether what its queue has no room for stays in the host, unsent; otherwise the queue drops it.
    pub refuses: bool,
    /// Whether TCP bounds what waits in its queue.
    pub small_queues: bool,
    /// Whose shaper its queue is in live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
}

/// Whose shaper a card's queue is in live runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Shaper {
    /// The kernel's.
    Kernel,
}

/// The links that packets for a host take, wherever on them they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The host: index of a node.
    pub to: usize,
    /// Indices of links, each beginning where the one before ends; no node is passed twice.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name, for records and reports.
    pub name: String,
    /// Where it begins: index of a node.
    pub from: usize,
    /// Where it ends: index of a node.
    pub to: usize,
    /// Rate, of a trace its mean; none is no limit, and no queue.
    pub rate: Option<Rate>,
    /// The recording that says how fast it is, instead of a constant rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Playback>,
    /// How it contends for a radio channel, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// Propagation delay.
    pub delay: Span,
    /// Which packets are lost on the way, after the queue.
    pub loss: Loss,
    /// What is added to each packet's delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicate: f64,
    /// Probability that a packet arrives damaged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupt: f64,
    /// Longest IP packet that arrives; longer ones are lost, and nobody is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// When it begins to send nothing, ascending and apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Bytes that each packet costs beside its IP length.
    pub overhead: Bytes,
    /// Largest IP packet that it carries; Ethernet's where it is not written.
    #[serde(default = "usual_mtu", skip_serializing_if = "is_usual_mtu")]
    pub mtu: Bytes,
    /// The queue before it.
    pub queue: weir_queue::Config,
    /// Packets that are lost on arrival at the link, by their number in order of arrival, from 1; ascending.
    pub drop: Vec<u64>,
    /// Packets that are held back on arrival until others have overtaken them.
    pub reorder: Vec<Reorder>,
    /// Changes over time, ascending.
    pub schedule: Vec<Change>,
    /// Whether it is a link of the lab, with records of its own, rather than a host's access.
    pub instrumented: bool,
}

fn usual_mtu() -> Bytes {
    MTU
}

fn is_usual_mtu(mtu: &Bytes) -> bool {
    *mtu == MTU
}

fn is_zero(probability: &f64) -> bool {
    *probability == 0.0
}

/// A time in which a link begins to send nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, from the start of the run.
    pub at: Span,
    /// How long it lasts.
    #[serde(rename = "for")]
    pub length: Span,
}

/// A packet that others overtake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reorder {
    /// Its number in order of arrival at the link, from 1.
    pub packet: u64,
    /// How many later packets pass it.
    pub by: u64,
}

/// From a time on, a link has other properties; what is not named stays.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Span,
    /// New rate, of a trace its mean; a trace ends with it.
    pub rate: Option<Rate>,
    /// A recording that begins then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Playback>,
    /// New delay. Packets never overtake each other when it falls.
    pub delay: Option<Span>,
    /// New loss.
    pub loss: Option<Loss>,
    /// New jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// New probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,
    /// New probability that a packet arrives damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<f64>,
    /// New length of the longest packet that arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// New parameters of its queue, of the same kind; what waits stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<weir_queue::Config>,
}

impl Link {
    /// A link without limit, delay or faults, before which no queue waits.
    pub fn plain(name: impl Into<String>, from: usize, to: usize) -> Link {
        Link {
            name: name.into(),
            from,
            to,
            rate: None,
            trace: None,
            wifi: None,
            delay: Span::ZERO,
            loss: Loss::NONE,
            jitter: None,
            duplicate: 0.0,
            corrupt: 0.0,
            largest: None,
            outages: Vec::new(),
            overhead: Bytes::ZERO,
            mtu: MTU,
            queue: weir_queue::Config::TailDrop(Default::default()),
            drop: Vec::new(),
            reorder: Vec::new(),
            schedule: Vec::new(),
            instrumented: false,
        }
    }

    /// The recordings that it plays, at once or later.
    pub fn traces(&self) -> impl Iterator<Item = &Playback> {
        self.trace.iter().chain(self.schedule.iter().filter_map(|change| change.trace.as_ref()))
    }
}
