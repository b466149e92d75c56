//! FQ-CoDel: flows are hashed into buckets, each under a CoDel of its own. Deficit round robin serves the buckets, new ones
//! first. When the whole queue is full, the fattest bucket loses packets (RFC 8290; defaults of Linux `sch_fq_codel`).
//!
//! One difference beside those of CoDel: memory is counted in IP bytes, where Linux counts the size of its buffers.

use crate::codel::{Law, Source, Variables};
use crate::flows::{Flows, Turn};
use crate::limit::Room;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Packet, Random, Span, Time};

/// Parameters of FQ-CoDel, named as RFC 8290 and Linux name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much all buckets together hold.
    pub limit: Limit,
    /// Maximum number of IP bytes in all buckets together, in addition to `limit`.
    pub memory_limit: Bytes,
    /// Number of buckets that flows are hashed into; 1 to 65536.
    #[serde(deserialize_with = "parameter::flows")]
    pub flows: u32,
    /// Bytes that a bucket may send in a turn; 256 B to 1 MiB.
    #[serde(deserialize_with = "parameter::quantum")]
    pub quantum: Bytes,
    /// Acceptable delay of a standing queue in each bucket.
    pub target: Span,
    /// How long the delay may stay above the target before the first signal; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Every ECN-capable packet with a longer sojourn than this is marked as it leaves. No such marking by default.
    pub ce_threshold: Option<Span>,
    /// Maximum number of packets that are dropped at once from the fattest bucket when the whole queue is full, at most half of its bytes.
    pub drop_batch: u32,
}

impl crate::Parameters for Config {
    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(10_240),
            memory_limit: Bytes::new(32 << 20),
            flows: 1024,
            // An Ethernet frame of 1500 bytes (RFC 8290, section 5.2.4).
            quantum: Bytes::new(1514),
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            ce_threshold: None,
            drop_batch: 64,
        }
    }
}

/// Flow queues under CoDel.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    flows: Flows<P, Variables>,
    room: Room,
    law: Law,
    drop_batch: u32,
    /// Sojourn of the last packet that left.
    delay: Span,
}

impl<P: Packet> Source<P> for Turn<'_, P, Variables> {
    #[inline]
    fn pop(&mut self) -> Option<P> {
        Turn::pop(self)
    }
    #[inline]
    fn bytes_left(&self) -> Bytes {
        self.backlog().bytes
    }
    #[inline]
    fn variables(&mut self) -> &mut Variables {
        self.state()
    }
}

impl<P: Packet> FqCodel<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> FqCodel<P> {
        FqCodel {
            flows: Flows::new(config.flows, config.quantum, random, Variables::default),
            room: config.limit.room(link).within(config.memory_limit),
            law: Law {
                target: config.target,
                interval: config.interval,
                ecn: config.ecn,
                ce_threshold: config.ce_threshold,
                mtu: link.mtu,
            },
            drop_batch: config.drop_batch.max(1),
            delay: Span::ZERO,
        }
    }

    /// Drops half of the fattest bucket's bytes from its head, at most `drop_batch` packets (Linux `fq_codel_drop`).
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, fate: &mut dyn Fate<P>) {
        let fattest = self.flows.fattest();
        let mut turn = self.flows.turn(fattest);
        let keep = turn.backlog().bytes.get() - turn.backlog().bytes.get() / 2;
        for _ in 0..self.drop_batch {
            let Some(packet) = turn.pop() else { break };
            fate.dropped(packet, DropReason::Full, now);
            let variables = turn.state();
            variables.count = variables.count.saturating_add(1);
            if turn.backlog().bytes.get() <= keep {
                break;
            }
        }
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let bucket = self.flows.bucket_of(&packet);
        self.flows.push(bucket, packet);
        while self.room.is_exceeded(self.flows.backlog()) {
            self.drop_from_fattest(now, fate);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        let law = &self.law;
        let packet = self.flows.pop(|turn| law.dequeue(turn, now, fate))?;
        self.delay = now.since(packet.arrived());
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let (new, old) = self.flows.active();
        report("delay_ms", self.delay.as_millis_f64());
        report("new_flows", f64::from(new));
        report("old_flows", f64::from(old));
        report("dropping_flows", self.flows.listed().filter(|(state, _)| state.dropping).count() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Ecn, Rate};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn fq_codel(config: Config) -> FqCodel<TestPacket> {
        FqCodel::new(&config, &LINK, Random::stream(1, "queue"))
    }
    fn packet(flow: u32, now: Time) -> TestPacket {
        let mut packet = TestPacket { flow, ..TestPacket::new(1500, Ecn::NotEct) };
        packet.arrive(now);
        packet
    }

    #[test]
    fn an_unresponsive_flow_loses_its_excess_and_other_flows_lose_nothing() {
        // Three flows at 1000 packets/s: one sends 2000, two send 250 each. The unresponsive one gets the remaining 500.
        let (mut queue, mut fate) = (fq_codel(Config::default()), TestFate::default());
        let mut sent = [0u64; 3];
        for tick in 0..40_000u64 {
            let now = Time::from_nanos(tick * 500_000);
            queue.enqueue(packet(0, now), now, &mut fate);
            if tick % 8 == 0 {
                queue.enqueue(packet(1, now), now, &mut fate);
            }
            if tick % 8 == 4 {
                queue.enqueue(packet(2, now), now, &mut fate);
            }
            if tick % 2 == 0 {
                sent[queue.dequeue(now, &mut fate).unwrap().flow as usize] += 1;
            }
        }
        assert!(sent[1] >= 4_999 && sent[2] >= 4_999, "{sent:?}");
        assert_eq!(fate.by_flow[1..3], [0, 0]);
        assert!(sent[0] >= 9_990, "{sent:?}");
    }

    #[test]
    fn a_full_queue_drops_half_of_the_longest_flow_but_at_most_one_batch() {
        let config = Config { limit: Limit::Packets(300), ..Config::default() };
        let (mut queue, mut fate) = (fq_codel(config), TestFate::default());
        for n in 0..300 {
            queue.enqueue(packet(u32::from(n % 3 == 0), Time::ZERO), Time::ZERO, &mut fate);
        }
        assert_eq!(fate.dropped, 0);
        queue.enqueue(packet(1, Time::ZERO), Time::ZERO, &mut fate);
        // Flow 0 has 200, half is 100, a batch is 64.
        assert_eq!((fate.dropped_full, fate.by_flow[0], fate.by_flow[1]), (64, 64, 0));
        let config = Config { limit: Limit::Packets(9), ..Config::default() };
        let (mut queue, mut fate) = (fq_codel(config), TestFate::default());
        for _ in 0..10 {
            queue.enqueue(packet(0, Time::ZERO), Time::ZERO, &mut fate);
        }
        assert_eq!(fate.dropped_full, 5);
    }

    #[test]
    fn the_memory_limit_bounds_the_bytes_in_the_queue() {
        let config = Config { memory_limit: Bytes::new(15_000), ..Config::default() };
        let (mut queue, mut fate) = (fq_codel(config), TestFate::default());
        for _ in 0..100 {
            queue.enqueue(packet(0, Time::ZERO), Time::ZERO, &mut fate);
            assert!(queue.backlog().bytes <= Bytes::new(15_000));
        }
        assert!(fate.dropped_full > 0);
    }
}
