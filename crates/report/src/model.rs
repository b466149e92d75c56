//! The data of the pages: plain numbers, already computed. [`crate::source`] fills it from a result folder; the pages read
//! nothing else. Names carry the unit, as in `summary.json`; a value that was not measured is `None`.

use std::sync::Arc;
use weir_base::Ecn;
use weir_record::compare::Compared;
use weir_record::{Distribution, StationSummary, Trip};

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
    pub runs: Vec<RunNumbers>,
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

/// The numbers of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunNumbers {
    /// The run's stable name, the same in both engines.
    pub id: String,
    /// Its index in the plan's tree of runs, the same in both engines.
    pub number: usize,
    /// `sim` or `live`.
    pub engine: String,
    /// The label chosen on each level, in the order of [`Lab::levels`].
    pub params: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Seed of its random streams.
    pub seed: u64,
    /// Length of the run.
    pub duration_s: f64,
    /// Length of the warm-up, which its metrics leave out.
    pub warmup_s: f64,
    /// Links of the lab, in the order of the plan.
    pub links: Vec<LinkNumbers>,
    /// Index in `links` of the link whose queue the run's own metrics describe.
    pub bottleneck: Option<usize>,
    /// Stations at routers, in the order of the lab.
    pub stations: Vec<StationSummary>,
    /// Traffic groups, in the order of the lab.
    pub groups: Vec<GroupNumbers>,
    /// Flows of all groups.
    pub flows: Vec<FlowNumbers>,
    /// Jain's index over the goodput of all flows, in `[0, 1]`.
    pub jain: Option<f64>,
    /// Goodput of a flow of the first group over that of a flow of the second.
    pub rate_ratio: Option<f64>,
    /// Mean window of a flow of the first group over that of a flow of the second.
    pub window_ratio: Option<f64>,
    /// The whole run and its named windows; empty if the lab names none.
    pub windows: Vec<WindowNumbers>,
    /// Reasons not to trust its numbers; empty if there are none.
    pub invalid: Vec<String>,
    /// Oracles that the run trips.
    pub oracles: Vec<Trip>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Where all packets ended, in words.
    pub audit: Option<String>,
    /// The engine's measurements of itself: names and values.
    pub environment: Vec<(String, String)>,
    /// Settings of each host, in more detail than most readers need: names and values.
    pub settings: Vec<(String, String)>,
}

/// Numbers of a run in one of its windows. The first of them is the whole run after its warm-up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowNumbers {
    /// Its name; `None` is the whole run.
    pub name: Option<String>,
    /// Its begin and end, in seconds from the start of the run.
    pub span_s: [f64; 2],
    /// Values of each link that carried packets in it.
    pub links: Vec<WindowOf>,
    /// Values of each group.
    pub groups: Vec<WindowOf>,
}

/// Values of a link or a group in a window, in the order of the metrics in [`crate::windows`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowOf {
    /// Its name.
    pub name: String,
    /// The values.
    pub values: Vec<Option<f64>>,
}

/// Numbers of a link and its queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkNumbers {
    /// Its name.
    pub name: String,
    /// Its queue discipline, as the lab names it.
    pub queue: String,
    /// Target delay of the queue; `None` if its AQM has no target.
    pub target_ms: Option<f64>,
    /// Names of the groups whose data crosses it.
    pub carries: Vec<Arc<str>>,
    /// Its initial rate.
    pub rate_mbps: Option<f64>,
    /// Its mean capacity over the window.
    pub capacity_mbps: Option<f64>,
    /// Numbers of all its packets.
    pub packets: PacketNumbers,
    /// Packets that the queue dropped because it was full, as a signal of the AQM, and because the AQM was overloaded.
    pub drop_reasons: [u64; 3],
    /// Drop probability and mark probability of its AQM, in percent.
    pub probabilities: [Option<Distribution>; 2],
    /// Packets that the link itself lost.
    pub lost: u64,
    /// Numbers of the packets of each ECN codepoint on arrival; only codepoints that were seen.
    pub classes: Vec<(Ecn, PacketNumbers)>,
}

/// Numbers of all packets at a link, or of those of one ECN codepoint.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PacketNumbers {
    /// Share of the link's capacity that these packets used.
    pub utilisation_percent: Option<f64>,
    /// Sojourn times.
    pub delay_ms: Option<Distribution>,
    /// Packets that reached the queue.
    pub arrived: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Dropped packets as a share of those that left the queue or were dropped.
    pub dropped_percent: Option<f64>,
    /// Packets that the queue marked.
    pub marked: u64,
    /// Marked packets as a share of the ECN-capable packets that left the queue or were dropped.
    pub marked_percent: Option<f64>,
}

/// Numbers of a traffic group, over all its flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupNumbers {
    /// Its name.
    pub name: Arc<str>,
    /// Name of its congestion controller; `None` for datagrams without one.
    pub controller: Option<Arc<str>>,
    /// Its transport: `tcp`, `udp`, ...
    pub transport: Arc<str>,
    /// Number of its flows.
    pub flows: usize,
    /// Its goodput.
    pub goodput_mbps: Option<f64>,
    /// Name of the link with the least capacity among those that its data crosses.
    pub link: Option<String>,
    /// Bytes that its applications read, as a share of that link's capacity in the window.
    pub share_percent: Option<f64>,
    /// Throughput of one of its flows over the mean of all competing flows; 1 is a fair share. `None` if none is coordinated.
    pub flowshare: Option<f64>,
    /// Standard deviation over mean of its throughput; `None` if no competing flow is coordinated.
    pub variation: Option<f64>,
    /// RTT of each segment, without retransmitted ones.
    pub rtt_ms: Option<Distribution>,
    /// The part of the RTT that no queue adds: the base RTT.
    pub base_rtt_ms: Option<f64>,
    /// Mean congestion window of a flow, in segments.
    pub window_segments: Option<f64>,
    /// Number of retransmitted segments.
    pub retransmissions: Option<u64>,
    /// Retransmitted segments as a share of all data segments.
    pub retransmitted_percent: Option<f64>,
    /// Mean time from start to completion of the flows that completed.
    pub completion_s: Option<f64>,
    /// Waiting times of its applications; empty if they had none.
    pub waits: Vec<WaitNumbers>,
}

/// Numbers of a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowNumbers {
    /// Its name.
    pub name: Arc<str>,
    /// Name of its group.
    pub group: Arc<str>,
    /// Its goodput.
    pub goodput_mbps: Option<f64>,
    /// The mean of its RTTs.
    pub rtt_mean_ms: Option<f64>,
    /// Number of retransmitted segments.
    pub retransmissions: Option<u64>,
    /// Time from its start to its completion; `None` if it did not complete.
    pub completion_s: Option<f64>,
}

/// Waiting times for one kind of thing: completed flows, answered requests or echoes, frames, or parts of ensembles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitNumbers {
    /// The kind: `flows`, `requests`, `frames`, `echoes`, `ensembles’ frames`, `asynchrony`, `stalls`.
    pub what: String,
    /// The unit of the times.
    pub unit: String,
    /// Their durations; `None` if none of them ended.
    pub times: Option<Distribution>,
    /// Requests per second; for ensembles' frames, ensembles per second; `None` for other kinds.
    pub per_second: Option<f64>,
    /// Share of frames on time.
    pub on_time_percent: Option<f64>,
    /// Share of frames that never were whole, or of echoes without an answer.
    pub lost_percent: Option<f64>,
}

impl Lab {
    /// The engines that ran, the simulator first.
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !engines.contains(&run.engine.as_str()) {
                engines.push(&run.engine);
            }
        }
        engines.sort_by_key(|engine| *engine != "sim");
        engines
    }

    /// The names of all traffic groups: those of `groups`, then others in order of appearance. A group's index here is that of
    /// its colour.
    pub fn group_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        for group in self.runs.iter().flat_map(|run| &run.groups) {
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

impl RunNumbers {
    /// The link whose queue the run's own metrics describe.
    pub fn bottleneck(&self) -> Option<&LinkNumbers> {
        self.links.get(self.bottleneck?)
    }

    /// The links that carry data, in the order of the lab; the bottleneck if no link is known to carry data.
    pub fn data_links(&self) -> Vec<&LinkNumbers> {
        let links: Vec<&LinkNumbers> = self.links.iter().filter(|link| !link.carries.is_empty()).collect();
        if links.is_empty() { self.bottleneck().into_iter().collect() } else { links }
    }
}

/// Least share of a class in what a link sent, in percent, for the class to be shown separately.
const CLASS_PERCENT: f64 = 1.0;

impl LinkNumbers {
    /// Numbers of L4S packets (ECT(1)) and of the largest other class. `None` unless both have a notable share of the link.
    pub fn l4s_and_classic(&self) -> Option<(&PacketNumbers, &PacketNumbers)> {
        let part = |packets: &PacketNumbers| packets.utilisation_percent.unwrap_or(0.0);
        let all: f64 = self.classes.iter().map(|(_, packets)| part(packets)).sum();
        let some =
            |(_, packets): &&(Ecn, PacketNumbers)| all > 0.0 && 100.0 * part(packets) / all >= CLASS_PERCENT;
        let (_, l4s) = self.classes.iter().filter(some).find(|(class, _)| *class == Ecn::Ect1)?;
        let others = self.classes.iter().filter(some);
        let others = others.filter(|(class, _)| [Ecn::NotEct, Ecn::Ect0].contains(class));
        let (_, classic) = others.max_by(|(_, a), (_, b)| part(a).total_cmp(&part(b)))?;
        Some((l4s, classic))
    }
}

/// The series of one run, all on one grid of times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSeries {
    /// The time between two points; point `i` ends at `(i + 1) * period_s`.
    pub period_s: f64,
    /// Number of points.
    pub count: usize,
    /// The plots, in the order of the page.
    pub charts: Vec<Chart>,
    /// The shares, in `[0, 1]`, at which distributions have a value.
    pub shares: Vec<f64>,
    /// The plots of single flows, on a grid of their own.
    pub flows: Option<FlowSeries>,
    /// Changes within the run, sorted by time.
    pub events: Vec<Event>,
}

/// The series of single flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSeries {
    /// The time between two points.
    pub period_s: f64,
    /// Number of points.
    pub count: usize,
    /// A plot for each metric, with a line for each flow.
    pub charts: Vec<Chart>,
}

/// A change within a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Its time, in seconds from the start of the run.
    pub at_s: f64,
    /// Its description, in a few words.
    pub what: String,
}

/// A plot over time, and the distribution of its values if there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// The key by which the plots of two engines are matched.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// A note for the reader: how values were averaged.
    pub note: Option<String>,
    /// Its lines; empty if the plot is only a distribution.
    pub lines: Vec<Line>,
    /// The distributions after the warm-up.
    pub spreads: Vec<Spread>,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// Number of values in it.
    pub count: u64,
    /// For each of [`RunSeries::shares`], the value at or below which that share lies.
    pub values: Vec<f64>,
    /// A deadline that the values should not exceed.
    pub limit: Option<f64>,
}

/// A line in a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// Whether it is a thinner companion of another line: a percentile, one flow of a group.
    pub thin: bool,
    /// Whether it is switched off at first.
    pub hidden: bool,
    /// Whether it is a bound of other lines, as a link's capacity, and no measurement: drawn dotted.
    pub bound: bool,
    /// Its values, one for each point of the grid; `None` at points without a measurement.
    pub values: weir_record::Values,
}

/// What a line's colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// A traffic group, by its index in [`RunNumbers::groups`]: it has the same colour on all pages.
    Group(usize),
    /// An ECN codepoint, by its bits.
    Class(usize),
    /// Anything else: a colour that no group has.
    Plain(usize),
}
