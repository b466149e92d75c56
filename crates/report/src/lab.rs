//! A lab and its runs as the pages show them: each run's summary, from which pages read metrics by their names, and what only its
//! plan and its engine know (an AQM's target, a link's rate). Nothing is computed twice.

use crate::environment::{audit, facts};
use crate::network;
use std::sync::Arc;
use weir_base::{Ecn, Span};
use weir_engine::FinishedRun;
use weir_record::compare::{Compared, Rule, compare};
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::{message, queue, rate};
use weir_record::{GroupSummary, Metric, Metrics, QueueSummary, RunSummary, Summary};

/// Number of runs whose pages share one file in a large lab.
pub(crate) const PIECE: usize = 100;

/// A comparison: its rows, and the names of the reference and of the results compared with it.
pub type Judged<'a> = (&'a Compared, [&'a str; 2]);

/// A lab and all measurements of its runs, without the time series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lab {
    /// The lab's name.
    pub name: String,
    /// Its purpose, in a sentence.
    pub title: Option<String>,
    /// Its network as a drawing with the links' properties below it: HTML.
    pub network: String,
    /// The lab file, as it was run.
    pub source: String,
    /// Version of weir that ran it.
    pub version: String,
    /// Names of the tree's levels, outermost first.
    pub levels: Vec<String>,
    /// Names of the traffic groups in the order of their colours; if empty, they are in the order of their appearance.
    pub groups: Vec<String>,
    /// Number of runs in the tree, on all engines; more than the length of `runs` while the lab runs, and if some failed.
    pub planned: usize,
    /// Whether the lab is still running: its runs have no pages yet.
    pub growing: bool,
    /// The runs in the order of the tree; those of one cell stand together, one for each engine and repeat.
    pub runs: Vec<Run>,
    /// Plots of two metrics against each other, if the lab asks for them.
    pub scatters: Vec<Scatter>,
    /// Whether a file beside the pages holds every metric of the registry, for the comparison to load.
    pub has_columns: bool,
    /// Comparison of the simulator with the live engine, the reference; `None` unless both ran.
    pub agreement: Option<Compared>,
}

/// Two metrics of each run against each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scatter {
    /// Its title.
    pub title: String,
    /// Titles of the horizontal and the vertical axis, each with its unit.
    pub axes: [String; 2],
    /// Labels of the points' colours.
    pub labels: Vec<String>,
    /// A plot for each choice on the other levels.
    pub panels: Vec<Panel>,
}

/// One plot of several that have the same axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// The choices on the other levels.
    pub place: String,
    /// For each label, a point for each repeat.
    pub clouds: Vec<Vec<(f64, f64)>>,
}

/// A run: its summary, and what only its plan and its engine know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Its metrics.
    pub summary: Arc<RunSummary>,
    /// Its stable name, the same in both engines.
    pub id: String,
    /// Its index in the plan's tree of runs, the same in both engines.
    pub number: usize,
    /// The label chosen on each level, in the order of [`Lab::levels`].
    pub params: Vec<String>,
    /// Index of the link whose queue the run's own metrics describe, among the queues of the summary.
    pub bottleneck: Option<usize>,
    /// Plan of each link, in the order of the summary's queues.
    pub planned: Vec<LinkPlan>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Where all packets ended, in words.
    pub audit: Option<String>,
    /// The engine's measurements of itself: names and values.
    pub environment: Vec<(String, String)>,
    /// Settings of each host, in more detail than most readers need: names and values.
    pub settings: Vec<(String, String)>,
}

/// What only the plan knows of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkPlan {
    /// Target delay of the queue; `None` if its AQM has no target.
    pub target_ms: Option<f64>,
    /// Its initial rate.
    pub rate_mbps: Option<f64>,
    /// When its traffic ended, in seconds, if that was before the end of the run.
    pub ended_s: Option<f64>,
}

/// A link of a run, and its queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) queue: &'a QueueSummary,
    pub(crate) plan: LinkPlan,
}

/// A traffic group of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) summary: &'a GroupSummary,
    /// Name of the link with the least capacity among those that its data crosses.
    pub(crate) link: Option<&'a str>,
    /// Bytes that its applications read, as a share of that link's capacity in the window.
    pub(crate) share_percent: Option<f64>,
}

impl Lab {
    /// A lab before any of its runs: levels in the order of the tree, groups in that of the plan.
    pub(crate) fn outline(lab: &weir_plan::Lab, runs: &[&weir_plan::Run], engines: usize) -> Lab {
        let mut groups: Vec<String> = Vec::new();
        for group in runs.iter().flat_map(|run| &run.groups) {
            if !groups.contains(&group.name) {
                groups.push(group.name.clone());
            }
        }
        Lab {
            name: lab.name().into(),
            title: lab.title().map(String::from),
            network: network::network(runs),
            source: lab.source().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            levels: lab.tree().levels.into_iter().map(|(level, _)| level).collect(),
            groups,
            planned: runs.len() * engines,
            ..Lab::default()
        }
    }

    /// The engines that ran, the simulator first.
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !engines.contains(&run.engine()) {
                engines.push(run.engine());
            }
        }
        engines.sort_by_key(|engine| *engine != "sim");
        engines
    }

    /// The names of all traffic groups: those of `groups`, then others in order of appearance. A group's index here is that of
    /// its colour.
    pub fn group_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        for group in self.runs.iter().flat_map(|run| &run.summary.groups) {
            if !names.contains(&&*group.name) {
                names.push(&group.name);
            }
        }
        names
    }

    /// Number of its runs, unfinished ones included.
    pub fn size(&self) -> usize {
        self.planned.max(self.runs.len())
    }

    /// Whether it has so many runs that their pages share files of `PIECE` runs each.
    pub fn is_large(&self) -> bool {
        self.size() > weir_engine::MOST_FOLDERS
    }
}

/// Comparison of the simulator with the live engine, the reference. `None` unless both ran.
pub(crate) fn agreement(summary: &Summary) -> Option<Compared> {
    let of = |engine: &'static str| summary.runs.iter().filter(move |run| run.engine == engine);
    let both = of("live").next().is_some() && of("sim").next().is_some();
    let runs = |engine| -> Vec<RunSummary> { of(engine).cloned().collect() };
    both.then(|| compare(&runs("live"), &runs("sim"), &Rule::defaults()))
}

/// A run's id without the engine's name, which folders and summaries put before it; both engines share it.
pub(crate) fn plain_id<'a>(id: &'a str, engine: &str) -> &'a str {
    id.strip_prefix(engine).and_then(|rest| rest.strip_prefix('-')).unwrap_or(id)
}

impl Run {
    /// A finished run, with what its summary alone says is to be known.
    pub(crate) fn new(summary: &RunSummary, run: &FinishedRun) -> Run {
        let bottleneck = run.info.bottleneck.and_then(|link| run.info.links.get(link as usize));
        let place = |name: &str| summary.queues.iter().position(|queue| queue.link == name);
        let outcome = &run.file.outcome;
        let (environment, settings) = facts(&outcome.environment);
        Run {
            id: plain_id(&summary.id, &summary.engine).into(),
            number: run.number,
            params: summary.params.iter().map(|param| param.value.clone()).collect(),
            bottleneck: bottleneck.and_then(|link| place(&link.name)),
            planned: summary.queues.iter().map(|queue| LinkPlan::new(queue, run, summary)).collect(),
            warnings: summary.prototypes.iter().chain(&summary.warnings).cloned().collect(),
            audit: Some(audit(&outcome.audit)),
            environment,
            settings,
            summary: Arc::new(summary.clone()),
        }
    }

    /// `sim` or `live`.
    pub fn engine(&self) -> &str {
        &self.summary.engine
    }

    /// Whether there is no reason not to trust its numbers.
    pub(crate) fn is_sound(&self) -> bool {
        self.summary.invalid.is_empty()
    }

    /// Its links, in the order of the plan.
    pub(crate) fn links(&self) -> impl Iterator<Item = Link<'_>> {
        let plans = self.planned.iter().copied().chain(std::iter::repeat(LinkPlan::default()));
        self.summary.queues.iter().zip(plans).map(|(queue, plan)| Link { queue, plan })
    }

    /// The link whose queue the run's own metrics describe.
    pub(crate) fn bottleneck(&self) -> Option<Link<'_>> {
        self.links().nth(self.bottleneck?)
    }

    /// The links that carry data, the busiest first; the bottleneck if no link is known to carry data.
    pub(crate) fn data_links(&self) -> Vec<Link<'_>> {
        let mut links: Vec<Link<'_>> = self.links().filter(|link| !link.queue.carries.is_empty()).collect();
        links.sort_by(|a, b| b.sent_mbps().total_cmp(&a.sent_mbps()));
        if links.is_empty() { self.bottleneck().into_iter().collect() } else { links }
    }

    /// Its traffic groups, in the order of the lab.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.summary.groups.iter().map(|group| {
            let (link, share_percent) = self.share(group);
            Group { summary: group, link, share_percent }
        })
    }

    /// The link with the least capacity among those that a group's data crosses, and the share of that capacity which its
    /// applications read, in percent.
    fn share(&self, group: &GroupSummary) -> (Option<&str>, Option<f64>) {
        let crossed = self.summary.queues.iter().filter(|queue| queue.carries.contains(&group.name));
        let capacities =
            crossed.filter_map(|queue| Some((queue, queue.metrics.number(&queue::LINK_CAPACITY)?)));
        let narrowest = capacities.min_by(|a, b| a.1.total_cmp(&b.1));
        let window_s = self.summary.duration_s - self.summary.warmup_s;
        let read_mbps = group.metrics.number(&rate::READ).map(|bytes| 8e-6 * bytes / window_s);
        // Echo requests probe the link and have no share of it.
        let probes = group.metrics.number(&message::ECHOES_LOST).is_some();
        let share = read_mbps.zip(narrowest).filter(|_| !probes);
        (
            narrowest.map(|(queue, _)| queue.link.as_str()),
            share.map(|(read, (_, capacity))| 100.0 * read / capacity),
        )
    }
}

/// When a group's first flow began, and when its last one ended, in seconds. `None` if a flow did not end, or if its flows arrive at
/// random.
pub(crate) fn life(group: &str, plan: &weir_plan::Run, summary: &RunSummary) -> Option<(f64, f64)> {
    let number = plan.groups.iter().position(|other| other.name == group)?;
    let mut life: Option<(f64, f64)> = None;
    let mut single = plan.flows.iter().filter(|flow| !plan.groups[flow.group].workload.has_random_arrivals());
    // Flows with metrics of their own are in the order of the plan.
    for flow in &summary.flows {
        let planned = single.next()?;
        if planned.group != number {
            continue;
        }
        let begin = planned.start.as_secs_f64();
        let stopped = planned.stop.map(|stop| stop.as_secs_f64());
        let end = flow.metrics.number(&COMPLETION_TIME).map(|took| begin + took).or(stopped)?;
        life = Some(life.map_or((begin, end), |(from, to)| (from.min(begin), to.max(end))));
    }
    life
}

/// A link whose traffic ended this share of the run before its end was in use for only a part of it.
const EARLY: f64 = 0.02;

impl LinkPlan {
    fn new(queue: &QueueSummary, run: &FinishedRun, summary: &RunSummary) -> LinkPlan {
        let name = queue.link.as_str();
        let ends = queue.carries.iter().map(|group| life(group, &run.file.run, summary).map(|(_, end)| end));
        let end = ends.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten();
        let about = run.info.links.iter().find(|link| link.name == name);
        let planned = run.file.run.network.links.iter().find(|link| link.name == name);
        LinkPlan {
            target_ms: planned.and_then(|link| link.queue.target()).map(Span::as_millis_f64),
            rate_mbps: about.and_then(|link| link.rate).map(|rate| rate.mbit_per_sec()),
            ended_s: end.filter(|end| *end < (1.0 - EARLY) * summary.duration_s),
        }
    }
}

/// Least share of a class in what a link sent, in percent, for the class to be shown separately.
const CLASS_PERCENT: f64 = 1.0;

impl<'a> Link<'a> {
    pub(crate) fn name(&self) -> &'a str {
        &self.queue.link
    }

    /// The rate at which it sent, in Mbit/s; 0 if that is unknown.
    pub(crate) fn sent_mbps(&self) -> f64 {
        let of = &self.queue.metrics;
        let sent = of.number(&queue::LINK_CAPACITY).zip(of.number(&queue::UTILISATION));
        sent.map_or(0.0, |(capacity, used)| capacity * used / 100.0)
    }

    /// A metric of all its packets; of a distribution the mean.
    pub(crate) fn number(&self, metric: &Metric) -> Option<f64> {
        self.queue.metrics.number(metric)
    }

    /// Metrics of L4S packets (ECT(1)) and of the largest other class. `None` unless both have a notable share of the link.
    pub(crate) fn l4s_and_classic(&self) -> Option<(&'a Metrics, &'a Metrics)> {
        let part = |metrics: &Metrics| metrics.number(&queue::UTILISATION).unwrap_or(0.0);
        let classes = &self.queue.classes;
        let all: f64 = classes.iter().map(|class| part(&class.metrics)).sum();
        let told =
            classes.iter().filter(|class| all > 0.0 && 100.0 * part(&class.metrics) / all >= CLASS_PERCENT);
        let l4s = told.clone().find(|class| class.class == Ecn::Ect1)?;
        let others = told.filter(|class| [Ecn::NotEct, Ecn::Ect0].contains(&class.class));
        let classic = others.max_by(|a, b| part(&a.metrics).total_cmp(&part(&b.metrics)))?;
        Some((&l4s.metrics, &classic.metrics))
    }
}

impl Group<'_> {
    /// A metric of its flows; of a distribution the mean.
    pub(crate) fn number(&self, metric: &Metric) -> Option<f64> {
        self.summary.metrics.number(metric)
    }
}
