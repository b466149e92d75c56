//! The event loop: it handles the next event, in the fabric or at a host.
//!
//! Two event queues stand side by side: the fabric's own, and the hosts' timers here. At the same nanosecond the fabric comes
//! first. A host's timer is pushed again only when its deadline moves to an earlier time; one that fires early reads the deadline
//! and is pushed again.

mod bounds;
mod sampling;
mod shared;
mod turn;

use crate::flow::{APPLICATION, Ends, Flow, Outlet, TIMERS};
use crate::packet::{Pool, SimPacket};
use bounds::{Bounds, MOST_IN_ONE_TURN};
use std::ops::Range;
use turn::{News, Turn, transmit, turn};
use weir_base::{FlowId, Packet, Time};
use weir_endpoint::Endpoint;
use weir_engine::{
    EngineError, HostCounts, Outcome, PacketLog, Sampler, Watch, observer, record_counts, record_notice,
};
use weir_fabric::{Delivery, EventQueue, Fabric, Wire};
use weir_plan::{Card, Run};
use weir_record::Recorder;
use weir_workload::{Application, End, Notice};

/// After this many events (some milliseconds) the run checks its bounds. Then, and at each sample, it reports its progress and checks
/// whether it is cancelled.
const EVENTS_BETWEEN_LOOKS: u32 = 1 << 14;

const SENDER: usize = End::Sender as usize;

pub(crate) struct World<'a> {
    run: &'a Run,
    recorder: &'a mut dyn Recorder,
    fabric: Fabric<SimPacket>,
    pool: Pool,
    flows: Vec<Flow>,
    driven: Vec<Driven>,
    /// The flows of each connection that several share.
    shared: Vec<Vec<usize>>,
    /// The first failure of an application: the run fails with it.
    trouble: Option<String>,
    /// Indices in `driven` of the applications that log messages.
    with_log: Vec<usize>,
    timers: EventQueue,
    bounds: Bounds,
    /// What an end has done without an end: the run fails with it.
    endless: Option<String>,
    /// Events until the loop looks again.
    before_look: u32,
}

/// An application, and the flows that it drives.
struct Driven {
    application: Application,
    flows: Range<usize>,
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
    Ok(())
}

impl<'a> World<'a> {
    pub(crate) fn new(run: &'a Run, recorder: &'a mut dyn Recorder) -> World<'a> {
        let applications = run.applications().into_iter();
        let driven: Vec<_> = applications.map(|(application, flows)| Driven { application, flows }).collect();
        let mut flows = Vec::with_capacity(run.flows.len());
        for (index, one) in driven.iter().enumerate() {
            flows.extend(one.flows.clone().map(|number| Flow::new(run, number, index)));
        }
        let shared = run.shared_connections();
        for (connection, sharing) in shared.iter().enumerate() {
            sharing.iter().for_each(|number| flows[*number].share(connection));
        }
        let mut world = World {
            run,
            recorder,
            fabric: weir_engine::fabric(run),
            pool: Pool::default(),
            trouble: None,
            with_log: (0..driven.len()).filter(|index| driven[*index].application.has_log()).collect(),
            timers: EventQueue::new(flows.len() * TIMERS + 1),
            flows,
            driven,
            shared,
            bounds: Bounds::default(),
            endless: None,
            before_look: EVENTS_BETWEEN_LOOKS,
        };
        (0..world.driven.len()).for_each(|application| world.learn_cares(application));
        world
    }

    /// Notes at which ends of its flows an application is to be asked from now on. Called after each call of the application.
    fn learn_cares(&mut self, application: usize) {
        let Driven { application, flows } = &self.driven[application];
        for (flow, at) in self.flows[flows.clone()].iter_mut().enumerate() {
            at.ask_at([End::Sender, End::Receiver].map(|end| application.cares(flow, end)));
        }
    }

    pub(crate) fn run(mut self, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        let log = self.run.packets.then(PacketLog::default);
        if let Some(observer) = observer(log.clone(), watch.capture.clone()) {
            self.fabric.observe(observer);
        }
        let end = Time::ZERO + self.run.duration;
        let sampling = self.flows.len() * TIMERS;
        let mut sampler = Sampler::new(self.run);
        for number in 0..self.flows.len() {
            self.arm(number, APPLICATION, Time::ZERO + self.run.flows[number].start);
        }
        self.timers.push((Time::ZERO + self.run.sample).min(end), sampling);
        let look = |now: Time| {
            (watch.progress)(now.as_secs_f64() / end.as_secs_f64());
            let cancelled = watch.cancel.load(std::sync::atomic::Ordering::Relaxed);
            if cancelled { Err(EngineError::Cancelled) } else { Ok(()) }
        };
        loop {
            let next = self.timers.next_time();
            self.before_look -= 1;
            if self.before_look == 0 {
                self.before_look = EVENTS_BETWEEN_LOOKS;
                self.check_bounds()?;
                look(next)?;
            }
            // A packet that finds its card idle leaves it at once: its sender is told before the fabric goes on.
            if let Some((flow, bytes, now)) = self.fabric.left_card() {
                self.left_card(flow, bytes, now);
                continue;
            }
            if let Some(delivery) = self.fabric.advance(next) {
                self.deliver(delivery);
                continue;
            }
            if self.fabric.has_left_card() {
                continue;
            }
            let Some((now, source)) = self.timers.peek() else { break };
            if source != sampling {
                self.timers.pop();
                self.fire(source, now);
                continue;
            }
            self.read_streams(now);
            if let Some(trouble) = self.trouble.take() {
                return Err(EngineError::Failed(trouble));
            }
            let has_moved = |flow: usize| self.flows[flow].has_moved();
            sampler.sample(&mut self.fabric, now, self.recorder, has_moved, |flow| {
                let at = &self.flows[flow];
                let Driven { application, flows } = &self.driven[at.application as usize];
                HostCounts {
                    read_bytes: application.read(flow - flows.start),
                    retransmitted: at.retransmitted(),
                }
            });
            self.sample_transports(now);
            self.settle_messages(now);
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
    #[inline(always)]
    fn deliver(&mut self, delivery: Delivery<SimPacket>) {
        let Delivery { host, packet, at: now } = delivery;
        if packet.is_corrupt() {
            // The host's checksum fails, so the packet is discarded; the fabric has counted it.
            return self.pool.take_back(packet);
        }
        let FlowId(number) = packet.flow();
        let number = number as usize;
        let flow = &mut self.flows[number];
        let end = flow.end_at(host);
        let alone = flow.is_alone(end);
        match flow.end_to_move(end) {
            // The path of nearly all packets: at an end of TCP on which nothing else depends, all is done with one look at the flow.
            Some((weir_transport::End::Tcp(tcp), outlet, told)) => {
                tcp.receive(packet.body(), packet.ecn(), now);
                self.pool.take_back(packet);
                if alone {
                    let turn = turn(tcp, end, told, Some(outlet), &mut self.pool, &mut self.fabric, now);
                    if flow.random_arrivals || !matches!(turn.news, News::Nothing) {
                        return self.end_turn(number, end, turn, now);
                    }
                    if flow.arms(end as usize, turn.due) {
                        self.timers.push(turn.due, number * TIMERS + end as usize);
                    }
                    return;
                }
            }
            Some((other, ..)) => {
                other.receive(packet.body(), packet.ecn(), now);
                if let Some(packet) = self.pool.keep(packet) {
                    self.fabric.keep(packet);
                }
            }
            None => self.pool.take_back(packet),
        }
        self.moved(number, end, now);
    }

    /// A host's timer has fired.
    fn fire(&mut self, source: usize, now: Time) {
        let (number, which) = (source / TIMERS, source % TIMERS);
        let armed = &mut self.flows[number].armed[which];
        if *armed != now {
            return;
        }
        *armed = Time::NEVER;
        let end = match which {
            APPLICATION => return self.woken(number, now),
            SENDER => End::Sender,
            _ => End::Receiver,
        };
        let Some(endpoint) = self.flows[number].end(end) else { return };
        let due = endpoint.next_timer();
        if due > now {
            return self.arm(number, which, due);
        }
        endpoint.on_timer(now);
        self.moved(number, end, now);
    }

    /// The time has come for which a flow's application waits.
    fn woken(&mut self, number: usize, now: Time) {
        let Driven { application, flows } = &self.driven[self.flows[number].application as usize];
        let flow = number - flows.start;
        let (all, starts) = (flows.clone(), application.is_to_start(flow));
        if starts {
            self.begin(number);
        }
        {
            let Driven { application, .. } = &mut self.driven[self.flows[number].application as usize];
            let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, all.start, now);
            application.on_timer(flow, now, &mut Ends(&mut self.flows[all.clone()]), tell);
        }
        self.learn_cares(self.flows[number].application as usize);
        for number in all {
            self.flush_both(number, now);
        }
    }

    /// An end has moved: its application may go on, packets may leave, its timer may have moved. [`World::deliver`] does the same for
    /// most ends, inlined, as is every function on the path of each packet: calls would cost a tenth of its time.
    #[inline(never)]
    fn moved(&mut self, number: usize, end: End, now: Time) {
        if self.flows[number].asks(end) {
            self.ask(number, end, now);
        }
        self.flush(number, end, now);
    }

    /// Calls the application of an end that has moved.
    #[inline(never)]
    fn ask(&mut self, number: usize, end: End, now: Time) {
        let Driven { application, flows } = &mut self.driven[self.flows[number].application as usize];
        let all = flows.clone();
        {
            let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, all.start, now);
            let sockets = &mut Ends(&mut self.flows[all.clone()]);
            application.on_socket(number - all.start, end, now, sockets, tell);
        }
        let wake = application.wake(number - all.start);
        self.learn_cares(self.flows[number].application as usize);
        self.arm(number, APPLICATION, wake);
        if all.len() > 1 {
            // An event at one flow may have released the others.
            for other in all.filter(|other| *other != number) {
                self.flush_both(other, now);
            }
        }
    }

    /// Flushes both ends of a flow whose application was called, and sets the application's timer.
    fn flush_both(&mut self, number: usize, now: Time) {
        for end in [End::Sender, End::Receiver] {
            self.flush(number, end, now);
        }
        let Driven { application, flows } = &self.driven[self.flows[number].application as usize];
        let wake = application.wake(number - flows.start);
        self.arm(number, APPLICATION, wake);
    }

    /// Applications that only read a stream read all data that has arrived, so that their counts are up to date.
    fn read_streams(&mut self, now: Time) {
        for number in 0..self.flows.len() {
            if self.flows[number].has_moved() {
                self.read_stream(number, now);
            }
        }
    }

    fn read_stream(&mut self, number: usize, now: Time) {
        let Driven { application, flows } = &mut self.driven[self.flows[number].application as usize];
        let all = flows.clone();
        let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, all.start, now);
        application.read_stream(number - all.start, now, &mut Ends(&mut self.flows[all]), tell);
    }

    /// Sends the packets that an end has to send, and sets its timer.
    #[inline(always)]
    fn flush(&mut self, number: usize, end: End, now: Time) {
        if let Some(connection) = self.flows[number].shares() {
            return self.flush_shared(connection, end, now);
        }
        self.flush_one(number, end, now);
    }

    #[inline(always)]
    fn flush_one(&mut self, number: usize, end: End, now: Time) {
        let mut flow = &mut self.flows[number];
        let has_card = flow.has_card(end);
        if has_card {
            self.transmit_by_card(number, now);
            flow = &mut self.flows[number];
        }
        let Some((endpoint, outlet, told)) = flow.end_to_move(end) else { return };
        let outlet = (!has_card).then_some(outlet);
        // Nearly all endpoints are TCP: they are distinguished once here, so that `turn` is compiled for TCP.
        let turn = match endpoint {
            weir_transport::End::Tcp(tcp) => {
                turn(tcp, end, told, outlet, &mut self.pool, &mut self.fabric, now)
            }
            other => turn(other, end, told, outlet, &mut self.pool, &mut self.fabric, now),
        };
        self.end_turn(number, end, turn, now);
    }

    /// Handles what an end's turn has resulted in, and sets its timer.
    #[inline]
    fn end_turn(&mut self, number: usize, end: End, turn: Turn, now: Time) {
        match turn.news {
            News::Nothing => {}
            News::Finished => return self.ended(number, now),
            News::Counts => self.tell_events(number, now),
            News::Endless => return self.sends_without_end(number, end, now),
        }
        if self.flows[number].random_arrivals {
            self.give_back(number, now);
        }
        self.arm(number, end as usize, turn.due);
    }

    /// All data of the sender has arrived.
    #[cold]
    fn ended(&mut self, number: usize, now: Time) {
        let Driven { application, flows } = &mut self.driven[self.flows[number].application as usize];
        let (flow, all) = (number - flows.start, flows.clone());
        let closes = {
            let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, all.start, now);
            application.on_end(flow, End::Receiver, true, now, &mut Ends(&mut self.flows[all]), tell)
        };
        self.learn_cares(self.flows[number].application as usize);
        if closes
            && let Some((endpoint, outlet)) = self.flows[number].end_and_outlet(End::Receiver)
            && !transmit(endpoint, outlet, &mut self.pool, &mut self.fabric, now)
        {
            return self.sends_without_end(number, End::Receiver, now);
        }
        if self.flows[number].random_arrivals {
            self.give_back(number, now);
        }
        let due = self.flows[number].end(End::Receiver).map_or(Time::NEVER, |endpoint| endpoint.next_timer());
        self.arm(number, End::Receiver as usize, due);
    }

    /// Drops the connection of a flow with random arrivals that is complete.
    #[cold]
    fn give_back(&mut self, number: usize, now: Time) {
        let Driven { application, flows } = &self.driven[self.flows[number].application as usize];
        if application.completed(number - flows.start) {
            self.read_stream(number, now);
            self.flows[number].give_back();
        }
    }

    /// Hands packets to the fabric as [`transmit`] does, at a host with a card: as many as the card accepts, and no more than may
    /// wait in it.
    fn transmit_by_card(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        let Outlet { address, datagrams, .. } = flow.outlet(End::Sender);
        let (from, to) = (usize::from(address.from), usize::from(address.to));
        for _ in 0..MOST_IN_ONE_TURN {
            let Some((endpoint, in_card)) = flow.sender_and_card() else { return };
            let Card { refuses, small_queues, .. } = in_card.card;
            in_card.held = small_queues && in_card.waiting >= endpoint.small_queue();
            if in_card.held {
                return endpoint.throttled(now);
            }
            let admitted = in_card.admitted;
            if refuses
                && !self.fabric.takes(from, to, FlowId(number as u32), in_card.mtu)
                && (admitted || endpoint.refused(now))
            {
                if admitted {
                    in_card.held = true;
                    return;
                }
                // Without small queues TCP is not told that its packets have left: it tries again when an acknowledgement comes.
                in_card.held = small_queues;
                return self.fabric.count_refused(number);
            }
            let mut packet = self.pool.take(datagrams, &mut self.fabric);
            let Some(ecn) = endpoint.transmit(packet.body_mut(), now) else {
                return self.pool.take_back(packet);
            };
            packet.address(ecn, &address);
            in_card.waiting += u64::from(packet.wire_length());
            self.fabric.inject_exact(from, packet, now);
        }
        self.sends_without_end(number, End::Sender, now);
    }

    /// A packet has left a host's card: a sender that waited for it may go on.
    #[cold]
    fn left_card(&mut self, flow: FlowId, bytes: u32, now: Time) {
        let number = flow.0 as usize;
        let Some(in_card) = self.flows.get_mut(number).and_then(|flow| flow.card.as_mut()) else { return };
        in_card.waiting = in_card.waiting.saturating_sub(bytes.into());
        if std::mem::take(&mut in_card.held) {
            self.flush(number, End::Sender, now);
        }
    }

    /// Records timeouts, recoveries and undone reductions as they happen.
    #[cold]
    fn tell_events(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        let Some(counts) = flow.end(End::Sender).map(|endpoint| endpoint.counts()) else { return };
        let told = std::mem::replace(&mut flow.told, counts);
        record_counts(self.recorder, number, told, counts, now);
    }

    /// Makes sure that a timer fires at `due` or before.
    #[inline]
    fn arm(&mut self, number: usize, which: usize, due: Time) {
        if self.flows[number].arms(which, due) {
            self.timers.push(due, number * TIMERS + which);
        }
    }
}

/// The function that records an application's notices about its flows, the first of which is number `first`.
#[inline]
fn teller<'a>(
    recorder: &'a mut dyn Recorder,
    trouble: &'a mut Option<String>,
    run: &'a Run,
    first: usize,
    now: Time,
) -> impl FnMut(usize, Notice) + 'a {
    move |flow, notice| {
        let number = first + flow;
        if let Notice::Failed(why) = &notice {
            let group = &run.groups[run.flows[number].group].name;
            trouble.get_or_insert_with(|| format!("group {group}: flow {} {why}", run.flows[number].name));
        }
        record_notice(recorder, number, &notice, now);
    }
}
