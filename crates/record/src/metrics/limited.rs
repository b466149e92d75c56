//! What limits flows, in shares of their time: the application, the receiver's window, the send buffer, the path, the pacer, or the
//! congestion window. Sum of all six: 100 %. They exist for TCP, whose ends tell for how long each of the first three held them back,
//! as `tcp_info` does in Linux (`enum tcp_chrono` of include/linux/tcp.h). The rest of a sample period counts for the path if a link on
//! it was full, else for the pacer if the congestion window had room, else for that window.

use super::state_values::StateValues;
use super::value::{Value, ratio};
use super::{Domain, Flows, Level, Metric, Reduction, View};
use crate::records::Records;
use weir_base::Time;

/// The recorded states: how long the sender had data, in all; how long of that the receiver's window and the send buffer held it back;
/// and whether the application had too little data at the end of the period. What is 0 is not recorded, except for the first.
pub const STATES: [&str; 4] = ["busy_ms", "rwnd_limited_ms", "sndbuf_limited_ms", "app_limited"];

/// A link that sent this share of its capacity in a sample period was full in it.
const FULL: f64 = 0.95;

/// Times of a flow in the window, in milliseconds, by what limited it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Limited {
    times: [f64; 6],
}

const APPLICATION: usize = 0;
const RECEIVE_WINDOW: usize = 1;
const SEND_BUFFER: usize = 2;
const PATH: usize = 3;
const PACING: usize = 4;
const CONGESTION_WINDOW: usize = 5;

/// A transport's state at the end of a sample period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampled {
    at: Time,
    /// Whether it paces, and its congestion window has room for a segment.
    has_room: bool,
}

/// The growth of a counter from one value to the next, where it was recorded only while it was above 0.
struct Counter<'t> {
    told: Option<&'t StateValues>,
    next: usize,
    last: f64,
}

impl<'t> Counter<'t> {
    fn new(told: Option<&'t StateValues>) -> Counter<'t> {
        Counter { told, next: 0, last: told.map_or(0.0, |told| told.before) }
    }

    /// Its value at this time, if it was recorded then.
    fn value(&mut self, at: Time) -> Option<f64> {
        let told = self.told?;
        let value = told.at.get(self.next).filter(|known| **known == at).map(|_| told.within[self.next])?;
        self.next += 1;
        Some(value)
    }

    fn grown(&mut self, at: Time) -> f64 {
        let Some(value) = self.value(at) else { return 0.0 };
        (value - std::mem::replace(&mut self.last, value)).max(0.0)
    }
}

impl View<'_> {
    /// Sets what limited each flow whose transport tells of it.
    pub(super) fn add_limited(&mut self, records: &Records) {
        let tells =
            |flow: usize| self.flows.get(flow).is_some_and(|flow| flow.states.get(STATES[0]).is_some());
        if !(0..self.flows.len()).any(tells) {
            return;
        }
        let mut sampled: Vec<Vec<Sampled>> = vec![vec![]; self.flows.len()];
        for sample in records.transport.iter().filter(|sample| tells(sample.flow as usize)) {
            let has_room = sample.pacing_rate.is_some() && sample.in_flight + 1.0 < sample.cwnd;
            sampled[sample.flow as usize].push(Sampled { at: sample.at, has_room });
        }
        let full = self.full_periods(records);
        for (flow, sampled) in sampled.iter().enumerate().filter(|(_, sampled)| !sampled.is_empty()) {
            let group = self.info.flows[flow].group;
            let crossed = (0..full.len()).filter(|link| self.info.links[*link].groups.contains(&group));
            let crossed: Vec<&[Time]> = crossed.map(|link| full[link].as_slice()).collect();
            let limited = self.limited(flow, sampled, &crossed);
            self.flows[flow].limited = limited;
        }
    }

    /// For each link the ends of the sample periods in which it was full, ascending.
    fn full_periods(&self, records: &Records) -> Vec<Vec<Time>> {
        let mut full: Vec<Vec<Time>> = vec![vec![]; self.info.links.len()];
        for sample in records.links.iter().filter(|sample| self.window.holds(sample.at)) {
            let sent: u64 = sample.sent_bytes.iter().sum();
            let is_full = sent > 0 && sent as f64 >= FULL * sample.capacity.get() as f64;
            let link = sample.link as usize;
            // A link without a rate is never full.
            if is_full && self.info.links.get(link).is_some_and(|about| about.rate.is_some()) {
                full[link].push(sample.at);
            }
        }
        full
    }

    /// The times of a flow between the first and the last of its samples in the window; `None` if there are fewer than two.
    fn limited(&self, flow: usize, sampled: &[Sampled], crossed: &[&[Time]]) -> Option<Limited> {
        let of = &self.flows[flow];
        let (_, end) = of.active?;
        let counters = STATES.map(|name| of.states.get(name));
        let [mut busy, mut receive, mut buffer, mut starved] = counters.map(Counter::new);
        let mut limited = Limited::default();
        let mut before: Option<Time> = None;
        let mut samples = sampled.iter().peekable();
        for &at in &counters[0]?.at {
            let times = [busy.grown(at), receive.grown(at), buffer.grown(at)];
            let starved = starved.value(at).is_some_and(|flag| flag > 0.0);
            while samples.next_if(|sample| sample.at < at).is_some() {}
            let has_room = samples.peek().is_some_and(|sample| sample.at == at && sample.has_room);
            let Some(from) = before.replace(at).filter(|from| *from < end) else { continue };
            let is_full = crossed.iter().any(|full| full.binary_search(&at).is_ok());
            limited.add(at.since(from).as_millis_f64(), times, starved, is_full, has_room);
        }
        Some(limited).filter(|limited| limited.times.iter().sum::<f64>() > 0.0)
    }
}

impl Limited {
    /// Adds a sample period of this length, in which the sender had data and was held back for these times.
    fn add(
        &mut self,
        length: f64,
        [busy, receive, buffer]: [f64; 3],
        starved: bool,
        is_full: bool,
        has_room: bool,
    ) {
        let busy = busy.min(length);
        let receive = receive.min(busy);
        let buffer = buffer.min(busy - receive);
        let rest = match (starved, is_full, has_room) {
            (true, ..) => APPLICATION,
            (_, true, _) => PATH,
            (.., true) => PACING,
            _ => CONGESTION_WINDOW,
        };
        self.times[APPLICATION] += length - busy;
        self.times[RECEIVE_WINDOW] += receive;
        self.times[SEND_BUFFER] += buffer;
        self.times[rest] += busy - receive - buffer;
    }
}

impl Flows<'_> {
    /// The share of their time in which flows were limited by this, in percent.
    fn limited(&self, what: usize) -> Value {
        let all = self.each().filter_map(|flow| flow.limited);
        let (own, sum) = all.fold((0.0, 0.0), |(own, sum), limited| {
            (own + limited.times[what], sum + limited.times.iter().sum::<f64>())
        });
        Value::from(ratio(100.0 * own, sum))
    }
}

const OF: &[Level] = &[Level::Group, Level::Flow];
const SOURCE: &str = "tcp_info: tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited, tcpi_delivery_rate_app_limited (include/uapi/linux/tcp.h), read once a sample period";

family! {
    BY_APPLICATION {
        name: "limited_by_application_percent",
        title: "Limited by the application",
        unit: "%",
        of: OF,
        definition: "Time in which the sender had no data to send and none in flight, or in which the application supplied less than the path would have carried, as a share of the flow's time in the window.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(APPLICATION)),
    }

    BY_RECEIVE_WINDOW {
        name: "limited_by_receive_window_percent",
        title: "Limited by the receive window",
        unit: "%",
        of: OF,
        definition: "Time in which the next segment did not fit into the receiver's window, as a share of the flow's time in the window.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(RECEIVE_WINDOW)),
    }

    BY_SEND_BUFFER {
        name: "limited_by_send_buffer_percent",
        title: "Limited by the send buffer",
        unit: "%",
        of: OF,
        definition: "Time in which the application waited for room in the send buffer while the congestion window had some, as a share of the flow's time in the window.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(SEND_BUFFER)),
    }

    BY_PATH {
        name: "limited_by_path_percent",
        title: "Limited by the path",
        unit: "%",
        of: OF,
        definition: "Time in none of these states in sample periods in which a link on the data's route sent 95 % of its capacity or more, as a share of the flow's time in the window.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(PATH)),
    }

    BY_PACING {
        name: "limited_by_pacing_percent",
        title: "Limited by pacing",
        unit: "%",
        of: OF,
        definition: "Time in none of these states in sample periods at whose end a sender with a pacing rate had room for a segment in its congestion window, as a share of the flow's time in the window.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(PACING)),
    }

    BY_CONGESTION_WINDOW {
        name: "limited_by_congestion_window_percent",
        title: "Limited by the congestion window",
        unit: "%",
        of: OF,
        definition: "The rest of the flow's time in the window: the congestion window was full though no link on the route was.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &STATES,
        reduction: Reduction::FlowStates(|f, _| f.limited(CONGESTION_WINDOW)),
    }
}

/// All of them, in the order in which they are told.
pub const ALL: [Metric; 6] =
    [BY_PATH, BY_CONGESTION_WINDOW, BY_PACING, BY_RECEIVE_WINDOW, BY_SEND_BUFFER, BY_APPLICATION];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSummary;
    use crate::info::{FlowInfo, GroupInfo, LinkInfo, RunInfo};
    use crate::types::{Component, FlowSample, LinkSample, Recorder, StateSample, TransportSample};
    use weir_base::{Bytes, Rate, Span};
    use weir_fabric::LinkCounters;

    /// A second in periods of 100 ms. The link is full in the first five. Then the receiver's window holds the sender back for 30 ms of
    /// each period, except in the last two: in the ninth it has nothing to send, in the tenth it paces.
    fn run() -> (RunInfo, Records) {
        let info = RunInfo {
            duration: Span::from_secs(1),
            sample: Span::from_millis(100),
            links: vec![LinkInfo {
                instrumented: true,
                rate: Some(Rate::from_mbit_per_sec(1)),
                groups: vec![0],
                ..LinkInfo::default()
            }],
            groups: vec![GroupInfo { name: "a".into(), ..GroupInfo::default() }],
            flows: vec![FlowInfo::default()],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        let (mut busy, mut receive) = (0.0, 0.0);
        for period in 0..=10u64 {
            let at = Time::ZERO + Span::from_millis(100 * period);
            if period > 0 {
                let sent = if period <= 5 { 99 } else { 50 };
                let counters = LinkCounters {
                    capacity: Bytes::new(100),
                    sent_bytes: [sent, 0, 0, 0],
                    ..LinkCounters::default()
                };
                records.link(&LinkSample { at, counters, ..LinkSample::default() });
                records.flow(&FlowSample { at, read_bytes: 1, ..FlowSample::default() });
            }
            busy += if [0, 9].contains(&period) { 0.0 } else { 100.0 };
            receive += if (6..=8).contains(&period) { 30.0 } else { 0.0 };
            let pacing_rate = (period == 10).then(|| Rate::from_mbit_per_sec(1));
            records.transport(&TransportSample {
                at,
                cwnd: 10.0,
                in_flight: 5.0,
                pacing_rate,
                ..TransportSample::default()
            });
            for (name, value) in STATES
                .into_iter()
                .zip([busy, receive])
                .filter(|(name, value)| *name == STATES[0] || *value > 0.0)
            {
                records.state(&StateSample { at, of: Component::Controller(0), name, value });
            }
        }
        (info, records)
    }

    #[test]
    fn the_time_of_a_flow_is_shared_among_what_limited_it() {
        let (info, records) = run();
        let summary = RunSummary::new(&info, &records, None);
        let of = |metric: &Metric| summary.flows[0].metrics.number(metric).unwrap();
        // The first sample at the window's begin is none of it: nine periods from 100 ms on, of which four are full.
        let shares = ALL.each_ref().map(of);
        let parts = [400.0, 210.0, 100.0, 90.0, 0.0, 100.0].map(|part: f64| part / 9.0);
        for (share, part) in shares.iter().zip(parts) {
            assert!((share - part).abs() < 1e-3, "{shares:?}");
        }
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-3);
        assert_eq!(summary.groups[0].metrics.number(&BY_PATH), summary.flows[0].metrics.number(&BY_PATH));
    }

    #[test]
    fn flows_whose_transport_does_not_tell_have_no_shares() {
        let (info, mut records) = run();
        records.states.clear();
        let summary = RunSummary::new(&info, &records, None);
        assert!(summary.flows[0].metrics.iter().all(|(name, _)| !name.starts_with("limited_by_")));
    }
}
