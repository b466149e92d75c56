//! What the pages are made from: plain numbers, already computed. [`crate::source`] fills it from a result folder; the
//! pages read nothing else. Units stand in the names, as they do in `summary.json`; whatever was not measured is `None`.

use weir_base::Ecn;
use weir_record::compare::Compared;
use weir_record::{Distribution, FlowSummary, StationSummary};

/// Runs whose pages are kept in one piece, in a large lab.
pub(crate) const PIECE: usize = 100;

/// What was judged: the rows, and the names of the reference and of what is compared with it.
pub type Judged<'a> = (&'a Compared, [&'a str; 2]);

/// A lab and all that was measured in it, but for the time series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lab {
    /// The lab's name.
    pub name: String,
    /// What it shows, in a sentence.
    pub title: Option<String>,
    /// Its network as a drawing with the links' properties below it: HTML.
    pub network: String,
    /// The lab file, as it was run.
    pub source: String,
    /// Version of weir that ran it.
    pub version: String,
    /// Names of the tree's levels, outermost first.
    pub levels: Vec<String>,
    /// Names of the traffic groups in the order of their colours; where it is empty, that of their appearance.
    pub groups: Vec<String>,
    /// How many runs the tree has in all, on all engines; more than there are while it runs, and where some failed.
    pub planned: usize,
    /// Whether it is still running: runs have no pages yet.
    pub growing: bool,
    /// The runs in the order of the tree; those of one cell stand together, one for each engine and repeat.
    pub runs: Vec<RunNumbers>,
    /// Two metrics against each other, where the lab asks for it.
    pub scatters: Vec<Scatter>,
    /// Whether every metric of the registry stands in a file beside the pages, for the comparison to load.
    pub has_columns: bool,
    /// How far the simulator agrees with the live engine, where both ran; the live engine is the reference.
    pub agreement: Option<Compared>,
}

/// Two metrics of each run against each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scatter {
    /// What stands above it.
    pub title: String,
    /// What goes along and what goes up, each with its unit.
    pub axes: [String; 2],
    /// What has a colour each.
    pub labels: Vec<String>,
    /// A plot for each choice on the other levels.
    pub panels: Vec<Panel>,
}

/// One plot of several that have the same axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// What was chosen on the other levels.
    pub place: String,
    /// For each label, a point for each repeat.
    pub clouds: Vec<Vec<(f64, f64)>>,
}

/// The numbers of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunNumbers {
    /// The run's stable name, the same in both engines.
    pub id: String,
    /// Its place in the plan's tree of runs, the same in both engines.
    pub number: usize,
    /// `sim` or `live`.
    pub engine: String,
    /// What it chose on each level, in the order of [`Lab::levels`].
    pub params: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Seed of its random streams.
    pub seed: u64,
    /// How long it ran.
    pub duration_s: f64,
    /// What was cut off before its metrics were computed.
    pub warmup_s: f64,
    /// Links of the lab, in the order of the plan.
    pub links: Vec<LinkNumbers>,
    /// The link whose queue the run's sentence is about: an index into `links`.
    pub bottleneck: Option<usize>,
    /// Stations at routers, in the order of the lab.
    pub stations: Vec<StationSummary>,
    /// Traffic groups, in the order of the lab.
    pub groups: Vec<GroupNumbers>,
    /// Flows of all groups.
    pub flows: Vec<FlowSummary>,
    /// Jain's index over the goodput of all flows, in `[0, 1]`.
    pub jain: Option<f64>,
    /// Goodput of a flow of the first group over that of a flow of the second.
    pub rate_ratio: Option<f64>,
    /// Mean window of a flow of the first group over that of a flow of the second.
    pub window_ratio: Option<f64>,
    /// The whole run and its named windows; empty where the lab names none.
    pub windows: Vec<WindowNumbers>,
    /// Why its numbers should not be trusted; empty when they can be.
    pub invalid: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// Where all packets went, in words.
    pub audit: Option<String>,
    /// What the engine measured of itself: names and values.
    pub environment: Vec<(String, String)>,
    /// More of that, which few will want to read: settings of each host.
    pub settings: Vec<(String, String)>,
}

/// What a run did in one of its windows; the whole run, after its warm-up, is the first of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowNumbers {
    /// Its name; none is the whole run.
    pub name: Option<String>,
    /// Where it begins and ends, in seconds from the start of the run.
    pub span_s: [f64; 2],
    /// What each link did in it, those that carried nothing left out.
    pub links: Vec<WindowOf>,
    /// What each group did in it.
    pub groups: Vec<WindowOf>,
}

/// What a link or a group did in a window: each value in the place of its metric in [`crate::windows`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowOf {
    /// Its name.
    pub name: String,
    /// The values.
    pub values: Vec<Option<f64>>,
}

/// What a link and its queue did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkNumbers {
    /// Its name.
    pub name: String,
    /// The queue before it, as the lab names it.
    pub queue: String,
    /// The delay that the queue aims at, for an AQM that has such a target.
    pub target_ms: Option<f64>,
    /// The groups whose data cross it.
    pub carries: Vec<String>,
    /// Its initial rate.
    pub rate_mbps: Option<f64>,
    /// What it could have sent, mean over the window.
    pub capacity_mbps: Option<f64>,
    /// What happened to all packets.
    pub packets: PacketNumbers,
    /// Why the queue dropped packets: because it was full, as a signal of the AQM, and because the AQM was overloaded.
    pub drop_reasons: [u64; 3],
    /// The probabilities that its AQM set, in percent: of drops, and of marks.
    pub probabilities: [Option<Distribution>; 2],
    /// Lost by the link itself.
    pub lost: u64,
    /// What happened to the packets of each ECN codepoint on arrival; only codepoints that were seen.
    pub classes: Vec<(Ecn, PacketNumbers)>,
}

/// What happened at a link to all packets, or to those of one ECN codepoint.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PacketNumbers {
    /// Share of what the link could have sent that these packets took.
    pub utilisation_percent: Option<f64>,
    /// Sojourn times.
    pub delay_ms: Option<Distribution>,
    /// Packets that reached the queue.
    pub arrived: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// The same as a share of those that left it or were dropped.
    pub dropped_percent: Option<f64>,
    /// Packets that left the queue with its mark.
    pub marked: u64,
    /// The same as a share of those that left it or were dropped, and could be marked.
    pub marked_percent: Option<f64>,
}

/// What a traffic group did, all its flows together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupNumbers {
    /// Its name.
    pub name: String,
    /// Its congestion controller; none for datagrams that follow none.
    pub controller: Option<String>,
    /// `tcp`, `udp`.
    pub transport: String,
    /// How many flows it has.
    pub flows: usize,
    /// What the receiving applications read.
    pub goodput_mbps: Option<f64>,
    /// The link with the least capacity of those that its data cross.
    pub link: Option<String>,
    /// What its applications read, as a part of what that link could have sent in the window.
    pub share_percent: Option<f64>,
    /// What a flow of it has over the mean of all that it competes with, where coordinated flows are among these; 1 is a fair share.
    pub flowshare: Option<f64>,
    /// Standard deviation of its throughput over the mean, there.
    pub variation: Option<f64>,
    /// RTT per segment, originals only.
    pub rtt_ms: Option<Distribution>,
    /// What of it is no queue's.
    pub base_rtt_ms: Option<f64>,
    /// Mean congestion window of a flow, in segments.
    pub window_segments: Option<f64>,
    /// Segments that were retransmitted.
    pub retransmissions: Option<u64>,
    /// Of all data segments, the part that had been sent before.
    pub retransmitted_percent: Option<f64>,
    /// Mean time from start to completion of the flows that completed.
    pub completion_s: Option<f64>,
    /// What its applications waited for, where they did.
    pub waits: Vec<WaitNumbers>,
}

/// Flows that completed, requests or echoes that were answered, frames, or what belongs to ensembles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitNumbers {
    /// Which of them: `flows`, `requests`, `frames`, `echoes`, `ensembles’ frames`, `asynchrony`, `stalls`.
    pub what: String,
    /// The unit of the times.
    pub unit: String,
    /// How long they took; none when none of them ended.
    pub times: Option<Distribution>,
    /// How many of them a second, of requests; of ensembles' frames, how many ensembles.
    pub per_second: Option<f64>,
    /// Frames on time.
    pub on_time_percent: Option<f64>,
    /// Frames that never were whole, or echoes without an answer.
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

    /// The names of all traffic groups, in order of appearance: a group's colour is its place here.
    pub fn group_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        for group in self.runs.iter().flat_map(|run| &run.groups) {
            if !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
        names
    }

    /// How many runs it has, those that are still to come counted.
    pub fn size(&self) -> usize {
        self.planned.max(self.runs.len())
    }

    /// Whether it has so many runs that their pages are kept in pieces of many rather than in files of their own.
    pub fn is_large(&self) -> bool {
        self.size() > weir_engine::MOST_FOLDERS
    }
}

impl RunNumbers {
    /// The link whose queue the run's sentence is about.
    pub fn bottleneck(&self) -> Option<&LinkNumbers> {
        self.links.get(self.bottleneck?)
    }

    /// The links that carry data, in the order of the lab; where that is not known, the bottleneck.
    pub fn data_links(&self) -> Vec<&LinkNumbers> {
        let links: Vec<&LinkNumbers> = self.links.iter().filter(|link| !link.carries.is_empty()).collect();
        if links.is_empty() { self.bottleneck().into_iter().collect() } else { links }
    }
}

/// Of the packets that a link sent, the part in percent that a class has at least to be told of by itself.
const CLASS_PERCENT: f64 = 1.0;

impl LinkNumbers {
    /// What happened to L4S packets (ECT(1)) and to the class with the most other packets, where both sent data over the link.
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
    /// How many points there are.
    pub count: usize,
    /// The plots, in the order of the page.
    pub charts: Vec<Chart>,
    /// The shares, in `[0, 1]`, at which distributions are given.
    pub shares: Vec<f64>,
    /// The plots of single flows, on a grid of their own.
    pub flows: Option<FlowSeries>,
    /// What changed within the run, by time.
    pub events: Vec<Event>,
}

/// The series of single flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSeries {
    /// The time between two points.
    pub period_s: f64,
    /// How many points there are.
    pub count: usize,
    /// A plot for each metric, with a line for each flow.
    pub charts: Vec<Chart>,
}

/// Something that changed within a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// When, in seconds from the start of the run.
    pub at_s: f64,
    /// What, in a few words.
    pub what: String,
}

/// A plot over time, and the distribution of the same where there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// What two engines' plots are matched by.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// What a reader should know of it: how values were averaged.
    pub note: Option<String>,
    /// Its lines; none where there is a distribution alone.
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
    /// How many values it is made of.
    pub count: u64,
    /// The values at or below which each of [`RunSeries::shares`] lies.
    pub values: Vec<f64>,
    /// What they were to stay at or below: a deadline.
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
    /// Whether it is no measurement but what bounds others, as a link's capacity does: drawn dotted.
    pub bound: bool,
    /// Its values, one for each point of the grid; none where nothing was measured.
    pub values: weir_record::Values,
}

/// What a line's colour tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// A traffic group of the run, by its index there: the same colour on all pages.
    Group(usize),
    /// An ECN codepoint, by its bits.
    Class(usize),
    /// Something else: a colour of its own, never a group's.
    Plain(usize),
}
