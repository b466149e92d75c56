//! `summary.json`: the metrics of every run of a lab, in the same form for both engines. Numbers have six significant digits
//! and no wall-clock time is in it: the same records make the same bytes.

use crate::info::{Param, RunInfo, WindowInfo};
use crate::metrics::{Level, Metrics, View};
use crate::oracle::{Trip, trips};
use crate::records::Records;
use crate::types::Component;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use weir_base::{Ecn, Span, Time};

/// A lab's runs and their metrics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The lab's name.
    pub lab: String,
    /// Version of weir that computed it.
    pub weir_version: String,
    /// Number of runs in the tree, for each engine that has finished any; more than the length of `runs` if some are missing.
    #[serde(default)]
    pub planned_runs: usize,
    /// The runs, in the order of the tree.
    pub runs: Vec<RunSummary>,
}

/// One run's metrics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run's id.
    pub id: String,
    /// `sim` or `live`.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// The label chosen on each level: an object from level to label, in the order of the tree.
    #[serde(with = "params")]
    pub params: Vec<Param>,
    /// Length of the run, in seconds.
    pub duration_s: f64,
    /// Length of the warm-up that was left out, in seconds.
    pub warmup_s: f64,
    /// Metrics of the whole run; metrics of queues are those of the bottleneck.
    pub metrics: Metrics,
    /// Metrics of each traffic group.
    pub groups: Vec<GroupSummary>,
    /// Metrics of each pair of groups.
    pub pairs: Vec<PairSummary>,
    /// Metrics of each flow without random arrivals; the group's distributions describe thousands of short flows.
    pub flows: Vec<FlowSummary>,
    /// Metrics of each instrumented link and its queue.
    pub queues: Vec<QueueSummary>,
    /// Metrics of the run's named windows, in the order in which they begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSummary>,
    /// Counters and state of each station.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationSummary>,
    /// Oracles that the run trips: something is at fault, in the simulator, a controller or the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oracles: Vec<Trip>,
    /// The members of registries that a program had added and that took part, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prototypes: Vec<String>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Reasons not to trust the numbers; empty if there are none.
    pub invalid: Vec<String>,
}

/// Metrics of a named part of a run, as for the whole run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowSummary {
    /// The window.
    pub name: String,
    /// Begin of its first whole sample period, in seconds from the start of the run.
    pub from_s: f64,
    /// End of its last whole sample period, in seconds from the start of the run.
    pub to_s: f64,
    /// Whether it is a phase, a period between two changes of the run's links, and not a window that the lab names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub phase: bool,
    /// Metrics of all flows; metrics of queues are those of the bottleneck.
    pub metrics: Metrics,
    /// Metrics of each traffic group.
    pub groups: Vec<GroupSummary>,
    /// Metrics of each pair of groups.
    pub pairs: Vec<PairSummary>,
    /// Metrics of each flow without random arrivals.
    pub flows: Vec<FlowSummary>,
    /// Metrics of each instrumented link and its queue.
    pub queues: Vec<QueueSummary>,
}

/// The metrics of a run, or of one of its windows.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Metrics of all flows; metrics of queues are those of the bottleneck.
    pub metrics: &'a Metrics,
    /// Metrics of each traffic group.
    pub groups: &'a [GroupSummary],
    /// Metrics of each pair of groups.
    pub pairs: &'a [PairSummary],
    /// Metrics of each flow without random arrivals.
    pub flows: &'a [FlowSummary],
    /// Metrics of each instrumented link and its queue.
    pub queues: &'a [QueueSummary],
}

/// A group's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The group.
    pub name: Arc<str>,
    /// Its controller, if it has one.
    pub controller: Option<Arc<str>>,
    /// Its transport.
    pub transport: Arc<str>,
    /// Number of its flows.
    pub flows: usize,
    /// Whether its flows are to complete, so that it matters when: transfers, and flows that arrive at random.
    #[serde(default, skip_serializing_if = "is_false")]
    pub completes: bool,
    /// Its metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// Metrics of one group relative to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairSummary {
    /// The first group.
    pub group: Arc<str>,
    /// The group that it is compared with.
    pub to: Arc<str>,
    /// The metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// A flow's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// The flow.
    pub name: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Its controller, if it has one.
    pub controller: Option<Arc<str>>,
    /// Its transport.
    pub transport: Arc<str>,
    /// Its metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// Metrics of a link and its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSummary {
    /// The link.
    pub link: String,
    /// Its queue discipline.
    pub queue: String,
    /// Names of the groups whose data crosses it; empty if it carries only acknowledgements.
    #[serde(default)]
    pub carries: Vec<Arc<str>>,
    /// Metrics of all packets.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Metrics of the packets of each codepoint that arrived.
    pub classes: Vec<ClassSummary>,
}

/// Metrics of the packets that arrived with one codepoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// The codepoint.
    pub class: Ecn,
    /// The metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// Counters and state of a station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationSummary {
    /// The station.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its node.
    pub at: String,
    /// Its counters and its state at the end of the run, by name; the warm-up is included.
    pub state: BTreeMap<String, f64>,
}

impl RunSummary {
    /// Computes all metrics of a run after this warm-up, or its own if `None`. A value outside its metric's domain makes the run
    /// invalid.
    pub fn new(info: &RunInfo, records: &Records, warmup: Option<Span>) -> RunSummary {
        RunSummary::of(&View::after(warmup.unwrap_or(info.warmup), info, records), records)
    }

    /// Computes all metrics of a run from an existing view.
    pub fn of(view: &View<'_>, records: &Records) -> RunSummary {
        let info = view.info;
        let (mut windows, mut in_windows) = (Vec::new(), Vec::new());
        for part in &info.windows {
            let view = View::within(part, info, records);
            let window = window_summary(part, &view);
            let WindowSummary { metrics, groups, pairs, flows, queues, .. } = &window;
            let whole = Part { metrics, groups, pairs, flows, queues };
            in_windows
                .extend(outside(&whole, &view).map(|what| format!("{ERROR}: window {}: {what}", part.name)));
            windows.push(window);
        }
        let mut summary = RunSummary {
            id: info.id.clone(),
            engine: info.engine.clone(),
            seed: info.seed,
            repeat: info.repeat,
            params: info.params.clone(),
            duration_s: info.duration.as_secs_f64(),
            warmup_s: view.warmup.as_secs_f64(),
            metrics: view.of_run(),
            groups: (0..info.groups.len()).map(|group| group_summary(view, info, group)).collect(),
            pairs: pairs(view, info),
            flows: flows(view, info),
            queues: queues(view, info),
            windows,
            stations: stations(info, records),
            oracles: trips(view, records),
            prototypes: Vec::new(),
            warnings: Vec::new(),
            invalid: Vec::new(),
        };
        let RunSummary { metrics, groups, pairs, flows, queues, .. } = &summary;
        let found = outside(&Part { metrics, groups, pairs, flows, queues }, view);
        summary.invalid = found.map(|what| format!("{ERROR}: {what}")).chain(in_windows).collect();
        summary
    }

    /// The metrics of a named window, or of the whole run; `None` if the run has no such window.
    pub fn part(&self, window: Option<&str>) -> Option<Part<'_>> {
        let Some(name) = window else {
            let RunSummary { metrics, groups, pairs, flows, queues, .. } = self;
            return Some(Part { metrics, groups, pairs, flows, queues });
        };
        let WindowSummary { metrics, groups, pairs, flows, queues, .. } =
            self.windows.iter().find(|window| window.name == name)?;
        Some(Part { metrics, groups, pairs, flows, queues })
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The values outside their metrics' domains: each is an error of weir itself, and a reason not to trust the run.
fn outside(part: &Part<'_>, view: &View<'_>) -> impl Iterator<Item = String> + use<> {
    let (mut found, info) = (Vec::new(), view.info);
    let mut look = |what: fmt::Arguments<'_>, metrics: &Metrics, carried: Option<f64>| {
        found.extend(metrics.outside(carried).map(|outside| format!("{what}: {outside}")));
    };
    let all: Vec<usize> = (0..info.flows.len()).collect();
    look(format_args!("the run"), part.metrics, view.carried(&all, Level::Run));
    for (number, group) in part.groups.iter().enumerate() {
        let carried = view.carried(&view.members(number), Level::Group);
        look(format_args!("group {}", group.name), &group.metrics, carried);
    }
    for (flow, number) in part.flows.iter().zip(single_flows(info)) {
        look(format_args!("flow {}", flow.name), &flow.metrics, view.carried(&[number], Level::Flow));
    }
    for pair in part.pairs {
        look(format_args!("groups {} and {}", pair.group, pair.to), &pair.metrics, None);
    }
    for queue in part.queues {
        look(format_args!("link {}", queue.link), &queue.metrics, None);
        for class in &queue.classes {
            look(format_args!("{} packets at link {}", class.class.name(), queue.link), &class.metrics, None);
        }
    }
    found.into_iter()
}

fn window_summary(part: &WindowInfo, view: &View<'_>) -> WindowSummary {
    let (window, info) = (view.window(), view.info);
    WindowSummary {
        name: part.name.clone(),
        phase: part.phase,
        from_s: window.from.since(Time::ZERO).as_secs_f64(),
        to_s: window.to.since(Time::ZERO).as_secs_f64(),
        metrics: view.of_run(),
        groups: (0..info.groups.len()).map(|group| group_summary(view, info, group)).collect(),
        pairs: pairs(view, info),
        flows: flows(view, info),
        queues: queues(view, info),
    }
}

/// Text that follows a value outside its metric's domain.
const ERROR: &str = "an error in weir itself, please report it";

fn group_summary(view: &View<'_>, info: &RunInfo, group: usize) -> GroupSummary {
    let about = &info.groups[group];
    GroupSummary {
        name: about.name.clone(),
        controller: about.controller.clone(),
        transport: about.transport.clone(),
        flows: info.flows.iter().filter(|flow| flow.group as usize == group).count(),
        completes: about.completes(),
        metrics: view.of_group(group),
    }
}

fn pairs(view: &View<'_>, info: &RunInfo) -> Vec<PairSummary> {
    let groups = info.groups.iter().enumerate();
    let pairs = groups
        .flat_map(|(a, group)| info.groups.iter().enumerate().skip(a + 1).map(move |to| (a, group, to)));
    pairs
        .map(|(a, group, (b, to))| PairSummary {
            group: group.name.clone(),
            to: to.name.clone(),
            metrics: view.of_pair(a, b),
        })
        .collect()
}

/// The indices of the flows that have metrics of their own.
fn single_flows(info: &RunInfo) -> impl Iterator<Item = usize> + '_ {
    let random_arrivals =
        |group: u32| info.groups.get(group as usize).is_some_and(|group| group.random_arrivals);
    info.flows
        .iter()
        .enumerate()
        .filter(move |(_, flow)| !random_arrivals(flow.group))
        .map(|(number, _)| number)
}

/// The metrics of the flows that have metrics of their own.
fn flows(view: &View<'_>, info: &RunInfo) -> Vec<FlowSummary> {
    let mut flows = Vec::with_capacity(single_flows(info).count());
    flows.extend(single_flows(info).map(|flow| flow_summary(view, info, flow)));
    flows
}

fn flow_summary(view: &View<'_>, info: &RunInfo, flow: usize) -> FlowSummary {
    let about = &info.flows[flow];
    let group = info.groups.get(about.group as usize);
    FlowSummary {
        name: about.name.clone(),
        group: group.map(|group| group.name.clone()).unwrap_or_default(),
        controller: group.and_then(|group| group.controller.clone()),
        transport: group.map(|group| group.transport.clone()).unwrap_or_default(),
        metrics: view.of_flow(flow),
    }
}

fn queues(view: &View<'_>, info: &RunInfo) -> Vec<QueueSummary> {
    let measured = info.links.iter().enumerate().filter(|(_, link)| link.instrumented);
    let class = |link, class| ClassSummary { class, metrics: view.of_link(link, Some(class)) };
    measured
        .map(|(index, link)| QueueSummary {
            link: link.name.clone(),
            queue: link.queue.clone(),
            carries: link
                .groups
                .iter()
                .filter_map(|&group| Some(info.groups.get(group as usize)?.name.clone()))
                .collect(),
            metrics: view.of_link(index, None),
            classes: view.classes(index).map(|codepoint| class(index, codepoint)).collect(),
        })
        .collect()
}

fn stations(info: &RunInfo, records: &Records) -> Vec<StationSummary> {
    let mut stations: Vec<StationSummary> = info
        .stations
        .iter()
        .map(|about| StationSummary {
            name: about.name.clone(),
            kind: about.kind.clone(),
            at: about.at.clone(),
            state: BTreeMap::new(),
        })
        .collect();
    if stations.is_empty() {
        return stations;
    }
    for sample in &records.states {
        let Component::Station(number) = sample.of else { continue };
        if let Some(station) = stations.get_mut(number as usize) {
            // Later values replace earlier ones.
            station.state.insert(sample.name.to_string(), sample.value);
        }
    }
    stations
}

/// Parameters as an object from level to label.
mod params {
    use crate::info::Param;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    pub(super) fn serialize<S: Serializer>(params: &[Param], serializer: S) -> Result<S::Ok, S::Error> {
        let entry = |param: &Param| (param.level.clone(), Value::from(param.value.clone()));
        params.iter().map(entry).collect::<Map<_, _>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Param>, D::Error> {
        let entries = Map::deserialize(deserializer)?.into_iter();
        let param = |(level, value)| match value {
            Value::String(value) => Ok(Param { level, value }),
            other => Err(D::Error::custom(format!("parameter {level} is {other}, not a label"))),
        };
        entries.map(param).collect()
    }
}
