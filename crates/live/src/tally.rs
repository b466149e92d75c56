//! A recorder that only adds records up, for tests and the measurement of accuracy.

use std::collections::BTreeMap;
use std::fmt;
use weir_base::{Histogram, Rate, Span, Time};
use weir_plan::Run;
use weir_record::{
    Component, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Message, PacketRecord,
    Recorder, RttSample, StateSample, TransportSample,
};

/// Sums over a run, from the end of its warm-up on. Events, messages, states and `tcp_info` count from the start.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    warmup: Time,
    span: Span,
    names: Vec<String>,
    /// Sums of each flow.
    pub flows: Vec<FlowSums>,
    /// Sums of each link.
    pub links: Vec<LinkSums>,
    /// Latest state of each station.
    pub stations: Vec<BTreeMap<String, f64>>,
    /// Samples of `tcp_info`.
    pub transport_samples: u64,
    /// Time of the latest record.
    pub latest: Time,
    /// Whether records came out of order.
    pub disordered: bool,
}

/// Sums of a flow.
#[derive(Debug, Clone, Default)]
pub struct FlowSums {
    /// Counters added up.
    pub sum: FlowSample,
    /// Its requests and frames.
    pub messages: Vec<Message>,
    /// Its events, with their times.
    pub events: Vec<(Time, FlowEventKind)>,
    /// The congestion window of each `tcp_info`, in segments, with its time.
    pub windows: Vec<(Time, f64)>,
    /// The last `tcp_info`.
    pub last: TransportSample,
    /// The latest state of its controllers.
    pub state: BTreeMap<String, f64>,
}

/// Sums of a link.
#[derive(Debug, Clone, Default)]
pub struct LinkSums {
    /// IP bytes and overhead sent.
    pub sent_bytes: u64,
    /// Packets that reached the queue.
    pub arrived: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets marked by the queue.
    pub marked: u64,
    /// Packets lost by the link.
    pub lost: u64,
    /// Packets duplicated by the link.
    pub duplicated: u64,
    /// Packets damaged by the link.
    pub corrupted: u64,
    /// Sojourn times.
    pub delay: Histogram,
}

impl Tally {
    /// An empty tally of a run.
    pub fn new(run: &Run) -> Tally {
        Tally {
            warmup: Time::ZERO + run.warmup,
            span: run.duration.saturating_sub(run.warmup),
            names: run.flows.iter().map(|flow| flow.name.clone()).collect(),
            flows: vec![FlowSums::default(); run.flows.len()],
            links: vec![LinkSums::default(); run.network.links.len()],
            stations: vec![BTreeMap::new(); run.stations.len()],
            ..Tally::default()
        }
    }

    /// A flow's goodput.
    pub fn goodput(&self, flow: usize) -> Rate {
        Rate::from_bytes_in(weir_base::Bytes::new(self.flows[flow].sum.read_bytes), self.span)
    }

    /// A flow's IP throughput at its receiving host.
    pub fn throughput(&self, flow: usize) -> Rate {
        Rate::from_bytes_in(weir_base::Bytes::new(self.flows[flow].sum.received_bytes), self.span)
    }

    /// The time of a flow's first event of this kind; `None` if there is none.
    pub fn when(&self, flow: usize, kind: FlowEventKind) -> Option<Time> {
        self.flows[flow].events.iter().find(|(_, happened)| *happened == kind).map(|(at, _)| *at)
    }

    fn see(&mut self, at: Time) -> bool {
        self.disordered |= at < self.latest;
        self.latest = self.latest.max(at);
        at > self.warmup
    }
}

impl Recorder for Tally {
    fn link(&mut self, sample: &LinkSample) {
        if self.see(sample.at) {
            let sums = &mut self.links[sample.link as usize];
            sums.sent_bytes += sample.sent_bytes.iter().sum::<u64>();
            sums.arrived += sample.arrived.iter().sum::<u64>();
            sums.dropped += sample.dropped.iter().sum::<u64>();
            sums.marked += sample.marked.iter().sum::<u64>();
            sums.lost += sample.lost;
            sums.duplicated += sample.duplicated;
            sums.corrupted += sample.corrupted;
        }
    }
    fn delay(&mut self, sample: &DelaySample) {
        if self.see(sample.at) {
            self.links[sample.link as usize].delay.merge(&sample.delay);
        }
    }
    fn flow(&mut self, sample: &FlowSample) {
        if self.see(sample.at) {
            self.flows[sample.flow as usize].sum.merge(sample);
        }
    }
    fn rtt(&mut self, sample: &RttSample) {
        self.see(sample.at);
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.see(sample.at);
        self.transport_samples += 1;
        let flow = &mut self.flows[sample.flow as usize];
        flow.windows.push((sample.at, sample.cwnd));
        flow.last = *sample;
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        self.see(sample.at);
        let state = match sample.of {
            Component::Station(station) => &mut self.stations[station as usize],
            Component::Controller(flow) => &mut self.flows[flow as usize].state,
            Component::Queue(_) => return,
        };
        state.insert(sample.name.into(), sample.value);
    }
    fn event(&mut self, event: &FlowEvent) {
        self.see(event.at);
        self.flows[event.flow as usize].events.push((event.at, event.kind));
    }
    fn message(&mut self, message: &Message) {
        self.see(message.at);
        self.flows[message.flow as usize].messages.push(*message);
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.see(packet.at);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (flow, name)) in self.flows.iter().zip(&self.names).enumerate() {
            let rtt = flow.sum.rtt_sum as f64 / flow.sum.rtt_count.max(1) as f64 / 1e6;
            writeln!(
                f,
                "{name}: goodput {:.3} Mbit/s, throughput {:.3}, {} retransmitted, RTT {rtt:.3} ms ({} to {}), cwnd {}",
                self.goodput(index).mbit_per_sec(),
                self.throughput(index).mbit_per_sec(),
                flow.sum.retransmitted,
                flow.sum.rtt_min,
                flow.sum.rtt_max,
                flow.last.cwnd,
            )?;
        }
        for (index, link) in self.links.iter().enumerate().filter(|(_, link)| link.arrived > 0) {
            let rate = Rate::from_bytes_in(weir_base::Bytes::new(link.sent_bytes), self.span);
            writeln!(
                f,
                "link {index}: {:.3} Mbit/s, {} arrived, {} dropped, {} marked, {} lost, sojourn mean {} p99 {}",
                rate.mbit_per_sec(),
                link.arrived,
                link.dropped,
                link.marked,
                link.lost,
                link.delay.mean().unwrap_or_default(),
                link.delay.percentile(0.99).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}
