//! What a run was, as far as metrics and reports need to know. It is no file of its own: `weir_engine` derives it from the run that
//! `run.json` (`runs.json` of a shard) holds beside the records, so every number can be computed again from the folder alone.

use serde::{Deserialize, Serialize};
use weir_base::{Rate, Span};

/// A run, described for metrics and reports. Indices in records are places in these lists.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// The lab's name.
    pub lab: String,
    /// `sim` or `live`.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// What was chosen on each level, in the order of the tree.
    pub params: Vec<Param>,
    /// How long it ran.
    pub duration: Span,
    /// What is cut off before metrics are computed, unless another is asked for.
    pub warmup: Span,
    /// Parts of the run that have metrics of their own.
    #[serde(default)]
    pub windows: Vec<WindowInfo>,
    /// Length of a sample period.
    pub sample: Span,
    /// The link whose queue the run's own metrics are about: the slowest measured link that a group's data cross, where links that
    /// stand side by side are taken together.
    pub bottleneck: Option<u32>,
    /// All links, measured or not.
    pub links: Vec<LinkInfo>,
    /// Stations at nodes.
    #[serde(default)]
    pub stations: Vec<StationInfo>,
    /// Traffic groups.
    pub groups: Vec<GroupInfo>,
    /// Flows.
    pub flows: Vec<FlowInfo>,
}

/// A level of the tree and what was chosen on it.
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
    /// Where it begins, from the start of the run.
    pub from: Span,
    /// Where it ends, from the start of the run.
    pub to: Span,
    /// How near to their final value one-second means are once they have settled, as a share of that value.
    pub tolerance: f64,
    /// Whether the lab does not name it: a stretch between two changes of the run's links.
    #[serde(default)]
    pub phase: bool,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Its name.
    pub name: String,
    /// Its rate at the start; none is no limit.
    pub rate: Option<Rate>,
    /// Its propagation delay at the start.
    pub delay: Span,
    /// The name of its queue discipline.
    pub queue: String,
    /// Whether it has records.
    pub instrumented: bool,
    /// The groups whose data cross it: places in the list of groups. A link that carries only acknowledgements has none.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// A traffic group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// The name of its congestion controller; none for traffic that has none.
    pub controller: Option<String>,
    /// The transport: `tcp`, `udp`, ...
    pub transport: String,
    /// The name of its workload.
    pub workload: String,
    /// Base RTT between its hosts, at the start.
    pub rtt: Span,
    /// The route of its packets, at its best.
    #[serde(default)]
    pub route: RouteInfo,
    /// Whether its flows were drawn: many short ones, of which nobody looks at single ones.
    #[serde(default)]
    pub drawn: bool,
    /// By when its messages are to be there, where its workload says.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Whether its flows only measure their way: they compete with no other.
    #[serde(default)]
    pub probes: bool,
    /// How its flows share a path, where they always have data to send; none where they do not.
    #[serde(default)]
    pub sharing: Option<Sharing>,
}

/// How flows that always have data to send share a path with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each by itself.
    Single,
    /// As one application: they follow the reports of aggregation points, or carry ensembles together.
    Coordinated,
}

/// What the route of a group's packets can do at its best: no packet is faster, and no flow gets more.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RouteInfo {
    /// The slowest link on the data's route, at its fastest; none where no link has a rate that is known beforehand.
    pub rate: Option<Rate>,
    /// Propagation delay of the data's route: of each link the shortest that it ever has.
    pub there: Span,
    /// The same of the way back.
    pub back: Span,
    /// Whether a link on the data's route may deliver packets twice.
    pub duplicates: bool,
    /// What the slowest link or shaper on the data's route leaves for payload, after all headers, at its fastest; none where that is not
    /// known beforehand, or where the group has several routes.
    #[serde(default)]
    pub ceiling: Option<Rate>,
    /// What all flows of the group together can have at most: `rate`, but where they have several routes, whose slowest links may stand
    /// side by side. None where that is not known beforehand.
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
    /// What it is, as the registry calls it.
    pub kind: String,
    /// The name of the node at which it stands.
    pub at: String,
    /// The names of the links whose packets it sees; of all where there are none.
    pub links: Vec<String>,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowInfo {
    /// Its name.
    pub name: String,
    /// Its group: an index into the groups.
    pub group: u32,
    /// When it starts.
    pub start: Span,
    /// When its application stops sending; none is never, or when it has sent all.
    pub stop: Option<Span>,
}
