//! A run over time: plain vectors on one grid of points, for plots. A point is one sample period, or as many as it takes to
//! keep within the number asked for; what is merged is merged exactly (bytes and histograms, never means of means).

#[cfg(test)]
mod tests;
mod told;

use crate::info::RunInfo;
use crate::metrics::{mbps, percent, ratio};
use crate::packed::PackedHistogram;
use crate::records::Records;
use crate::types::{Component, FlowEventKind, FlowSample, LinkSample, MessageFate, MessageKind};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use weir_base::{CODEPOINTS, Ecn, Histogram, Span, Time};

/// A run's series, all on one grid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesSet {
    /// Time between two points; point `i` covers what came after `i` of them, up to `i + 1` of them.
    pub period: Span,
    /// Points on the grid.
    pub count: usize,
    /// The series.
    pub series: Vec<Series>,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is, with its unit: `goodput_mbps`, `queue_delay_p99_ms`, or the name of a state.
    pub name: Cow<'static, str>,
    /// What it is of.
    pub of: Subject,
    /// One value for each point; none where there was nothing to measure.
    pub values: Values,
}

/// The values of a series, which a plot of it shares.
pub type Values = Arc<[Option<f64>]>;

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A link and its queue, by the link's index.
    Link(u32),
    /// The packets at a link that arrived with one codepoint.
    Class(u32, Ecn),
    /// A traffic group: its flows together.
    Group(u32),
    /// A flow.
    Flow(u32),
    /// Internal state of a link's queue.
    QueueState(u32),
    /// Internal state of a flow's controller.
    ControllerState(u32),
    /// Internal state of a station.
    StationState(u32),
}

impl SeriesSet {
    /// The values of one series.
    pub fn get(&self, name: &str, of: Subject) -> Option<&Values> {
        self.series.iter().find(|s| s.of == of && s.name == name).map(|s| &s.values)
    }
}

/// Extracts the series of a run's links, groups, queues and stations, on at most so many points. Warm-up is not cut off.
pub fn series(info: &RunInfo, records: &Records, points: usize) -> SeriesSet {
    let grid = Grid::new(info, records, points);
    let mut out = SeriesSet { period: grid.period(), count: grid.count(), series: Vec::new() };
    for (index, _) in info.links.iter().enumerate().filter(|(_, link)| link.instrumented) {
        link_series(&grid, records, index as u32, &mut out.series);
    }
    group_series(&grid, info, records, &mut out.series);
    message_series(&grid, info, records, &mut out.series);
    told::told_series(&grid, info, records, &mut out.series);
    let shared = |of: Component| !matches!(of, Component::Controller(_));
    state_series(&grid, records, shared, &mut out.series);
    out
}

/// Extracts the series of single flows and their controllers. `flows` are numbers of flows, ascending.
pub fn flow_series(info: &RunInfo, records: &Records, flows: &[u32], points: usize) -> SeriesSet {
    let grid = Grid::new(info, records, points);
    let mut out = SeriesSet { period: grid.period(), count: grid.count(), series: Vec::new() };
    let mut points: Vec<Points<'_, FlowSample>> = flows.iter().map(|_| grid.points()).collect();
    for sample in &records.flows {
        if let Ok(place) = flows.binary_search(&sample.flow) {
            grid.join(&mut points[place], sample.at, sample, FlowSample::merge);
        }
    }
    let mut windows: Vec<Means> = flows.iter().map(|_| grid.means()).collect();
    for sample in &records.transport {
        if let Ok(place) = flows.binary_search(&sample.flow) {
            windows[place].add(&grid, sample.at, sample.cwnd);
        }
    }
    for ((&flow, points), windows) in flows.iter().zip(points).zip(windows) {
        rates(&grid, &points, Subject::Flow(flow), &mut out.series);
        let rtt = flow_values(&grid, &points, |s, _| ratio(s.rtt_sum as f64 / 1e6, s.rtt_count as f64));
        for (name, values) in [("rtt_ms", rtt), ("cwnd_segments", windows.values())] {
            out.series.push(Series { name: name.into(), of: Subject::Flow(flow), values });
        }
    }
    let own = |of: Component| matches!(of, Component::Controller(flow) if flows.binary_search(&flow).is_ok());
    state_series(&grid, records, own, &mut out.series);
    out
}

/// The grid of points.
struct Grid {
    sample: Span,
    /// Sample periods in a point.
    step: u64,
    /// For each point, the time that its records cover.
    covered: Vec<Span>,
    /// The last time that was looked for, and its point: records come by time, so that most have the time of the one before.
    last: Cell<(Time, usize)>,
}

impl Grid {
    fn new(info: &RunInfo, records: &Records, most: usize) -> Grid {
        let links = records.links.iter().map(|sample| sample.at);
        let mut ends: Vec<Time> = links.chain(records.flows.iter().map(|sample| sample.at)).collect();
        ends.dedup();
        let last = ends.iter().max().copied().unwrap_or(Time::ZERO);
        // Without a period in the description, the whole run is one point.
        let sample = if info.sample.is_zero() { last.since(Time::ZERO) } else { info.sample };
        let mut grid = Grid { sample, step: 1, covered: Vec::new(), last: Cell::default() };
        let periods = if ends.is_empty() { 0 } else { grid.point(last) + 1 };
        grid.step = periods.div_ceil(most.max(1)).max(1) as u64;
        grid.last = Cell::default();
        let mut last_of_point = vec![Time::ZERO; periods.div_ceil(grid.step as usize)];
        for at in ends {
            let point = grid.point(at);
            last_of_point[point] = last_of_point[point].max(at);
        }
        let mut before = Time::ZERO;
        for end in last_of_point {
            grid.covered.push(end.since(before));
            before = before.max(end);
        }
        grid
    }

    /// The point of a period that ends at `at`, within half a period.
    fn point(&self, at: Time) -> usize {
        let (last, point) = self.last.get();
        if last == at {
            return point;
        }
        let sample = self.sample.as_nanos().max(1);
        let period =
            (at.as_nanos() / sample + u64::from(at.as_nanos() % sample >= sample.div_ceil(2))).max(1) - 1;
        let point = (period / self.step) as usize;
        self.last.set((at, point));
        point
    }

    fn period(&self) -> Span {
        self.sample * self.step
    }

    fn count(&self) -> usize {
        self.covered.len()
    }

    /// No records by point.
    fn points<'r, T>(&self) -> Points<'r, T> {
        std::iter::repeat_with(|| None).take(self.count()).collect()
    }

    /// Adds a record to those of its point.
    fn join<'r, T: Clone>(
        &self,
        points: &mut Points<'r, T>,
        at: Time,
        record: &'r T,
        merge: impl Fn(&mut T, &T),
    ) {
        let Some(point) = points.get_mut(self.point(at)) else { return };
        let mut sum = match point.take() {
            None => {
                *point = Some(Merged::One(record));
                return;
            }
            Some(Merged::One(first)) => Box::new(first.clone()),
            Some(Merged::Several(sum)) => sum,
        };
        merge(&mut sum, record);
        *point = Some(Merged::Several(sum));
    }

    /// Records by point, merged where several fall into one.
    fn gather<'r, T: Clone + 'r>(
        &self,
        records: impl Iterator<Item = &'r T>,
        at: impl Fn(&T) -> Time,
        merge: impl Fn(&mut T, &T),
    ) -> Points<'r, T> {
        let mut points = self.points();
        records.for_each(|record| self.join(&mut points, at(record), record, &merge));
        points
    }

    /// Means of nothing yet.
    fn means(&self) -> Means {
        Means(vec![(0.0, 0.0); self.count()])
    }

    /// Means of what falls into each point.
    fn means_of(&self, values: impl Iterator<Item = (Time, f64)>) -> Values {
        let mut means = self.means();
        values.for_each(|(at, value)| means.add(self, at, value));
        means.values()
    }

    /// Mean and 99th percentile, in milliseconds, of histograms that come in the order of their times. Nearly always there is one a
    /// point, which need not be merged with others.
    fn delays<'r>(&self, histograms: impl Iterator<Item = (Time, &'r PackedHistogram)>) -> [Values; 2] {
        let [mut means, mut p99s] = [vec![None; self.count()], vec![None; self.count()]];
        let mut merged = Histogram::new();
        let counted = histograms.filter(|(_, histogram)| histogram.count() > 0);
        let mut rest = counted.map(|(at, histogram)| (self.point(at), histogram)).peekable();
        while let Some((point, first)) = rest.next() {
            let (mut mean, mut p99) = (Some(first.mean()), None);
            if rest.peek().is_some_and(|(next, _)| *next == point) {
                first.add_to(&mut merged);
                while let Some((_, other)) = rest.next_if(|(next, _)| *next == point) {
                    other.add_to(&mut merged);
                }
                (mean, p99) = (merged.mean(), merged.percentile(0.99));
                merged.clear();
            }
            if point < self.count() {
                means[point] = mean.map(Span::as_millis_f64);
                p99s[point] = Some(p99.unwrap_or_else(|| first.percentile(0.99)).as_millis_f64());
            }
        }
        [means.into(), p99s.into()]
    }
}

/// The records of each point; nearly always there is one at most.
type Points<'r, T> = Vec<Option<Merged<'r, T>>>;

/// The records of a point as one.
enum Merged<'r, T> {
    One(&'r T),
    Several(Box<T>),
}

impl<T> std::ops::Deref for Merged<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match self {
            Merged::One(record) => record,
            Merged::Several(sum) => sum,
        }
    }
}

/// For each point, the sum of what falls into it and how much that is.
struct Means(Vec<(f64, f64)>);

impl Means {
    fn add(&mut self, grid: &Grid, at: Time, value: f64) {
        if let Some((sum, count)) = self.0.get_mut(grid.point(at)) {
            *sum += value;
            *count += 1.0;
        }
    }

    fn values(&self) -> Values {
        self.0.iter().map(|&(sum, count)| ratio(sum, count)).collect()
    }
}

/// Turns gathered records into values, given the time that each point covers.
fn values<T>(grid: &Grid, points: &Points<'_, T>, of: impl Fn(&T, Span) -> Option<f64>) -> Values {
    points.iter().zip(&grid.covered).map(|(point, &covered)| of(point.as_deref()?, covered)).collect()
}

/// The same of flows' counters: where there is no record, nothing happened.
fn flow_values(
    grid: &Grid,
    points: &Points<'_, FlowSample>,
    of: impl Fn(&FlowSample, Span) -> Option<f64>,
) -> Values {
    let nothing = FlowSample::default();
    let of = |(point, &covered): (&Option<Merged<'_, FlowSample>>, &Span)| {
        of(point.as_deref().unwrap_or(&nothing), covered)
    };
    points.iter().zip(&grid.covered).map(of).collect()
}

fn link_series(grid: &Grid, records: &Records, link: u32, out: &mut Vec<Series>) {
    let samples = records.links.iter().filter(|sample| sample.link == link);
    let points = grid.gather(samples, |sample| sample.at, LinkSample::merge);
    let classes: Vec<Ecn> = classes(&points).collect();
    let mut add = |name: &'static str, of, values| out.push(Series { name: name.into(), of, values });
    let counted = |count: &dyn Fn(&[u64; 4]) -> u64| {
        [
            ("link_throughput_mbps", values(grid, &points, |s, time| mbps(count(&s.sent_bytes), time))),
            ("dropped_packets", values(grid, &points, |s, _| Some(count(&s.dropped) as f64))),
            ("marked_packets", values(grid, &points, |s, _| Some(count(&s.marked) as f64))),
            (
                "drop_probability_percent",
                values(grid, &points, |s, _| percent(count(&s.dropped), count(&s.settled()))),
            ),
        ]
    };
    let whole = Subject::Link(link);
    let of_all = counted(&|by_class| by_class.iter().sum());
    for &class in &classes {
        // Where there is one class, it is all.
        let of_class = match classes[..] {
            [_] => of_all.clone(),
            _ => counted(&|by_class| by_class[class as usize]),
        };
        of_class.into_iter().for_each(|(name, values)| add(name, Subject::Class(link, class), values));
    }
    of_all.into_iter().for_each(|(name, values)| add(name, whole, values));
    let utilisation = |s: &LinkSample, _| percent(s.sent_bytes.iter().sum(), s.capacity.get());
    add("utilisation_percent", whole, values(grid, &points, utilisation));
    add("link_capacity_mbps", whole, values(grid, &points, |s, time| mbps(s.capacity.get(), time)));
    add("backlog_packets", whole, values(grid, &points, |s, _| Some(f64::from(s.backlog_packets))));
    add("link_lost_packets", whole, values(grid, &points, |s, _| Some(s.lost as f64)));
    let delays: Vec<_> = records.delays.iter().filter(|sample| sample.link == link).collect();
    let of_all = grid.delays(delays.iter().map(|sample| (sample.at, &sample.delay)));
    for class in classes {
        let of_class = delays.iter().filter(|sample| sample.class == class);
        let [mean, p99] = match of_class.clone().count() == delays.len() {
            true => of_all.clone(),
            false => grid.delays(of_class.map(|sample| (sample.at, &sample.delay))),
        };
        add("queue_delay_ms", Subject::Class(link, class), mean);
        add("queue_delay_p99_ms", Subject::Class(link, class), p99);
    }
    let [mean, p99] = of_all;
    add("queue_delay_ms", whole, mean);
    add("queue_delay_p99_ms", whole, p99);
}

/// The codepoints with which anything arrived.
fn classes<'a>(points: &'a Points<'_, LinkSample>) -> impl Iterator<Item = Ecn> + 'a {
    let arrived = |class: Ecn| points.iter().flatten().any(|sample| sample.arrived[class as usize] > 0);
    CODEPOINTS.into_iter().filter(move |&class| arrived(class))
}

fn group_series(grid: &Grid, info: &RunInfo, records: &Records, out: &mut Vec<Series>) {
    let group_of = |flow: u32| info.flows.get(flow as usize).map(|flow| flow.group);
    for group in 0..info.groups.len() as u32 {
        let samples = records.flows.iter().filter(|sample| group_of(sample.flow) == Some(group));
        let points = grid.gather(samples, |sample| sample.at, FlowSample::merge);
        rates(grid, &points, Subject::Group(group), out);
        let rtts = records.rtts.iter().filter(|sample| sample.group == group);
        let [mean, p99] = grid.delays(rtts.map(|sample| (sample.at, &sample.rtt)));
        let windows = records.transport.iter().filter(|sample| group_of(sample.flow) == Some(group));
        let windows = grid.means_of(windows.map(|sample| (sample.at, sample.cwnd)));
        for (name, values) in [("rtt_ms", mean), ("rtt_p99_ms", p99), ("cwnd_segments", windows)] {
            out.push(Series { name: name.into(), of: Subject::Group(group), values });
        }
    }
}

/// What the applications of each group waited for: means over each point, only where there is something.
fn message_series(grid: &Grid, info: &RunInfo, records: &Records, out: &mut Vec<Series>) {
    let group_of = |flow: u32| info.flows.get(flow as usize).map_or(0, |flow| flow.group as usize);
    // For each group: requests, frames, frames on time (100 or 0), completions of drawn flows, echoes, echoes lost (100 or 0), and of
    // ensembles the delays of their frames, stalls and completion asynchrony.
    let mut gathered: Vec<[Vec<(Time, f64)>; 9]> = vec![Default::default(); info.groups.len()];
    for message in &records.messages {
        let Some(of) = gathered.get_mut(group_of(message.flow)) else { continue };
        let took = message.took.map(|took| (message.at, took.as_millis_f64()));
        match message.kind {
            MessageKind::Request => of[0].extend(took),
            MessageKind::Frame => {
                of[1].extend(took);
                of[2].push((message.at, if message.fate == MessageFate::Done { 100.0 } else { 0.0 }));
            }
            MessageKind::Echo => {
                of[4].extend(took);
                of[5].push((message.at, if message.took.is_none() { 100.0 } else { 0.0 }));
            }
            MessageKind::Part => of[6].extend(took),
            MessageKind::Stall => of[7].extend(took),
            MessageKind::Ensemble => of[8].extend(took),
        }
    }
    let drawn = |flow: u32| info.groups.get(group_of(flow)).is_some_and(|group| group.drawn);
    let mut started = vec![Time::ZERO; info.flows.len()];
    for event in records.events.iter().filter(|event| drawn(event.flow)) {
        let Some(start) = started.get_mut(event.flow as usize) else { continue };
        match event.kind {
            FlowEventKind::Started => *start = event.at,
            FlowEventKind::Completed => {
                gathered[group_of(event.flow)][3].push((event.at, event.at.since(*start).as_secs_f64()));
            }
            _ => {}
        }
    }
    const NAMES: [&str; 9] = [
        "request_time_ms",
        "frame_delay_ms",
        "frames_on_time_percent",
        "completion_time_s",
        "echo_time_ms",
        "echoes_lost_percent",
        "ensemble_delay_ms",
        "stall_time_ms",
        "completion_asynchrony_ms",
    ];
    for (group, of) in (0..).zip(gathered) {
        for (name, values) in NAMES.into_iter().zip(of).filter(|(_, values)| !values.is_empty()) {
            let values = grid.means_of(values.into_iter());
            out.push(Series { name: name.into(), of: Subject::Group(group), values });
        }
    }
}

fn rates(grid: &Grid, points: &Points<'_, FlowSample>, of: Subject, out: &mut Vec<Series>) {
    let mut add = |name: &'static str, values| out.push(Series { name: name.into(), of, values });
    add("goodput_mbps", flow_values(grid, points, |s, time| mbps(s.read_bytes, time)));
    add("throughput_mbps", flow_values(grid, points, |s, time| mbps(s.received_bytes, time)));
    add("retransmissions", flow_values(grid, points, |s, _| Some(s.retransmitted as f64)));
}

/// The internal states of the components that are wanted.
fn state_series(grid: &Grid, records: &Records, wanted: impl Fn(Component) -> bool, out: &mut Vec<Series>) {
    let mut states: Vec<(Component, &Arc<str>, Means)> = Vec::new();
    // Each period brings the same states in the same order, so nearly all are found where they are looked for first.
    let mut next = 0;
    for state in records.states.iter().filter(|state| wanted(state.of)) {
        let same = |(of, name, _): &(Component, &Arc<str>, _)| {
            *of == state.of && (Arc::ptr_eq(name, &state.name) || **name == state.name)
        };
        let found = match states.get(next) {
            Some(known) if same(known) => next,
            _ => states.iter().position(same).unwrap_or_else(|| {
                states.push((state.of, &state.name, grid.means()));
                states.len() - 1
            }),
        };
        if state.value.is_finite() {
            states[found].2.add(grid, state.at, state.value);
        }
        next = if found + 1 == states.len() { 0 } else { found + 1 };
    }
    let mut states: Vec<(Subject, &str, Means)> = states
        .into_iter()
        .map(|(of, name, means)| match of {
            Component::Queue(link) => (Subject::QueueState(link), &**name, means),
            Component::Controller(flow) => (Subject::ControllerState(flow), &**name, means),
            Component::Station(station) => (Subject::StationState(station), &**name, means),
        })
        .collect();
    states.sort_by_key(|&(of, name, _)| (of, name));
    for (of, name, means) in states {
        out.push(Series { name: name.to_string().into(), of, values: means.values() });
    }
}
