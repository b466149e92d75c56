//! One direction of a link: the queue, the transmitter and the pipe, with their counters.
//!
//! A packet that arrives while the transmitter is idle starts at once; its arrival at the far end is then known, and it
//! goes into the pipe, a ring of which only the head is in the event queue. The transmitter has an event of its own only
//! while packets wait.

mod account;
mod deferred;
mod impairments;
mod observer;
mod pacing;
mod reporting;
mod script;

pub(crate) use deferred::Until;
pub(crate) use observer::Around;
pub use observer::{Observer, PacketEvent};

use crate::config::{self, Report};
use crate::wire::Wire;
use account::Account;
use deferred::Departures;
use impairments::Impairments;
use pacing::Pacing;
use reporting::Reporting;
use script::Script;
use std::collections::VecDeque;
use weir_base::{Bytes, CODEPOINTS, Ecn, FlowId, Histogram, Random, Rate, Span, Time};
use weir_queue::{Discipline, DropReason, Fate};

/// Counters of a link and its queue since they were last taken. Arrays are indexed by ECN codepoint on arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that reached the queue.
    pub arrived: [u64; 4],
    /// Packets that the queue dropped.
    pub dropped: [u64; 4],
    /// Packets that the queue had marked, counted when their transmission began.
    pub marked: [u64; 4],
    /// Packets whose transmission began.
    pub sent: [u64; 4],
    /// Bytes that were sent, overhead included. A packet in transmission counts with the bytes sent so far.
    pub sent_bytes: [u64; 4],
    /// Packets that the queue dropped, indexed by reason (`DropReason as usize`).
    pub dropped_for: [u64; 3],
    /// Packets that the link lost: by script on arrival, or at random on the way.
    pub lost: u64,
    /// Packets that the link put on their way without losing them, duplicates not included. Not counted on a link that has
    /// no rate and cannot lose packets.
    pub forwarded: u64,
    /// Duplicates that the link made.
    pub duplicated: u64,
    /// Packets that the link damaged; the host that they reach discards them.
    pub corrupted: u64,
    /// Time spent sending; zero on a link driven by opportunities, where a packet leaves in no time.
    pub busy: Span,
    /// Bytes that the link could have sent: those that it sent, and those that it could have sent while idle.
    pub capacity: Bytes,
}

impl LinkCounters {
    /// Adds the counters of a later period.
    pub fn merge(&mut self, later: &LinkCounters) {
        fn add<const N: usize>(sums: &mut [u64; N], parts: &[u64; N]) {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(*part));
        }
        add(&mut self.arrived, &later.arrived);
        add(&mut self.dropped, &later.dropped);
        add(&mut self.marked, &later.marked);
        add(&mut self.sent, &later.sent);
        add(&mut self.sent_bytes, &later.sent_bytes);
        add(&mut self.dropped_for, &later.dropped_for);
        self.lost = self.lost.saturating_add(later.lost);
        self.forwarded = self.forwarded.saturating_add(later.forwarded);
        self.duplicated = self.duplicated.saturating_add(later.duplicated);
        self.corrupted = self.corrupted.saturating_add(later.corrupted);
        self.busy += later.busy;
        self.capacity = Bytes::new(self.capacity.get().saturating_add(later.capacity.get()));
    }
}

#[derive(Debug)]
pub(crate) struct Link<P> {
    pub(crate) to: u32,
    from: u32,
    /// Whether packets pass through without an event: the link has no rate, delay, impairments or script.
    transparent: bool,
    /// Whether someone is to be told of each packet: an observer, the host whose card it is, or the packet itself.
    watched: bool,
    rate: Option<Rate>,
    delay: Span,
    overhead: u64,
    instrumented: bool,
    queue: Discipline<P>,
    /// When the transmitter finishes its present packet.
    pub(crate) free_at: Time,
    /// Size in bytes and transmission time of the packet sent last: nearly always those of the next one.
    last_sent: (u64, Span),
    /// The same of the packet that was sent last before the link's properties changed; `last_sent` is zero then.
    interrupted: (u64, Span),
    /// The codepoint on arrival of the packet sent last.
    last_class: Ecn,
    /// When the transmitter's event is due; [`Time::NEVER`] if it has none. Its other events are stale, since a change has replaced them.
    wake: Time,
    /// The packets on their way, and when each arrives.
    pipe: VecDeque<(Time, P)>,
    /// When the first packet of the pipe arrives; [`Time::NEVER`] if the pipe is empty.
    head: Time,
    /// Latest arrival at the far end: packets sent later arrive no earlier.
    last_arrival: Time,
    /// The packets that it drops or holds back; `None` if it has no script.
    script: Option<Box<Script<P>>>,
    /// How it sends; `None` if it simply sends at its rate.
    pacing: Option<Box<Pacing<P>>>,
    /// What it does to packets on their way; `None` for a plain link.
    impairments: Option<Box<Impairments>>,
    stats: LinkStats,
    pub(crate) delays: [Histogram; 4],
    /// Totals of the whole run, for the audit.
    pub(crate) total_lost: u64,
    pub(crate) total_duplicated: u64,
    account: Account,
    /// Whether it is caught up on demand (see `link/deferred.rs`).
    pub(crate) deferred: bool,
    /// Packets that have yet to leave their hosts for this deferred link.
    pub(crate) departures: Departures<P>,
    /// Time of this deferred link's event; [`Time::NEVER`] if it has none. Its other events in the event queue are void.
    pub(crate) scheduled: Time,
}

/// Counters that a link's queue and its transmitter update.
#[derive(Debug)]
struct LinkStats {
    /// The link's index.
    link: usize,
    counters: LinkCounters,
    /// Packets dropped in the whole run, for the audit.
    total_dropped: u64,
    /// Whether it is a host's card, which tells the host of packets that have left its queue.
    card: bool,
    /// What packets report that leave the queue; `None` if they report nothing.
    reporting: Option<Box<Reporting>>,
}

/// Counts a queue's decisions.
struct DropSink<'a, P> {
    stats: &'a mut LinkStats,
    around: &'a mut Around<P>,
}

impl<P: Wire> Fate<P> for DropSink<'_, P> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time) {
        self.stats.counters.dropped[packet.class() as usize] += 1;
        self.stats.counters.dropped_for[reason as usize] += 1;
        self.stats.total_dropped += 1;
        if let Some(reporting) = &mut self.stats.reporting {
            reporting.dropped(packet.class());
        }
        if self.stats.card {
            self.around.leave_card(&packet, now);
        }
        self.around.show(self.stats.link, &packet, PacketEvent::Dropped, now);
        self.around.discard(packet);
    }
    fn marked(&mut self, packet: &P, now: Time) {
        // The mark is counted when the packet leaves, so that shares are of packets whose fate is known.
        self.around.show(self.stats.link, packet, PacketEvent::Marked, now);
    }
}

impl<P: Wire> Link<P> {
    pub(crate) fn new(index: usize, config: &config::Link, whole: &config::Config) -> Link<P> {
        let place = weir_queue::Link {
            rate: config.rate.unwrap_or(Rate::from_bits_per_sec(u64::MAX)),
            base_rtt: whole.network.base_rtt,
            mtu: config.mtu,
        };
        let queue = config.queue.build(&place, Random::stream_of(whole.seed, "queue", index as u64));
        let card = whole.network.nodes[config.from].card.is_some();
        let reporting = config.report.map(|Report::IpId| Box::default());
        let pacing = Pacing::new(index, config, whole, !queue.is_work_conserving());
        let mut link = Link {
            to: config.to as u32,
            from: config.from as u32,
            transparent: false,
            watched: card || reporting.is_some(),
            rate: config.rate,
            delay: config.delay,
            overhead: config.overhead.get(),
            instrumented: config.instrumented,
            queue,
            free_at: Time::ZERO,
            last_sent: (0, Span::ZERO),
            interrupted: (0, Span::ZERO),
            last_class: Ecn::NotEct,
            wake: Time::NEVER,
            pipe: VecDeque::new(),
            head: Time::NEVER,
            last_arrival: Time::ZERO,
            script: Script::new(config),
            pacing,
            impairments: Impairments::new(index, config, whole.seed),
            stats: LinkStats {
                link: index,
                counters: LinkCounters::default(),
                total_dropped: 0,
                card,
                reporting,
            },
            delays: Default::default(),
            total_lost: 0,
            total_duplicated: 0,
            account: Account::default(),
            deferred: false,
            departures: Departures::default(),
            scheduled: Time::NEVER,
        };
        link.transparent = link.is_transparent();
        link.deferred = link.may_be_deferred();
        link
    }

    /// A packet arrives. Returns the time of the transmitter's new event, if it needs one; the pipe may have a new head.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, mut packet: P, now: Time, around: &mut Around<P>) -> Option<Time> {
        if self.script.is_some() {
            return self.arrive_scripted(packet, now, around);
        }
        if self.rate.is_none() {
            self.send_off(packet, now, now, around);
            return None;
        }
        packet.arrive(now);
        self.take_in(packet, now, around)
    }

    /// A packet enters the queue, and is sent at once if the transmitter is idle.
    #[inline(always)]
    fn take_in(&mut self, packet: P, now: Time, around: &mut Around<P>) -> Option<Time> {
        self.stats.counters.arrived[packet.class() as usize] += 1;
        if self.watched {
            self.show(&packet, PacketEvent::Arrived, now, around);
        }
        let idle = !self.is_armed() && now >= self.free_at && self.pacing.is_none();
        debug_assert!(!idle || self.queue.backlog().packets == 0, "what waits has an event");
        let mut sink = DropSink { stats: &mut self.stats, around };
        if idle {
            let packet = self.queue.pass(packet, now, &mut sink)?;
            self.send(packet, now, around);
            return None;
        }
        self.queue.enqueue(packet, now, &mut sink);
        if self.is_armed() {
            return None;
        }
        if self.pacing.is_some() { self.taken_in(now, around) } else { self.arm() }
    }

    /// Whether the transmitter has an event.
    #[inline]
    fn is_armed(&self) -> bool {
        self.wake != Time::NEVER
    }

    #[inline]
    fn arm(&mut self) -> Option<Time> {
        self.wake = self.free_at;
        Some(self.wake)
    }

    /// Begins to send the next packet. Returns the time of the transmitter's next event; `None` if no packet waits.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        self.wake = Time::NEVER;
        let mut sink = DropSink { stats: &mut self.stats, around };
        let (packet, more) = self.queue.serve(now, &mut sink);
        self.send(packet?, now, around);
        if more { self.arm() } else { None }
    }

    /// Sends a packet from now on.
    #[inline(always)]
    fn send(&mut self, mut packet: P, now: Time, around: &mut Around<P>) {
        let bytes = self.begin(&mut packet, now, around);
        if bytes != self.last_sent.0 {
            let busy = self.rate.map_or(Span::ZERO, |rate| rate.time_to_send(Bytes::new(bytes)));
            self.last_sent = (bytes, busy);
        }
        let busy = self.last_sent.1;
        self.stats.counters.busy += busy;
        self.free_at = now + busy;
        self.send_off(packet, self.free_at, now, around);
    }

    /// Takes the next packet out of the queue, to be sent from now on.
    #[inline(always)]
    fn take_out(&mut self, now: Time, around: &mut Around<P>) -> Option<P> {
        let mut sink = DropSink { stats: &mut self.stats, around };
        self.queue.dequeue(now, &mut sink)
    }

    /// Counts a packet whose transmission begins now. Returns its bytes, overhead included.
    #[inline(always)]
    fn begin(&mut self, packet: &mut P, now: Time, around: &mut Around<P>) -> u64 {
        let arrived_as = packet.class();
        let class = arrived_as as usize;
        let bytes = u64::from(packet.wire_length()) + self.overhead;
        self.stats.counters.sent[class] += 1;
        self.stats.counters.sent_bytes[class] += bytes;
        self.last_class = arrived_as;
        if packet.ecn() == Ecn::Ce && arrived_as != Ecn::Ce {
            self.stats.counters.marked[class] += 1;
        }
        if self.instrumented {
            self.delays[class].record(now.since(packet.arrived()));
        }
        if self.watched {
            self.tell_sent(packet, now, around);
        }
        bytes
    }

    /// Tells the packet what the queue did, and the host whose card it is, and the observer, that the packet's transmission begins.
    #[cold]
    fn tell_sent(&mut self, packet: &mut P, now: Time, around: &mut Around<P>) {
        if let Some(reporting) = &mut self.stats.reporting {
            reporting.leave(packet, now);
        }
        if self.stats.card {
            around.leave_card(packet, now);
        }
        self.show(packet, PacketEvent::Sent, now, around);
    }

    /// From now on all its properties may change: also impairments, of which a plain link has none.
    pub(crate) fn expect_changes(&mut self, config: &config::Link, seed: u64) {
        let index = self.stats.link;
        self.impairments.get_or_insert_with(|| Impairments::of(index, config, seed));
        self.transparent = self.is_transparent();
    }

    /// From now on [`Around::observer`] is told of its packets.
    pub(crate) fn observe(&mut self) {
        self.watched = true;
    }

    /// Puts a packet into the pipe; it leaves the transmitter at `leaves`.
    #[inline(always)]
    fn send_off(&mut self, packet: P, leaves: Time, now: Time, around: &mut Around<P>) {
        if self.impairments.is_some() {
            return self.send_off_impaired(packet, leaves, now, around);
        }
        self.set_out(packet, leaves);
    }

    /// Puts a packet into the pipe that arrives after the link's delay, and no earlier than those before it.
    #[inline(always)]
    fn set_out(&mut self, packet: P, leaves: Time) {
        self.last_arrival = self.last_arrival.max(leaves + self.delay);
        self.head = self.head.min(self.last_arrival);
        self.pipe.push_back((self.last_arrival, packet));
    }

    /// The first packet on its way, if it has arrived by now.
    #[inline(always)]
    pub(crate) fn take_arrived(&mut self, now: Time) -> Option<P> {
        if self.head > now {
            return None;
        }
        let (_, packet) = self.pipe.pop_front()?;
        self.head = self.pipe.front().map_or(Time::NEVER, |(at, _)| *at);
        Some(packet)
    }

    /// Shows a packet to the observer, if this link is measured.
    #[cold]
    fn show(&self, packet: &P, event: PacketEvent, now: Time, around: &mut Around<P>) {
        if self.instrumented {
            around.show(self.stats.link, packet, event, now);
        }
    }

    fn lose(&mut self, packet: P, now: Time, around: &mut Around<P>) {
        self.stats.counters.lost += 1;
        self.total_lost += 1;
        self.show(&packet, PacketEvent::Lost, now, around);
        around.discard(packet);
    }

    /// Whether nothing outside can tell what happens in it before a packet has reached its far end.
    fn may_be_deferred(&self) -> bool {
        let reorders = self.impairments.as_ref().is_some_and(|impairments| impairments.reorders());
        self.pacing.is_none() && !self.stats.card && !reorders
    }

    fn is_transparent(&self) -> bool {
        self.rate.is_none() && self.delay.is_zero() && self.impairments.is_none() && self.script.is_none()
    }

    /// The node at its far end, if packets pass through without an event.
    pub(crate) fn through(&self) -> Option<usize> {
        self.transparent.then_some(self.to as usize)
    }

    /// Changes its properties from now on. Returns the time of the transmitter's new event, if it needs one.
    pub(crate) fn change(&mut self, change: &config::Change, around: &mut Around<P>) -> Option<Time> {
        let at = Time::ZERO + change.at;
        self.count_idle(at);
        self.rate = change.rate.or(self.rate);
        if self.last_sent.0 > 0 {
            self.interrupted = std::mem::take(&mut self.last_sent);
        }
        self.delay = change.delay.unwrap_or(self.delay);
        if let Some(impairments) = &mut self.impairments {
            impairments.change(change);
        }
        self.transparent = self.is_transparent() && self.pipe.is_empty();
        if let Some(queue) = &change.queue {
            let mut sink = DropSink { stats: &mut self.stats, around };
            self.queue.reconfigure(queue, at, &mut sink);
        }
        self.play(change, at)
    }

    pub(crate) fn queue(&self) -> &Discipline<P> {
        &self.queue
    }

    /// Runs the periodic steps of the queue that are due, so that its state is that of `now`.
    pub(crate) fn settle(&mut self, now: Time) {
        if self.rate.is_some() {
            self.queue.update(now);
        }
    }

    /// Whether its queue would now accept a packet of this flow and IP length.
    pub(crate) fn takes(&self, flow: FlowId, length: u32) -> bool {
        self.rate.is_none() || self.queue.takes(flow, length)
    }

    /// When the first packet in the pipe arrives; [`Time::NEVER`] if the pipe is empty.
    #[inline]
    pub(crate) fn head(&self) -> Time {
        self.head
    }

    /// Packets that its queue has dropped in the whole run.
    pub(crate) fn total_dropped(&self) -> u64 {
        self.stats.total_dropped
    }

    /// Where it begins.
    pub(crate) fn from(&self) -> usize {
        self.from as usize
    }

    /// Its present rate.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether it does more than send waiting packets at its rate.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.pacing.is_some()
    }

    /// The present propagation delay.
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    /// The share of packets that it loses in the long run.
    pub(crate) fn loss(&self) -> f64 {
        self.impairments.as_ref().map_or(0.0, |impairments| impairments.loss())
    }

    /// Packets in the queue, held back, on the way, or yet to leave their hosts for this link.
    pub(crate) fn inside(&self) -> u64 {
        let begun = self.pacing.as_ref().map_or(0, |pacing| pacing.inside());
        let held = self.script.as_ref().map_or(0, |script| script.held());
        let waiting = held + self.departures.len();
        u64::from(self.queue.backlog().packets) + waiting + self.pipe.len() as u64 + begun
    }

    /// The sojourn times of each class that has any, since they were last cleared.
    pub(crate) fn delays(&mut self) -> impl Iterator<Item = (Ecn, &mut Histogram)> {
        CODEPOINTS.into_iter().zip(self.delays.iter_mut()).filter(|(_, delays)| delays.count() > 0)
    }
}
