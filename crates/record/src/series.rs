//! A run over time: plain vectors on one grid of points, for plots. A point is one sample period, or several, to keep within
//! the number of points that is asked for; periods are merged exactly (bytes and histograms, never means of means). Each
//! series is computed when it is asked for: most plots show only a few.

mod grid;
mod grown;
mod states;
#[cfg(test)]
mod tests;
mod waits;

use crate::info::RunInfo;
use crate::metrics::{Counts, Level, Metric, Packets, Reduction, Value, View};
use crate::records::Records;
use crate::selector::Statistic;
use crate::types::{Component, FlowSample, LinkSample};
use grid::{Grid, Means, Points};
use std::borrow::Cow;
use std::sync::Arc;
use waits::Waits;
use weir_base::{CODEPOINTS, Ecn, Span};

/// A run's series, all on one grid.
pub struct SeriesSet<'r> {
    grid: Grid,
    view: &'r View<'r>,
    records: &'r Records,
    /// Records of each link; `None` for links that are not instrumented.
    links: Vec<Option<LinkPoints<'r>>>,
    /// Records of groups and single flows, sorted by subject.
    traffic: Vec<(Subject, TrafficPoints)>,
    /// Waiting times of each group's applications.
    waits: Vec<Waits<'r>>,
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

impl Subject {
    /// The level of its metrics; `None` for internal states, which are no metrics.
    fn level(self) -> Option<Level> {
        match self {
            Subject::Link(_) => Some(Level::Link),
            Subject::Class(..) => Some(Level::Class),
            Subject::Group(_) => Some(Level::Group),
            Subject::Flow(_) => Some(Level::Flow),
            Subject::QueueState(_) | Subject::ControllerState(_) | Subject::StationState(_) => None,
        }
    }
}

/// Records of a link, by point.
struct LinkPoints<'r> {
    samples: Points<'r, LinkSample>,
    /// The codepoints with which packets arrived.
    classes: Vec<Ecn>,
}

/// Records of a group or a flow, by point.
struct TrafficPoints {
    sums: Vec<FlowSample>,
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
        states: states(&grid, view, records, shared),
        view,
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
        states: states(&grid, view, records, own),
        view,
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

    /// A metric over time; of a distribution the mean. `None` if the metric has no curve, or the run no such subject.
    pub fn get(&self, metric: &Metric, of: Subject) -> Option<Values> {
        self.statistic(metric, Statistic::Mean, of)
    }

    /// A statistic of a metric over time: of a distribution of packets' times any, otherwise only the mean.
    pub fn statistic(&self, metric: &Metric, statistic: Statistic, of: Subject) -> Option<Values> {
        metric.of.contains(&of.level()?).then_some(())?;
        let reduction = metric.curve.unwrap_or(metric.reduction);
        if statistic != Statistic::Mean && !matches!(reduction, Reduction::Delays | Reduction::Rtts) {
            return None;
        }
        match (reduction, of) {
            (Reduction::Packets(value), Subject::Link(link)) => self.of_packets(value, link, None),
            (Reduction::Packets(value), Subject::Class(link, class)) => {
                self.of_packets(value, link, Some(class))
            }
            (Reduction::Delays, Subject::Link(link)) => self.delays(statistic, link, None),
            (Reduction::Delays, Subject::Class(link, class)) => self.delays(statistic, link, Some(class)),
            (Reduction::Rtts, Subject::Group(group)) => {
                self.traffic_of(of)?;
                let rtts = self.records.rtts.iter().filter(|sample| sample.group == group);
                Some(self.grid.times(rtts.map(|sample| (sample.at, &sample.rtt)), statistic))
            }
            (Reduction::Counts(value), _) => Some(self.of_counts(value, self.traffic_of(of)?)),
            (Reduction::Windows, _) => Some(self.traffic_of(of)?.windows.values()),
            (reduction, Subject::Group(group)) => {
                let waits = self.waits.get(group as usize)?;
                waits.values(reduction, &self.grid).or_else(|| self.of_states(metric, reduction, group))
            }
            _ => None,
        }
    }

    /// Internal states: subject, name and values of each.
    pub fn states(&self) -> impl Iterator<Item = (Subject, &str, Values)> {
        self.states.iter().map(|(of, name, means)| (*of, name.as_ref(), means.values()))
    }

    /// Records of a link; `None` if it is not instrumented, or without packets of this class.
    fn points_of(&self, link: u32, class: Option<Ecn>) -> Option<&LinkPoints<'_>> {
        let points = self.links.get(link as usize)?.as_ref()?;
        class.is_none_or(|class| points.classes.contains(&class)).then_some(points)
    }

    /// A value of all packets at a link, or of those that arrived with one codepoint; `None` for a point without records.
    fn of_packets(&self, value: fn(&Packets<'_>) -> Value, link: u32, class: Option<Ecn>) -> Option<Values> {
        let points = self.points_of(link, class)?.samples.iter().zip(self.grid.covered());
        let of = |(point, time): (&Option<grid::Merged<'_, LinkSample>>, &Span)| {
            value(&Packets { sum: point.as_deref()?, class, time: *time }).scalar()
        };
        Some(points.map(of).collect())
    }

    /// A statistic of the queue delay of all packets at a link, or of those that arrived with one codepoint.
    fn delays(&self, statistic: Statistic, link: u32, class: Option<Ecn>) -> Option<Values> {
        self.points_of(link, class)?;
        let delays = self.records.delays.iter();
        let delays = delays.filter(|of| of.link == link && class.is_none_or(|class| of.class == class));
        Some(self.grid.times(delays.map(|sample| (sample.at, &sample.delay)), statistic))
    }

    fn traffic_of(&self, of: Subject) -> Option<&TrafficPoints> {
        let place = self.traffic.binary_search_by_key(&of, |(of, _)| *of).ok()?;
        Some(&self.traffic[place].1)
    }

    /// A value of a group or a flow; sums are zero in a point without records.
    fn of_counts(&self, value: fn(&Counts<'_>) -> Value, points: &TrafficPoints) -> Values {
        let all = |of: fn(&FlowSample) -> u64| points.sums.iter().map(of).fold(0, u64::saturating_add);
        let in_all = (all(|sum| sum.read_bytes), all(|sum| sum.received_bytes));
        let points = points.sums.iter().zip(self.grid.covered());
        let of = |(sum, time): (&FlowSample, &Span)| {
            value(&Counts { sum: Cow::Borrowed(sum), time: *time, in_all }).scalar()
        };
        points.map(of).collect()
    }
}

/// The sum of two series, point by point; a point without a value in one of them has that of the other.
pub fn added(mut one: Values, other: Values) -> Values {
    for (one, other) in one.iter_mut().zip(other) {
        *one = one.map_or(other, |one| Some(one + other.unwrap_or_default()));
    }
    one
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
        |of| (of, TrafficPoints { sums: vec![FlowSample::default(); grid.count()], windows: grid.means() });
    let mut traffic: Vec<(Subject, TrafficPoints)> = subjects.map(empty).collect();
    for sample in &records.flows {
        let of = place_of(sample.flow).and_then(|place| traffic.get_mut(place));
        if let Some(sum) = of.and_then(|(_, of)| of.sums.get_mut(grid.point(sample.at))) {
            sum.merge(sample);
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
