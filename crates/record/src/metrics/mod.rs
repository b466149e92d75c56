//! The registry of metrics: every formula, once, with its definition, unit and source. To add a metric, write its [`Metric`]
//! in the file of its kind and add its line to [`METRICS`]; it then appears in `summary.json`, `weir list`, the report and
//! `compare`.

mod aqm;
mod completion;
mod connection;
mod domain;
mod ensemble;
mod flowshare;
mod found;
mod message;
mod point;
mod queue;
mod rate;
mod second;
mod tcp;
#[cfg(test)]
mod tests;
pub(crate) mod told;
mod value;
mod view;
mod window;

pub use domain::{Domain, Outside};
pub use found::Metrics;
pub use second::SETTLING_TOLERANCE;
pub use value::{Distribution, Value};
pub(crate) use value::{mbps, percent, ratio};
pub use view::View;
pub use window::Window;

use crate::bound::Bound;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use view::FlowView;
use weir_base::Ecn;

/// All metrics, in the order in which they are shown.
pub const METRICS: &[Metric] = &[
    queue::UTILISATION,
    queue::QUEUE_DELAY,
    queue::QUEUE_DELAY_DEVIATION,
    queue::DROP_PROBABILITY,
    queue::MARK_PROBABILITY,
    queue::ARRIVED,
    queue::DROPPED,
    queue::DROPPED_FULL,
    queue::DROPPED_SIGNAL,
    queue::DROPPED_OVERLOAD,
    queue::MARKED,
    queue::BACKLOG,
    queue::LINK_THROUGHPUT,
    queue::LINK_CAPACITY,
    queue::LINK_LOST,
    queue::LINK_LOSS,
    queue::LINK_DUPLICATED,
    queue::LINK_CORRUPTED,
    aqm::AQM_DROP,
    aqm::AQM_MARK,
    aqm::AQM_BASE,
    aqm::OVERLOAD,
    aqm::OVERLOAD_TOGGLES,
    rate::GOODPUT,
    rate::GOODPUT_CEILING,
    rate::THEORY,
    rate::READ,
    rate::GOODPUT_SHARE,
    rate::THROUGHPUT,
    rate::THROUGHPUT_KIB,
    rate::FLOW_GOODPUT,
    rate::JAIN,
    rate::RATE_RATIO,
    rate::WINDOW_RATIO,
    tcp::RTT,
    tcp::RTT_DEVIATION,
    tcp::RTT_BASE,
    tcp::RTT_ABOVE_BASE,
    tcp::RTT_MEAN,
    tcp::RTT_MIN,
    tcp::RTT_MAX,
    tcp::CWND,
    tcp::RETRANSMISSIONS,
    tcp::RETRANSMISSION_PERCENT,
    tcp::REFUSALS,
    tcp::TIMEOUTS,
    tcp::SPURIOUS_RETRANSMISSIONS,
    tcp::CE_RECEIVED,
    completion::COMPLETION_TIME,
    completion::TRANSACTION_TIME,
    completion::COMPLETED,
    completion::SLOWDOWN,
    message::REQUEST_TIME,
    message::REQUESTS_PER_SECOND,
    message::ECHO_TIME,
    message::ECHOES_LOST,
    message::FRAME_DELAY,
    message::FRAMES_ON_TIME,
    message::FRAMES_LOST,
    connection::CAPACITY_ESTIMATE,
    connection::CAPACITY_ERROR,
    connection::FIRST_CONTROLLER,
    connection::SECOND_CONTROLLER,
    connection::EFFICIENCY,
    connection::PLANNED_EFFICIENCY,
    connection::SHORTFALL,
    connection::PURE_ARQ,
    connection::CODED_ARQ,
    connection::FEC,
    ensemble::ASYNCHRONY,
    ensemble::STALL,
    ensemble::DELAY,
    ensemble::PER_SECOND,
    ensemble::JITTER,
    flowshare::NORMALISED,
    flowshare::VARIATION,
    point::LOSSES_CONSIDERED,
    point::LOSS_EVENT_INTERVAL,
    second::GOODPUT_FIRST,
    second::GOODPUT_WORST,
    second::QUEUE_DELAY_WORST,
    second::RTT_WORST,
    second::FRAMES_WORST,
    second::SETTLING,
    second::RECOVERY,
    second::QUEUE_DELAY_SETTLING,
];

/// A metric: its name, definition, source and formula.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, which carries the unit unless it is a count or a plain ratio.
    pub name: &'static str,
    /// Its title in reports.
    pub title: &'static str,
    /// Its unit: `%`, `ms`, `Mbit/s`, `packets`, ...; empty for a plain ratio.
    pub unit: &'static str,
    /// The levels for which it is computed.
    pub of: &'static [Level],
    /// Its definition.
    pub definition: &'static str,
    /// The source of its definition.
    pub source: &'static str,
    /// Default bound within which two results agree; `None` if comparisons judge it only when asked to.
    pub bound: Option<Bound>,
    /// The values that it can have: any other is an error of weir itself.
    pub domain: Domain,
    /// How it is computed.
    pub(crate) formula: Formula,
}

/// By name, which is unique.
impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

/// What a metric is computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The whole run: all flows; for metrics of queues, the bottleneck's queue.
    Run,
    /// A link and its queue.
    Link,
    /// The packets at a link that arrived with one codepoint.
    Class,
    /// One flow.
    Flow,
    /// A traffic group.
    Group,
    /// Two traffic groups, the earlier relative to the later.
    Pair,
}

/// How a metric is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formula {
    /// From a queue, or one class in it.
    Queue(fn(&Queue<'_>) -> Value),
    /// From a queue's own state; left out if undefined, since many queues record no state.
    State(fn(&Queue<'_>) -> Value),
    /// From some flows: one, a group's, or all.
    Flows(fn(&Flows<'_>) -> Value),
    /// From the messages of some flows' applications; left out if undefined, since most flows have none.
    Messages(fn(&Flows<'_>) -> Value),
    /// From the recorded state of some flows' transports; left out if undefined, since few transports record any.
    Told(fn(&Flows<'_>) -> Value),
    /// From some flows; left out if undefined, since most runs do not have what it is about.
    Special(fn(&Flows<'_>) -> Value),
    /// From the state of all stations; left out if undefined, since most runs have no such stations.
    Stations(fn(&View<'_>) -> Value),
    /// From two groups.
    Pair(fn(&Flows<'_>, &Flows<'_>) -> Value),
}

/// A link's queue in a window, or one class in it.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    view: &'a View<'a>,
    link: usize,
    class: Option<Ecn>,
}

/// Some flows in a window.
#[derive(Debug)]
pub(crate) struct Flows<'a> {
    view: &'a View<'a>,
    members: &'a [usize],
    level: Level,
    /// Whether any of them has messages in the window.
    has_messages: bool,
    /// Whether the transport of any of them has recorded state that metrics use.
    has_told: bool,
    /// Their goodput in each second, computed when a metric first needs it.
    goodputs_by_second: OnceCell<Vec<Option<f64>>>,
}

impl<'a> Flows<'a> {
    fn new(view: &'a View<'a>, members: &'a [usize], level: Level) -> Flows<'a> {
        let any = |has: fn(&FlowView) -> bool| members.iter().any(|&flow| has(&view.flows[flow]));
        let has_messages = any(|flow| flow.messages.is_some());
        let has_told = any(FlowView::has_told);
        Flows { view, members, level, has_messages, has_told, goodputs_by_second: OnceCell::new() }
    }
}

/// The metrics that are computed for a level, by their places in [`METRICS`]: made at compile time, since they are computed for
/// each of thousands of flows.
struct OfLevel {
    places: [u8; METRICS.len()],
    count: usize,
    /// Number of metrics that are never left out.
    always: usize,
}

const OF_LEVEL: &[OfLevel; Level::Pair as usize + 1] = &{
    const NONE: OfLevel = OfLevel { places: [0; METRICS.len()], count: 0, always: 0 };
    let mut of_level = [NONE; Level::Pair as usize + 1];
    let mut number = 0;
    while number < METRICS.len() {
        let (levels, mut place) = (METRICS[number].of, 0);
        while place < levels.len() {
            let of = &mut of_level[levels[place] as usize];
            of.places[of.count] = number as u8;
            of.count += 1;
            let always =
                matches!(METRICS[number].formula, Formula::Queue(_) | Formula::Flows(_) | Formula::Pair(_));
            of.always += always as usize;
            place += 1;
        }
        number += 1;
    }
    of_level
};

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

fn compute(level: Level, value: impl Fn(&Formula) -> Option<Value>) -> Metrics {
    let OfLevel { places, count, always } = &OF_LEVEL[level as usize];
    let mut found = Metrics::with_room(*always);
    for &place in &places[..*count] {
        if let Some(value) = value(&METRICS[usize::from(place)].formula) {
            found.push(place, value.rounded());
        }
    }
    found
}

/// A value unless it is undefined.
fn defined(value: Value) -> Option<Value> {
    (value != Value::Undefined).then_some(value)
}

/// A metric of some flows. `None` if it is no metric of flows, or if it is left out when undefined.
fn of_flows(formula: &Formula, flows: &Flows<'_>) -> Option<Value> {
    match formula {
        Formula::Flows(f) => Some(f(flows)),
        Formula::Messages(_) if !flows.has_messages => None,
        Formula::Told(_) if !flows.has_told => None,
        Formula::Messages(f) | Formula::Told(f) | Formula::Special(f) => defined(f(flows)),
        Formula::Queue(_) | Formula::State(_) | Formula::Stations(_) | Formula::Pair(_) => None,
    }
}

/// A metric of a queue. `None` if it is no metric of queues, or if it is left out when undefined.
fn of_queue(formula: &Formula, queue: &Queue<'_>) -> Option<Value> {
    match formula {
        Formula::Queue(f) => Some(f(queue)),
        Formula::State(f) => defined(f(queue)),
        _ => None,
    }
}

impl View<'_> {
    /// Metrics of the run as a whole.
    pub fn of_run(&self) -> Metrics {
        let all: Vec<usize> = (0..self.flows.len()).collect();
        let flows = Flows::new(self, &all, Level::Run);
        let bottleneck =
            self.info.bottleneck.map(|link| link as usize).filter(|&link| link < self.links.len());
        compute(Level::Run, |formula| match (formula, bottleneck) {
            (Formula::Queue(_), None) => Some(Value::Undefined),
            (Formula::Queue(_) | Formula::State(_), Some(link)) => of_queue(formula, &self.queue(link, None)),
            (Formula::Stations(f), _) => defined(f(self)),
            (other, _) => of_flows(other, &flows),
        })
    }

    /// Metrics of a link, or of one class of its packets; empty if there is no such link.
    pub fn of_link(&self, link: usize, class: Option<Ecn>) -> Metrics {
        let level = if class.is_some() { Level::Class } else { Level::Link };
        compute(level, |formula| {
            if link < self.links.len() { of_queue(formula, &self.queue(link, class)) } else { None }
        })
    }

    /// Metrics of a flow; empty if there is no such flow.
    pub fn of_flow(&self, flow: usize) -> Metrics {
        if flow >= self.flows.len() {
            return Metrics::default();
        }
        let alone = [flow];
        let flows = Flows::new(self, &alone, Level::Flow);
        compute(Level::Flow, |formula| of_flows(formula, &flows))
    }

    /// Metrics of a group.
    pub fn of_group(&self, group: usize) -> Metrics {
        let members = self.members(group);
        let flows = Flows::new(self, &members, Level::Group);
        compute(Level::Group, |formula| of_flows(formula, &flows))
    }

    /// Metrics of one group relative to another.
    pub fn of_pair(&self, group: usize, other: usize) -> Metrics {
        let members = [self.members(group), self.members(other)];
        let [a, b] = members.each_ref().map(|members| Flows::new(self, members, Level::Group));
        compute(Level::Pair, |formula| match formula {
            Formula::Pair(f) => Some(f(&a, &b)),
            _ => None,
        })
    }

    /// The codepoints with which packets arrived at a link.
    pub fn classes(&self, link: usize) -> impl Iterator<Item = Ecn> + '_ {
        let arrived = self.links.get(link).map_or([0; 4], |link| link.sum.arrived);
        weir_base::CODEPOINTS.into_iter().filter(move |&class| arrived[class as usize] > 0)
    }

    fn queue(&self, link: usize, class: Option<Ecn>) -> Queue<'_> {
        Queue { view: self, link, class }
    }
}
