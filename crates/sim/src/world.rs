//! The loop: whatever is due next, in the fabric or at a host, happens next.
//!
//! Two event queues stand side by side: the fabric's own, and the hosts' timers here. At the same nanosecond the fabric
//! comes first. A host's timer is pushed again only when its deadline moves forward; one that fires early looks at the
//! deadline and waits on.

use crate::flow::{Carrier, Flow, Request};
use crate::packet::{Pool, SimPacket, UDP_HEADER, Way};
use weir_base::{FlowId, Packet, Span, Time};
use weir_engine::{
    Audit, EngineError, Outcome, PacketLog, Sampler, Watch, fabric_config, frame_message, observer,
};
use weir_fabric::{Delivery, EventQueue, Fabric, Wire};
use weir_plan::Run;
use weir_record::{
    Component, FlowEvent, FlowEventKind, Message, MessageFate, MessageKind, Recorder, StateSample,
    TransportSample,
};
use weir_transport::tcp::Connection;

/// Controllers' internal states are recorded for the first so many flows: beyond that nobody looks at single ones, and the
/// records would dwarf all others.
const FLOWS_WITH_STATE: usize = 64;

/// A threshold of more segments than this stands for none (Linux `TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// After so many events, and at each sample, the run tells its progress and looks whether it is to stop: some milliseconds.
const EVENTS_BETWEEN_LOOKS: u32 = 1 << 14;

/// Timers of a flow: the sender's, the receiver's and the application's.
const SENDER: usize = 0;
const RECEIVER: usize = 1;
const APPLICATION: usize = 2;
const TIMERS: usize = 3;

pub(crate) struct World<'a> {
    run: &'a Run,
    recorder: &'a mut dyn Recorder,
    fabric: Fabric<SimPacket>,
    pool: Pool,
    flows: Vec<Flow>,
    /// The numbers of the flows that send frames.
    of_frames: Vec<usize>,
    timers: EventQueue,
    /// For each timer, the time for which it is in the queue; [`Time::NEVER`] when it is not.
    armed: Vec<Time>,
}

/// Whether this run can be simulated.
pub(crate) fn check(run: &Run) -> Result<(), EngineError> {
    weir_engine::check_traces(run)?;
    let horizon = EventQueue::new(run.flows.len() * TIMERS + 1).horizon();
    let unable = |what: String, help: &str| Err(EngineError::Unable { what, help: help.into() });
    if let Some(group) = run.groups.iter().find(|group| group.workload.command().is_some()) {
        return unable(
            format!("group {} runs a command, and only the live engine has hosts to run it in", group.name),
            "use `--on live`, or give the group another workload",
        );
    }
    if Time::ZERO + run.duration > horizon {
        let (flows, most) = (run.flows.len(), horizon.since(Time::ZERO));
        return unable(
            format!("with {flows} flows a run may last at most {most}"),
            "shorten the run or take fewer flows",
        );
    }
    if run.network.nodes.len() > usize::from(u16::MAX) {
        return unable(
            format!("{} nodes are too many", run.network.nodes.len()),
            "a run may have 65,535 nodes",
        );
    }
    if run.network.mtu.get() > u64::from(u16::MAX) {
        return unable(
            format!("an MTU of {} is too large", run.network.mtu),
            "an IP packet has at most 65,535 bytes",
        );
    }
    Ok(())
}

impl<'a> World<'a> {
    pub(crate) fn new(run: &'a Run, recorder: &'a mut dyn Recorder) -> World<'a> {
        let flows: Vec<_> = (0..run.flows.len()).map(|number| Flow::new(run, number)).collect();
        let timers = flows.len() * TIMERS;
        World {
            run,
            recorder,
            fabric: Fabric::new(&fabric_config(run)),
            pool: Pool::default(),
            of_frames: (0..flows.len()).filter(|flow| flows[*flow].frames.is_some()).collect(),
            flows,
            timers: EventQueue::new(timers + 1),
            armed: vec![Time::NEVER; timers],
        }
    }

    pub(crate) fn run(mut self, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        let log = self.run.packets.then(PacketLog::default);
        if let Some(observer) = observer(log.clone(), watch.capture.clone()) {
            self.fabric.observe(observer);
        }
        let end = Time::ZERO + self.run.duration;
        let sampling = self.armed.len();
        let sampler = Sampler::new(self.run);
        let mut last_read = vec![0; self.flows.len()];
        for number in 0..self.flows.len() {
            self.arm(number, APPLICATION, self.flows[number].start);
        }
        self.timers.push((Time::ZERO + self.run.sample).min(end), sampling);
        let look = |now: Time| {
            (watch.progress)(now.as_secs_f64() / end.as_secs_f64());
            let cancelled = watch.cancel.load(std::sync::atomic::Ordering::Relaxed);
            if cancelled { Err(EngineError::Cancelled) } else { Ok(()) }
        };
        let mut events = 0;
        loop {
            let next = self.timers.next_time();
            events += 1;
            if events == EVENTS_BETWEEN_LOOKS {
                events = 0;
                look(next)?;
            }
            if let Some(delivery) = self.fabric.advance(next) {
                self.deliver(delivery);
                continue;
            }
            let Some((now, source)) = self.timers.peek() else { break };
            if source != sampling {
                self.timers.pop();
                self.fire(source, now);
                continue;
            }
            sampler.sample(&mut self.fabric, now, self.recorder, |flow| {
                let read = self.flows[flow].read;
                read - std::mem::replace(&mut last_read[flow], read)
            });
            self.sample_transports(now);
            self.settle_frames(now);
            if let Some(log) = &log {
                log.drain(self.recorder);
            }
            if now >= end {
                break;
            }
            self.timers.replace((now + self.run.sample).min(end), sampling);
            look(now)?;
        }
        Ok(self.outcome())
    }

    /// A packet has reached a host.
    #[inline]
    fn deliver(&mut self, delivery: Delivery<SimPacket>) {
        let Delivery { host, packet, at: now } = delivery;
        if packet.is_corrupt() {
            // The host's checksum tells, and nobody above it hears of the packet; the fabric has counted it.
            return self.pool.take_back(packet);
        }
        let FlowId(number) = packet.flow();
        let number = number as usize;
        let flow = &mut self.flows[number];
        let sending_end = host == flow.from;
        let Some(segment) = packet.segment() else {
            flow.read += u64::from(packet.wire_length() - flow.ip.header() - UDP_HEADER);
            let whole =
                flow.frames.as_mut().zip(packet.part()).and_then(|(frames, part)| frames.read(part, now));
            if let Some(frame) = whole {
                self.recorder.message(&frame_message(number, frame, now));
            }
            return self.pool.take_back(packet);
        };
        if let Carrier::Tcp(ends) = &mut flow.carrier {
            let end = if sending_end { ends.sender.as_mut() } else { Some(&mut ends.receiver) };
            if let Some(end) = end {
                end.on_segment(segment, packet.ecn(), now);
            }
        }
        self.pool.take_back(packet);
        if sending_end { self.after_sender(number, now) } else { self.after_receiver(number, now) }
    }

    /// A host's timer has fired.
    fn fire(&mut self, source: usize, now: Time) {
        let (number, which) = (source / TIMERS, source % TIMERS);
        if self.armed[source] != now {
            return;
        }
        self.armed[source] = Time::NEVER;
        match which {
            APPLICATION => self.application(number, now),
            _ => {
                let Carrier::Tcp(ends) = &mut self.flows[number].carrier else { return };
                let connection =
                    if which == SENDER { ends.sender.as_mut() } else { Some(&mut ends.receiver) };
                let Some(connection) = connection else { return };
                let due = connection.next_timer();
                if due > now {
                    return self.arm(number, which, due);
                }
                connection.on_timer(now);
                if which == SENDER {
                    self.after_sender(number, now)
                } else {
                    self.after_receiver(number, now)
                }
            }
        }
    }

    fn application(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        if flow.is_to_start() {
            flow.begin(self.run, number);
            self.recorder.event(&FlowEvent { at: now, flow: number as u32, kind: FlowEventKind::Started });
        }
        let (from, to, ip) = (flow.from, flow.to, flow.ip);
        let udp = match flow.carrier {
            Carrier::Udp { ecn, exact } => Some((ecn, exact)),
            Carrier::Tcp(_) | Carrier::Idle => None,
        };
        let (fabric, pool) = (&mut self.fabric, &mut self.pool);
        flow.woken(now, &mut |request| {
            let (Some((ecn, exact)), Request::Datagram(length, part)) = (udp, request) else { return };
            let packet = pool.udp(length, part, ecn, Way { flow: number, from, to, ip });
            if exact { fabric.inject_exact(from, packet, now) } else { fabric.inject(from, packet, now) }
        });
        let wake = flow.wake;
        self.arm(number, APPLICATION, wake);
        if udp.is_none() {
            self.after_sender(number, now);
            if self.flows[number].asks() {
                self.after_receiver(number, now);
            }
        }
    }

    /// The sending end has moved: the application may go on, segments may leave, the timer may have moved.
    #[inline]
    fn after_sender(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        let was_waking = flow.wake;
        flow.moved(now, &mut |_| {});
        let wake = flow.wake;
        let Carrier::Tcp(ends) = &mut flow.carrier else { return };
        let Some(sender) = &mut ends.sender else { return };
        let way = Way { flow: number, from: flow.from, to: flow.to, ip: flow.ip };
        send_all(sender, &mut self.fabric, &mut self.pool, way, now);
        let due = sender.next_timer();
        let counts = sender.counts();
        if counts != flow.seen {
            let kinds = [FlowEventKind::Timeout, FlowEventKind::Recovery, FlowEventKind::Undo];
            for (kind, (count, seen)) in kinds.into_iter().zip(counts.iter().zip(flow.seen)) {
                if *count > seen {
                    self.recorder.event(&FlowEvent { at: now, flow: number as u32, kind });
                }
            }
            flow.seen = counts;
        }
        flow.give_back();
        self.arm(number, SENDER, due);
        if wake != was_waking {
            self.arm(number, APPLICATION, wake);
        }
    }

    /// The receiving end has moved: its application reads, acknowledgements may leave.
    #[inline]
    fn after_receiver(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        let asks = flow.asks();
        let Carrier::Tcp(ends) = &mut flow.carrier else { return };
        let read = ends.receiver.take_read();
        flow.read += read;
        if asks {
            return self.after_client(number, read, now);
        }
        if !ends.receiver.is_quiet() {
            let way = Way { flow: number, from: flow.to, to: flow.from, ip: flow.ip };
            send_all(&mut ends.receiver, &mut self.fabric, &mut self.pool, way, now);
        }
        let due = ends.receiver.next_timer();
        if ends.receiver.finished() && !flow.completed {
            self.complete(number, now);
        }
        self.flows[number].give_back();
        self.arm(number, RECEIVER, due);
    }

    /// The client at the receiving end has moved, and has read so many bytes more: it may ask again, segments may leave.
    fn after_client(&mut self, number: usize, read: u64, now: Time) {
        let (flow, recorder) = (&mut self.flows[number], &mut *self.recorder);
        let was_waking = flow.wake;
        flow.asked(read, now, &mut |request| {
            let Request::Answered(request, took) = request else { return };
            recorder.message(&Message {
                at: now,
                flow: number as u32,
                kind: MessageKind::Request,
                number: request,
                fate: MessageFate::Done,
                took: Some(took),
            });
        });
        let wake = flow.wake;
        let way = Way { flow: number, from: flow.to, to: flow.from, ip: flow.ip };
        let Carrier::Tcp(ends) = &mut flow.carrier else { return };
        send_all(&mut ends.receiver, &mut self.fabric, &mut self.pool, way, now);
        let due = ends.receiver.next_timer();
        if flow.has_all_it_asked_for() && !flow.completed {
            self.complete(number, now);
        }
        self.arm(number, RECEIVER, due);
        if wake != was_waking {
            self.arm(number, APPLICATION, wake);
        }
    }

    /// All that the sender had has arrived: the receiver closes too, where it has not yet.
    #[cold]
    fn complete(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        flow.completed = true;
        if let Carrier::Tcp(ends) = &mut flow.carrier {
            let way = Way { flow: number, from: flow.to, to: flow.from, ip: flow.ip };
            ends.receiver.close();
            send_all(&mut ends.receiver, &mut self.fabric, &mut self.pool, way, now);
        }
        self.recorder.event(&FlowEvent { at: now, flow: number as u32, kind: FlowEventKind::Completed });
    }

    /// Makes sure that a timer fires at `due` or before.
    #[inline]
    fn arm(&mut self, number: usize, which: usize, due: Time) {
        let source = number * TIMERS + which;
        if due < self.armed[source] {
            self.armed[source] = due;
            self.timers.push(due, source);
        }
    }

    fn settle_frames(&mut self, now: Time) {
        for &number in &self.of_frames {
            let recorder = &mut *self.recorder;
            if let Some(frames) = &mut self.flows[number].frames {
                frames.settle(now, |frame| recorder.message(&frame_message(number, frame, now)));
            }
        }
    }

    fn sample_transports(&mut self, now: Time) {
        for (number, flow) in
            self.flows.iter().enumerate().filter(|(_, flow)| !(flow.drawn && flow.completed))
        {
            let Carrier::Tcp(ends) = &flow.carrier else { continue };
            let Some((sender, info)) = ends.sender.as_ref().and_then(|sender| Some((sender, sender.info()?)))
            else {
                continue;
            };
            let (flow, drawn) = (number as u32, flow.drawn);
            self.recorder.transport(&TransportSample {
                at: now,
                flow,
                cwnd: info.cwnd.into(),
                ssthresh: info
                    .ssthresh
                    .filter(|segments| *segments < NO_THRESHOLD)
                    .map(|segments| segments as f64),
                in_flight: info.in_flight.into(),
                srtt: info.srtt.unwrap_or_default(),
                min_rtt: info.min_rtt.unwrap_or_default(),
                rto: info.rto,
                pacing_rate: info.pacing_rate,
                delivery_rate: info.delivery_rate,
                retransmissions: info.retransmitted,
                timeouts: Some(info.timeouts),
            });
            if let Some(controller) = sender.controller().filter(|_| number < FLOWS_WITH_STATE && !drawn) {
                let recorder = &mut *self.recorder;
                controller.state(&mut |name, value| {
                    recorder.state(&StateSample { at: now, of: Component::Controller(flow), name, value });
                });
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let totals = self.fabric.totals();
        let audit = Audit {
            sent: totals.sent,
            duplicated: totals.duplicated,
            delivered: totals.delivered,
            corrupted: totals.corrupted,
            dropped: totals.dropped,
            lost: totals.lost,
            in_flight: totals.in_flight,
            leaked: totals.unroutable,
        };
        let mut outcome = Outcome { audit, ..Outcome::default() };
        if !audit.balances() {
            outcome.spoiled.push(format!("packets do not add up: {audit:?}"));
        }
        if self.run.duration < self.run.warmup + Span::from_secs(1) {
            outcome.warnings.push("less than a second is left after the warm-up".into());
        }
        outcome
    }
}

/// Hands every segment that a connection wants to send to the fabric.
#[inline]
fn send_all(end: &mut Connection, fabric: &mut Fabric<SimPacket>, pool: &mut Pool, way: Way, now: Time) {
    while let Some(ecn) = end.transmit_into(pool.segment(), now) {
        fabric.inject(way.from, pool.tcp(ecn, way), now);
    }
}
