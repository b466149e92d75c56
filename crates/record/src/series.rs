//! A run over time: plain vectors on one grid of points, for plots. A point is one sample period, or several, to keep within
//! the number of points that is asked for; periods are merged exactly (bytes and histograms, never means of means). Each
//! series is computed when it is asked for: most plots show only a few.

mod grid;
#[cfg(test)]
mod tests;
mod told;
mod waits;

use crate::info::RunInfo;
use crate::metrics::{View, mbps, percent, ratio};
use crate::records::Records;
use crate::types::{Component, LinkSample};
use grid::{Counts, Grid, Means, Points, flow_values, values};
use std::sync::Arc;
use told::Told;
use waits::Waits;
use weir_base::{CODEPOINTS, Ecn, Span};

/// A run's series, all on one grid.
pub struct SeriesSet<'r> {
    grid: Grid,
    records: &'r Records,
    /// Records of each link; `None` for links that are not instrumented.
    links: Vec<Option<LinkPoints<'r>>>,
    /// Records of groups and single flows, sorted by subject.
    traffic: Vec<(Subject, TrafficPoints)>,
    /// Waiting times of each group's applications.
    waits: Vec<Waits>,
    /// Recorded states of each group's connections.
    told: Vec<Told>,
    /// Internal states, sorted by subject and name.
    states: Vec<(Subject, &'r Arc<str>, Means)>,
}

/// The values of a series, one for each point; `None` for a point without a measurement.
pub type Values = Vec<Option<f64>>;

/// The subject of a series.
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

/// Records of a link, by point.
struct LinkPoints<'r> {
    samples: Points<'r, LinkSample>,
    /// The codepoints with which packets arrived.
    classes: Vec<Ecn>,
}

/// Records of a group or a flow, by point.
struct TrafficPoints {
    counts: Vec<Counts>,
    windows: Means,
}

/// The series of a run's links, groups, queues and stations, on at most this many points. The warm-up is included,
/// whatever the view's window.
pub fn series<'r>(view: &'r View<'_>, records: &'r Records, points: usize) -> SeriesSet<'r> {
    let (info, grid) = (view.info, Grid::new(view, points));
    let group_of = |flow: u32| info.flows.get(flow as usize).map(|flow| flow.group as usize);
    let shared = |of: Component| !matches!(of, Component::Controller(_));
    SeriesSet {
        links: links(&grid, info, records),
        traffic: traffic(&grid, records, (0..info.groups.len() as u32).map(Subject::Group), group_of),
        waits: Waits::of_groups(info, records),
        told: Told::of_groups(&grid, view, records),
        states: states(&grid, view, records, shared),
        records,
        grid,
    }
}

/// The series of single flows and their controllers. `flows` holds indices of flows, ascending. The warm-up is included.
pub fn flow_series<'r>(
    view: &'r View<'_>,
    records: &'r Records,
    flows: &[u32],
    points: usize,
) -> SeriesSet<'r> {
    let (info, grid) = (view.info, Grid::new(view, points));
    // A table, since it is asked of every record.
    let mut places = vec![None; info.flows.len()];
    for (place, flow) in flows.iter().enumerate() {
        if let Some(of) = places.get_mut(*flow as usize) {
            *of = Some(place);
        }
    }
    let place_of = |flow: u32| *places.get(flow as usize)?;
    let own = |of: Component| matches!(of, Component::Controller(flow) if place_of(flow).is_some());
    SeriesSet {
        links: vec![],
        traffic: traffic(&grid, records, flows.iter().map(|&flow| Subject::Flow(flow)), place_of),
        waits: vec![],
        told: vec![],
        states: states(&grid, view, records, own),
        records,
        grid,
    }
}

impl SeriesSet<'_> {
    /// Time between two points; point `i` covers the time from `i` to `i + 1` times this period.
    pub fn period(&self) -> Span {
        self.grid.period()
    }

    /// Number of points on the grid.
    pub fn count(&self) -> usize {
        self.grid.count()
    }

    /// The values of a series, by its name with the unit, for example `goodput_mbps`, `queue_delay_p99_ms`, or the name of a
    /// state. `None` if the run has no such series.
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

    /// Internal states: subject, name and values of each.
    pub fn states(&self) -> impl Iterator<Item = (Subject, &str, Values)> {
        self.states.iter().map(|(of, name, means)| (*of, name.as_ref(), means.values()))
    }

    fn points_of(&self, link: u32) -> Option<&LinkPoints<'_>> {
        self.links.get(link as usize)?.as_ref()
    }

    /// A series of a link.
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

    /// A series of all packets at a link, or of those that arrived with one codepoint.
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

    /// A series of a group or a flow. A group has a histogram of its segments' RTTs; a flow only has their sum.
    fn of_traffic(&self, name: &str, of: Subject) -> Option<Values> {
        let place = self.traffic.binary_search_by_key(&of, |(of, _)| *of).ok()?;
        let (grid, own) = (&self.grid, &self.traffic[place].1);
        let rtts = |group: u32| {
            let rtts = self.records.rtts.iter().filter(move |sample| sample.group == group);
            rtts.map(|sample| (sample.at, &sample.rtt))
        };
        let values = match (name, of) {
            ("goodput_mbps", _) => flow_values(grid, &own.counts, |s, time| mbps(s.read_bytes, time)),
            ("throughput_mbps", _) => flow_values(grid, &own.counts, |s, time| mbps(s.received_bytes, time)),
            ("retransmissions", _) => flow_values(grid, &own.counts, |s, _| Some(s.retransmitted as f64)),
            ("cwnd_segments", _) => own.windows.values(),
            ("rtt_ms", Subject::Group(group)) => grid.means_of_times(rtts(group)),
            ("rtt_p99_ms", Subject::Group(group)) => grid.p99s_of_times(rtts(group)),
            ("rtt_ms", _) => {
                flow_values(grid, &own.counts, |s, _| ratio(s.rtt_sum as f64 / 1e6, s.rtt_count as f64))
            }
            _ => return None,
        };
        Some(values)
    }
}

/// Records of the instrumented links.
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

/// Records of groups or flows. `place_of` gives the index of a flow's subject among `subjects`, which ascend.
fn traffic(
    grid: &Grid,
    records: &Records,
    subjects: impl Iterator<Item = Subject>,
    place_of: impl Fn(u32) -> Option<usize>,
) -> Vec<(Subject, TrafficPoints)> {
    let empty =
        |of| (of, TrafficPoints { counts: vec![Counts::default(); grid.count()], windows: grid.means() });
    let mut traffic: Vec<(Subject, TrafficPoints)> = subjects.map(empty).collect();
    for sample in &records.flows {
        let of = place_of(sample.flow).and_then(|place| traffic.get_mut(place));
        if let Some(counts) = of.and_then(|(_, of)| of.counts.get_mut(grid.point(sample.at))) {
            counts.add(sample);
        }
    }
    for sample in &records.transport {
        if let Some((_, of)) = place_of(sample.flow).and_then(|place| traffic.get_mut(place)) {
            of.windows.add(grid.point(sample.at), sample.cwnd);
        }
    }
    traffic
}

/// The internal states of the wanted components, sorted by subject and name.
fn states<'r>(
    grid: &Grid,
    view: &'r View<'_>,
    records: &Records,
    wanted: impl Fn(Component) -> bool,
) -> Vec<(Subject, &'r Arc<str>, Means)> {
    let mut means: Vec<Option<Means>> =
        view.states.all.iter().map(|(of, _)| wanted(*of).then(|| grid.means())).collect();
    for (sample, state) in records.states.iter().zip(&view.states.of) {
        if let Some(means) = means[*state as usize].as_mut().filter(|_| sample.value.is_finite()) {
            means.add(grid.point(sample.at), sample.value);
        }
    }
    let subject = |of: Component| match of {
        Component::Queue(link) => Subject::QueueState(link),
        Component::Controller(flow) => Subject::ControllerState(flow),
        Component::Station(station) => Subject::StationState(station),
    };
    let found = view.states.all.iter().zip(means);
    let mut found: Vec<_> =
        found.filter_map(|((of, name), means)| Some((subject(*of), name, means?))).collect();
    found.sort_by_key(|&(of, name, _)| (of, name.as_ref()));
    found
}
