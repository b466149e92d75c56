//! How a link sends whose transmitter is not simply busy for as long as a packet takes at its rate: from a trace, as a
//! station on a radio channel, with outages, behind a queue that holds packets back, or watched by a [`crate::Station`]. A plain
//! link has none of this and pays one look for it.

use super::account::{Transmission, rate_over};
use super::{Around, Link};
use crate::config;
use crate::trace::{OPPORTUNITY, Playback, Trace, bits_of};
use crate::wifi::{ACKNOWLEDGED, Aggregate, Radio};
use crate::wire::Wire;
use std::sync::Arc;
use weir_base::{Bytes, Rate, Span, Time};
use weir_queue::Queue;

/// From this rate on, the fraction of a nanosecond that a packet takes is carried to the next one: rounded for each, 28 bytes at
/// 100 Gbit/s (2.24 ns) would be sent 12 % too fast. Below, a packet's time is rounded by itself.
const FRACTIONS_FROM: Rate = Rate::from_mbit_per_sec(10_000);

#[derive(Debug)]
pub(super) struct Pacing<P> {
    /// What is being played, if it is a trace that says how fast the link is.
    trace: Option<Played>,
    radio: Option<Box<Radio>>,
    /// Time that packets took beyond whole nanoseconds: in nanoseconds times the rate.
    fraction: u64,
    /// Whether an outage keeps it from sending.
    down: bool,
    /// A packet that was begun and of which so many bytes are still to be sent.
    pub(super) carried: Option<(P, u64)>,
    /// What the transmitter is at work on, or was last.
    pub(super) transmission: Transmission,
    /// When the transmitter's event is due; others are of a past that a change has overtaken.
    wake: Time,
    /// Whether the queue may hold packets back although the link is free.
    queue_waits: bool,
    /// Until when it does, the link being free: an event, instead of the transmitter's own. [`Time::NEVER`] when it does not.
    held_until: Time,
    /// Whoever watches the queue is told when it falls below so many bytes; zero when nobody does.
    watched: Bytes,
    /// Largest IP packet.
    mtu: u64,
    /// The packets of an aggregate while it is put together.
    aggregate: Vec<P>,
}

/// A trace from the time on at which it was begun.
#[derive(Debug)]
struct Played {
    trace: Arc<Trace>,
    repeat: bool,
    since: Time,
    /// The next opportunity that was neither used nor let pass, by number.
    next: u64,
    /// What it lets through until the time up to which capacity is counted, in bits times nanoseconds per second.
    counted: u128,
}

impl Played {
    /// `None` where the recording is not at hand; engines refuse such a run.
    fn new(play: &Playback, since: Time) -> Option<Played> {
        let trace = Arc::clone(play.recording.as_ref()?);
        Some(Played { trace, repeat: play.repeat, since, next: 0, counted: 0 })
    }

    /// What it let through since this was last asked, up to and including now.
    fn take(&mut self, now: Time) -> u128 {
        let total = self.trace.total(now.since(self.since).as_nanos(), self.repeat);
        total.saturating_sub(std::mem::replace(&mut self.counted, total))
    }

    /// Leaves out what it lets through before `until`; an opportunity of that moment can still be used.
    fn skip(&mut self, until: Time) {
        if until > self.since {
            let opportunity = u64::from(self.trace.is_opportunities());
            let total = self.trace.total(until.since(self.since).as_nanos() - opportunity, self.repeat);
            self.counted = self.counted.max(total);
        }
    }
}

impl<P> Pacing<P> {
    /// What this link needs; none for a plain one.
    pub(super) fn new(
        index: usize,
        config: &config::Link,
        whole: &config::Config,
        queue_waits: bool,
    ) -> Option<Box<Pacing<P>>> {
        let scheduled = config.schedule.iter().any(|change| change.trace.is_some());
        let rates = config.rate.into_iter().chain(config.schedule.iter().filter_map(|change| change.rate));
        let fast = rates.max().is_some_and(|rate| rate >= FRACTIONS_FROM);
        let plain = config.trace.is_none() && config.wifi.is_none() && config.outages.is_empty();
        if plain && !scheduled && !fast && !queue_waits {
            return None;
        }
        Some(Box::new(Pacing {
            trace: config.trace.as_ref().and_then(|play| Played::new(play, Time::ZERO)),
            radio: config.wifi.map(|wifi| Box::new(Radio::new(wifi, whole.seed, index as u64))),
            queue_waits,
            mtu: config.mtu.get(),
            ..Pacing::plain(Time::NEVER)
        }))
    }

    /// That of a link which sends what waits at its rate, whose transmitter's event is due then.
    fn plain(wake: Time) -> Pacing<P> {
        Pacing {
            trace: None,
            radio: None,
            fraction: 0,
            down: false,
            carried: None,
            transmission: Transmission::default(),
            wake,
            queue_waits: false,
            held_until: Time::NEVER,
            watched: Bytes::ZERO,
            mtu: 0,
            aggregate: Vec::new(),
        }
    }

    /// Packets that are begun but not on their way.
    pub(super) fn inside(&self) -> u64 {
        u64::from(self.carried.is_some())
    }

    /// When the transmitter may begin to send what waits, being free from `from` on.
    fn begins(&mut self, from: Time) -> Option<Time> {
        if from == Time::NEVER {
            return None;
        }
        let contended = match &mut self.radio {
            Some(radio) => from + radio.contend(),
            None => from,
        };
        let Some(Played { trace, repeat, since, next, .. }) = &mut self.trace else { return Some(contended) };
        let offset = contended.since(*since).as_nanos();
        if let Some(trace) = trace.opportunities() {
            *next = trace.first_from(offset, *repeat).max(*next);
            return trace.time(*next, *repeat).map(|at| *since + Span::from_nanos(at));
        }
        // A radio cannot begin to send at rate nothing; bytes on a wire are begun, and wait.
        let Some(trace) = trace.steps().filter(|_| self.radio.is_some()) else {
            return Some(contended);
        };
        let mut at = offset;
        loop {
            match trace.rate_at(at, *repeat) {
                (rate, _) if rate.bits_per_sec() > 0 => return Some(*since + Span::from_nanos(at)),
                (_, next) => at = next?,
            }
        }
    }

    /// What an idle link can have sent from one time to another, in bits times nanoseconds per second: nothing in an outage.
    pub(super) fn capacity(&mut self, rate: Rate, from: Time, to: Time) -> u128 {
        if let Some(radio) = &mut self.radio {
            // What its rate walked before `from` is of a time in which it was sending.
            radio.take_capacity(rate, from);
        }
        let walked = self.radio.as_mut().and_then(|radio| radio.take_capacity(rate, to));
        match (&mut self.trace, self.down) {
            (None, true) => 0,
            (None, false) => walked.unwrap_or(rate_over(rate, to.since(from))),
            (Some(played), true) => {
                played.skip(to);
                0
            }
            (Some(played), false) => played.take(to),
        }
    }

    /// How long a packet takes at this rate.
    fn time_to_send(&mut self, rate: Rate, bytes: Bytes) -> Span {
        if rate < FRACTIONS_FROM {
            return rate.time_to_send(bytes);
        }
        // At most 2^32 bytes, and less than one nanosecond more.
        let exact = bytes.get() * 8_000_000_000 + self.fraction;
        self.fraction = exact % rate.bits_per_sec();
        Span::from_nanos(exact / rate.bits_per_sec())
    }

    /// It is at work on this until then: what it could send meanwhile is not counted as idle.
    fn works_on(&mut self, transmission: Transmission) {
        self.transmission = transmission;
        if let Some(played) = &mut self.trace {
            played.skip(transmission.until);
        }
    }
}

impl<P: Wire> Link<P> {
    /// A packet has come into the queue, and the transmitter has no event of its own: sends what may be sent now. Returns when it
    /// wants an event, if it wants a new one.
    pub(super) fn taken_in(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        let held_until = self.pacing.as_ref()?.held_until;
        if held_until != Time::NEVER {
            // Only a packet that may go before the others brings their time forward.
            self.queue.departs(self.free_at.max(now)).filter(|at| *at < held_until)?;
        }
        self.take_turn(now, around)
    }

    /// Sends what may be sent now, the transmitter having no event; returns when it wants one.
    fn take_turn(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        loop {
            let at = self.arm_paced(now)?;
            if at > now {
                return Some(at);
            }
            self.armed = false;
            self.serve(now, around);
        }
    }

    /// The transmitter's event, unless a change has overtaken it.
    pub(crate) fn transmit_paced(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        let pacing = self.pacing.as_mut()?;
        if now != if self.armed { pacing.wake } else { pacing.held_until } {
            return None;
        }
        pacing.held_until = Time::NEVER;
        let sends = std::mem::take(&mut self.armed);
        if pacing.down {
            return None;
        }
        if sends {
            self.serve(now, around);
        }
        self.take_turn(now, around)
    }

    /// Sets the time of the next event, if anything waits: the transmitter's own, or when the queue may send.
    fn arm_paced(&mut self, now: Time) -> Option<Time> {
        let from = self.free_at.max(now);
        let pacing = self.pacing.as_mut()?;
        if pacing.down {
            return None;
        }
        pacing.held_until = Time::NEVER;
        if pacing.carried.is_none() {
            let ready = if pacing.queue_waits {
                self.queue.departs(from)?
            } else if self.queue.backlog().packets > 0 {
                from
            } else {
                return None;
            };
            if ready > from {
                pacing.held_until = ready;
                return Some(ready);
            }
        }
        pacing.wake = pacing.begins(from)?;
        self.armed = true;
        Some(pacing.wake)
    }

    /// From now on [`Link::has_drained`] tells when the queue falls below so many bytes.
    pub(crate) fn watch(&mut self, below: Bytes, now: Time) {
        if self.pacing.is_none() {
            // A link that is not paced has its event, if any, when the transmitter is free.
            let mut pacing = Pacing::plain(if self.armed { self.free_at } else { Time::NEVER });
            self.count_idle(now);
            self.account.since = self.free_at.max(now);
            pacing.transmission = self.transmission();
            self.pacing = Some(Box::new(pacing));
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.watched = below;
        }
    }

    /// Whether the queue is watched and has fallen below the threshold, having held so many bytes.
    pub(crate) fn has_drained(&self, before: Bytes) -> bool {
        let below = self.pacing.as_ref().map_or(Bytes::ZERO, |pacing| pacing.watched);
        before >= below && self.queue.backlog().bytes < below
    }

    /// An outage begins or ends. Returns when the transmitter wants an event, if it wants a new one.
    pub(crate) fn outage(&mut self, begins: bool, now: Time) -> Option<Time> {
        self.count_idle(now);
        let pacing = self.pacing.as_mut()?;
        pacing.down = begins;
        if begins || self.armed { None } else { self.arm_paced(now) }
    }

    /// From now on another trace, or none, says how fast the link is, or its queue has other parameters. Returns when the transmitter
    /// wants an event.
    pub(super) fn play(&mut self, change: &config::Change, now: Time) -> Option<Time> {
        let pacing = self.pacing.as_mut()?;
        pacing.fraction = 0;
        if change.trace.is_none() && (change.rate.is_none() || pacing.trace.is_none()) {
            // What the queue held back may go at another time now.
            return if change.queue.is_some() && !self.armed { self.arm_paced(now) } else { None };
        }
        pacing.trace = change.trace.as_ref().and_then(|play| Played::new(play, now));
        if self.free_at == Time::NEVER {
            (self.free_at, self.account.since) = (now, now);
        }
        if let Some(played) = &mut pacing.trace {
            played.skip(self.free_at);
        }
        self.armed = false;
        self.arm_paced(now)
    }

    /// Sends what goes at once from `now` on.
    fn serve(&mut self, now: Time, around: &mut Around<P>) {
        let Some(pacing) = &mut self.pacing else { return };
        if pacing.trace.as_ref().is_some_and(|played| played.trace.is_opportunities()) {
            return self.use_opportunity(now, around);
        }
        if pacing.radio.is_some() { self.send_aggregate(now, around) } else { self.send_one(now, around) }
    }

    /// The packet that is sent next, and what of its bytes is left to send: one that was begun before, or the next of the queue.
    fn next_out(&mut self, now: Time, around: &mut Around<P>) -> Option<(P, u64)> {
        if let Some(begun) = self.pacing.as_mut()?.carried.take() {
            return Some(begun);
        }
        let packet = self.take_out(now, around)?;
        let bytes = self.begin(&packet, now, around);
        Some((packet, bytes))
    }

    /// Uses the opportunity of this moment for as many packets as its bytes suffice for.
    fn use_opportunity(&mut self, now: Time, around: &mut Around<P>) {
        let Some(played) = self.pacing.as_mut().and_then(|pacing| pacing.trace.as_mut()) else { return };
        played.next += 1;
        self.count_idle(now);
        let mut room = OPPORTUNITY.get();
        while room > 0 {
            let Some((packet, left)) = self.next_out(now, around) else {
                break;
            };
            if left <= room {
                room -= left;
                self.send_off(packet, now, now, around);
            } else {
                if let Some(pacing) = &mut self.pacing {
                    pacing.carried = Some((packet, left - room));
                }
                room = 0;
            }
        }
        let spent = bits_of(Bytes::new(OPPORTUNITY.get() - room));
        self.account.idle_bits = self.account.idle_bits.saturating_sub(spent);
    }

    /// Sends one packet at the rate of a trace in steps, or at the link's own.
    fn send_one(&mut self, now: Time, around: &mut Around<P>) {
        self.count_idle(now);
        let Some((packet, left)) = self.next_out(now, around) else { return };
        let Some(pacing) = &mut self.pacing else { return };
        let bytes = Bytes::new(left);
        let done = match &pacing.trace {
            None => Some(now + self.rate.map_or(Span::ZERO, |rate| pacing.time_to_send(rate, bytes))),
            Some(Played { trace, repeat, since, .. }) => trace.steps().and_then(|trace| {
                let done = trace.finish(now.since(*since).as_nanos(), bytes, *repeat)?;
                Some(*since + Span::from_nanos(done))
            }),
        };
        let Some(done) = done else {
            // It has begun and never ends, unless the link's rate is changed.
            pacing.carried = Some((packet, left));
            (self.free_at, self.account.since) = (Time::NEVER, Time::NEVER);
            return;
        };
        let mut bytes = [0; 4];
        bytes[packet.class() as usize] = left;
        pacing.works_on(Transmission { until: done, takes: done.since(now), bytes });
        self.books.counters.busy += done.since(now);
        (self.free_at, self.account.since) = (done, done);
        self.send_off(packet, done, now, around);
    }

    /// Sends what waits as one aggregate, whose packets arrive together at its end.
    fn send_aggregate(&mut self, now: Time, around: &mut Around<P>) {
        self.count_idle(now);
        let Some(pacing) = &mut self.pacing else { return };
        let best = match &pacing.trace {
            Some(Played { trace, repeat, since, .. }) => {
                trace.steps().map(|trace| trace.rate_at(now.since(*since).as_nanos(), *repeat).0)
            }
            None => self.rate,
        };
        let Some(radio) = &mut pacing.radio else { return };
        let (rate, wifi) = (radio.rate(best.unwrap_or_default(), now), radio.wifi);
        let longest = pacing.mtu + self.overhead;
        let mut packets = std::mem::take(&mut pacing.aggregate);
        let mut aggregate = Aggregate::default();
        let mut sent_bytes = [0; 4];
        while aggregate.takes(longest, &wifi, rate) {
            let Some((packet, bytes)) = self.next_out(now, around) else {
                break;
            };
            aggregate.add(bytes);
            sent_bytes[packet.class() as usize] += bytes;
            packets.push(packet);
        }
        if !packets.is_empty() {
            let airtime = aggregate.airtime(rate);
            let end = now + airtime;
            if let Some(pacing) = &mut self.pacing {
                pacing.works_on(Transmission { until: end, takes: airtime, bytes: sent_bytes });
            }
            // Headers and padding of the radio take air that packets could have had.
            let whole = bits_of(Bytes::new(sent_bytes.iter().sum()));
            self.account.idle_bits += rate_over(rate, airtime).saturating_sub(whole);
            self.account.since = end;
            self.books.counters.busy += airtime;
            self.free_at = end + ACKNOWLEDGED;
            packets.drain(..).for_each(|packet| self.send_off(packet, end, now, around));
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.aggregate = packets;
        }
    }
}
