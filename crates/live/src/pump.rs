//! The pump: takes packets from the hosts, moves the fabric's time along with the clock, and hands packets to hosts when
//! they are due. One thread. It sleeps on its socket and spins only for the last stretch before a due release.
//!
//! The fabric's decisions depend on the kernel's receive stamps, not on when the pump sees a packet: the pump handles stamps in
//! order, so a late pump releases late but decides as if on time.

use crate::address::mac_of;
use crate::budget::{Allowance, Budget};
use crate::counts::SharedCounts;
use crate::inject::Injector;
use crate::lateness::Lateness;
use crate::outside::Outside;
use crate::overlay::{Crossings, Dissolved, Ways};
use crate::packet::{Directory, LivePacket, Pool};
use crate::relay::Relay;
use crate::testbed::Testbed;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use weir_base::{Dscp, Ecn, FlowId, Histogram, Packet, Span, Time};
use weir_control::Codepoint;
use weir_engine::{PacketLog, Sampler};
use weir_fabric::{Change, Delivery, Fabric, Observer, Totals, Wire};
use weir_linux::clock::{Clock, Scheduling, Stamps, claim_processor, thread_time, timespec_of};
use weir_linux::netlink::Mac;
use weir_linux::ring::{ReceiveRing, Sender};
use weir_plan::{Group, Run};

/// How long before a due release the pump stops sleeping. Waking up takes tens of microseconds on a dedicated machine, and
/// hundreds on a virtual one whose host is busy. Six runs each at 10 Mbit/s on the latter, in turns: with 250 us the 99th
/// percentile of lateness was 55 to 122 us and once 995, with 60 us it was 70 to 1,221 us and once 7,635 (host busy). Spinning
/// costs two fifths of a core there; the budget stops it before it costs too much.
const SPIN: Span = Span::from_micros(250);
/// Below this, falling asleep and waking up takes more of the processor than waiting does.
const NAP: Span = Span::from_micros(10);
/// Longest time between two looks into the ring while packets may wait there without harm.
const RING_LOOK_UP: Span = Span::from_millis(1);
/// A shorter time is none: the pump may wake up so late that packets of the ring would be late too.
const LEAST_UNSEEN: Span = Span::from_micros(500);
/// How long the pump rests when its budget is used up.
const REST: Span = Span::from_micros(500);
/// The longest sleep, so that a cancelled run is noticed.
const LOOK_UP: Span = Span::from_millis(20);
/// Packets taken from the ring before due packets are released.
const RECEIVE_TURN: usize = 64;
/// Packets released at once.
const RELEASE_TURN: usize = 64;
/// Smallest step of the wall clock that is reported.
const CLOCK_STEP: Span = Span::from_millis(1);

/// The pump's results at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct PumpReport {
    pub(crate) totals: Totals,
    pub(crate) lateness: Lateness,
    /// Time from the kernel's stamp to the pump's handling of the packet.
    pub(crate) ring_wait: Histogram,
    /// Frames that were not IP packets for a host of this network.
    pub(crate) ignored: u64,
    /// Frames that the ring had no room for, or could not hold whole.
    pub(crate) ring_drops: u64,
    /// Frames that the kernel refused to send.
    pub(crate) refused: u64,
    /// How far the wall clock was moved during the run, all moves added up.
    pub(crate) clock_steps: Span,
    pub(crate) scheduling: Option<Scheduling>,
    /// Packets that were relabelled from ECT(0) to ECT(1).
    pub(crate) relabelled: u64,
    /// Busiest 100 ms, as a share of a core.
    pub(crate) peak: f64,
    /// Mean use of a core, by the thread's processor time.
    pub(crate) mean: f64,
    /// Times that the budget forced a rest although something was due.
    pub(crate) rests: u64,
    /// Changes of links that were asked for: the link, and the change at its time.
    pub(crate) changes: Vec<(usize, Change)>,
    /// Whether it was told to stop before the end.
    pub(crate) cancelled: bool,
}

/// The inputs of the pump.
pub(crate) struct Setup<'a> {
    pub(crate) run: &'a Run,
    pub(crate) clock: Clock,
    pub(crate) ring: ReceiveRing,
    pub(crate) sender: Sender,
    /// Devices of the hosts at the fabric's end: (index of the device, node).
    pub(crate) devices: Vec<(u32, usize)>,
    pub(crate) relay: Relay,
    /// What each flow's hosts have counted so far.
    pub(crate) counts: &'a [SharedCounts],
    pub(crate) cancel: &'a AtomicBool,
    /// Log of the packets at links between samples; `None` unless the run records every packet.
    pub(crate) packets: Option<PacketLog>,
    pub(crate) observer: Option<Box<dyn Observer<LivePacket> + Send>>,
    /// Changes of instrumented links, each to be made at once.
    pub(crate) changes: Receiver<(usize, Change)>,
    /// Where packets for addresses outside the network go; `None` if there is no way out.
    pub(crate) beyond: Option<&'a Outside>,
    /// The overlay of daemons between the hosts; `None` if there is none.
    pub(crate) overlay: Option<&'a Dissolved>,
    /// Links whose records do not come from the fabric.
    pub(crate) elsewhere: &'a [usize],
}

impl<'a> Setup<'a> {
    /// The pump of a run without flows, which records nothing.
    pub(crate) fn idle(
        run: &'a Run,
        clock: Clock,
        testbed: &Testbed,
        cancel: &'a AtomicBool,
        overlay: Option<&'a Dissolved>,
    ) -> io::Result<Setup<'a>> {
        let (ring, sender) = testbed.open_sockets(run.network.mtu().get() as usize)?;
        let (relay, changes) = (Relay(channel().0), channel().1);
        Ok(Setup {
            run,
            clock,
            ring,
            sender,
            devices: testbed.devices(),
            relay,
            counts: &[],
            cancel,
            packets: None,
            observer: None,
            changes,
            beyond: None,
            overlay,
            elsewhere: &[],
        })
    }
}

/// The pump at work.
struct Pump<'a> {
    run: &'a Run,
    clock: Clock,
    ring: ReceiveRing,
    sender: Sender,
    /// Node of each device.
    node_of_device: Vec<Option<usize>>,
    /// For each node the device by which its packets leave, and the hardware address that they get.
    exits: Vec<(u32, Mac)>,
    pool: Pool,
    /// For each flow, whether its packets are to be ECT(1), which the kernel's TCP cannot send.
    relabels: Vec<bool>,
    /// The DSCP of each flow's packets, which leave their hosts without one.
    dscps: Vec<Dscp>,
    fabric: Fabric<LivePacket>,
    injector: Injector,
    crossings: Crossings,
    /// The shortest time in which a packet can cross the network.
    lookahead: Span,
    /// The time to which the fabric has been advanced.
    reached: Time,
    stamps: Stamps,
    /// Packets that are due, in order.
    due: VecDeque<Delivery<LivePacket>>,
    sampler: Sampler,
    packets: Option<PacketLog>,
    next_sample: Time,
    relay: Relay,
    counts: &'a [SharedCounts],
    changes: Receiver<(usize, Change)>,
    budget: Budget,
    report: PumpReport,
}

/// Runs the fabric from the start of the clock to the end of the run.
///
/// # Errors
/// The kernel's, from waiting on the ring; or a link or a station had events without end at one instant.
pub(crate) fn pump(setup: Setup<'_>) -> io::Result<PumpReport> {
    let (cancel, observer) = (setup.cancel, setup.observer);
    let setup = Setup { observer: None, ..setup };
    let mut pump = Pump::new(setup);
    if let Some(observer) = observer {
        pump.fabric.observe(observer);
    }
    pump.report.scheduling = Some(claim_processor());
    std::thread::sleep(std::time::Duration::from_nanos(pump.clock.until_start().as_nanos()));
    let before = thread_time();
    pump.work(cancel)?;
    pump.report.mean =
        thread_time().saturating_sub(before).as_secs_f64() / pump.clock.now().as_secs_f64().max(1e-9);
    pump.report.peak = pump.budget.peak();
    pump.report.totals = pump.fabric.totals();
    pump.report.ring_drops += pump.ring.take_drops()?;
    match pump.fabric.endless() {
        Some((culprit, at)) => Err(io::Error::other(format!("{culprit} did not end what it did at {at:?}"))),
        None => Ok(pump.report),
    }
}

/// Whether a group's TCP is to send ECT(1).
fn sends_ect1(group: &Group) -> bool {
    group.tcp().is_some_and(|settings| settings.ecn && settings.codepoint == Codepoint::Ect1)
}

impl<'a> Pump<'a> {
    fn new(setup: Setup<'a>) -> Pump<'a> {
        let run = setup.run;
        let nodes = &run.network.nodes;
        let host_of = |node: usize| setup.beyond.map_or(node, |beyond| beyond.host_of(node));
        // What stands for a host has no address of its own.
        let addressed = |node: usize| run.is_addressed(node) && host_of(node) == node;
        let directory = Directory {
            addressed: (0..nodes.len()).map(addressed).collect(),
            flows: run.flows.len(),
            commands: commands(run),
            beyond: setup.beyond.cloned(),
            ways: setup.overlay.map_or_else(Vec::new, Dissolved::ways),
            groups: setup.overlay.map_or_else(Ways::default, Ways::of),
        };
        let highest = setup.devices.iter().map(|(device, _)| *device as usize).max().unwrap_or(0);
        let (mut node_of_device, mut device_of_node) = (vec![None; highest + 1], vec![0; nodes.len()]);
        for &(device, node) in &setup.devices {
            node_of_device[device as usize] = Some(node);
            device_of_node[node] = device;
        }
        let exit = |node: usize| (device_of_node[host_of(node)], mac_of(host_of(node)));
        let exits = (0..nodes.len()).map(exit).collect();
        Pump {
            run,
            clock: setup.clock,
            ring: setup.ring,
            sender: setup.sender,
            node_of_device,
            exits,
            pool: Pool::new(directory, run.network.mtu().get() as usize),
            dscps: run.flows.iter().map(|flow| run.groups[flow.group].dscp).collect(),
            relabels: run.flows.iter().map(|flow| sends_ect1(&run.groups[flow.group])).collect(),
            fabric: weir_engine::changeable_fabric(run),
            injector: Injector::new(run),
            crossings: setup.overlay.map_or_else(Crossings::default, Crossings::new),
            lookahead: shortest_way(run),
            reached: Time::ZERO,
            stamps: setup.clock.stamps(),
            due: VecDeque::with_capacity(RELEASE_TURN),
            sampler: Sampler::new(run).without(setup.elsewhere),
            packets: setup.packets,
            next_sample: Time::ZERO + run.sample,
            relay: setup.relay,
            counts: setup.counts,
            changes: setup.changes,
            budget: Budget::default(),
            report: PumpReport::default(),
        }
    }

    fn work(&mut self, cancel: &AtomicBool) -> io::Result<()> {
        let end = Time::ZERO + self.run.duration;
        let mut used = thread_time();
        while self.reached < end {
            if cancel.load(Ordering::Relaxed) {
                self.report.cancelled = true;
                return Ok(());
            }
            self.make_changes();
            // After a stall thousands of packets may be due; they leave in turns, so that the budget is checked in between.
            let mut more = !self.due.is_empty();
            if !more {
                more = self.take_in(end);
            }
            if !more {
                let now = self.clock.now().min(end);
                self.advance(now);
            }
            self.release();
            let now = self.clock.now();
            let before = std::mem::replace(&mut used, thread_time());
            self.budget.used(used.saturating_sub(before), now);
            let wait = self.next_time().min(end).since(now);
            match self.budget.allowance(now) {
                Allowance::Sleep => {
                    self.report.rests += 1;
                    self.sleep(REST, false)?;
                }
                _ if more || !self.due.is_empty() => continue,
                Allowance::Gather(time) => self.doze(wait + time, time)?,
                _ if wait.is_zero() => continue,
                Allowance::Work if wait > NAP => self.doze(wait, Span::ZERO)?,
                Allowance::Spin if wait > SPIN => self.doze(wait - SPIN, Span::ZERO)?,
                Allowance::Work | Allowance::Spin => {
                    self.spin(now + wait);
                }
            }
        }
        Ok(())
    }

    /// The next time at which the pump must act. Events inside the fabric may wait as long as no packet leaves it.
    fn next_time(&self) -> Time {
        self.fabric.next_arrival().min(self.injector.next_time()).min(self.next_sample)
    }

    /// Sleeps until there is work, for `span` at most. A packet that arrives now is due at a host only after the shortest delay
    /// across the network, and its fate until then depends on its stamp alone: while other packets are under way, it may wait
    /// in the ring without waking the pump, for half of that delay, or longer if releases may be late by `slack`.
    fn doze(&self, span: Span, slack: Span) -> io::Result<()> {
        let unseen = (self.lookahead / 2).min(RING_LOOK_UP);
        let unseen = if unseen < LEAST_UNSEEN { slack } else { unseen };
        if unseen.is_zero() || self.fabric.next_time() == Time::NEVER {
            return if self.ring.ready() { Ok(()) } else { self.sleep(span.min(LOOK_UP), true) };
        }
        self.sleep(span.min(unseen), false)
    }

    /// Sleeps for `span`, or until a packet arrives if `wakeable`.
    fn sleep(&self, span: Span, wakeable: bool) -> io::Result<()> {
        let mut sockets = [PollFd::from_borrowed_fd(self.ring.as_fd(), PollFlags::IN)];
        let sockets = if wakeable { &mut sockets[..] } else { &mut [] };
        match rustix::event::poll(sockets, Some(&timespec_of(span))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Spins until this time, or until a packet arrives.
    fn spin(&self, until: Time) {
        while self.clock.now() < until && !self.ring.ready() {
            std::hint::spin_loop();
        }
    }

    /// Makes the changes that were asked for, at the time to which the fabric has been advanced.
    fn make_changes(&mut self) {
        while let Ok((link, mut change)) = self.changes.try_recv() {
            change.at = self.reached.since(Time::ZERO);
            // A shorter delay may make a packet due before the pump looks into the ring again.
            self.lookahead = self.lookahead.min(change.delay.unwrap_or(self.lookahead));
            self.report.changes.push((link, change.clone()));
            self.fabric.change_now(link, change);
        }
    }

    /// Takes waiting packets from the ring, each at its stamp; returns whether more may be waiting.
    fn take_in(&mut self, end: Time) -> bool {
        if !self.ring.ready() {
            return false;
        }
        let stamps = self.clock.stamps();
        let step = stamps.step_since(self.stamps);
        if step > CLOCK_STEP {
            self.report.clock_steps += step;
        }
        self.stamps = stamps;
        let now = self.clock.now().min(end);
        for _ in 0..RECEIVE_TURN {
            let (pool, report, nodes) = (&self.pool, &mut self.report, &self.node_of_device);
            let taken = self.ring.receive(|frame| {
                report.ring_drops += u64::from(frame.cut);
                let node = nodes.get(frame.device as usize).copied().flatten();
                let packet = node.filter(|_| !frame.cut).and_then(|node| pool.packet(node, frame.bytes));
                (stamps.time(frame.stamp), node.zip(packet))
            });
            let Some((stamp, packet)) = taken else { return false };
            let Some((node, mut packet)) = packet else {
                self.report.ignored += 1;
                continue;
            };
            if packet.ecn() == Ecn::Ect0 && self.relabels.get(packet.flow().0 as usize) == Some(&true) {
                packet.relabel(Ecn::Ect1);
                self.report.relabelled += 1;
            }
            if let Some(dscp) = self.dscps.get(packet.flow().0 as usize).filter(|dscp| !dscp.is_default()) {
                packet.set_dscp(*dscp);
            }
            // Stamps of two processors may be slightly out of order; none counts as later than now.
            let at = stamp.min(now).max(self.reached);
            self.report.ring_wait.record(now.since(at));
            self.advance(at);
            let bytes = packet.wire_length();
            for copy in self.crossings.enters(node, &mut packet, at) {
                self.fabric.sent_too(copy, bytes);
            }
            self.fabric.inject(packet.enters(), packet, at);
            if self.due.len() >= RELEASE_TURN {
                return true;
            }
        }
        true
    }

    /// Moves the fabric's time along, through datagrams that it injects itself and through sample periods.
    fn advance(&mut self, until: Time) {
        loop {
            let stop = self.injector.next_time().min(self.next_sample).min(until);
            while let Some(delivery) = self.fabric.advance(stop) {
                self.due.push_back(delivery);
            }
            self.reached = self.reached.max(stop);
            if stop == self.next_sample {
                self.sample(stop);
            }
            if stop == self.injector.next_time() {
                self.injector.inject(&self.pool, &mut self.fabric, &mut self.crossings, &mut self.relay);
            } else if stop == until {
                return;
            }
        }
    }

    /// Hands a turn of due packets to their hosts, and records their lateness.
    fn release(&mut self) {
        let turn = self.due.len().min(RELEASE_TURN);
        if turn == 0 {
            return;
        }
        for delivery in self.due.range_mut(..turn) {
            delivery.packet.address_to(self.exits[delivery.host].1);
        }
        let frames =
            self.due.range(..turn).map(|delivery| (self.exits[delivery.host].0, delivery.packet.ethernet()));
        self.report.refused += self.sender.send(frames);
        let now = self.clock.now();
        self.report.lateness.round(self.due.range(..turn).map(|delivery| delivery.at), now);
        self.budget.released(turn as u64, now);
        self.due.drain(..turn);
    }

    fn sample(&mut self, at: Time) {
        if let Some(packets) = &self.packets {
            packets.drain(&mut self.relay);
        }
        self.sampler.sample(&mut self.fabric, at, &mut self.relay, |_| true, |flow| self.counts[flow].get());
        self.crossings.sample(at, &mut self.relay);
        self.next_sample += self.run.sample;
    }
}

/// For each node, the first flow of a command that has an end there.
fn commands(run: &Run) -> Vec<Option<FlowId>> {
    let mut commands = vec![None; run.network.nodes.len()];
    for (number, flow) in (0..).zip(&run.flows) {
        let group = &run.groups[flow.group];
        if group.workload.command().is_some() {
            for node in group.pairs.iter().flat_map(|pair| [pair.from, pair.to]) {
                commands[node].get_or_insert(FlowId(number));
            }
        }
    }
    commands
}

/// The least delay of any path between two hosts that exchange packets, with each link at the lowest delay of its schedule.
fn shortest_way(run: &Run) -> Span {
    let pairs = run.groups.iter().flat_map(|group| &group.pairs);
    let ways = pairs.flat_map(|pair| [(pair.from, pair.to), (pair.to, pair.from)]);
    ways.map(|(from, to)| least_delay(run, from, to)).min().unwrap_or(Span::ZERO)
}

/// The least delay between two nodes (Bellman and Ford).
fn least_delay(run: &Run, from: usize, to: usize) -> Span {
    let mut least = vec![None; run.network.nodes.len()];
    least[from] = Some(Span::ZERO);
    for _ in 0..run.network.nodes.len() {
        for link in &run.network.links {
            let changes = link.schedule.iter().filter_map(|change| change.delay);
            let delay = changes.fold(link.delay, Span::min);
            let Some(reached) = least[link.from].map(|span: Span| span + delay) else { continue };
            if least[link.to].is_none_or(|known| reached < known) {
                least[link.to] = Some(reached);
            }
        }
    }
    least[to].unwrap_or(Span::ZERO)
}
