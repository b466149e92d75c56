//! Turns the fabric's counters into records once each sample period, for both engines.

use crate::capture::Capture;
use crate::ceiling::shaped;
use std::cell::OnceCell;
use std::sync::{Arc, Mutex};
use weir_base::{Bytes, FlowId, Rate, Time};
use weir_fabric::{Decided, Fabric, Observer, PacketEvent, StationCounters, Transits, Wire};
use weir_plan::Run;
use weir_record::{
    Component, DecisionRecord, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Message,
    MessageFate, MessageKind, PacketRecord, Recorder, RttSample, StateSample, TransitSample,
};
use weir_workload::{EnsembleRecord, FrameFate, FrameRecord, Notice};

/// What the hosts of a flow have counted since its start, which no tap can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostCounts {
    /// Bytes that the receiving application has read.
    pub read_bytes: u64,
    /// Data packets that the sending transport has retransmitted ([`weir_endpoint::Endpoint::retransmitted`]).
    pub retransmitted: u64,
}

/// Records the fabric's counters and those of the hosts at the end of each period.
pub struct Sampler {
    /// Links with records of their own, each with the rate of its shaper, if it has one.
    links: Vec<(usize, Option<Rate>)>,
    /// End of the last period.
    last: Time,
    /// For each flow, what was recorded of its hosts' counts until the end of the last period.
    flows: Vec<HostCounts>,
    groups: usize,
    stations: usize,
}

impl Sampler {
    /// A sampler for this run.
    pub fn new(run: &Run) -> Sampler {
        let paths = OnceCell::new();
        let links = run.instrumented_links().map(|(index, _)| (index, shaped(run, &paths, index))).collect();
        let flows = vec![HostCounts::default(); run.flows.len()];
        Sampler { links, last: Time::ZERO, flows, groups: run.groups.len(), stations: run.stations.len() }
    }

    /// Leaves out links whose records come from elsewhere.
    pub fn without(mut self, links: &[usize]) -> Sampler {
        self.links.retain(|(link, _)| !links.contains(link));
        self
    }

    /// Records the period that ends `now`. A flow that was idle in it gets no record: most of thousands of flows are idle in
    /// most periods. `counts` returns what the hosts of a flow have counted so far; it is asked where `has_moved` says that they may have
    /// counted anything in the period, or where a tap has.
    ///
    /// A transport counts a retransmission when it hands the packet over; the tap counts packets as they leave the host, after its
    /// jitter. So that the two counts are of the same packets, a period has no more retransmissions than packets that left in it; the
    /// rest are recorded when packets leave.
    pub fn sample<P: Wire>(
        &mut self,
        fabric: &mut Fabric<P>,
        now: Time,
        recorder: &mut dyn Recorder,
        has_moved: impl Fn(usize) -> bool,
        counts: impl Fn(usize) -> HostCounts,
    ) {
        fabric.settle(now);
        let period = now.since(std::mem::replace(&mut self.last, now));
        for &(link, shaper) in &self.links {
            sample_link(fabric, link, shaper.map(|rate| rate.bytes_in(period)), now, recorder);
        }
        for (flow, recorded) in self.flows.iter_mut().enumerate() {
            let counted = fabric.take_flow(flow);
            if counted.is_none() && !has_moved(flow) {
                continue;
            }
            let counts = counts(flow);
            let read_bytes = counts.read_bytes - recorded.read_bytes;
            if counted.is_some() || read_bytes > 0 {
                let mut counters = counted.unwrap_or_default();
                let left = counters.sent_packets - counters.retransmitted;
                let retransmitted = (counts.retransmitted - recorded.retransmitted).min(left);
                counters.retransmitted += retransmitted;
                recorded.retransmitted += retransmitted;
                recorded.read_bytes = counts.read_bytes;
                recorder.flow(&FlowSample { at: now, flow: flow as u32, counters, read_bytes });
            }
        }
        self.sample_transits(fabric, now, recorder);
        for group in 0..self.groups {
            let rtts = fabric.group_rtts(group);
            if rtts.count() > 0 {
                // The histogram is moved into the sample and back, not copied: it has thousands of buckets.
                let sample = RttSample { at: now, group: group as u32, rtt: std::mem::take(rtts) };
                recorder.rtt(&sample);
                *rtts = sample.rtt;
                rtts.clear();
            }
        }
        for station in 0..self.stations {
            sample_station(fabric, station, now, recorder);
        }
        self.sample_decisions(fabric, recorder);
    }

    /// Records what stations have decided about flows, in the order of time.
    fn sample_decisions<P: Wire>(&self, fabric: &mut Fabric<P>, recorder: &mut dyn Recorder) {
        let mut decided = Vec::new();
        (0..self.stations).for_each(|station| fabric.station_decided(station, &mut |one| decided.push(one)));
        decided.sort_by_key(|one| one.at);
        for Decided { at, flow: FlowId(flow), by, standing, rule, value, bound } in decided {
            recorder.decision(&DecisionRecord { at, flow, by, standing, rule, value, bound });
        }
    }

    /// Records what an overlay did with the packets of each flow.
    fn sample_transits<P: Wire>(&self, fabric: &mut Fabric<P>, now: Time, recorder: &mut dyn Recorder) {
        for flow in 0..self.flows.len().min(fabric.carried_flows()) {
            let Some(transits) = fabric.transits(flow) else { continue };
            let Transits { admitted, in_time, links, hops, times, waits } = std::mem::take(transits);
            let flow = flow as u32;
            let sample = TransitSample { at: now, flow, admitted, in_time, links, hops, times, waits };
            recorder.transit(&sample);
            // The histograms are moved into the sample and back, not copied.
            (transits.hops, transits.times, transits.waits) = (sample.hops, sample.times, sample.waits);
            transits.clear();
        }
    }
}

/// Records a station's counters and its own state as state samples. The counters count from the start of the run.
fn sample_station<P: Wire>(fabric: &Fabric<P>, number: usize, now: Time, recorder: &mut dyn Recorder) {
    let of = Component::Station(number as u32);
    let mut report = |name: &str, value| recorder.state(&StateSample { at: now, of, name, value });
    let StationCounters { packets, discarded, made, held } = fabric.station(number);
    report("seen_packets", packets as f64);
    report("discarded_packets", discarded as f64);
    report("made_packets", made as f64);
    report("held_packets", held as f64);
    fabric.station_state(number, &mut report);
    fabric.station_flow_state(number, &mut |FlowId(flow), name, value| {
        recorder.state(&StateSample { at: now, of: Component::Controller(flow), name, value });
    });
}

/// Records a link; `shaped` is what its shaper lets through in the period, if it has one.
fn sample_link<P: Wire>(
    fabric: &mut Fabric<P>,
    link: usize,
    shaped: Option<Bytes>,
    now: Time,
    recorder: &mut dyn Recorder,
) {
    let mut counters = fabric.take_link(link, now);
    if let Some(shaped) = shaped {
        // A link is as slow as its shaper, which may send more in a burst.
        let sent = Bytes::new(counters.sent_bytes.iter().sum());
        counters.capacity = counters.capacity.min(shaped.max(sent));
    }
    let backlog = fabric.backlog(link);
    let number = link as u32;
    recorder.link(&LinkSample {
        at: now,
        link: number,
        counters,
        backlog_packets: backlog.packets,
        backlog_bytes: backlog.bytes,
    });
    for (class, delay) in fabric.delays(link) {
        let sample = DelaySample { at: now, link: number, class, delay: std::mem::take(delay) };
        recorder.delay(&sample);
        *delay = sample.delay;
        delay.clear();
    }
    fabric.queue_state(link, now, &mut |name, value| {
        recorder.state(&StateSample { at: now, of: Component::Queue(number), name, value });
    });
}

/// Records an event or a message of a flow.
pub fn record_notice(recorder: &mut dyn Recorder, flow: usize, notice: &Notice, now: Time) {
    let number = flow as u32;
    let mut event = |kind| recorder.event(&FlowEvent { at: now, flow: number, kind });
    match notice {
        Notice::Started => event(FlowEventKind::Started),
        Notice::Opened => event(FlowEventKind::Opened),
        Notice::Completed => event(FlowEventKind::Completed),
        Notice::Failed(_) => event(FlowEventKind::Failed),
        Notice::Answered(request, took) => recorder.message(&Message {
            at: now,
            flow: number,
            kind: MessageKind::Request,
            number: *request,
            fate: MessageFate::Done,
            took: Some(*took),
        }),
        Notice::Frame(frame) => recorder.message(&frame_message(number, *frame, now)),
        Notice::Ensemble(record) => {
            let (kind, ensemble, took) = match *record {
                EnsembleRecord::Frame(ensemble, took) => (MessageKind::Part, ensemble, took),
                EnsembleRecord::Stall(ensemble, took) => (MessageKind::Stall, ensemble, took),
                EnsembleRecord::Whole(ensemble, took) => (MessageKind::Ensemble, ensemble, took),
            };
            let fate = MessageFate::Done;
            recorder.message(&Message {
                at: now,
                flow: number,
                kind,
                number: ensemble,
                fate,
                took: Some(took),
            });
        }
        Notice::Echo(echo) => recorder.message(&Message {
            at: now,
            flow: number,
            kind: MessageKind::Echo,
            number: echo.number.into(),
            fate: if echo.took.is_some() { MessageFate::Done } else { MessageFate::Lost },
            took: echo.took,
        }),
    }
}

/// The record of a frame whose fate has become known.
fn frame_message(flow: u32, frame: FrameRecord, now: Time) -> Message {
    let (fate, took) = match frame.fate {
        FrameFate::OnTime(took) => (MessageFate::Done, Some(took)),
        FrameFate::Late(took) => (MessageFate::Late, Some(took)),
        FrameFate::Lost => (MessageFate::Lost, None),
    };
    Message { at: now, flow, kind: MessageKind::Frame, number: frame.number.into(), fate, took }
}

/// Packet events at the links, kept until the next sample, for runs that record every packet.
#[derive(Clone, Default)]
pub struct PacketLog(Arc<Mutex<Vec<PacketRecord>>>);

impl PacketLog {
    /// Hands all packet events since the last call to the recorder.
    pub fn drain(&self, recorder: &mut dyn Recorder) {
        let mut packets = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        packets.drain(..).for_each(|packet| recorder.packet(&packet));
    }
}

impl<P: Wire> Observer<P> for PacketLog {
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time) {
        let FlowId(flow) = packet.flow();
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(PacketRecord {
            at: now,
            link: link as u32,
            flow,
            fate: event,
            length: packet.wire_length(),
            class: packet.class(),
            sojourn: now.since(packet.arrived()),
            sequence: packet.tcp().map(|tcp| tcp.sequence),
        });
    }
}

/// The observer of a run's packets: the packet log, the capture, or both. `None` if there is neither.
pub fn observer<P: Wire>(
    log: Option<PacketLog>,
    capture: Option<Capture>,
) -> Option<Box<dyn Observer<P> + Send>> {
    match (log, capture) {
        (Some(log), Some(capture)) => Some(Box::new(Both(log, capture))),
        (Some(log), None) => Some(Box::new(log)),
        (None, Some(capture)) => Some(Box::new(capture)),
        (None, None) => None,
    }
}

/// Two observers as one.
struct Both<A, B>(A, B);

impl<P, A: Observer<P>, B: Observer<P>> Observer<P> for Both<A, B> {
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time) {
        self.0.packet(link, packet, event, now);
        self.1.packet(link, packet, event, now);
    }
}
