//! The plots of a run's page: the series in each plot, their titles and their colours.

mod admission;
mod drawn;
mod names;
mod overhead;
#[cfg(test)]
mod tests;

pub use drawn::{Chart, Event, FlowSeries, Ink, Line, RunSeries, Spread};
pub(crate) use names::titled;

use crate::overlay;
use weir_base::{CODEPOINTS, Ecn, Span};
use weir_record::metrics::connection::{CAPACITY_ESTIMATE, CODED_ARQ, FEC, PURE_ARQ};
use weir_record::metrics::limited;
use weir_record::metrics::message::FRAME_DELAY;
use weir_record::metrics::queue::{
    BACKLOG, DROPPED, LINK_CAPACITY, LINK_LOST, LINK_THROUGHPUT, MARKED, QUEUE_DELAY,
};
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::tcp::{CWND, RETRANSMISSIONS, RTT, RTT_MEAN};
use weir_record::{
    METRICS, Metric, Plot, Records, RunInfo, SHARES, SeriesSet, Statistic, Subject, Values, View,
    flow_series, series, spreads,
};

/// Largest number of points of a series: about what a screen can show.
const POINTS: usize = 600;
/// Largest number of points in a lab of many runs, so that its report stays small.
const POINTS_OF_MANY: usize = 200;
/// A lab with more runs than this has many.
const MANY_RUNS: usize = 200;
/// Largest number of links without data that can be switched on in a plot: more than a reader looks at one by one.
const OTHER_LINKS: usize = 20;
/// Largest number of links that carry data and have lines: as many as there are colours.
const DATA_LINKS: usize = 4;
/// A capacity is visible at first if it is at most this many times the greatest goodput.
const FAR: f64 = 3.0;
/// Least share of a class in what a link sent, for the class to have a line of its own.
const CLASS_SHARE: f64 = 0.01;
/// Largest number of flows with series of their own; the table has all flows.
const FLOWS: usize = 1000;
/// Largest number of flows with series of their own in a lab of many runs.
const FLOWS_OF_MANY: usize = 12;
/// Approximate number of values in all series of single flows: a page of a thousand flows stays below two megabytes.
const FLOW_VALUES: usize = 120_000;
/// Smallest number of points of a flow's series.
const FLOW_POINTS: usize = 40;
/// Approximate number of a flow's series: rates, RTT, window, and states of its controller.
const SERIES_OF_A_FLOW: usize = 8;

/// The plots of one run of a lab with `runs` runs; the distributions are those of the view's window.
pub(crate) fn charts(info: &RunInfo, view: &View<'_>, records: &Records, runs: usize) -> RunSeries {
    let many = runs > MANY_RUNS;
    let set = series(view, records, if many { POINTS_OF_MANY } else { POINTS });
    let source = Source { info, set: &set, spreads: spreads(view) };
    let mut own: Vec<(Plot, &Metric)> =
        METRICS.iter().filter_map(|metric| Some((metric.plot?, metric))).collect();
    own.sort_by_key(|(plot, _)| plot.place);
    let own = own.into_iter().map(|(plot, metric)| source.own(plot, metric));
    let rest = [
        source.modes(),
        source.estimate(),
        source.rtt(),
        chart("window", "Congestion window, mean of the flows", CWND.unit, source.groups(&CWND)),
        source.fates(),
        source.retransmissions(),
        source.backlog(),
        source.admitted(),
        overhead::overhead(&set),
    ];
    let charts = [source.goodput(), source.delay()].into_iter().chain(own).chain(rest);
    // Empty plots are left out.
    let drawn = |chart: &Chart| !chart.lines.is_empty() || !chart.spreads.is_empty();
    RunSeries {
        period_s: set.period().as_secs_f64(),
        count: set.count(),
        charts: charts.chain(source.states()).filter(drawn).collect(),
        shares: SHARES.to_vec(),
        flows: flows(view, info, records, many),
        overlay: None,
        events: vec![],
    }
}

/// The plots of single flows, without flows with random arrivals. `None` if there are no such plots.
fn flows(view: &View<'_>, info: &RunInfo, records: &Records, many: bool) -> Option<FlowSeries> {
    let single = |group: u32| info.groups.get(group as usize).is_some_and(|group| !group.random_arrivals);
    let numbers = (0..).zip(&info.flows).filter(|(_, flow)| single(flow.group)).map(|(number, _)| number);
    let numbers: Vec<u32> = numbers.take(if many { FLOWS_OF_MANY } else { FLOWS }).collect();
    let most = if many { POINTS_OF_MANY } else { POINTS };
    let points = FLOW_VALUES / (SERIES_OF_A_FLOW * numbers.len().max(1));
    let set = flow_series(view, records, &numbers, points.clamp(FLOW_POINTS, most));
    let source = Source { info, set: &set, spreads: vec![] };
    // If each group has one flow, the flow's rates are those of the group.
    let several = info.flows.len() > info.groups.len();
    let mut charts = vec![];
    if several {
        charts.push(chart("flow-goodput", "Goodput", "Mbit/s", source.flows(&GOODPUT)));
        charts.push(chart("flow-rtt", "Round-trip time, mean", "ms", source.flows(&RTT_MEAN)));
    }
    charts.push(chart("flow-window", "Congestion window", "segments", source.flows(&CWND)));
    charts.push(source.retransmitted("flow-again", source.flows(&RETRANSMISSIONS)));
    charts.extend(source.states());
    charts.retain(|chart| !chart.lines.is_empty());
    let (period_s, count) = (set.period().as_secs_f64(), set.count());
    (!charts.is_empty()).then_some(FlowSeries { period_s, count, charts })
}

struct Source<'a> {
    info: &'a RunInfo,
    set: &'a SeriesSet<'a>,
    spreads: Vec<weir_record::Spread>,
}

fn chart(key: &str, title: &str, unit: &str, lines: Vec<Option<Line>>) -> Chart {
    let lines = lines.into_iter().flatten().collect();
    Chart { key: key.into(), title: title.into(), unit: unit.into(), lines, ..Chart::default() }
}

/// Values as a line; `None` if nothing was measured.
fn line(values: Values, name: &str, ink: Ink) -> Option<Line> {
    let measured = values.iter().any(Option::is_some);
    measured.then(|| Line { name: name.into(), ink, thin: false, hidden: false, bound: false, values })
}

impl Line {
    fn thin(mut self) -> Line {
        self.thin = true;
        self
    }
    fn hidden(mut self) -> Line {
        self.hidden = true;
        self
    }
    /// The greatest value.
    fn most(&self) -> f64 {
        self.values.iter().flatten().copied().fold(0.0, f64::max)
    }
    fn bound(mut self) -> Line {
        self.bound = true;
        self
    }
    /// The line with every value changed.
    fn map(mut self, change: impl Fn(f64) -> f64) -> Line {
        self.values.iter_mut().flatten().for_each(|value| *value = change(*value));
        self
    }
    /// Whether it has a value other than zero.
    fn happened(&self) -> bool {
        self.values.iter().flatten().any(|value| *value != 0.0)
    }
}

impl Source<'_> {
    /// A metric as a line; `None` if nothing was measured.
    fn line(&self, metric: &Metric, of: Subject, name: &str, ink: Ink) -> Option<Line> {
        line(self.set.get(metric, of)?, name, ink)
    }

    /// The 99th percentile of a metric as a thin line.
    fn p99(&self, metric: &Metric, of: Subject, name: &str, ink: Ink) -> Option<Line> {
        line(self.set.statistic(metric, Statistic::P99, of)?, name, ink).map(Line::thin)
    }

    /// A line for every group.
    fn groups(&self, metric: &Metric) -> Vec<Option<Line>> {
        let groups = self.info.groups.iter().enumerate();
        groups
            .map(|(i, group)| self.line(metric, Subject::Group(i as u32), &group.name, Ink::Group(i)))
            .collect()
    }

    /// A line for every flow that has series of its own.
    fn flows(&self, metric: &Metric) -> Vec<Option<Line>> {
        let flows = self.info.flows.iter().enumerate();
        let one = |(i, flow): (usize, &weir_record::FlowInfo)| {
            self.line(metric, Subject::Flow(i as u32), &flow.name, Ink::Group(flow.group as usize))
        };
        flows.map(one).collect()
    }

    /// A distribution under a name; `None` if nothing was measured.
    fn spread(&self, metric: &Metric, of: Subject, name: &str, ink: Ink) -> Option<Spread> {
        let spread = self.spreads.iter().find(|spread| spread.name == metric.name && spread.of == of)?;
        let values = spread.values.clone();
        Some(Spread { name: name.into(), ink, count: spread.count, values, limit: None })
    }

    /// One distribution for every group that has it.
    fn spreads_of_groups(&self, metric: &Metric) -> Vec<Spread> {
        let groups = self.info.groups.iter().enumerate();
        groups
            .filter_map(|(i, group)| {
                self.spread(metric, Subject::Group(i as u32), &group.name, Ink::Group(i))
            })
            .collect()
    }

    /// A metric's own plot: means over time, and the distribution with the deadline of each group's frames.
    fn own(&self, plot: Plot, metric: &Metric) -> Chart {
        let mut spreads = self.spreads_of_groups(metric);
        // One value is no distribution.
        spreads.retain(|spread| spread.count > 1);
        for spread in spreads.iter_mut().filter(|_| *metric == FRAME_DELAY) {
            let group = self.info.groups.iter().find(|group| *group.name == *spread.name);
            spread.limit = group.and_then(|group| group.deadline).map(Span::as_millis_f64);
        }
        Chart { spreads, ..chart(plot.key, plot.title, metric.unit, self.groups(metric)) }
    }

    /// The modes of the error control of streams with a deadline: shares of the groups of packets that began.
    fn modes(&self) -> Chart {
        const MODES: [(Metric, &str); 3] = [(PURE_ARQ, "pure ARQ"), (CODED_ARQ, "coded ARQ"), (FEC, "FEC")];
        let mut lines = vec![];
        for (of, group) in (0..).zip(&self.info.groups) {
            for (ink, (metric, mode)) in MODES.into_iter().enumerate() {
                let name =
                    if self.info.groups.len() > 1 { format!("{}, {mode}", group.name) } else { mode.into() };
                lines.push(self.line(&metric, Subject::Group(of), &name, Ink::Plain(ink)));
            }
        }
        let note = "Groups of packets planned in each mode, as a share of all groups that were begun.".into();
        Chart { note: Some(note), ..chart("modes", "Modes of the error control", "%", lines) }
    }

    /// The connections' estimates of the path's rate, beside the links' capacities.
    fn estimate(&self) -> Chart {
        let mut lines = self.groups(&CAPACITY_ESTIMATE);
        if lines.iter().any(Option::is_some) {
            for (place, (link, name)) in self.data_links().into_iter().enumerate() {
                let name = format!("capacity of link {name}");
                let line = self.line(&LINK_CAPACITY, Subject::Link(link), &name, Ink::Plain(place));
                lines.push(line.map(Line::thin).map(Line::bound));
            }
        }
        chart("estimate", "Estimated capacity", "Mbit/s", lines)
    }

    fn bottleneck(&self) -> Option<(Subject, &str)> {
        let link = self.info.bottleneck?;
        Some((Subject::Link(link), self.info.links.get(link as usize)?.name.as_str()))
    }

    /// The instrumented links that carry data, the bottleneck first; only the bottleneck if no link is known to carry data.
    fn data_links(&self) -> Vec<(u32, &str)> {
        let links = (0..).zip(&self.info.links);
        let carry = links.filter(|(_, link)| link.instrumented && !link.groups.is_empty());
        let mut links: Vec<(u32, &str)> = carry.map(|(index, link)| (index, link.name.as_str())).collect();
        if let (true, Some((Subject::Link(link), name))) = (links.is_empty(), self.bottleneck()) {
            links.push((link, name));
        }
        links.sort_by_key(|(index, _)| Some(*index) != self.info.bottleneck);
        links.truncate(DATA_LINKS);
        links
    }

    /// The codepoints with separate lines at a link; empty unless L4S and other packets sent data over it.
    fn classes(&self, link: u32) -> Vec<Ecn> {
        let sent = |class: Ecn| {
            let values = self.set.get(&LINK_THROUGHPUT, Subject::Class(link, class));
            values.map_or(0.0, |values| values.iter().flatten().sum::<f64>())
        };
        let all: f64 = CODEPOINTS.into_iter().map(sent).sum();
        let told =
            CODEPOINTS.into_iter().filter(|&class| class != Ecn::Ce && sent(class) >= CLASS_SHARE * all);
        let told: Vec<Ecn> = told.collect();
        if all > 0.0 && told.len() > 1 && told.contains(&Ecn::Ect1) { told } else { vec![] }
    }

    /// One series for the instrumented links that carry no data, hidden at first.
    fn other_links(&self, metric: &Metric, what: &str) -> Vec<Option<Line>> {
        let told = self.data_links();
        let links = (0..).zip(&self.info.links);
        let others =
            links.filter(|(index, link)| link.instrumented && told.iter().all(|(other, _)| other != index));
        let line = |(index, link): (u32, &weir_record::LinkInfo)| {
            let name = format!("{}{what}", link.name);
            self.line(metric, Subject::Link(index), &name, Ink::Plain(3)).map(Line::thin).map(Line::hidden)
        };
        others.take(OTHER_LINKS).map(line).collect()
    }

    /// The groups' goodput; and capacity and throughput of the links that carry data.
    fn goodput(&self) -> Chart {
        let mut lines = self.groups(&GOODPUT);
        let most = lines.iter().flatten().map(Line::most).fold(0.0, f64::max);
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let (of, ink) = (Subject::Link(link), Ink::Plain(place));
            let capacity = self.line(&LINK_CAPACITY, of, &format!("capacity of link {name}"), ink);
            // A capacity far above all goodputs would flatten the other lines.
            let far = |line: &Line| line.most() > FAR * most;
            let capacity = capacity.map(Line::thin).map(Line::bound);
            lines.push(capacity.map(|line| if far(&line) { line.hidden() } else { line }));
            let carried = self.line(&LINK_THROUGHPUT, of, &format!("carried by link {name}"), ink);
            lines.push(carried.map(Line::thin).map(Line::hidden));
        }
        chart("goodput", "Goodput", "Mbit/s", lines)
    }

    /// Queue delay at the links that carry data: mean and 99th percentile, separate for L4S packets if there are any; that at
    /// other instrumented links is hidden at first.
    fn delay(&self) -> Chart {
        let (mut lines, mut spreads) = (vec![], vec![]);
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let classes = self.classes(link);
            for class in &classes {
                let (of, ink) = (Subject::Class(link, *class), Ink::Class(*class as usize));
                let name = format!("link {name}, {}", class_words(*class));
                lines.push(self.line(&QUEUE_DELAY, of, &format!("{name}, mean"), ink));
                lines.push(self.p99(&QUEUE_DELAY, of, &format!("{name}, p99"), ink).map(Line::hidden));
                spreads.extend(self.spread(&QUEUE_DELAY, of, &name, ink));
            }
            let (of, ink) = (Subject::Link(link), Ink::Plain(place));
            let mean = self.line(&QUEUE_DELAY, of, &format!("link {name}, mean"), ink);
            let p99 = self.p99(&QUEUE_DELAY, of, &format!("link {name}, p99"), ink);
            if classes.is_empty() {
                spreads.extend(self.spread(&QUEUE_DELAY, of, &format!("link {name}"), ink));
                lines.extend([mean, p99]);
            } else {
                lines.extend([mean.map(Line::hidden), p99.map(Line::hidden)]);
            }
        }
        lines.extend(self.other_links(&QUEUE_DELAY, ", mean"));
        Chart { spreads, ..chart("delay", "Queue delay", "ms", lines) }
    }

    /// A line of counts per point, changed to counts per second.
    fn per_second(&self, line: Line) -> Line {
        let period = self.set.period().as_secs_f64();
        line.map(|count| if period > 0.0 { count / period } else { 0.0 })
    }

    /// Drops, marks and losses at the links that carry data.
    fn fates(&self) -> Chart {
        let mut lines = vec![];
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let line = |metric: &Metric, what: &str, ink| {
                self.line(metric, Subject::Link(link), &format!("link {name}, {what}"), Ink::Plain(ink))
            };
            lines.push(line(&DROPPED, "dropped", place));
            lines.push(line(&MARKED, "marked", place + 2).filter(Line::happened));
            lines.push(line(&LINK_LOST, "lost by the link", place + 3).filter(Line::happened));
        }
        let lines = lines.into_iter().map(|line| line.map(|line| self.per_second(line)));
        chart("fates", "Marks and drops", "packets/s", lines.collect())
    }

    /// RTTs: each group's mean, and its 99th percentile, hidden at first.
    fn rtt(&self) -> Chart {
        let mut lines = self.groups(&RTT);
        lines.extend(self.info.groups.iter().enumerate().map(|(i, group)| {
            let name = format!("{} p99", group.name);
            self.p99(&RTT, Subject::Group(i as u32), &name, Ink::Group(i)).map(Line::hidden)
        }));
        Chart {
            spreads: self.spreads_of_groups(&RTT),
            ..chart("rtt", "Round-trip time, mean", RTT.unit, lines)
        }
    }

    fn retransmissions(&self) -> Chart {
        self.retransmitted("again", self.groups(&RETRANSMISSIONS))
    }

    /// Retransmissions per second, for lines with any.
    fn retransmitted(&self, key: &str, lines: Vec<Option<Line>>) -> Chart {
        let lines: Vec<Option<Line>> =
            lines.into_iter().map(|line| line.map(|line| self.per_second(line))).collect();
        let lines = lines.into_iter().map(|line| line.filter(Line::happened)).collect();
        chart(key, "Retransmissions", "segments/s", lines)
    }

    fn backlog(&self) -> Chart {
        let links = self.data_links().into_iter().enumerate();
        let line = |(place, (link, name)): (usize, (u32, &str))| {
            self.line(&BACKLOG, Subject::Link(link), &format!("link {name}"), Ink::Plain(place))
        };
        let mut lines: Vec<Option<Line>> = links.map(line).collect();
        lines.extend(self.other_links(&BACKLOG, ""));
        chart("backlog", "Backlog", "packets", lines)
    }

    /// Internal states that were not always zero, one plot for each name: those of the queues of links that carry data, of
    /// stations, and of controllers.
    fn states(&self) -> Vec<Chart> {
        let links = self.data_links();
        // Each with the kind of its component and the name of its state.
        let mut charts: Vec<((&str, &str), Chart)> = Vec::new();
        for (of, name, values) in self.set.states() {
            let (whose, label, ink) = match of {
                Subject::QueueState(link) => {
                    let Some(place) = links.iter().position(|(told, _)| *told == link) else { continue };
                    ("queue", Some(format!("link {}", links[place].1)), Ink::Plain(place))
                }
                // What limits a flow is a number of its page, not a curve.
                Subject::ControllerState(_) if limited::STATES.contains(&name) => continue,
                Subject::ControllerState(flow) => {
                    let flow = self.info.flows.get(flow as usize);
                    (
                        "controllers",
                        flow.map(|flow| flow.name.to_string()),
                        Ink::Group(flow.map_or(0, |flow| flow.group as usize)),
                    )
                }
                // Bins, neighbours and flows of an overlay's node are in its own picture.
                Subject::StationState(_) if overlay::is_part(name) => continue,
                Subject::StationState(station) => (
                    "stations",
                    self.info.stations.get(station as usize).map(|station| station.name.clone()),
                    Ink::Plain(station as usize),
                ),
                _ => continue,
            };
            let Some(line) = label.and_then(|label| line(values, &label, ink)) else { continue };
            match charts.iter_mut().find(|(known, _)| *known == (whose, name)) {
                Some((_, chart)) => chart.lines.push(line),
                None => {
                    let (title, unit) = titled(name);
                    let of = match whose {
                        "queue" => "Queue",
                        "stations" => "Stations",
                        _ => "Controllers",
                    };
                    let (key, title) = (format!("{whose}-{name}"), format!("{of}: {title}"));
                    charts.push(((whose, name), chart(&key, &title, unit, vec![Some(line)])));
                }
            }
        }
        // States that stayed at zero need no plot.
        let charts = charts.into_iter().map(|(_, chart)| chart);
        charts.filter(|chart| chart.lines.iter().any(Line::happened)).collect()
    }
}

/// Name of a class where L4S packets are separate.
fn class_words(class: Ecn) -> &'static str {
    match class {
        Ecn::Ect1 => "L4S",
        Ecn::Ect0 => "classic ECT(0)",
        Ecn::NotEct => "classic Not-ECT",
        Ecn::Ce => "CE",
    }
}
