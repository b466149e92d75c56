//! Links whose transmitter does more than send each packet at a rate: links with a trace, a radio channel, outages, a rate of 10
//! Gbit/s or more, a queue that holds packets back, or a [`crate::Station`] that watches the queue. Plain links have no [`Pacing`]
//! and pay one check for it.

use super::account::{Transmission, rate_over};
use super::{Around, Link};
use crate::config;
use crate::trace::{OPPORTUNITY, Playback, Trace, bits_of};
use crate::wifi::{ACKNOWLEDGED, Aggregate, Radio};
use crate::wire::Wire;
use std::sync::Arc;
use weir_base::{Bytes, Rate, Span, Time};

/// From this rate on, a packet's fraction of a nanosecond is carried to the next packet: rounded for each packet, 28 bytes at 100
/// Gbit/s (2.24 ns) would be sent 12 % too fast. Below, a packet's time is rounded by itself.
const FRACTIONS_FROM: Rate = Rate::from_mbit_per_sec(10_000);

#[derive(Debug)]
pub(super) struct Pacing<P> {
    /// The trace that gives the link's rate; `None` if the rate is constant.
    trace: Option<Played>,
    radio: Option<Box<Radio>>,
    /// Transmission time left over from whole nanoseconds, in nanoseconds times the rate.
    fraction: u64,
    /// Whether an outage keeps it from sending.
    down: bool,
    /// A packet whose transmission has begun, and how many of its bytes are unsent.
    pub(super) carried: Option<(P, u64)>,
    /// The transmission under way, or the last one.
    pub(super) transmission: Transmission,
    /// Whether the queue may hold packets back although the link is free.
    queue_waits: bool,
    /// Until when the queue holds packets back while the link is free: an event instead of the transmitter's own. [`Time::NEVER`] if
    /// it holds none back.
    held_until: Time,
    /// The station that watches the queue is told when it falls below this; zero if no station watches.
    watched: Bytes,
    /// Largest IP packet.
    mtu: u64,
    /// The packets of an aggregate while it is put together.
    aggregate: Vec<P>,
}

/// A trace, and the time at which it began.
#[derive(Debug)]
struct Played {
    trace: Arc<Trace>,
    repeat: bool,
    since: Time,
    /// Number of the next opportunity that was neither used nor skipped.
    next: u64,
    /// The part of its capacity, from its start, that was counted or skipped, in bits times nanoseconds per second.
    counted: u128,
}

impl Played {
    /// `None` if the recording is not loaded; engines refuse such a run.
    fn new(play: &Playback, since: Time) -> Option<Played> {
        let trace = Arc::clone(play.recording.as_ref()?);
        Some(Played { trace, repeat: play.repeat, since, next: 0, counted: 0 })
    }

    /// Its capacity since the last call, up to and including `now`, in bits times nanoseconds per second.
    fn take(&mut self, now: Time) -> u128 {
        let total = self.trace.total(now.since(self.since).as_nanos(), self.repeat);
        total.saturating_sub(std::mem::replace(&mut self.counted, total))
    }

    /// Leaves its capacity before `until` uncounted; an opportunity at `until` can still be used.
    fn skip(&mut self, until: Time) {
        if until > self.since {
            let opportunity = u64::from(self.trace.is_opportunities());
            let total = self.trace.total(until.since(self.since).as_nanos() - opportunity, self.repeat);
            self.counted = self.counted.max(total);
        }
    }
}

impl<P> Pacing<P> {
    /// The pacing of this link; `None` for a plain link.
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
            ..Pacing::plain()
        }))
    }

    /// The pacing of a link that sends each packet at its rate.
    fn plain() -> Pacing<P> {
        Pacing {
            trace: None,
            radio: None,
            fraction: 0,
            down: false,
            carried: None,
            transmission: Transmission::default(),
            queue_waits: false,
            held_until: Time::NEVER,
            watched: Bytes::ZERO,
            mtu: 0,
            aggregate: Vec::new(),
        }
    }

    /// Packets whose transmission has begun, but that are not in the pipe.
    pub(super) fn inside(&self) -> u64 {
        u64::from(self.carried.is_some())
    }

    /// When the transmitter, which is free from `from` on, may begin to send; `None` if never.
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
        // A radio cannot begin to send at rate zero; on a wire, the transmission begins and waits.
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

    /// The capacity of an idle link from one time to another, in bits times nanoseconds per second: zero in an outage.
    pub(super) fn capacity(&mut self, rate: Rate, from: Time, to: Time) -> u128 {
        if let Some(radio) = &mut self.radio {
            // The radio was sending before `from`: its capacity of that time is not idle.
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

    /// Begins a transmission. The capacity of its duration is not counted as idle.
    fn works_on(&mut self, transmission: Transmission) {
        self.transmission = transmission;
        if let Some(played) = &mut self.trace {
            played.skip(transmission.until);
        }
    }
}

impl<P: Wire> Link<P> {
    /// A packet has entered the queue, and the transmitter has no event of its own: sends the packets that may go now. Returns the
    /// time of the transmitter's new event, if it needs one.
    pub(super) fn taken_in(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        let held_until = self.pacing.as_ref()?.held_until;
        if held_until != Time::NEVER {
            // Only a packet that may go before the others makes the event earlier.
            self.queue.departs(self.free_at.max(now)).filter(|at| *at < held_until)?;
        }
        self.take_turn(now, around)
    }

    /// Sends the packets that may go now; the transmitter has no event. Returns the time of its new one, if it needs one.
    fn take_turn(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        loop {
            let at = self.arm_paced(now)?;
            if at > now {
                return Some(at);
            }
            self.wake = Time::NEVER;
            self.serve(now, around);
        }
    }

    /// Handles the transmitter's event, unless it is stale. Returns the time of the next one, if it needs one.
    pub(crate) fn transmit_paced(&mut self, now: Time, around: &mut Around<P>) -> Option<Time> {
        let pacing = self.pacing.as_mut()?;
        let sends = self.wake != Time::NEVER;
        if now != if sends { self.wake } else { pacing.held_until } {
            return None;
        }
        pacing.held_until = Time::NEVER;
        self.wake = Time::NEVER;
        if pacing.down {
            return None;
        }
        if sends {
            self.serve(now, around);
        }
        self.take_turn(now, around)
    }

    /// Sets the time of the next event, if packets wait: the transmitter's own, or the time when the queue may send.
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
        self.wake = pacing.begins(from)?;
        Some(self.wake)
    }

    /// From now on [`Link::has_drained`] tells when the queue falls below `below`.
    pub(crate) fn watch(&mut self, below: Bytes, now: Time) {
        if self.pacing.is_none() {
            // A link that is not paced has its event, if any, when the transmitter is free.
            let mut pacing = Pacing::plain();
            self.count_idle(now);
            self.account.since = self.free_at.max(now);
            pacing.transmission = self.transmission();
            self.pacing = Some(Box::new(pacing));
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.watched = below;
        }
    }

    /// Whether the queue is watched and has fallen below the threshold; `before` is its backlog before.
    pub(crate) fn has_drained(&self, before: Bytes) -> bool {
        let below = self.pacing.as_ref().map_or(Bytes::ZERO, |pacing| pacing.watched);
        before >= below && self.queue.backlog().bytes < below
    }

    /// An outage begins or ends. Returns the time of the transmitter's new event, if it needs one.
    pub(crate) fn outage(&mut self, begins: bool, now: Time) -> Option<Time> {
        self.count_idle(now);
        let pacing = self.pacing.as_mut()?;
        pacing.down = begins;
        if begins || self.is_armed() { None } else { self.arm_paced(now) }
    }

    /// Applies a change of the trace, the rate or the queue's parameters. Returns the time of the transmitter's new event, if it
    /// needs one.
    pub(super) fn play(&mut self, change: &config::Change, now: Time) -> Option<Time> {
        let pacing = self.pacing.as_mut()?;
        pacing.fraction = 0;
        if change.trace.is_none() && (change.rate.is_none() || pacing.trace.is_none()) {
            // Packets that the queue holds back may now leave at another time.
            return if change.queue.is_some() && !self.is_armed() { self.arm_paced(now) } else { None };
        }
        pacing.trace = change.trace.as_ref().and_then(|play| Played::new(play, now));
        if self.free_at == Time::NEVER {
            (self.free_at, self.account.since) = (now, now);
        }
        if let Some(played) = &mut pacing.trace {
            played.skip(self.free_at);
        }
        self.wake = Time::NEVER;
        self.arm_paced(now)
    }

    /// Begins what the link sends at `now`: an opportunity, an aggregate or one packet.
    fn serve(&mut self, now: Time, around: &mut Around<P>) {
        let Some(pacing) = &mut self.pacing else { return };
        if pacing.trace.as_ref().is_some_and(|played| played.trace.is_opportunities()) {
            return self.use_opportunity(now, around);
        }
        if pacing.radio.is_some() { self.send_aggregate(now, around) } else { self.send_one(now, around) }
    }

    /// The packet to send next, and how many of its bytes are unsent: the packet that has begun, or else the next of the queue.
    fn next_out(&mut self, now: Time, around: &mut Around<P>) -> Option<(P, u64)> {
        if let Some(begun) = self.pacing.as_mut()?.carried.take() {
            return Some(begun);
        }
        let mut packet = self.take_out(now, around)?;
        let bytes = self.begin(&mut packet, now, around);
        Some((packet, bytes))
    }

    /// Uses the opportunity at `now` for as many packets as its bytes allow.
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
            // The transmission has begun and never ends, unless the link's rate is changed.
            pacing.carried = Some((packet, left));
            (self.free_at, self.account.since) = (Time::NEVER, Time::NEVER);
            return;
        };
        let mut bytes = [0; 4];
        bytes[packet.class() as usize] = left;
        pacing.works_on(Transmission { until: done, takes: done.since(now), bytes });
        self.stats.counters.busy += done.since(now);
        (self.free_at, self.account.since) = (done, done);
        self.send_off(packet, done, now, around);
    }

    /// Sends waiting packets as one aggregate; they all arrive at its end.
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
            // The radio's headers and padding take airtime that packets could have used: it counts as idle.
            let whole = bits_of(Bytes::new(sent_bytes.iter().sum()));
            self.account.idle_bits += rate_over(rate, airtime).saturating_sub(whole);
            self.account.since = end;
            self.stats.counters.busy += airtime;
            self.free_at = end + ACKNOWLEDGED;
            packets.drain(..).for_each(|packet| self.send_off(packet, end, now, around));
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.aggregate = packets;
        }
    }
}
