//! FQ-PIE: flows are hashed into buckets, each under a PIE of its own. Deficit round robin serves the buckets, new ones first
//! (defaults of Linux `sch_fq_pie`, except that ECN is on unless switched off, where Linux needs `ecn`).
//!
//! Two differences beside those of PIE. All periodic steps of a bucket that are due are taken when it is next used, which gives
//! the same values without a pass over a thousand empty buckets each period. Memory is counted in IP bytes.

use crate::flows::Flows;
use crate::limit::Room;
use crate::pie::{self, Law, Variables};
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Packet, Random, Span, Time};

/// Parameters of FQ-PIE, named as Linux names them.
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
    /// Target delay of each bucket.
    pub target: Span,
    /// How often a bucket's drop probability is updated; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub tupdate: Span,
    /// Weight of the delay's deviation from the target, in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub beta: f64,
    /// How long a burst in a bucket may last before the bucket drops packets.
    pub max_burst: Span,
    /// Whether ECN-capable packets are marked instead of dropped while the bucket's drop probability is at most `ecn_prob`.
    pub ecn: bool,
    /// Drop probability above which ECN-capable packets too are dropped; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub ecn_prob: f64,
    /// Whether the drop probability of a packet is proportional to its length.
    pub bytemode: bool,
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
        let pie = pie::Config::default();
        Config {
            limit: Limit::Packets(10_240),
            memory_limit: Bytes::new(32 << 20),
            flows: 1024,
            quantum: Bytes::new(1514),
            target: pie.target,
            tupdate: pie.tupdate,
            alpha: pie.alpha,
            beta: pie.beta,
            max_burst: pie.max_burst,
            ecn: pie.ecn,
            ecn_prob: pie.mark_ecnth,
            bytemode: pie.bytemode,
        }
    }
}

/// Flow queues under PIE.
#[derive(Debug)]
pub(crate) struct FqPie<P> {
    flows: Flows<P, Variables>,
    room: Room,
    law: Law,
    random: Random,
    /// Sojourn of the last packet that left.
    delay: Span,
}

impl<P: Packet> FqPie<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> FqPie<P> {
        let pie = pie::Config {
            limit: config.limit,
            target: config.target,
            tupdate: config.tupdate,
            alpha: config.alpha,
            beta: config.beta,
            max_burst: config.max_burst,
            ecn: config.ecn,
            mark_ecnth: config.ecn_prob,
            bytemode: config.bytemode,
        };
        let law = Law::new(&pie, link);
        FqPie {
            flows: Flows::new(config.flows, config.quantum, random.clone(), || law.variables()),
            room: config.limit.room(link).within(config.memory_limit),
            law,
            random,
            delay: Span::ZERO,
        }
    }
}

impl<P: Packet> Queue<P> for FqPie<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let (length, whole) = (packet.wire_length(), self.flows.backlog());
        let index = self.flows.bucket_of(&packet);
        let mut turn = self.flows.turn(index);
        let backlog = turn.backlog();
        self.law.update(turn.state(), backlog, now);
        if !self.room.fits(whole, length) {
            return self.law.refuse(turn.state(), packet, DropReason::Full, now, fate);
        }
        if let Some(packet) = self.law.admit(turn.state(), backlog, packet, &mut self.random, now, fate) {
            self.flows.push(index, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<P>) -> Option<P> {
        let law = &self.law;
        let packet = self.flows.pop(|turn| {
            let before = turn.backlog();
            law.update(turn.state(), before, now);
            let packet = turn.pop()?;
            let empty = turn.backlog().packets == 0;
            law.left(turn.state(), &packet, empty, now);
            Some(packet)
        })?;
        self.delay = now.since(packet.arrived());
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    /// The probabilities date from each bucket's last packet: they are updated only then.
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let (new, old) = self.flows.active();
        let largest = self.flows.listed().map(|(state, _)| state.probability()).fold(0.0, f64::max);
        report("delay_ms", self.delay.as_millis_f64());
        report("new_flows", f64::from(new));
        report("old_flows", f64::from(old));
        report("largest_drop_probability", largest);
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

    #[test]
    fn only_the_unresponsive_flow_loses_packets() {
        // 1000 packets/s: flow 0 sends 1000, flow 1 250. The bucket of flow 0 grows, and a quarter of it is dropped.
        let mut queue = FqPie::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        let mut sent = [0u64; 2];
        for tick in 0..60_000u64 {
            let now = Time::from_nanos(tick * 1_000_000);
            let mut enqueue = |flow, now| {
                let mut packet = TestPacket { flow, ..TestPacket::new(1500, Ecn::NotEct) };
                packet.arrive(now);
                queue.enqueue(packet, now, &mut fate);
            };
            enqueue(0, now);
            if tick % 4 == 0 {
                enqueue(1, now);
            }
            sent[queue.dequeue(now, &mut fate).unwrap().flow as usize] += 1;
        }
        assert_eq!((sent[1], fate.by_flow[1], fate.dropped_full), (15_000, 0, 0));
        assert!((14_500..15_100).contains(&fate.by_flow[0]), "{:?}", fate.by_flow);
    }

    #[test]
    fn late_updates_give_the_same_values_as_updates_on_time() {
        // The delay is 30 ms and a packet waits; one bucket is updated at each step, the other once for all steps.
        let law = Law::new(&pie::Config::default(), &LINK);
        let mut packet = TestPacket::new(1500, Ecn::NotEct);
        packet.arrive(Time::ZERO);
        let mut backlog = Backlog::default();
        backlog.add(&packet);
        let variables = || {
            let mut variables = law.variables();
            law.left(&mut variables, &packet, false, Time::ZERO + Span::from_millis(14 + 16));
            variables
        };
        let (mut each, mut all) = (variables(), variables());
        for step in 1..=40 {
            law.update(&mut each, backlog, Time::ZERO + Span::from_millis(15 * step));
        }
        law.update(&mut all, backlog, Time::ZERO + Span::from_millis(600));
        assert!(each.probability() > 0.0);
        assert_eq!((each.probability(), each.next_update), (all.probability(), all.next_update));
    }
}
