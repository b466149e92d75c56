//! Token bucket filter: a shaper that sends at a rate, and in bursts as far as a bucket of tokens allows (Linux `sch_tbf`), in the
//! kernel's integers. Tokens are nanoseconds: a packet costs the time that its bytes take at the rate, the bucket holds the time
//! that the burst takes. A second bucket, with a higher rate, may limit the rate within a burst.
//!
//! One difference: the kernel's timer may fire late, and what it is late is made up for from the bucket; here a packet departs
//! at the very nanosecond at which there are tokens enough.

use crate::psched::{ETHERNET_HEADER, LinuxRate};
use crate::{Backlog, Discipline, DropReason, Fate, Limit, Link, Queue, bands, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::VecDeque;
use weir_base::{Bytes, Packet, Random, Rate, Span, Time};

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
    rate: Bucket,
    peak: Option<Bucket>,
    /// When the tokens were counted.
    counted: Time,
    overhead: u64,
    /// The longest packet that ever has tokens enough, overhead included.
    longest: u64,
    waiting: Waiting<P>,
}

impl<P: Packet> Tbf<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Tbf<P> {
        let rate = LinuxRate::new(config.rate);
        let mtu = config.mtu.unwrap_or(link.mtu + config.overhead);
        let peak = config.peakrate.map(LinuxRate::new);
        let limit = match config.limit {
            Limit::Bytes(bytes) => bytes,
            // What `tc` computes from a latency, of both buckets the lesser.
            Limit::Time(latency) => {
                let limit = rate.bytes_in(latency) + config.burst;
                peak.map_or(limit, |peak| limit.min(peak.bytes_in(latency) + mtu))
            }
            Limit::Packets(_) | Limit::Bdp(_) => Bytes::ZERO,
        };
        let waiting = match &config.queue {
            None => Waiting::Fifo { packets: VecDeque::new(), limit: limit.get(), bytes: 0 },
            Some(queue) => Waiting::Queue { queue: Box::new(queue.build(link, random)), next: None },
        };
        Tbf {
            rate: Bucket::full(rate, config.burst),
            longest: if peak.is_some() { config.burst.min(mtu) } else { config.burst }.get(),
            peak: peak.map(|peak| Bucket::full(peak, mtu)),
            counted: Time::ZERO,
            overhead: config.overhead.get(),
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

    fn takes(&self, length: u32) -> bool {
        let charged = u64::from(length) + self.overhead;
        charged <= self.longest
            && match &self.waiting {
                Waiting::Fifo { limit, bytes, .. } => *bytes + charged <= *limit,
                Waiting::Queue { queue, .. } => queue.takes(length),
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
        Some(now + Span::from_nanos((-tokens.min(peak_tokens)).max(0) as u64))
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
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::Ecn;

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(100),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    fn build(text: &str) -> Tbf<TestPacket> {
        Tbf::new(&config(text), &LINK, Random::stream(1, "queue"))
    }

    /// Packets of these lengths at these times in microseconds, and when each departs, as (microseconds, length).
    fn departures(
        queue: &mut Tbf<TestPacket>,
        fate: &mut TestFate,
        arrivals: &[(u64, u32)],
    ) -> Vec<(u64, u32)> {
        let (mut left, mut now) = (vec![], us(arrivals[0].0));
        let ends = arrivals.iter().skip(1).map(|(at, _)| us(*at)).chain([Time::NEVER]);
        for (&(at, length), end) in arrivals.iter().zip(ends) {
            queue.enqueue(TestPacket::new(length, Ecn::NotEct), us(at), fate);
            now = now.max(us(at));
            while let Some(at) = queue.departs(now).filter(|at| *at < end) {
                let packet = queue.dequeue(at, fate).unwrap();
                left.push((at.as_nanos() / 1000, packet.length));
                now = at;
            }
        }
        left
    }

    #[test]
    fn a_burst_leaves_at_once_and_what_follows_at_the_rate() {
        // 8 Mbit/s: a microsecond a byte. The bucket holds three packets of 986 + 14 bytes.
        let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "3000 B", "limit": "10 kB" }"#);
        let left = departures(&mut queue, &mut TestFate::default(), &[(0, 986); 5]);
        assert_eq!(left, [0, 0, 0, 1000, 2000].map(|at| (at, 986)));
    }

    #[test]
    fn a_rest_fills_the_bucket_up_to_the_burst_and_no_further() {
        let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "2000 B", "limit": "10 kB" }"#);
        let mut fate = TestFate::default();
        let left = departures(&mut queue, &mut fate, &[(0, 986), (0, 986), (500, 986), (50_000, 986)]);
        // The third waits for the 500 bytes that are lacking at 500 us.
        assert_eq!(left, [(0, 986), (0, 986), (1000, 986), (50_000, 986)]);
        let left = departures(&mut queue, &mut fate, &[(50_000, 486), (50_000, 986), (50_000, 486)]);
        // 1000 us of tokens are left after the one at 50 ms, which found the bucket full.
        assert_eq!(left, [(50_000, 486), (50_500, 986), (51_000, 486)]);
    }

    #[test]
    fn the_peak_rate_spaces_a_burst() {
        // A packet costs 1000 us at 8 Mbit/s and 250 us at 32 Mbit/s, whose bucket holds one.
        let text = r#"{ "rate": "8 Mbit/s", "burst": "3000 B", "limit": "10 kB", "peakrate": "32 Mbit/s", "mtu": "1000 B" }"#;
        let left = departures(&mut build(text), &mut TestFate::default(), &[(0, 986); 6]);
        // Three and what has come in meanwhile: the fourth lacks 250 of its 1000 us at 750 us.
        assert_eq!(left, [0, 250, 500, 1000, 2000, 3000].map(|at| (at, 986)));
    }

    #[test]
    fn the_limit_counts_headers_and_a_latency_is_what_the_rate_sends_in_it_and_the_burst() {
        let dropped = |text: &str| {
            let (mut queue, mut fate) = (build(text), TestFate::default());
            for _ in 0..20 {
                let (takes, dropped) = (Queue::<TestPacket>::takes(&queue, 986), fate.dropped);
                queue.enqueue(TestPacket::new(986, Ecn::NotEct), Time::ZERO, &mut fate);
                assert_eq!(takes, fate.dropped == dropped);
            }
            fate.dropped_full
        };
        assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "5999 B" }"#), 15);
        assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "6 kB" }"#), 14);
        // 4 ms at 1 MB/s, and 2 kB.
        assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "4 ms" }"#), 14);
        // Of the peak rate: 4 ms at 1.5 MB/s and 1 kB are more, 1 ms at 1.5 MB/s and 1 kB less.
        let peak = |limit: &str| {
            format!(
                r#"{{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "{limit}", "peakrate": "12 Mbit/s", "mtu": "1 kB" }}"#
            )
        };
        assert_eq!((dropped(&peak("4 ms")), dropped(&peak("1 ms"))), (14, 18));
    }

    #[test]
    fn a_packet_larger_than_a_bucket_is_dropped() {
        let (mut queue, mut fate) = (build(r#"{ "burst": "1000 B" }"#), TestFate::default());
        queue.enqueue(TestPacket::new(987, Ecn::NotEct), Time::ZERO, &mut fate);
        queue.enqueue(TestPacket::new(986, Ecn::NotEct), Time::ZERO, &mut fate);
        assert_eq!((fate.dropped_full, queue.backlog().packets), (1, 1));
        assert_eq!(queue.backlog().bytes, Bytes::new(986));
    }

    #[test]
    fn a_queue_within_decides_what_is_dropped_and_in_which_order() {
        let text = r#"{ "rate": "8 Mbit/s", "burst": "1000 B", "queue": { "kind": "strict-priority" } }"#;
        let (mut queue, mut fate) = (build(text), TestFate::default());
        for ecn in [Ecn::NotEct, Ecn::NotEct, Ecn::Ect1] {
            queue.enqueue(TestPacket::new(986, ecn), Time::ZERO, &mut fate);
        }
        // The first was on its way out; of the others ECT(1) goes first.
        let mut now = Time::ZERO;
        let order: Vec<_> = std::iter::from_fn(|| {
            now = queue.departs(now)?;
            queue.dequeue(now, &mut fate).map(|packet| (now, packet.ecn))
        })
        .collect();
        assert_eq!(order, [(us(0), Ecn::NotEct), (us(1000), Ecn::Ect1), (us(2000), Ecn::NotEct)]);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let refused = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
        assert!(refused(r#"{ "limit": "100 packets" }"#).contains("counts no 100 packets"));
        assert!(refused(r#"{ "peakrate": "10 Mbit/s" }"#).contains("is not above the rate of 10 Mbit/s"));
        assert!(refused(r#"{ "rate": "7 bit/s" }"#).contains("at least 8 bit/s"));
        assert!(refused(r#"{ "burst": "63 B" }"#).contains("write 64 B to 1 GiB"));
        assert!(refused(r#"{ "quantum": 1 }"#).contains("unknown field"));
    }
}
