//! Token bucket filter: a shaper that sends at a rate, with bursts up to the size of a bucket of tokens (Linux `sch_tbf`), in the
//! kernel's integers. Tokens are nanoseconds: a packet costs the time that its bytes take at the rate, and the bucket holds the
//! time that the burst takes. A second bucket, with a higher rate, may limit the rate within a burst.
//!
//! One difference: the kernel's timer may fire late, and the tokens of that delay stay in the bucket. Here a packet departs at the
//! nanosecond at which there are enough tokens, or at the next tick of a coarse `timer`.

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
    /// Long-term sending rate, counted in IP bytes plus `overhead`; at least 8 bit/s.
    #[serde(deserialize_with = "parameter::rate")]
    pub rate: Rate,
    /// Size of the bucket: the bytes that the shaper may send at once after an idle time; 64 B to 1 GiB. A packet that is larger,
    /// `overhead` included, is dropped.
    #[serde(deserialize_with = "parameter::burst")]
    pub burst: Bytes,
    /// Most bytes that may wait, `overhead` included: a size (Linux's `limit`), or a time (Linux's `latency`), which means the bytes
    /// that the rate sends in it plus a burst.
    pub limit: Limit,
    /// Rate within a burst, above `rate`. By default a burst leaves at the rate of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// Size of the bucket of `peakrate`; by default one packet of the link's MTU plus `overhead`. It has no effect without `peakrate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
    /// Bytes that each packet counts in addition to its IP length. Linux counts Ethernet's header of 14 B.
    pub overhead: Bytes,
    /// Tick of the timer that wakes a packet waiting for tokens, counted from the start of the run: 4 ms in a kernel of 250 Hz
    /// without high-resolution timers. By default the timer is exact to the nanosecond. Tokens beyond the size of the bucket that
    /// come in during a tick are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<Span>,
    /// The queue in which packets wait. By default they wait first in, first out, up to `limit`; with a queue here, `limit` has no
    /// effect.
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
    fn shaping(&self, _: &[u32]) -> Option<crate::Shaping> {
        Some(crate::Shaping { rate: self.rate, overhead: self.overhead })
    }
    fn change_fault(&self, next: &crate::Config) -> Option<String> {
        let crate::Config::Tbf(next) = next else { return None };
        (self.queue != next.queue).then(|| "the queue within a token bucket filter cannot change".to_owned())
    }
}

impl Config {
    /// The full buckets of `rate` and `peakrate`, and the length of the longest packet that full buckets can send.
    fn buckets(&self, link: &Link) -> (Bucket, Option<Bucket>, u64) {
        let mtu = self.mtu_on(link);
        let peak = self.peakrate.map(|peak| Bucket::full(LinuxRate::new(peak), mtu));
        let longest = if peak.is_some() { self.burst.min(mtu) } else { self.burst };
        (Bucket::full(LinuxRate::new(self.rate), self.burst), peak, longest.get())
    }

    /// Most bytes that may wait, `overhead` included.
    fn limit_on(&self, link: &Link) -> u64 {
        let bytes = match self.limit {
            Limit::Bytes(bytes) => bytes,
            // `tc` computes the bytes of a latency for both buckets and takes the smaller result.
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
                "a token bucket filter cannot have a limit of {limit}; write a size such as \"64 KiB\", or a time such as \"50 ms\""
            )));
        }
        if config.timer.is_some_and(|tick| tick.is_zero()) {
            return Err(D::Error::custom(
                "a timer with a tick of 0 s cannot run; write timer = \"4 ms\", or leave it out",
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

    /// The tokens after `elapsed` nanoseconds and a packet of this length; negative if tokens are lacking.
    fn after(&self, elapsed: i64, length: u64) -> i64 {
        (self.tokens + elapsed).min(self.size) - self.rate.nanos(length)
    }
}

/// The packets that wait.
#[derive(Debug)]
enum Waiting<P> {
    /// A first-in, first-out queue; `limit` and `bytes` include the overhead.
    Fifo { packets: VecDeque<P>, limit: u64, bytes: u64 },
    /// Another discipline. The next packet is taken out of it ahead of time, as in the kernel.
    Queue { queue: Discipline<P>, next: Option<P> },
}

/// A shaper with one or two buckets.
#[derive(Debug)]
pub(crate) struct Tbf<P> {
    link: Link,
    rate: Bucket,
    peak: Option<Bucket>,
    /// The time of the token counts.
    counted: Time,
    overhead: u64,
    timer: Option<Span>,
    /// Length of the longest packet that full buckets can send, overhead included.
    longest: u64,
    waiting: Waiting<P>,
}

impl<P: Packet> Tbf<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Tbf<P> {
        let (rate, peak, longest) = config.buckets(link);
        let waiting = match &config.queue {
            None => Waiting::Fifo { packets: VecDeque::new(), limit: config.limit_on(link), bytes: 0 },
            Some(queue) => Waiting::Queue { queue: queue.build(link, random), next: None },
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

    /// The packet that leaves next.
    fn next(&self) -> Option<&P> {
        match &self.waiting {
            Waiting::Fifo { packets, .. } => packets.front(),
            Waiting::Queue { next, .. } => next.as_ref(),
        }
    }

    /// Nanoseconds since the tokens were counted, at most the time that fills the bucket.
    fn elapsed(&self, now: Time) -> i64 {
        now.since(self.counted).as_nanos().min(self.rate.size as u64) as i64
    }

    /// The tokens of the buckets of `rate` and `peakrate` if a packet of this length left now.
    fn after(&self, length: u64, now: Time) -> (i64, i64) {
        let elapsed = self.elapsed(now);
        let peak = self.peak.as_ref().map_or(0, |peak| peak.after(elapsed, length));
        (self.rate.after(elapsed, length), peak)
    }
}

impl<P> Waiting<P> {
    /// Takes the next packet out of an inner discipline, unless that has been done.
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

    /// Fills the buckets, as the kernel does (`tbf_change`). Waiting packets stay, except those too long for the new buckets, which
    /// are dropped.
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
            // The next packet behind another shaper is not known ahead of time.
            let Waiting::Queue { queue, .. } = &self.waiting else { return None };
            return queue.departs(now);
        };
        let (tokens, peak_tokens) = self.after(self.length(next), now);
        // The elapsed time counts only as far as it fills the bucket.
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
        // Tokens at the last departure.
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
