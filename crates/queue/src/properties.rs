//! Properties that every queue of the registry has for any traffic, and a snapshot of each queue under a standard traffic.

use crate::testing::{TestFate, TestPacket};
use crate::{Config, Discipline, Limit, Link};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_base::{Bytes, CODEPOINTS, Ecn, Histogram, Packet, Random, Rate, Span, Time};

/// A packet of 1500 bytes takes a millisecond.
const LINK: Link =
    Link { rate: Rate::from_mbit_per_sec(12), base_rtt: Some(Span::from_millis(20)), mtu: Bytes::new(1500) };

/// Every member of the registry with its defaults, and further configurations of those with several modes.
fn configs() -> Vec<(String, Config)> {
    let more = [
        r#"{ "kind": "dualpi2", "preset": "thesis" }"#,
        r#"{ "kind": "dualpi2", "preset": "weir" }"#,
        r#"{ "kind": "dualpi2", "scheduler": "strict", "drop_early": true, "drop_overload": false }"#,
        r#"{ "kind": "red", "min": "5 ms", "gentle": false, "harddrop": true, "bytemode": true }"#,
        r#"{ "kind": "codel", "ce_threshold": "1 ms" }"#,
        r#"{ "kind": "fq-codel", "flows": 2, "memory_limit": "30 kB", "drop_batch": 3 }"#,
        r#"{ "kind": "drr", "bands": [{ "ecn": ["ect1", "ce"], "queue": "fq-codel" }, { "queue": "red" }] }"#,
        r#"{ "kind": "tbf", "rate": "9 Mbit/s", "burst": "3 kB", "peakrate": "11 Mbit/s", "queue": "pie" }"#,
        r#"{ "kind": "htb", "classes": [{ "name": "all", "rate": "9 Mbit/s" },
            { "name": "a", "parent": "all", "rate": "2 Mbit/s", "ceil": "9 Mbit/s", "flows": [0, 1, 2] },
            { "name": "b", "parent": "all", "rate": "1 Mbit/s", "ceil": "8 Mbit/s", "prio": 1, "queue": "codel" }] }"#,
        r#"{ "kind": "strict-priority", "bands": [{ "flows": [0, 1], "queue": "codel" }, { "queue": "pi2" }] }"#,
    ];
    let default =
        Config::members().into_iter().map(|member| (member.name.into(), member.name.parse().unwrap()));
    default.chain(more.map(|text| (text.into(), serde_json::from_str(text).unwrap()))).collect()
}

fn build(config: &Config) -> Discipline<TestPacket> {
    config.build(&LINK, Random::stream(1, "queue"))
}

/// The same configuration with another limit; `None` if it has no limit.
fn limited(config: &Config, limit: &str) -> Option<Config> {
    let mut value = serde_json::to_value(config).unwrap();
    value.get("limit")?;
    value["limit"] = limit.into();
    serde_json::from_value(value).ok()
}

#[derive(Debug, Clone)]
struct Step {
    /// Time since the step before.
    gap: Span,
    /// Flow, codepoint and length of the packet that arrives. `None`: a packet is taken out.
    packet: Option<(u32, Ecn, u32)>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let packet = (0..5u32, 0..4usize, 40..=1500u32);
    let step = (0..6_000u64, prop::option::weighted(0.6, packet)).prop_map(|(gap, packet)| Step {
        gap: Span::from_micros(gap * gap / 3_000),
        packet: packet.map(|(flow, ecn, length)| (flow, CODEPOINTS[ecn], length)),
    });
    prop::collection::vec(step, 1..1_000)
}

/// A queue, with packets and bytes that went in and out of it.
struct Watched {
    name: String,
    queue: Discipline<TestPacket>,
    fate: TestFate,
    into: (u64, u64),
    out: (u64, u64),
    last: BTreeMap<(u32, Ecn), u64>,
}

impl Watched {
    fn take_in(&mut self, (flow, ecn, length): (u32, Ecn, u32), now: Time) {
        let mut packet = TestPacket::new(length, ecn);
        (packet.flow, packet.number) = (flow, self.into.0);
        packet.arrive(now);
        self.into = (self.into.0 + 1, self.into.1 + u64::from(length));
        self.queue.enqueue(packet, now, &mut self.fate);
    }

    fn take_out(&mut self, now: Time) -> Option<TestPacket> {
        let packet = self.queue.dequeue(now, &mut self.fate)?;
        let name = &self.name;
        self.out = (self.out.0 + 1, self.out.1 + u64::from(packet.length));
        assert!(packet.arrived() <= now, "{name}: left before it came");
        assert!(packet.class != Ecn::NotEct || packet.ecn == Ecn::NotEct, "{name}: marked what cannot be");
        let before = self.last.insert((packet.flow, packet.class), packet.number);
        assert!(before.is_none_or(|before| before < packet.number), "{name}: out of order");
        Some(packet)
    }

    fn check(&self) {
        let (name, backlog, fate) = (&self.name, self.queue.backlog(), &self.fate);
        let packets = self.out.0 + fate.dropped + u64::from(backlog.packets);
        let bytes = self.out.1 + fate.dropped_bytes + backlog.bytes.get();
        assert_eq!(self.into, (packets, bytes), "{name}");
        assert_eq!(fate.dropped_capable, 0, "{name}: dropped as a signal what it could have marked");
        self.queue.state(&mut |value, is| {
            assert!(is.is_finite(), "{name}: {value} is {is}");
            assert!(!value.ends_with("probability") || (0.0..=1.0).contains(&is), "{name}: {value} is {is}");
        });
    }
}

fn watch(name: &str, config: &Config, steps: &[Step], most: Option<u32>) {
    let mut watched = Watched {
        name: name.into(),
        queue: build(config),
        fate: TestFate::default(),
        into: (0, 0),
        out: (0, 0),
        last: BTreeMap::new(),
    };
    let mut now = Time::ZERO;
    for step in steps {
        now += step.gap;
        match step.packet {
            Some(packet) => watched.take_in(packet, now),
            None => {
                let held = watched.queue.backlog().packets;
                let sent = watched.take_out(now).is_some();
                let waits = watched.queue.departs(now).is_none_or(|at| at > now);
                assert!(sent || waits, "{name}: idle with {held} packets");
            }
        }
        watched.check();
        assert!(most.is_none_or(|most| watched.queue.backlog().packets <= most), "{name}: above its limit");
    }
    while let Some(at) = watched.queue.departs(now) {
        assert!(at >= now, "{name}: was to send in the past");
        assert!(at == now || !watched.queue.is_work_conserving(), "{name}: waits");
        now = at;
        let before = watched.queue.backlog().packets;
        watched.take_out(now);
        let moves_on = watched.queue.departs(now).is_none_or(|next| next > now);
        assert!(watched.queue.backlog().packets < before || moves_on, "{name}: could not send when it said");
    }
    watched.check();
    assert_eq!(watched.queue.backlog(), crate::Backlog::default(), "{name}");
}

/// Compares two queues with the same traffic. Packets that find one of them empty use `pass`; the other uses `enqueue` and `dequeue`.
fn passes_as_through(name: &str, config: &Config, steps: &[Step]) {
    let mut queues = [(); 2].map(|()| (build(config), TestFate::default(), vec![]));
    if !queues[0].0.is_work_conserving() {
        return;
    }
    let mut now = Time::ZERO;
    for (number, step) in (0..).zip(steps) {
        now += step.gap;
        for (index, (queue, fate, sent)) in queues.iter_mut().enumerate() {
            let Some((flow, ecn, length)) = step.packet else {
                sent.extend(queue.dequeue(now, fate));
                continue;
            };
            let mut packet = TestPacket { flow, number, ..TestPacket::new(length, ecn) };
            packet.arrive(now);
            // Every second packet that finds the queue empty also finds the link free.
            if queue.backlog().packets > 0 || number % 2 == 0 {
                queue.enqueue(packet, now, fate);
            } else if index == 0 {
                sent.extend(queue.pass(packet, now, fate));
            } else {
                queue.enqueue(packet, now, fate);
                sent.extend(queue.dequeue(now, fate));
            }
        }
        let [passed, through] = queues.each_ref().map(|(queue, fate, sent)| {
            let mut state = vec![];
            queue.state(&mut |value, is| state.push((value.to_string(), is)));
            (queue.backlog(), state, fate.dropped, fate.marked, sent.clone())
        });
        assert_eq!(passed, through, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_queue_conserves_packets_and_keeps_each_flow_in_order(steps in steps()) {
        for (name, config) in configs() {
            watch(&name, &config, &steps, None);
        }
    }

    #[test]
    fn no_queue_holds_more_than_its_limit(steps in steps(), limit in 1..30u32) {
        for (name, config) in configs() {
            if let Some(config) = limited(&config, &Limit::Packets(limit).to_string()) {
                watch(&name, &config, &steps, Some(limit));
            }
        }
    }

    #[test]
    fn a_packet_that_passes_an_empty_queue_leaves_the_same_state_as_enqueue_and_dequeue(steps in steps()) {
        for (name, config) in configs() {
            passes_as_through(&name, &config, &steps);
        }
    }
}

#[test]
fn one_seed_gives_one_result() {
    let run = |config: &Config| {
        let (mut queue, mut fate) = (build(config), ByClass::default());
        standard_traffic(&mut queue, &mut fate, &mut |_, _| {});
        (fate, queue.backlog())
    };
    for (name, config) in configs() {
        assert_eq!(run(&config), run(&config), "{name}");
    }
}

#[test]
fn every_queue_configuration_reads_back_as_it_was_written() {
    for (name, config) in configs() {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config, "{name}");
    }
}

/// Twenty seconds of unresponsive traffic for a link of 1000 packets/s: five flows of 160/s each, and from 5 s to 15 s a sixth of
/// 400/s. Flows 0 and 3 are not ECN-capable, 1 and 4 have ECT(0), 2 and 5 (the heavy one) ECT(1). Gaps are random.
fn standard_traffic(
    queue: &mut Discipline<TestPacket>,
    fate: &mut ByClass,
    sent: &mut dyn FnMut(&TestPacket, Time),
) {
    const CODEPOINTS: [Ecn; 6] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1];
    let mut random = Random::stream(1, "traffic");
    for tick in 0..80_000u64 {
        let now = Time::ZERO + Span::from_micros(250 * tick);
        for (flow, ecn) in CODEPOINTS.into_iter().enumerate() {
            let rate = match flow {
                5 if (20_000..60_000).contains(&tick) => 0.1,
                5 => 0.0,
                _ => 0.04,
            };
            if random.chance(rate) {
                let mut packet = TestPacket::new(1500, ecn);
                packet.flow = flow as u32;
                packet.arrive(now);
                queue.enqueue(packet, now, fate);
            }
        }
        if tick % 4 == 0 {
            queue.dequeue(now, fate).iter().for_each(|packet| sent(packet, now));
        }
    }
}

/// Counts marks and drops by class.
#[derive(Debug, Default, PartialEq)]
struct ByClass {
    dropped: [u64; 4],
    marked: [u64; 4],
}

impl crate::Fate<TestPacket> for ByClass {
    fn dropped(&mut self, packet: TestPacket, _: crate::DropReason, _: Time) {
        self.dropped[packet.class as usize] += 1;
    }
    fn marked(&mut self, packet: &TestPacket, _: Time) {
        self.marked[packet.class as usize] += 1;
    }
}

#[test]
fn every_queue_treats_standard_traffic_as_recorded() {
    let mut table = String::new();
    for (name, config) in configs() {
        let (mut queue, mut fate) = (build(&config), ByClass::default());
        let mut delays: [Histogram; 4] = Default::default();
        standard_traffic(&mut queue, &mut fate, &mut |packet, now| {
            delays[packet.class as usize].record(now.since(packet.arrived()));
        });
        let _ = writeln!(table, "{}", name.replace('"', ""));
        for class in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let (delay, at) = (&delays[class as usize], class as usize);
            let ms = |span: Option<Span>| span.unwrap_or_default().as_millis_f64();
            let _ = writeln!(
                table,
                "  {:8}{:6} sent{:6} marked{:6} dropped{:9.2} ms mean{:9.2} ms p99",
                class.name(),
                delay.count(),
                fate.marked[at],
                fate.dropped[at],
                ms(delay.mean()),
                ms(delay.percentile(0.99)),
            );
        }
    }
    insta::assert_snapshot!(table);
}
