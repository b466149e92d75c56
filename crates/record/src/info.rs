//! The description of a run for metrics and reports. It has no file of its own: `weir_engine` derives it from the run in
//! `run.json` (`runs.json` of a shard) beside the records, so that every number can be computed again from the folder.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_base::{Rate, Span};

/// The names of all engines, in the order in which their runs stand side by side.
pub const ENGINES: [&str; 2] = ["sim", "live"];

/// A run, described for metrics and reports. Indices in records refer to these lists.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// The lab's name.
    pub lab: String,
    /// One of [`ENGINES`].
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// The label chosen on each level, in the order of the tree.
    pub params: Vec<Param>,
    /// Length of the run.
    pub duration: Span,
    /// Length of the warm-up, which metrics leave out unless another is asked for.
    pub warmup: Span,
    /// Parts of the run that have metrics of their own.
    #[serde(default)]
    pub windows: Vec<WindowInfo>,
    /// Length of a sample period.
    pub sample: Span,
    /// Index of the link whose queue the run's own metrics describe: the slowest instrumented link that a group's data crosses.
    /// A link is as slow as its shaper; parallel links are taken as one. `None` if there is no such link.
    pub bottleneck: Option<u32>,
    /// All links, instrumented or not.
    pub links: Vec<LinkInfo>,
    /// Stations at nodes.
    #[serde(default)]
    pub stations: Vec<StationInfo>,
    /// Traffic groups.
    pub groups: Vec<GroupInfo>,
    /// Flows.
    pub flows: Vec<FlowInfo>,
    /// What may be concluded from its numbers.
    #[serde(default)]
    pub premises: Premises,
}

/// What the plan of a run permits to conclude from its numbers; see [`crate::Trip`]. By default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Premises {
    /// Whether no link or station changes the order of packets, their distances or their number, apart from queues and losses.
    pub orderly: bool,
    /// Whether rates can be estimated from acknowledgements: in addition these share no queue with data, and hosts delay packets
    /// by no more than a packet takes on the slowest link.
    pub spaced: bool,
    /// Whether losses bound the retransmissions: in addition no link changes, and all flows are of TCP with SACK or are datagrams.
    pub counted: bool,
    /// Whether the run has a single flow that must use its link: nothing but that link's full buffer, of half a
    /// bandwidth-delay product or more, limits it, and the run is long enough.
    pub fills: bool,
}

/// A level of the tree and the choice on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The level's name.
    pub level: String,
    /// The label of the choice.
    pub value: String,
}

/// A named part of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowInfo {
    /// Its name.
    pub name: String,
    /// Its begin, from the start of the run.
    pub from: Span,
    /// Its end, from the start of the run.
    pub to: Span,
    /// Greatest distance of settled one-second means from their final value, as a share of that value.
    pub tolerance: f64,
    /// Whether it is a phase, a period between two changes of the run's links, and not a window that the lab names.
    #[serde(default)]
    pub phase: bool,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Its name.
    pub name: String,
    /// Its rate at the start; `None` is unlimited.
    pub rate: Option<Rate>,
    /// Its propagation delay at the start.
    pub delay: Span,
    /// The name of its queue discipline.
    pub queue: String,
    /// Whether it has records.
    pub instrumented: bool,
    /// Indices of the groups whose data crosses it; empty if it carries only acknowledgements.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// A traffic group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The name of its congestion controller; `None` for traffic without one.
    pub controller: Option<Arc<str>>,
    /// The transport: `tcp`, `udp`, ...
    pub transport: Arc<str>,
    /// Whether the data of each flow waits for a handshake of a round trip.
    #[serde(default)]
    pub handshake: bool,
    /// The name of its workload.
    pub workload: String,
    /// Base RTT between its hosts at the start.
    pub rtt: Span,
    /// The route of its packets, with the greatest rates and least delays that its links ever have.
    #[serde(default)]
    pub route: RouteInfo,
    /// Whether its flows have random arrivals: many short flows, without metrics of single ones.
    #[serde(default, alias = "drawn")]
    pub random_arrivals: bool,
    /// Deadline of its messages; `None` if its workload has none.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Whether its flows only probe their path: they do not compete with others.
    #[serde(default)]
    pub probes: bool,
    /// How its flows share a path; `None` if they do not always have data to send.
    #[serde(default)]
    pub sharing: Option<Sharing>,
    /// The most that any forwarding can deliver to each receiver by the deadline that the overlay keeps for it; `None` without one.
    #[serde(default)]
    pub deadline_capacity: Option<Rate>,
    /// Its goodput, of all receivers together, where the sum of the overlay's utilities is largest, from each time on; empty without an
    /// overlay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optimum: Vec<(Span, Rate)>,
}

impl GroupInfo {
    /// Whether its flows are to complete: transfers, and flows that arrive at random.
    pub(crate) fn completes(&self) -> bool {
        self.random_arrivals || self.workload == "transfer"
    }
}

/// How flows that always have data to send share a path with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each flow competes by itself.
    Single,
    /// The flows act as one application: they follow the reports of aggregation points, or carry ensembles together.
    Coordinated,
}

/// Bounds of the route of a group's packets: no packet has less delay, and no flow a greater rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RouteInfo {
    /// Greatest rate of the slowest link on the data's route; `None` if no link's rate is known beforehand.
    pub rate: Option<Rate>,
    /// Propagation delay of the data's route, with the least delay that each link ever has.
    pub there: Span,
    /// Propagation delay of the route back, likewise.
    pub back: Span,
    /// Whether a link on the data's route may deliver packets twice.
    pub duplicates: bool,
    /// Greatest goodput that the slowest link or shaper on the data's route allows: its greatest rate less all headers. `None`
    /// if it is not known beforehand, or if the group has several routes.
    #[serde(default)]
    pub ceiling: Option<Rate>,
    /// Greatest total rate of the group's flows: `rate`, or more if the group has several routes whose slowest links are
    /// parallel. `None` if it is not known beforehand.
    #[serde(default)]
    pub together: Option<Rate>,
}

impl RouteInfo {
    /// The shortest round trip.
    pub fn rtt(&self) -> Span {
        self.there + self.back
    }
}

/// A station.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StationInfo {
    /// Its name.
    pub name: String,
    /// Its kind, by its name in the registry.
    pub kind: String,
    /// The name of its node.
    pub at: String,
    /// The names of the links whose packets it sees; it sees those of all links if the list is empty.
    pub links: Vec<String>,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its group: an index into the groups.
    pub group: u32,
    /// When it starts.
    pub start: Span,
    /// When its application stops sending; `None` if it stops only when it has sent everything, or never.
    pub stop: Option<Span>,
}
