//! A run over time: plain vectors on one grid of points, for plots. A point is one sample period, or as many as it takes to
//! keep within the number asked for; what is merged is merged exactly (bytes and histograms, never means of means). Each
//! series is made when it is asked for: most plots show a few of them.

mod grid;
#[cfg(test)]
mod tests;
mod told;
mod waits;

use crate::info::RunInfo;
use crate::metrics::{mbps, percent, ratio};
use crate::records::Records;
use crate::types::{Component, FlowSample, LinkSample};
use grid::{Grid, Means, Points, flow_values, values};
use std::sync::Arc;
use told::Told;
use waits::Waits;
use weir_base::{CODEPOINTS, Ecn, Span};

/// A run's series, all on one grid.
pub struct SeriesSet<'r> {
    grid: Grid,
    records: &'r Records,
    /// What each link recorded; none of links that are not measured.
    links: Vec<Option<LinkPoints<'r>>>,
    /// What groups and single flows recorded, by their subjects, ascending.
    traffic: Vec<(Subject, TrafficPoints<'r>)>,
    /// What applications of each group waited for.
    waits: Vec<Waits>,
    /// What connections of each group told.
    told: Vec<Told>,
    /// Internal states, by subject and name, ascending.
    states: Vec<(Subject, &'r Arc<str>, Means)>,
}

/// The values of a series, one for each point; none where there was nothing to measure.
pub type Values = Vec<Option<f64>>;

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

/// What a link recorded, by point.
struct LinkPoints<'r> {
    samples: Points<'r, LinkSample>,
    /// The codepoints with which anything arrived.
    classes: Vec<Ecn>,
}

/// What a group or a flow recorded, by point.
struct TrafficPoints<'r> {
    samples: Points<'r, FlowSample>,
    windows: Means,
}

/// The series of a run's links, groups, queues and stations, on at most so many points. Warm-up is not cut off.
pub fn series<'r>(info: &RunInfo, records: &'r Records, points: usize) -> SeriesSet<'r> {
    let grid = Grid::new(info, records, points);
    let group_of = |flow: u32| info.flows.get(flow as usize).map(|flow| flow.group as usize);
    let shared = |of: Component| !matches!(of, Component::Controller(_));
    SeriesSet {
        links: links(&grid, info, records),
        traffic: traffic(&grid, records, (0..info.groups.len() as u32).map(Subject::Group), group_of),
        waits: Waits::of_groups(info, records),
        told: Told::of_groups(&grid, info, records),
        states: states(&grid, records, shared),
        records,
        grid,
    }
}

/// The series of single flows and their controllers. `flows` are numbers of flows, ascending.
pub fn flow_series<'r>(info: &RunInfo, records: &'r Records, flows: &[u32], points: usize) -> SeriesSet<'r> {
    let grid = Grid::new(info, records, points);
    let place_of = |flow: u32| flows.binary_search(&flow).ok();
    let own = |of: Component| matches!(of, Component::Controller(flow) if place_of(flow).is_some());
    SeriesSet {
        links: vec![],
        traffic: traffic(&grid, records, flows.iter().map(|&flow| Subject::Flow(flow)), place_of),
        waits: vec![],
        told: vec![],
        states: states(&grid, records, own),
        records,
        grid,
    }
}

impl SeriesSet<'_> {
    /// Time between two points; point `i` covers what came after `i` of them, up to `i + 1` of them.
    pub fn period(&self) -> Span {
        self.grid.period()
    }

    /// Points on the grid.
    pub fn count(&self) -> usize {
        self.grid.count()
    }

    /// The values of one series, by what it is, with its unit: `goodput_mbps`, `queue_delay_p99_ms`, or the name of a state.
    /// None when the run has no such series.
    pub fn get(&self, name: &str, of: Subject) -> Option<Values> {
        match of {
            Subject::Link(link) => self.of_link(name, link).or_else(|| self.of_packets(name, link, None)),
            Subject::Class(link, class) => self.of_packets(name, link, Some(class)),
            Subject::Group(group) => self
                .of_traffic(name, of)
                .or_else(|| self.waits.get(group as usize)?.values(name, &self.grid))
                .or_else(|| self.told.get(group as usize)?.values(name)),
            Subject::Flow(_) => self.of_traffic(name, of),
            Subject::QueueState(_) | Subject::ControllerState(_) | Subject::StationState(_) => {
                let found = self.states.iter().find(|(known, state, _)| *known == of && ***state == *name);
                found.map(|(.., means)| means.values())
            }
        }
    }

    /// Internal states: what each is of, its name and its values.
    pub fn states(&self) -> impl Iterator<Item = (Subject, &str, Values)> {
        self.states.iter().map(|(of, name, means)| (*of, name.as_ref(), means.values()))
    }

    fn points_of(&self, link: u32) -> Option<&LinkPoints<'_>> {
        self.links.get(link as usize)?.as_ref()
    }

    /// What a link did.
    fn of_link(&self, name: &str, link: u32) -> Option<Values> {
        let (grid, samples) = (&self.grid, &self.points_of(link)?.samples);
        let values = match name {
            "utilisation_percent" => {
                values(grid, samples, |s, _| percent(s.sent_bytes.iter().sum(), s.capacity.get()))
            }
            "link_capacity_mbps" => values(grid, samples, |s, time| mbps(s.capacity.get(), time)),
            "backlog_packets" => values(grid, samples, |s, _| Some(f64::from(s.backlog_packets))),
            "link_lost_packets" => values(grid, samples, |s, _| Some(s.lost as f64)),
            _ => return None,
        };
        Some(values)
    }

    /// What happened at a link to all packets, or to those that arrived with one codepoint.
    fn of_packets(&self, name: &str, link: u32, class: Option<Ecn>) -> Option<Values> {
        let (grid, points) = (&self.grid, self.points_of(link)?);
        if class.is_some_and(|class| !points.classes.contains(&class)) {
            return None;
        }
        let samples = &points.samples;
        let counted = |by_class: &[u64; 4]| match class {
            None => by_class.iter().sum(),
            Some(class) => by_class[class as usize],
        };
        let delays = self.records.delays.iter();
        let delays = delays.filter(|of| of.link == link && class.is_none_or(|class| of.class == class));
        let delays = delays.map(|sample| (sample.at, &sample.delay));
        let values = match name {
            "link_throughput_mbps" => values(grid, samples, |s, time| mbps(counted(&s.sent_bytes), time)),
            "dropped_packets" => values(grid, samples, |s, _| Some(counted(&s.dropped) as f64)),
            "marked_packets" => values(grid, samples, |s, _| Some(counted(&s.marked) as f64)),
            "drop_probability_percent" => {
                values(grid, samples, |s, _| percent(counted(&s.dropped), counted(&s.settled())))
            }
            "queue_delay_ms" => grid.means_of_times(delays),
            "queue_delay_p99_ms" => grid.p99s_of_times(delays),
            _ => return None,
        };
        Some(values)
    }

    /// What a group or a flow did. RTTs of a group are those of its segments; of a flow there is their sum alone.
    fn of_traffic(&self, name: &str, of: Subject) -> Option<Values> {
        let place = self.traffic.binary_search_by_key(&of, |(of, _)| *of).ok()?;
        let (grid, own) = (&self.grid, &self.traffic[place].1);
        let rtts = |group: u32| {
            let rtts = self.records.rtts.iter().filter(move |sample| sample.group == group);
            rtts.map(|sample| (sample.at, &sample.rtt))
        };
        let values = match (name, of) {
            ("goodput_mbps", _) => flow_values(grid, &own.samples, |s, time| mbps(s.read_bytes, time)),
            ("throughput_mbps", _) => flow_values(grid, &own.samples, |s, time| mbps(s.received_bytes, time)),
            ("retransmissions", _) => flow_values(grid, &own.samples, |s, _| Some(s.retransmitted as f64)),
            ("cwnd_segments", _) => own.windows.values(),
            ("rtt_ms", Subject::Group(group)) => grid.means_of_times(rtts(group)),
            ("rtt_p99_ms", Subject::Group(group)) => grid.p99s_of_times(rtts(group)),
            ("rtt_ms", _) => {
                flow_values(grid, &own.samples, |s, _| ratio(s.rtt_sum as f64 / 1e6, s.rtt_count as f64))
            }
            _ => return None,
        };
        Some(values)
    }
}

/// What the measured links recorded.
fn links<'r>(grid: &Grid, info: &RunInfo, records: &'r Records) -> Vec<Option<LinkPoints<'r>>> {
    let empty = || LinkPoints { samples: grid.points(), classes: vec![] };
    let mut links: Vec<Option<LinkPoints<'r>>> =
        info.links.iter().map(|link| link.instrumented.then(empty)).collect();
    for sample in &records.links {
        if let Some(Some(link)) = links.get_mut(sample.link as usize) {
            grid.join(&mut link.samples, sample.at, sample, LinkSample::merge);
        }
    }
    for link in links.iter_mut().flatten() {
        let arrived = |class: &Ecn| link.samples.iter().flatten().any(|s| s.arrived[*class as usize] > 0);
        link.classes = CODEPOINTS.into_iter().filter(arrived).collect();
    }
    links
}

/// What groups or flows recorded. `place_of` is the place of a flow's records among the subjects, which ascend.
fn traffic<'r>(
    grid: &Grid,
    records: &'r Records,
    subjects: impl Iterator<Item = Subject>,
    place_of: impl Fn(u32) -> Option<usize>,
) -> Vec<(Subject, TrafficPoints<'r>)> {
    let empty = |of| (of, TrafficPoints { samples: grid.points(), windows: grid.means() });
    let mut traffic: Vec<(Subject, TrafficPoints<'r>)> = subjects.map(empty).collect();
    for sample in &records.flows {
        if let Some((_, of)) = place_of(sample.flow).and_then(|place| traffic.get_mut(place)) {
            grid.join(&mut of.samples, sample.at, sample, FlowSample::merge);
        }
    }
    for sample in &records.transport {
        if let Some((_, of)) = place_of(sample.flow).and_then(|place| traffic.get_mut(place)) {
            of.windows.add(grid, sample.at, sample.cwnd);
        }
    }
    traffic
}

/// The internal states of the components that are wanted, by subject and name.
fn states<'r>(
    grid: &Grid,
    records: &'r Records,
    wanted: impl Fn(Component) -> bool,
) -> Vec<(Subject, &'r Arc<str>, Means)> {
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
    let subject = |of: Component| match of {
        Component::Queue(link) => Subject::QueueState(link),
        Component::Controller(flow) => Subject::ControllerState(flow),
        Component::Station(station) => Subject::StationState(station),
    };
    let states = states.into_iter().map(|(of, name, means)| (subject(of), name, means));
    let mut states: Vec<(Subject, &Arc<str>, Means)> = states.collect();
    states.sort_by_key(|&(of, name, _)| (of, name.as_ref()));
    states
}
