//! Token bucket filter: a shaper that sends at a rate, and in bursts as far as a bucket of tokens allows (Linux `sch_tbf`), in the
//! kernel's integers. Tokens are nanoseconds: a packet costs the time that its bytes take at the rate, the bucket holds the time
//! that the burst takes. A second bucket, with a higher rate, may limit the rate within a burst.
//!
//! One difference: the kernel's timer may fire late, and what it is late is made up for from the bucket; here a packet departs
//! at the very nanosecond at which there are tokens enough, or at the next tick of a coarse `timer`.

use crate::psched::{ETHERNET_HEADER, LinuxRate};
use crate::{Backlog, Discipline, DropReason, Fate, Limit, Link, Queue, bands, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::VecDeque;
use weir_base::{Bytes, FlowId, Packet, Random, Rate, Span, Time};

/// Parameters of the token bucket filter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Config {
    /// Rate at which it sends in the long run, counted in IP bytes and `overhead`; at least 8 bit/s.
    #[serde(deserialize_with = "parameter::rate")]
    pub rate: Rate,
    /// Size of the bucket: what it may send at once after a rest; 64 B to 1 GiB. A packet that is larger, `overhead` included, is
    /// dropped.
    #[serde(deserialize_with = "parameter::burst")]
    pub burst: Bytes,
    /// What may wait, `overhead` included: a size (Linux's `limit`), or a time (Linux's `latency`) for what the rate sends in it
    /// and a burst.
    pub limit: Limit,
    /// Rate within a burst, above `rate`; without it a burst leaves as fast as the link allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// Size of the bucket of `peakrate`, which means nothing without it; by default one packet of the link's MTU and `overhead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
    /// Bytes that each packet counts beside its IP length. Linux counts Ethernet's header of 14 B.
    pub overhead: Bytes,
    /// The tick by which a packet that waits for tokens is woken, from the start of the run on: 4 ms in a kernel of 250 Hz without
    /// high-resolution timers. By default it is woken at the nanosecond. What the bucket cannot hold of a tick is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<Span>,
    /// The queue in which packets wait, instead of first in, first out with `limit`, which then means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "bands::nested")]
    pub queue: Option<Box<crate::Config>>,
}

impl crate::Parameters for Config {
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
    fn inner(&self) -> (&'static str, Vec<&crate::Config>) {
        ("queue", self.queue.iter().map(|queue| &**queue).collect())
    }
    fn change_fault(&self, next: &crate::Config) -> Option<String> {
        let crate::Config::Tbf(next) = next else { return None };
        (self.queue != next.queue).then(|| "the queue within a token bucket filter cannot change".to_owned())
    }
}

impl Config {
    /// The buckets, full, and the longest packet that ever has tokens enough.
    fn buckets(&self, link: &Link) -> (Bucket, Option<Bucket>, u64) {
        let mtu = self.mtu_on(link);
        let peak = self.peakrate.map(|peak| Bucket::full(LinuxRate::new(peak), mtu));
        let longest = if peak.is_some() { self.burst.min(mtu) } else { self.burst };
        (Bucket::full(LinuxRate::new(self.rate), self.burst), peak, longest.get())
    }

    /// What may wait, in bytes.
    fn limit_on(&self, link: &Link) -> u64 {
        let bytes = match self.limit {
            Limit::Bytes(bytes) => bytes,
            // What `tc` computes from a latency, of both buckets the lesser.
            Limit::Time(latency) => {
                let limit = LinuxRate::new(self.rate).bytes_in(latency) + self.burst;
                let peak = self.peakrate.map(LinuxRate::new);
                peak.map_or(limit, |peak| limit.min(peak.bytes_in(latency) + self.mtu_on(link)))
            }
            Limit::Packets(_) | Limit::Bdp(_) => Bytes::ZERO,
        };
        bytes.get()
    }

    fn mtu_on(&self, link: &Link) -> Bytes {
        self.mtu.unwrap_or(link.mtu + self.overhead)
    }
}

impl Default for Config {
    /// `tc` has no defaults for rate, burst and limit. The burst is ten full Ethernet frames.
    fn default() -> Config {
        Config {
            rate: Rate::from_mbit_per_sec(10),
            burst: Bytes::new(15_140),
            limit: Limit::Time(Span::from_millis(50)),
            peakrate: None,
            mtu: None,
            overhead: ETHERNET_HEADER,
            timer: None,
            queue: None,
        }
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Config::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
        let config = Config::deserialize(deserializer)?;
        if let Limit::Packets(_) | Limit::Bdp(_) = config.limit {
            let limit = config.limit;
            return Err(D::Error::custom(format!(
                "a token bucket filter counts no {limit}; write a size such as \"64 KiB\", or a time such as \"50 ms\""
            )));
        }
        if config.timer.is_some_and(|tick| tick.is_zero()) {
            return Err(D::Error::custom(
                "a timer without a tick wakes nobody; write timer = \"4 ms\", or leave it out",
            ));
        }
        let rate = LinuxRate::new(config.rate);
        match config.peakrate {
            Some(peak) if LinuxRate::new(peak) <= rate => Err(D::Error::custom(format!(
                "a peakrate of {peak} is not above the rate of {}; write a larger one, or leave it out",
                config.rate
            ))),
            _ => Ok(config),
        }
    }
}

/// A bucket of tokens, in nanoseconds.
#[derive(Debug)]
struct Bucket {
    rate: LinuxRate,
    size: i64,
    tokens: i64,
}

impl Bucket {
    fn full(rate: LinuxRate, size: Bytes) -> Bucket {
        let nanos = rate.nanos(size.get());
        Bucket { rate, size: nanos, tokens: nanos }
    }

    /// What would be left after a packet of this length, when so much time has passed; negative when it lacks so much.
    fn after(&self, elapsed: i64, length: u64) -> i64 {
        (self.tokens + elapsed).min(self.size) - self.rate.nanos(length)
    }
}

/// Packets in waiting.
#[derive(Debug)]
enum Waiting<P> {
    /// First in, first out, and so many bytes, overhead included.
    Fifo { packets: VecDeque<P>, limit: u64, bytes: u64 },
    /// Another discipline. The packet that is to leave next is taken out of it ahead of time, as the kernel does.
    Queue { queue: Box<Discipline<P>>, next: Option<P> },
}

/// A shaper with one or two buckets.
#[derive(Debug)]
pub struct Tbf<P> {
    link: Link,
    rate: Bucket,
    peak: Option<Bucket>,
    /// When the tokens were counted.
    counted: Time,
    overhead: u64,
    timer: Option<Span>,
    /// The longest packet that ever has tokens enough, overhead included.
    longest: u64,
    waiting: Waiting<P>,
}

impl<P: Packet> Tbf<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Tbf<P> {
        let (rate, peak, longest) = config.buckets(link);
        let waiting = match &config.queue {
            None => Waiting::Fifo { packets: VecDeque::new(), limit: config.limit_on(link), bytes: 0 },
            Some(queue) => Waiting::Queue { queue: Box::new(queue.build(link, random)), next: None },
        };
        Tbf {
            link: *link,
            rate,
            longest,
            peak,
            counted: Time::ZERO,
            overhead: config.overhead.get(),
            timer: config.timer,
            waiting,
        }
    }

    fn length(&self, packet: &P) -> u64 {
        u64::from(packet.wire_length()) + self.overhead
    }

    /// The packet that is to leave next.
    fn next(&self) -> Option<&P> {
        match &self.waiting {
            Waiting::Fifo { packets, .. } => packets.front(),
            Waiting::Queue { next, .. } => next.as_ref(),
        }
    }

    /// Time since the tokens were counted, as far as it can fill the bucket.
    fn elapsed(&self, now: Time) -> i64 {
        now.since(self.counted).as_nanos().min(self.rate.size as u64) as i64
    }

    /// The tokens of both buckets after a packet of this length leaves now.
    fn after(&self, length: u64, now: Time) -> (i64, i64) {
        let elapsed = self.elapsed(now);
        let peak = self.peak.as_ref().map_or(0, |peak| peak.after(elapsed, length));
        (self.rate.after(elapsed, length), peak)
    }
}

impl<P> Waiting<P> {
    /// Sees to it that the next packet is known, if there is one.
    fn look_ahead(&mut self, now: Time, fate: &mut dyn Fate<P>)
    where
        P: Packet,
    {
        if let Waiting::Queue { queue, next } = self
            && next.is_none()
        {
            *next = queue.dequeue(now, fate);
        }
    }
}

impl<P: Packet> Queue<P> for Tbf<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let length = self.length(&packet);
        if length > self.longest {
            return fate.dropped(packet, DropReason::Full, now);
        }
        match &mut self.waiting {
            Waiting::Fifo { limit, bytes, .. } if *bytes + length > *limit => {
                fate.dropped(packet, DropReason::Full, now);
            }
            Waiting::Fifo { packets, bytes, .. } => {
                *bytes += length;
                packets.push_back(packet);
            }
            Waiting::Queue { queue, .. } => queue.enqueue(packet, now, fate),
        }
        self.waiting.look_ahead(now, fate);
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.waiting.look_ahead(now, fate);
        let length = self.length(self.next()?);
        let (tokens, peak_tokens) = self.after(length, now);
        if tokens < 0 || peak_tokens < 0 {
            return None;
        }
        self.rate.tokens = tokens;
        if let Some(peak) = &mut self.peak {
            peak.tokens = peak_tokens;
        }
        self.counted = now;
        let packet = match &mut self.waiting {
            Waiting::Fifo { packets, bytes, .. } => {
                *bytes -= length;
                packets.pop_front()
            }
            Waiting::Queue { next, .. } => next.take(),
        };
        self.waiting.look_ahead(now, fate);
        packet
    }

    /// The buckets are full again, as in the kernel (`tbf_change`); what waits stays, but for packets that would never have tokens
    /// enough.
    fn reconfigure(&mut self, config: &crate::Config, now: Time, fate: &mut dyn Fate<P>) {
        let crate::Config::Tbf(config) = config else { return };
        (self.rate, self.peak, self.longest) = config.buckets(&self.link);
        (self.counted, self.overhead, self.timer) = (now, config.overhead.get(), config.timer);
        let (overhead, longest) = (self.overhead, self.longest);
        let Waiting::Fifo { packets, limit, bytes } = &mut self.waiting else { return };
        *limit = config.limit_on(&self.link);
        for packet in std::mem::take(packets) {
            match u64::from(packet.wire_length()) + overhead > longest {
                true => fate.dropped(packet, DropReason::Full, now),
                false => packets.push_back(packet),
            }
        }
        *bytes = packets.iter().map(|packet| u64::from(packet.wire_length()) + overhead).sum();
    }

    fn takes(&self, flow: FlowId, length: u32) -> bool {
        let charged = u64::from(length) + self.overhead;
        charged <= self.longest
            && match &self.waiting {
                Waiting::Fifo { limit, bytes, .. } => *bytes + charged <= *limit,
                Waiting::Queue { queue, .. } => queue.takes(flow, length),
            }
    }

    fn update(&mut self, now: Time) {
        if let Waiting::Queue { queue, .. } = &mut self.waiting {
            queue.update(now);
        }
    }

    fn departs(&self, now: Time) -> Option<Time> {
        let Some(next) = self.next() else {
            // What waits behind another shaper is not known ahead of time.
            let Waiting::Queue { queue, .. } = &self.waiting else { return None };
            return queue.departs(now);
        };
        let (tokens, peak_tokens) = self.after(self.length(next), now);
        // Only what has passed counts that fits into the bucket.
        let at = now + Span::from_nanos((-tokens.min(peak_tokens)).max(0) as u64);
        Some(match self.timer {
            Some(tick) if at > now => {
                let tick = tick.as_nanos();
                Time::ZERO
                    + Span::from_nanos(at.since(Time::ZERO).as_nanos().div_ceil(tick).saturating_mul(tick))
            }
            _ => at,
        })
    }

    fn is_work_conserving(&self) -> bool {
        false
    }

    fn backlog(&self) -> Backlog {
        match &self.waiting {
            Waiting::Fifo { packets, bytes, .. } => {
                let packets = packets.len() as u64;
                Backlog { packets: packets as u32, bytes: Bytes::new(bytes - packets * self.overhead) }
            }
            Waiting::Queue { queue, next } => {
                let mut backlog = queue.backlog();
                next.iter().for_each(|packet| backlog.add(packet));
                backlog
            }
        }
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        // As of the last departure.
        report("tokens_ms", self.rate.tokens as f64 / 1e6);
        if let Some(peak) = &self.peak {
            report("peak_tokens_ms", peak.tokens as f64 / 1e6);
        }
        if let Waiting::Queue { queue, .. } = &self.waiting {
            queue.state(report);
        }
    }
}

#[cfg(test)]
mod tests;
