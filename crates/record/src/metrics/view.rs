//! A run in a window of time: the records in the window, added up once, so that each metric is a formula over sums.
//!
//! The window runs from the end of the warm-up to the end of the run, in whole sample periods: it begins with the first
//! period that begins at or after the warm-up. The active time of a flow runs from the later of the window's begin and its
//! own start to the earlier of the window's end and its completion. If the flow was stopped and did not complete, it ends
//! with the stop, or with the arrival of its last data if that is later: data under way at the stop arrives after it.

use super::SETTLING_TOLERANCE;
use super::state_values::StateTable;
use super::transit::TransitSums;
use super::value::mbps;
use super::window::Window;
use crate::info::{RunInfo, Sharing, WindowInfo};
use crate::records::Records;
use crate::states::States;
use crate::types::{FlowEventKind, FlowSample, LinkSample, MessageFate, MessageKind};
use std::borrow::Cow;
use weir_base::{Ecn, Histogram, Span, Time};

/// The transport of groups whose traffic a command makes.
const COMMAND: &str = "command";

/// A run's records within a window, added up.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) info: &'a RunInfo,
    /// The warm-up that was asked for; zero for a named part.
    pub(crate) warmup: Span,
    pub(super) window: Window,
    /// Whether the window is a named part of the run.
    pub(super) is_part: bool,
    /// The window's whole seconds.
    pub(super) seconds: Vec<Window>,
    /// Greatest distance of settled one-second means from their final value, as a share of that value.
    pub(super) tolerance: f64,
    pub(crate) links: Vec<LinkView>,
    pub(super) flows: Vec<FlowView>,
    /// The recorded states of each station.
    pub(super) stations: Vec<StateTable>,
    /// RTTs of each group.
    pub(crate) rtts: Vec<Histogram>,
    /// For each group and each second, the number of RTTs, and their sum in nanoseconds.
    pub(super) rtt_seconds: Vec<Vec<Sum>>,
    /// Bytes that the applications of all flows read.
    pub(super) read_bytes: u64,
    /// Whether the flows of any group are coordinated.
    pub(super) is_coordinated: bool,
    /// The ends of all sample periods of the run, and its start, ascending.
    pub(crate) bounds: Vec<Time>,
    /// The states in the records of the whole run.
    pub(crate) states: States,
}

/// The number of measured times, and their sum in nanoseconds.
pub(super) type Sum = (u64, u128);

/// A link in the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkView {
    pub(super) sum: LinkSample,
    pub(super) periods: u64,
    /// Sum of the backlogs at the ends of the periods.
    pub(super) backlog_packets: u64,
    /// Sojourn times by class.
    pub(crate) delay: [Histogram; 4],
    /// For each period in which packets left, by class: their number, and the sum of their sojourn times in nanoseconds.
    pub(super) delays: Vec<[Sum; 4]>,
    /// For each second of the window, by class: the same numbers.
    pub(super) seconds: Vec<[Sum; 4]>,
    /// The end of the last of `delays`' periods.
    last_delay: Time,
    /// The capacity in each sample period of the window, with the period's end, in Mbit/s.
    pub(super) capacities: Vec<(Time, f64)>,
    /// The end of its last sample period.
    last_sample: Time,
    /// The queue's recorded states.
    pub(super) states: StateTable,
}

/// A flow in the window.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowView {
    pub(super) sum: FlowSample,
    /// When it started.
    pub(super) started: Time,
    /// Its active time in the window; `None` if it was never active.
    pub(super) active: Option<(Time, Time)>,
    /// The time from start to completion, and when it completed, in or out of the window.
    pub(super) completed: Option<(Span, Time)>,
    /// When its first and its last packet of any kind reached the receiving host, in or out of the window.
    pub(super) arrivals: (Option<Time>, Option<Time>),
    /// When its last data reached the receiving host, in or out of the window.
    pub(super) last_data: Option<Time>,
    /// Whether it is known how much its application read; it is unknown for commands.
    pub(super) reads: bool,
    /// For each second of the window in which its application read: the second's index, and the bytes.
    pub(super) seconds: Vec<(usize, u64)>,
    /// For each second of the window in which data reached its receiving host: the second's index, and the IP bytes. Empty
    /// unless flows are coordinated: other metrics do not use it.
    pub(super) received: Vec<(usize, u64)>,
    /// For each sample period of the window in which its application read: the period's begin and end, and the bytes. Empty
    /// unless the window is a named part: other metrics do not use it.
    pub(super) periods: Vec<(Time, Time, u64)>,
    /// Bytes that its application read in the whole run.
    pub(super) read_in_all: u64,
    /// What an overlay did with its packets in the window; `None` if it carried none.
    pub(super) transits: Option<Box<TransitSums>>,
    /// Its messages in the window; `None` if there were none.
    pub(super) messages: Option<Box<MessageSums>>,
    /// Time-weighted mean of the congestion window, in segments.
    pub(super) cwnd: TimeMean,
    /// What nodes of an overlay decided about it.
    pub(super) decisions: Vec<super::admission::Decided>,
    /// The transport's recorded states.
    pub(super) states: StateTable,
    /// What limited it; `None` if its transport does not tell.
    pub(super) limited: Option<super::limited::Limited>,
    /// The transport's count of timeouts, and of spurious retransmissions.
    pub(super) timeouts: Total,
    pub(super) spurious: Total,
    /// Time of the flow's last transport sample.
    last_transport: Time,
}

/// The messages of a flow whose fate became known in the window.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageSums {
    /// How long those of each kind took that ended.
    pub(super) took: [Vec<Span>; MessageKind::ALL.len()],
    /// Number of those of each kind that met each fate.
    pub(super) fates: [[u64; MessageFate::ALL.len()]; MessageKind::ALL.len()],
    /// When each ensemble was whole whose last frame was this flow's.
    pub(super) ensembles: Vec<Time>,
    /// For each second of the window with frames: its index, the number of frames on time, and that of all frames.
    pub(super) seconds: Vec<(usize, u64, u64)>,
}

impl FlowView {
    /// The time from the first to the last packet's arrival at the receiving host, and when the flow completed. `None` if it did
    /// not complete.
    pub(super) fn transaction(&self) -> Option<(Span, Time)> {
        let ((_, at), (first, last)) = (self.completed?, self.arrivals);
        Some((last?.since(first?), at))
    }

    /// Data packets that were retransmitted in the window. `None` of a command in whose packets the taps saw no TCP: whatever
    /// transport it has does not tell.
    pub(super) fn retransmitted(&self) -> Option<u64> {
        let knows = self.reads || self.sum.rtt_count > 0 || self.sum.retransmitted > 0;
        knows.then_some(self.sum.retransmitted)
    }
}

/// A count since the start of a flow: its values at the window's begin, and at its end; `None` if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Total {
    begin: u64,
    end: Option<u64>,
}

impl Total {
    /// Takes the count at a time.
    fn add(&mut self, count: Option<u64>, at: Time, window: &Window) {
        if at <= window.from {
            self.begin = count.unwrap_or(0);
        }
        if at <= window.to {
            self.end = count.or(self.end);
        }
    }

    /// Its growth in the window; `None` if it is unknown.
    pub(super) fn grown(self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.begin))
    }
}

/// A mean in which each value is weighted by the time for which it held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimeMean {
    sum: f64,
    time: f64,
}

impl TimeMean {
    fn add(&mut self, value: f64, span: Span) {
        self.sum += value * span.as_secs_f64();
        self.time += span.as_secs_f64();
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.time > 0.0).then(|| self.sum / self.time)
    }
}

/// Adds bytes to those of a second, which is the last one so far or a new one.
fn add_in(seconds: &mut Vec<(usize, u64)>, second: usize, more: u64) {
    match seconds.last_mut() {
        Some((last, bytes)) if *last == second => *bytes += more,
        _ if more > 0 => seconds.push((second, more)),
        _ => {}
    }
}

fn add_to(sum: &mut Sum, (count, total): Sum) {
    *sum = (sum.0 + count, sum.1 + total);
}

impl<'a> View<'a> {
    /// The run after this warm-up. Records of links, flows or groups that the description does not have are left out.
    pub fn after(warmup: Span, info: &'a RunInfo, records: &Records) -> View<'a> {
        let bounds = Window::bounds(records);
        let window = Window::after(warmup, info, &bounds);
        View { warmup, ..View::of(window, bounds, None, info, records) }
    }

    /// A named part of the run.
    pub fn within(part: &WindowInfo, info: &'a RunInfo, records: &Records) -> View<'a> {
        let bounds = Window::bounds(records);
        let window = Window::between(part.from, part.to, &bounds);
        View::of(window, bounds, Some(part), info, records)
    }

    fn of(
        window: Window,
        bounds: Vec<Time>,
        part: Option<&WindowInfo>,
        info: &'a RunInfo,
        records: &Records,
    ) -> View<'a> {
        let seconds = window.seconds(&bounds);
        let link = LinkView { seconds: vec![Default::default(); seconds.len()], ..LinkView::default() };
        let mut view = View {
            info,
            warmup: Span::ZERO,
            window,
            is_part: part.is_some(),
            tolerance: part.map_or(SETTLING_TOLERANCE, |part| part.tolerance),
            links: vec![link; info.links.len()],
            flows: vec![FlowView::default(); info.flows.len()],
            stations: vec![StateTable::default(); info.stations.len()],
            rtts: vec![Histogram::new(); info.groups.len()],
            rtt_seconds: vec![vec![Sum::default(); seconds.len()]; info.groups.len()],
            read_bytes: 0,
            is_coordinated: info.groups.iter().any(|group| group.sharing == Some(Sharing::Coordinated)),
            seconds,
            bounds: Vec::new(),
            states: States::default(),
        };
        view.add_links(records, &bounds);
        view.add_flows(records, &bounds);
        let states = States::new(records);
        view.add_told(records, &states);
        view.add_limited(records);
        View { bounds, states, ..view }
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    fn add_links(&mut self, records: &Records, bounds: &[Time]) {
        for sample in &records.links {
            let Some(link) = self.links.get_mut(sample.link as usize) else { continue };
            let period = sample.at.since(std::mem::replace(&mut link.last_sample, sample.at));
            if !self.window.holds(sample.at) {
                continue;
            }
            if link.periods == 0 {
                link.capacities.reserve(bounds.len());
            }
            link.capacities.extend(mbps(sample.capacity.get(), period).map(|carries| (sample.at, carries)));
            link.sum.merge(sample);
            link.periods += 1;
            link.backlog_packets += u64::from(sample.backlog_packets);
        }
        for sample in records.delays.iter().filter(|sample| self.window.holds(sample.at)) {
            let Some(link) = self.links.get_mut(sample.link as usize) else { continue };
            sample.delay.add_to(&mut link.delay[sample.class as usize]);
            if link.delays.is_empty() || link.last_delay != sample.at {
                if link.delays.is_empty() {
                    link.delays.reserve(link.periods as usize);
                }
                link.delays.push(Default::default());
                link.last_delay = sample.at;
            }
            let sum = (sample.delay.count(), sample.delay.sum());
            if let Some(period) = link.delays.last_mut() {
                period[sample.class as usize] = sum;
            }
            if let Some(second) = link.seconds.get_mut(self.window.second(sample.at)) {
                add_to(&mut second[sample.class as usize], sum);
            }
        }
    }

    fn add_flows(&mut self, records: &Records, bounds: &[Time]) {
        let (mut begin, mut end) = (Time::ZERO, Time::ZERO);
        for sample in &records.flows {
            let Some(flow) = self.flows.get_mut(sample.flow as usize) else { continue };
            // Records are in the order of time. A flow may have no record of the period before: the bounds give the begin.
            if sample.at != end {
                end = sample.at;
                begin = bounds[..bounds.partition_point(|bound| *bound < end)]
                    .last()
                    .copied()
                    .unwrap_or(Time::ZERO);
            }
            flow.arrivals =
                (flow.arrivals.0.or(sample.first_packet), sample.last_arrival.or(flow.arrivals.1));
            flow.last_data = sample.last_data.or(flow.last_data);
            flow.read_in_all = flow.read_in_all.saturating_add(sample.read_bytes);
            if self.window.holds(sample.at) {
                flow.sum.merge(sample);
                self.read_bytes = self.read_bytes.saturating_add(sample.read_bytes);
                if self.is_part && sample.read_bytes > 0 {
                    flow.periods.push((begin, sample.at, sample.read_bytes));
                }
                let second = self.window.second(sample.at);
                add_in(&mut flow.seconds, second, sample.read_bytes);
                if self.is_coordinated {
                    add_in(&mut flow.received, second, sample.received_bytes);
                }
            }
        }
        for sample in records.rtts.iter().filter(|sample| self.window.holds(sample.at)) {
            if let Some(group) = self.rtts.get_mut(sample.group as usize) {
                sample.rtt.add_to(group);
                let seconds = &mut self.rtt_seconds[sample.group as usize];
                if let Some(second) = seconds.get_mut(self.window.second(sample.at)) {
                    add_to(second, (sample.rtt.count(), sample.rtt.sum()));
                }
            }
        }
        self.add_transits(records);
        self.add_decisions(records);
        self.add_life(records);
        self.add_transport(records);
        self.add_messages(records);
    }

    /// Sets the start, completion and active time of each flow.
    fn add_life(&mut self, records: &Records) {
        let mut started: Vec<Time> = self.info.flows.iter().map(|flow| Time::ZERO + flow.start).collect();
        for event in &records.events {
            let flow = event.flow as usize;
            match (event.kind, started.get_mut(flow)) {
                (FlowEventKind::Started, Some(started)) => *started = event.at,
                (FlowEventKind::Completed, Some(started)) => {
                    self.flows[flow].completed = Some((event.at.since(*started), event.at));
                }
                _ => {}
            }
        }
        for ((flow, info), started) in self.flows.iter_mut().zip(&self.info.flows).zip(started) {
            let stopped = |stop| flow.last_data.unwrap_or_default().max(Time::ZERO + stop);
            let end = flow.completed.map(|(_, at)| at).or(info.stop.map(stopped));
            flow.started = started;
            let from = started.max(self.window.from);
            let to = end.map_or(self.window.to, |end| end.min(self.window.to));
            flow.active = (from < to).then_some((from, to));
            let group = self.info.groups.get(info.group as usize);
            flow.reads = group.is_none_or(|group| *group.transport != *COMMAND);
        }
    }

    fn add_messages(&mut self, records: &Records) {
        for message in records.messages.iter().filter(|message| self.window.holds(message.at)) {
            let Some(flow) = self.flows.get_mut(message.flow as usize) else { continue };
            let sums = flow.messages.get_or_insert_default();
            sums.took[message.kind as usize].extend(message.took);
            sums.fates[message.kind as usize][message.fate as usize] += 1;
            if message.kind == MessageKind::Ensemble {
                sums.ensembles.push(message.at);
            }
            if message.kind == MessageKind::Frame {
                let second = self.window.second(message.at);
                if sums.seconds.last().is_none_or(|(last, ..)| *last != second) {
                    sums.seconds.push((second, 0, 0));
                }
                if let Some((_, on_time, frames)) = sums.seconds.last_mut() {
                    *on_time += u64::from(message.fate == MessageFate::Done);
                    *frames += 1;
                }
            }
        }
    }

    /// Adds transport samples; each holds for the time since the flow's sample before it.
    fn add_transport(&mut self, records: &Records) {
        for sample in &records.transport {
            let Some(flow) = self.flows.get_mut(sample.flow as usize) else { continue };
            flow.timeouts.add(sample.timeouts, sample.at, &self.window);
            flow.spurious.add(sample.spurious, sample.at, &self.window);
            if let (true, Some((from, _))) = (self.window.holds(sample.at), flow.active) {
                flow.cwnd.add(sample.cwnd, sample.at.since(flow.last_transport.max(from)));
            }
            flow.last_transport = sample.at;
        }
    }

    /// The indices of all flows of a group.
    pub(crate) fn members(&self, group: usize) -> Vec<usize> {
        let flows = self.info.flows.iter().enumerate();
        flows.filter(|(_, flow)| flow.group as usize == group).map(|(number, _)| number).collect()
    }

    /// Sojourn times at a link, of one class or of all.
    pub(crate) fn delay(&self, link: usize, class: Option<Ecn>) -> Cow<'_, Histogram> {
        let classes = &self.links[link].delay;
        match class {
            Some(class) => Cow::Borrowed(&classes[class as usize]),
            None => merged(classes),
        }
    }
}

/// Several histograms as one. If only one of them is not empty, as nearly always, it is not copied.
pub(super) fn merged<'h>(histograms: impl IntoIterator<Item = &'h Histogram>) -> Cow<'h, Histogram> {
    let mut counted = histograms.into_iter().filter(|histogram| histogram.count() > 0);
    let mut all = counted.next().map_or_else(Cow::default, Cow::Borrowed);
    counted.for_each(|histogram| all.to_mut().merge(histogram));
    all
}
