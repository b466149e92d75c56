//! How metrics are computed. A record is the sum of what happened to one subject in one sample period: a cell of a grid of subjects
//! and periods, and cells merge exactly. The first reductions take the merged cells of any span of time: those of the window
//! give a summary's value, those of each point a curve, their histogram a distribution. The others are functions over
//! the cells of the window, since they need the order of the cells or several subjects.

use super::harm::Harm;
use super::value::{Distribution, Value, percent};
use super::view::FlowView;
use super::{Level, Metric, View};
use crate::types::{FlowSample, LinkSample, MessageFate, MessageKind};
use std::borrow::Cow;
use std::cell::OnceCell;
use weir_base::{Ecn, Span};

/// How a metric is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reduction {
    /// From the sums of the packets at a link, or of those of one class.
    Packets(fn(&Packets<'_>) -> Value),
    /// The times that packets spent in a queue.
    Delays,
    /// From the sums of flows.
    Counts(fn(&Counts<'_>) -> Value),
    /// The RTTs of groups.
    Rtts,
    /// The mean of the flows' congestion windows.
    Windows,
    /// The times that flows took to complete.
    Completions,
    /// The times that messages of a kind took.
    Took(MessageKind),
    /// The share of messages of a kind that met this fate, in percent.
    Share(MessageKind, MessageFate),
    /// The estimates of the path's rate that a transport records as the metric's state.
    Estimates,
    /// The metric's state, divided by a number: the mean over flows and sample periods.
    StateMean { per: f64 },
    /// The metric's state, divided by a number: the mean over sample periods, added up over flows.
    StateSum { per: f64 },
    /// The growth of the state of this place among the metric's states, as a share of the growth of them all, in percent.
    GrowthShare(usize),
    /// From a queue, or one class in it.
    Queue(fn(&Queue<'_>) -> Value),
    /// From the values of a queue's own state; left out if undefined, since many queues record no state.
    State(fn(&Queue<'_>, &[f64]) -> Value),
    /// From some flows: one, a group's, or all.
    Flows(fn(&Flows<'_>) -> Value),
    /// From the messages of some flows' applications; left out if undefined, since most flows have none.
    Messages(fn(&Flows<'_>) -> Value),
    /// From the recorded state of some flows' transports; left out if undefined, since few transports record any.
    FlowStates(fn(&Flows<'_>, &[&str]) -> Value),
    /// From what an overlay did with some flows' packets; left out if undefined, since most flows are carried by none.
    Transits(fn(&Flows<'_>) -> Value),
    /// From some flows in a named part of the run; left out if undefined.
    InPart(fn(&Flows<'_>) -> Value),
    /// From some flows; left out if undefined, since most runs do not have what it is about.
    Special(fn(&Flows<'_>) -> Value),
    /// From the state of all stations; left out if undefined, since most runs have no such stations.
    Stations(fn(&View<'_>, &[&str]) -> Value),
    /// From two groups.
    Pair(fn(&Flows<'_>, &Flows<'_>) -> Value),
    /// From another run, in which the group is alone: computed when all runs of the lab are known.
    Alone(Harm),
}

impl Reduction {
    /// Whether every queue has a value, even if it is undefined.
    pub(super) const fn of_any_queue(&self) -> bool {
        matches!(self, Reduction::Packets(_) | Reduction::Delays | Reduction::Queue(_))
    }

    /// Whether the metric is never left out.
    pub(super) const fn always(&self) -> bool {
        use Reduction::{Completions, Counts, Flows, Pair, Rtts, Windows};
        self.of_any_queue() || matches!(self, Flows(_) | Counts(_) | Rtts | Windows | Completions | Pair(_))
    }

    /// Whether flows may have the metric even if they have no more than packets and a window: no messages, no recorded states, no overlay.
    pub(super) const fn of_plain_flows(&self) -> bool {
        use Reduction::{Completions, Counts, Flows, Rtts, Special, Stations, Windows};
        matches!(self, Flows(_) | Counts(_) | Rtts | Windows | Completions | Special(_) | Stations(_))
    }
}

/// The sums of the packets at a link, or of those of one class, in a span of time.
#[derive(Debug)]
pub(crate) struct Packets<'a> {
    pub(crate) sum: &'a LinkSample,
    pub(crate) class: Option<Ecn>,
    /// Length of the span.
    pub(crate) time: Span,
}

impl Packets<'_> {
    /// A counter by codepoint, of this class or of all.
    pub(super) fn count(&self, by_class: &[u64; 4]) -> u64 {
        self.class.map_or_else(|| by_class.iter().sum(), |class| by_class[class as usize])
    }

    /// Bytes sent, in or out of a class.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.count(&self.sum.sent_bytes)
    }

    /// Number of packets that the queue dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.count(&self.sum.dropped)
    }

    /// Number of packets that the queue marked.
    pub(super) fn marked(&self) -> u64 {
        self.count(&self.sum.marked)
    }

    /// Number of packets that left the queue or were dropped.
    pub(super) fn settled(&self) -> u64 {
        self.count(&self.sum.settled())
    }

    /// Number of these packets that were ECN-capable.
    pub(super) fn markable(&self) -> u64 {
        let [not_ect, ..] = self.sum.settled();
        match self.class {
            None => self.settled() - not_ect,
            Some(class) if class.is_capable() => self.settled(),
            Some(_) => 0,
        }
    }
}

/// The sums of some flows in a span of time.
#[derive(Debug)]
pub(crate) struct Counts<'a> {
    pub(crate) sum: Cow<'a, FlowSample>,
    /// Length of the span.
    pub(crate) time: Span,
    /// Bytes that their applications read, and IP bytes of their data packets that arrived, in all of the run.
    pub(crate) in_all: (u64, u64),
}

impl Counts<'_> {
    /// Bytes for applications that arrived in the span: the IP bytes of the data packets, less the share of headers and duplicates in
    /// all of the run. What was read in the span, if no packets were counted.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        let (read, arrived) = self.in_all;
        match arrived {
            0 => self.sum.read_bytes,
            _ => (u128::from(self.sum.received_bytes) * u128::from(read) / u128::from(arrived)) as u64,
        }
    }
}

/// A link's queue in a window, or one class in it.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) link: usize,
    pub(super) class: Option<Ecn>,
}

/// Some flows in a window.
#[derive(Debug)]
pub(crate) struct Flows<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) members: &'a [usize],
    pub(super) level: Level,
    /// Whether any of them has messages in the window.
    has_messages: bool,
    /// Whether the transport of any of them has recorded state that metrics use.
    has_states: bool,
    /// Whether an overlay has carried packets of any of them in the window.
    has_transits: bool,
    /// Their goodput in each second, computed when a metric first needs it.
    pub(super) goodputs_by_second: OnceCell<Vec<Option<f64>>>,
}

impl<'a> Flows<'a> {
    pub(crate) fn new(view: &'a View<'a>, members: &'a [usize], level: Level) -> Flows<'a> {
        let any = |has: fn(&FlowView) -> bool| members.iter().any(|&flow| has(&view.flows[flow]));
        let has_messages = any(|flow| flow.messages.is_some());
        let has_states = any(|flow| !flow.states.is_empty());
        let has_transits = any(|flow| flow.transits.is_some());
        let goodputs_by_second = OnceCell::new();
        Flows { view, members, level, has_messages, has_states, has_transits, goodputs_by_second }
    }

    /// Whether they have no more than packets and a window.
    pub(super) fn are_plain(&self) -> bool {
        !(self.has_messages || self.has_states || self.has_transits || self.view.is_part)
    }

    /// The sums of these flows in the window.
    fn counts(&self) -> Counts<'a> {
        let mut each = self.each().map(|flow| &flow.sum);
        let mut sum = each.next().map_or_else(Cow::default, Cow::Borrowed);
        each.for_each(|other| sum.to_mut().merge(other));
        let in_all = (sum.read_bytes, sum.received_bytes);
        Counts { sum, time: self.view.window.length(), in_all }
    }

    /// The values of which the metric is the distribution; empty if it is not one over flows or their messages.
    pub(crate) fn values(&self, metric: &Metric) -> Vec<f64> {
        match metric.reduction {
            Reduction::Completions => self.completed(|flow| flow.completed).map(|(_, took)| took).collect(),
            Reduction::Took(kind) => {
                let took = self.messages().flat_map(|sums| &sums.took[kind as usize]);
                took.map(|took| took.as_millis_f64()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Number of the messages of a kind that met a fate, as a share of all messages of the kind, in percent.
    fn share(&self, kind: MessageKind, fate: MessageFate) -> Option<f64> {
        let fates = self.messages().map(|sums| sums.fates[kind as usize]);
        let (part, whole) = fates.fold((0, 0), |(part, whole), fates| {
            (part + fates[fate as usize], whole + fates.iter().sum::<u64>())
        });
        percent(part, whole)
    }
}

/// A value unless it is undefined.
fn defined(value: impl Into<Value>) -> Option<Value> {
    Some(value.into()).filter(|value| *value != Value::Undefined)
}

/// A metric of some flows, or of the stations of the whole run. `None` if it is no such metric, or if it is left out when undefined.
pub(super) fn of_flows(metric: &Metric, flows: &Flows<'_>) -> Option<Value> {
    match metric.reduction {
        Reduction::Flows(f) => Some(f(flows)),
        Reduction::Counts(f) => Some(f(&flows.counts())),
        Reduction::Rtts => Some(Distribution::of_millis(&flows.rtts()).into()),
        Reduction::Windows => Some(flows.mean_cwnd().into()),
        Reduction::Completions => Some(flows.times(|flow| flow.completed)),
        Reduction::Took(_) | Reduction::Share(..) | Reduction::Messages(_) if !flows.has_messages => None,
        Reduction::Took(_) => defined(Distribution::of(flows.values(metric))),
        Reduction::Share(kind, fate) => defined(flows.share(kind, fate)),
        Reduction::Estimates
        | Reduction::StateMean { .. }
        | Reduction::StateSum { .. }
        | Reduction::GrowthShare(_)
        | Reduction::FlowStates(_)
            if !flows.has_states =>
        {
            None
        }
        Reduction::Transits(_) if !flows.has_transits => None,
        Reduction::InPart(_) if !flows.view.is_part => None,
        Reduction::Estimates => {
            defined(Distribution::of(flows.estimates(metric.states).map(|(estimate, _)| estimate)))
        }
        Reduction::StateMean { per } => defined(flows.mean_of(metric.states).map(|mean| mean / per)),
        Reduction::StateSum { per } => defined(flows.sum_of(metric.states).map(|sum| sum / per)),
        Reduction::GrowthShare(place) => defined(flows.growth_share(metric.states, place)),
        Reduction::FlowStates(f) => defined(f(flows, metric.states)),
        Reduction::Messages(f) | Reduction::Transits(f) | Reduction::InPart(f) | Reduction::Special(f) => {
            defined(f(flows))
        }
        Reduction::Stations(f) => defined(f(flows.view, metric.states)),
        Reduction::Packets(_)
        | Reduction::Delays
        | Reduction::Queue(_)
        | Reduction::State(_)
        | Reduction::Pair(_)
        | Reduction::Alone(_) => None,
    }
}

/// A metric of a queue. `None` if it is no metric of queues, or if it is left out when undefined.
pub(super) fn of_queue(metric: &Metric, queue: &Queue<'_>) -> Option<Value> {
    match metric.reduction {
        Reduction::Packets(f) => {
            let time = queue.view.window.length();
            Some(f(&Packets { sum: &queue.link().sum, class: queue.class, time }))
        }
        Reduction::Delays => Some(Distribution::of_millis(&queue.view.delay(queue.link, queue.class)).into()),
        Reduction::Queue(f) => Some(f(queue)),
        Reduction::State(f) => {
            let values = metric.states.iter().find_map(|name| queue.link().states.get(name))?;
            defined(f(queue, &values.within))
        }
        _ => None,
    }
}
