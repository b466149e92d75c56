//! The configuration of a fabric: nodes and directed links, all values spelled out. Runs describe their network with the same
//! types.

use crate::{Jitter, Loss, Playback, Wifi};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_base::{Bytes, Rate, Span};

/// The configuration of a fabric, without its stations.
#[derive(Debug, Clone)]
pub struct Config {
    /// Nodes and links.
    pub network: Network,
    /// Flows, by number: their ends and groups.
    pub flows: Vec<Flow>,
    /// Number of traffic groups.
    pub groups: usize,
    /// Which acknowledgements give RTT samples.
    pub round_trips: RoundTrips,
    /// Seed of every random stream.
    pub seed: u64,
}

/// Which acknowledgements give RTT samples at the taps. Retransmitted segments never give a sample (Karn's algorithm).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTrips {
    /// One sample per segment: the time to the first acknowledgement that covers it, cumulative or selective.
    #[default]
    Segments,
    /// One sample per cumulative acknowledgement: the time since the segment that it ends with was sent, as Wireshark's
    /// `tcp.analysis.ack_rtt`. SACK blocks are ignored: segments behind a hole wait until the hole is filled.
    Acknowledgements,
}

/// Largest IP packet over Ethernet (RFC 894).
pub const MTU: Bytes = Bytes::new(1500);

/// A network between hosts: a graph of nodes and directed links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Directed links. Packets between two nodes follow the path of least total delay, unless a route is given.
    pub links: Vec<Link>,
    /// Routes that the lab gives; they take precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The base RTT, from which `bdp` is computed: the dumbbell's own, or the one that the lab gives. `None` if there is neither.
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
    /// Longest time that a packet is held at this host before it leaves. The time is drawn for each packet; order is preserved.
    pub jitter: Span,
    /// Times in which this host sends nothing, in order, none within another.
    #[serde(default, skip_serializing_if = "<[Outage]>::is_empty")]
    pub pauses: Arc<[Outage]>,
    /// Largest IP packet that it sends or receives; by default Ethernet's.
    #[serde(default = "usual_mtu", skip_serializing_if = "is_usual_mtu")]
    pub mtu: Bytes,
    /// The host's network card, whose link is the host's first; `None` if the lab gives it none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
    /// The lab's name for several equal hosts, of which this is one; `None` if the lab names this host alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<String>,
    /// Whether the lab's graph lists it as a host. It forwards nothing, except between its links and the hosts of groups that stand there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub edge: bool,
}

impl Node {
    /// A router.
    pub fn router(name: impl Into<String>) -> Node {
        Node {
            name: name.into(),
            host: false,
            jitter: Span::ZERO,
            pauses: Arc::default(),
            mtu: MTU,
            card: None,
            alike: None,
            edge: false,
        }
    }

    /// A host without a card of its own.
    pub fn host(name: impl Into<String>) -> Node {
        Node { host: true, ..Node::router(name) }
    }
}

/// A host's network card: its first link is the card's, with a rate and a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Whether packets for which its queue has no room stay in the host, unsent. Otherwise the queue drops them.
    pub refuses: bool,
    /// Whether TCP bounds the data of each flow that waits in its queue (TCP small queues).
    pub small_queues: bool,
    /// The shaper that implements its queue in live runs; `None` if the lab runs on the simulator only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
}

/// The shaper that implements a card's queue in live runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Shaper {
    /// The kernel's shaper.
    Kernel,
}

/// The links that packets for a host take, from whichever node of the route they have reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The host: index of a node.
    pub to: usize,
    /// Indices of links, each beginning where the one before ends; no node is passed twice.
    pub links: Vec<usize>,
}

/// The ends and the group of a flow. The taps count its packets at these two ends only, whichever other hosts the packets cross.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// The host that sends its data.
    pub from: usize,
    /// The host, or the node of a station, that its data is addressed to.
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
    /// Rate; with a trace, the trace's mean rate. `None` for a link without limit, which has no queue.
    pub rate: Option<Rate>,
    /// The recording that gives its rate over time; `None` for a constant rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Playback>,
    /// How it contends for a radio channel; `None` for a link that does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// Propagation delay.
    pub delay: Span,
    /// Loss on the way, after the queue.
    pub loss: Loss,
    /// Random delay added to each packet's propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicate: f64,
    /// Probability that a packet arrives damaged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupt: f64,
    /// Longest IP packet that arrives; longer ones are lost silently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// Periods in which it begins no transmission, ascending and disjoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Bytes that each packet takes on the link beyond its IP length.
    pub overhead: Bytes,
    /// Largest IP packet that it carries; by default Ethernet's.
    #[serde(default = "usual_mtu", skip_serializing_if = "is_usual_mtu")]
    pub mtu: Bytes,
    /// The queue in front of its transmitter.
    pub queue: weir_queue::Config,
    /// How packets report what the queue did; `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Numbers of the packets that are lost on arrival at the link, counted from 1 in order of arrival; ascending.
    pub drop: Vec<u64>,
    /// Packets that are held back on arrival until others have overtaken them.
    pub reorder: Vec<Reorder>,
    /// Scheduled changes, in ascending order of time.
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

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(probability: &f64) -> bool {
    *probability == 0.0
}

/// How the packets that leave a queue report what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Report {
    /// The identification of IPv4 holds the time in the queue and the drops before the packet (`weir analyze --stamped`).
    IpId,
}

/// A period in which a link begins no transmission, or a host sends nothing.
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

/// A scheduled change of a link's properties. Properties that are `None` stay as they are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Change {
    /// When it takes effect, from the start of the run.
    pub at: Span,
    /// New rate; with a new trace, the trace's mean rate. It ends the trace that was playing.
    pub rate: Option<Rate>,
    /// A recording that begins at this time.
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
    /// New parameters of its queue, whose kind stays the same. Packets that wait stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<weir_queue::Config>,
}

impl Link {
    /// A link without rate limit, queue, delay or faults.
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
            report: None,
            drop: Vec::new(),
            reorder: Vec::new(),
            schedule: Vec::new(),
            instrumented: false,
        }
    }

    /// The recordings that it plays, from the start or by its schedule.
    pub fn traces(&self) -> impl Iterator<Item = &Playback> {
        self.trace.iter().chain(self.schedule.iter().filter_map(|change| change.trace.as_ref()))
    }
}
