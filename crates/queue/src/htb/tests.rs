//! Departures computed by hand: at 8 Mbit/s a byte takes a microsecond. Packets have 986 bytes and a header of 14.

use super::*;
use crate::testing::{TestFate, TestPacket};
use weir_base::{Bytes, Ecn, Rate};

const LINK: Link =
    Link { rate: Rate::from_mbit_per_sec(100), base_rtt: Some(Span::from_millis(20)), mtu: Bytes::new(1500) };

fn config(text: &str) -> Config {
    serde_json::from_str(text).unwrap()
}

fn build(text: &str) -> Htb<TestPacket> {
    Htb::new(&config(text), &LINK, Random::stream(1, "queue"))
}

fn put(htb: &mut Htb<TestPacket>, flow: u32, count: usize, now: Time) -> u64 {
    let mut fate = TestFate::default();
    for _ in 0..count {
        let mut packet = TestPacket { flow, ..TestPacket::new(986, Ecn::NotEct) };
        packet.arrive(now);
        htb.enqueue(packet, now, &mut fate);
    }
    fate.dropped
}

/// The departures up to a time, as (microseconds, flow).
fn departures(htb: &mut Htb<TestPacket>, from: Time, until: Time) -> Vec<(u64, u32)> {
    let (mut left, mut now, mut looks) = (vec![], from, 0);
    let mut fate = TestFate::default();
    while let Some(at) = htb.departs(now).filter(|at| *at <= until) {
        assert!(at >= now && looks < 100_000, "it does not move on");
        (now, looks) = (at, looks + 1);
        left.extend(htb.dequeue(at, &mut fate).map(|packet| (at.as_nanos() / 1000, packet.flow)));
    }
    left
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// The number of departures of each of the first `N` flows.
fn counts<const N: usize>(left: &[(u64, u32)]) -> [usize; N] {
    std::array::from_fn(|flow| left.iter().filter(|(_, of)| *of as usize == flow).count())
}

const LEAF: &str =
    r#"{ "classes": [{ "name": "a", "rate": "8 Mbit/s", "burst": "2000 B", "cburst": "2000 B" }] }"#;

#[test]
fn a_class_sends_while_its_tokens_are_not_negative_and_then_at_its_rate() {
    let mut htb = build(LEAF);
    put(&mut htb, 0, 6, Time::ZERO);
    // The bucket has 2000 us of tokens: after three packets it lacks 1000 us, and at zero tokens the class may send again.
    let left = departures(&mut htb, Time::ZERO, ms(10));
    assert_eq!(left, [(0, 0), (0, 0), (0, 0), (1000, 0), (2000, 0), (3000, 0)]);
    assert_eq!((htb.backlog(), htb.departs(ms(10))), (Backlog::default(), None));
}

const FAMILY: &str = r#"{ "classes": [
    { "name": "all", "rate": "8 Mbit/s", "burst": "1000 B", "cburst": "1000 B" },
    { "name": "a", "parent": "all", "rate": "4.8 Mbit/s", "ceil": "8 Mbit/s", "burst": "1000 B", "cburst": "1000 B", "quantum": "3000 B", "flows": [0] },
    { "name": "b", "parent": "all", "rate": "1.6 Mbit/s", "ceil": "8 Mbit/s", "burst": "1000 B", "cburst": "1000 B", "quantum": "1000 B", "flows": [1] }
] }"#;

#[test]
fn a_flow_is_refused_when_its_own_leaf_is_full() {
    let leaf = r#""queue": { "kind": "tail-drop", "limit": "2 packets" }"#;
    let text = format!(
        r#"{{ "classes": [{{ "name": "a", "flows": [0], {leaf} }}, {{ "name": "b", "flows": [1], {leaf} }}], "direct_limit": 1 }}"#
    );
    let mut htb = build(&text);
    let takes =
        |htb: &Htb<TestPacket>| [0, 1, 2].map(|flow| Queue::<TestPacket>::takes(htb, FlowId(flow), 986));
    put(&mut htb, 0, 2, Time::ZERO);
    assert_eq!(takes(&htb), [false, true, true]);
    // Packets of no class wait unshaped.
    put(&mut htb, 2, 1, Time::ZERO);
    assert_eq!(takes(&htb), [false, true, false]);
}

#[test]
fn a_class_alone_borrows_up_to_its_ceiling() {
    let mut htb = build(FAMILY);
    put(&mut htb, 1, 900, Time::ZERO);
    // The ceiling is 1000 packets a second: one packet a millisecond.
    let left = departures(&mut htb, Time::ZERO, ms(500));
    assert!((500..=503).contains(&left.len()), "{}", left.len());
}

#[test]
fn each_class_gets_its_rate_and_borrows_the_excess_in_proportion_to_its_quantum() {
    let mut htb = build(FAMILY);
    (0..2).for_each(|flow| assert_eq!(put(&mut htb, flow, 1000, Time::ZERO), 0));
    let [a, b] = counts(&departures(&mut htb, Time::ZERO, ms(1000)));
    // Of 1000 packets 600 and 200 are guaranteed; the other 200 are borrowed three to one.
    assert!((1000..=1003).contains(&(a + b)), "{a} {b}");
    assert!(a.abs_diff(750) <= 8 && b.abs_diff(250) <= 8, "{a} {b}");
}

#[test]
fn a_class_without_a_ceiling_above_its_rate_borrows_nothing() {
    let circuits = r#"{ "classes": [
        { "name": "a", "rate": "4.8 Mbit/s", "flows": [0] }, { "name": "b", "rate": "1.6 Mbit/s", "flows": [1] }
    ] }"#;
    let mut htb = build(circuits);
    put(&mut htb, 1, 900, Time::ZERO);
    let alone: [usize; 2] = counts(&departures(&mut htb, Time::ZERO, ms(1000)));
    put(&mut htb, 0, 900, ms(1000));
    let beside: [usize; 2] = counts(&departures(&mut htb, ms(1000), ms(2000)));
    // 200 packets a second, and 600 for the other class; the burst of 1600 bytes lets three leave at the start.
    assert!(alone[0] == 0 && (200..=203).contains(&alone[1]), "{alone:?}");
    assert!((600..=603).contains(&beside[0]) && (199..=200).contains(&beside[1]), "{beside:?}");
}

#[test]
fn the_borrowing_class_with_the_lowest_priority_number_is_served_first() {
    let text = FAMILY.replace(r#""quantum": "1000 B","#, r#""quantum": "1000 B", "prio": 1,"#);
    let mut htb = build(&text);
    (0..2).for_each(|flow| assert_eq!(put(&mut htb, flow, 1000, Time::ZERO), 0));
    let [a, b] = counts(&departures(&mut htb, Time::ZERO, ms(1000)));
    assert!(a.abs_diff(800) <= 8 && b.abs_diff(200) <= 8, "{a} {b}");
}

#[test]
fn packets_of_no_class_are_sent_first_and_unshaped() {
    let mut htb = build(FAMILY);
    put(&mut htb, 0, 5, Time::ZERO);
    put(&mut htb, 7, 3, Time::ZERO);
    let left = departures(&mut htb, Time::ZERO, Time::ZERO);
    assert_eq!(left[..3], [(0, 7), (0, 7), (0, 7)]);
}

#[test]
fn only_removed_classes_lose_packets_while_a_thousand_are_added_changed_and_removed() {
    let mut htb = build(LEAF);
    let mut fate = TestFate::default();
    let (mut now, mut sent, mut offered, mut removed) = (Time::ZERO, 0, 0, 0);
    let class = |flow: u32, rate| Class {
        name: format!("c{flow}"),
        rate: Rate::from_mbit_per_sec(rate),
        flows: Some(vec![flow]),
        ..Class::default()
    };
    let mut ids = vec![];
    for flow in 0..1000 {
        ids.push(htb.add(&class(flow, 1), None, now, &mut fate).unwrap());
        offered += 2;
        assert_eq!(put(&mut htb, flow, 2, now), 0);
    }
    for (round, &id) in ids.iter().enumerate() {
        now += Span::from_micros(500);
        while let Some(at) = htb.departs(now).filter(|at| *at <= now) {
            sent += usize::from(htb.dequeue(at, &mut fate).is_some());
        }
        let flow = round as u32;
        if round % 2 == 0 {
            assert!(htb.change(id, &class(flow, 2)));
        } else {
            let before = fate.dropped;
            assert!(htb.remove(id, now, &mut fate));
            removed += fate.dropped - before;
            assert!(!htb.change(id, &class(flow, 2)), "it is gone");
        }
    }
    sent += departures(&mut htb, now, ms(60_000)).len();
    assert_eq!((sent as u64 + removed, fate.dropped, htb.backlog()), (offered, removed, Backlog::default()));
    // A flow without a class goes to the default leaf again.
    assert_eq!(put(&mut htb, 1, 1, ms(70_000)), 0);
    assert_eq!(departures(&mut htb, ms(70_000), ms(70_000)).len(), 1);
}

/// Three circuits that always send, and `others` further ones.
fn circuits(others: u32, rate: &str) -> crate::Config {
    let class = |name: String, flow: u32, rate: &str| serde_json::json!({ "name": name, "rate": rate, "flows": [flow], "burst": "3000 B", "cburst": "3000 B" });
    let busy = (0..3)
        .map(|flow| class(format!("busy {flow}"), flow, ["3 Mbit/s", "2 Mbit/s", "1 Mbit/s"][flow as usize]));
    let others = (3..3 + others).map(|flow| class(format!("other {flow}"), flow, rate));
    let classes: Vec<_> = busy.chain(others).collect();
    serde_json::from_value(serde_json::json!({ "kind": "htb", "classes": classes })).unwrap()
}

#[test]
fn a_thousand_classes_that_a_schedule_adds_changes_and_removes_do_not_delay_the_others() {
    let run = |changes: &[(u64, crate::Config)]| {
        let crate::Config::Htb(first) = circuits(0, "1 Mbit/s") else { unreachable!("it is HTB") };
        let mut htb: Htb<TestPacket> = Htb::new(&first, &LINK, Random::stream(1, "queue"));
        let (mut fate, mut left, mut now) = (TestFate::default(), vec![], Time::ZERO);
        (0..3).for_each(|flow| assert_eq!(put(&mut htb, flow, 900, now), 0));
        for (at, config) in changes {
            left.extend(departures(&mut htb, now, ms(*at)));
            now = ms(*at);
            htb.reconfigure(config, now, &mut fate);
            // Every change but the last keeps the classes of the other circuits.
            let others = if at == &changes[changes.len() - 1].0 { 0 } else { 1000 };
            (3..3 + others).for_each(|flow| assert_eq!(put(&mut htb, flow, 5, now), 0));
        }
        left.extend(departures(&mut htb, now, ms(8000)));
        assert_eq!(htb.backlog(), Backlog::default());
        (left, fate)
    };
    let (alone, _) = run(&[]);
    let steps = [
        (400, circuits(1000, "1 Mbit/s")),
        (900, circuits(1000, "20 kbit/s")),
        (1500, circuits(0, "1 Mbit/s")),
    ];
    let (beside, fate) = run(&steps);
    let of = |left: &[(u64, u32)], flow: u32| {
        left.iter().filter(|(_, of)| *of == flow).copied().collect::<Vec<_>>()
    };
    for flow in 0..3 {
        assert_eq!(of(&alone, flow).len(), 900);
        assert_eq!(of(&beside, flow), of(&alone, flow), "circuit {flow}");
    }
    // Of the second five packets of each other circuit, two leave at once with the tokens that were left, one 276 ms later, and two
    // are dropped with its class.
    assert_eq!((beside.len(), fate.dropped, fate.by_flow[..3].iter().sum::<u64>()), (2700 + 8000, 2000, 0));
}

#[test]
fn a_schedule_cannot_change_a_parent_an_inner_queue_or_the_kind_of_queue() {
    let with = |class: &str| -> crate::Config {
        serde_json::from_str(&format!(r#"{{ "kind": "htb", "classes": [{{ "name": "all" }}, {class}] }}"#))
            .unwrap()
    };
    let first = with(r#"{ "name": "a", "parent": "all", "rate": "1 Mbit/s" }"#);
    assert_eq!(first.change_fault(&with(r#"{ "name": "a", "parent": "all", "rate": "2 Mbit/s" }"#)), None);
    assert_eq!(first.change_fault(&with(r#"{ "name": "b" }"#)), None);
    let fault = |next: crate::Config| first.change_fault(&next).unwrap();
    assert!(fault(with(r#"{ "name": "a", "rate": "2 Mbit/s" }"#)).contains("cannot change its parent"));
    assert!(
        fault(with(r#"{ "name": "a", "parent": "all", "queue": "pie" }"#))
            .contains("the queue of the class `a`")
    );
    let pie: crate::Config = serde_json::from_str(r#""pie""#).unwrap();
    assert!(fault(pie.clone()).contains("`htb` cannot become `pie`"));
    assert!(pie.change_fault(&pie).unwrap().contains("cannot change"));
}

#[test]
fn a_leaf_becomes_an_inner_class_with_its_first_child_and_a_leaf_again_without_its_last() {
    let mut htb = build(LEAF);
    let mut fate = TestFate::default();
    put(&mut htb, 3, 2, Time::ZERO);
    let child = Class { flows: Some(vec![3]), ..config(LEAF).classes.remove(0) };
    let id = htb.add(&child, Some(1), Time::ZERO, &mut fate).unwrap();
    assert_eq!((fate.dropped, htb.backlog().packets), (2, 0), "an inner class holds no packets");
    put(&mut htb, 3, 2, Time::ZERO);
    assert_eq!(departures(&mut htb, Time::ZERO, ms(5)).len(), 2);
    assert!(!htb.remove(1, ms(5), &mut fate), "it has a child");
    assert!(htb.remove(id, ms(5), &mut fate));
    put(&mut htb, 0, 1, ms(5));
    assert_eq!(departures(&mut htb, ms(5), ms(5)), [(5000, 0)]);
}

#[test]
fn invalid_classes_are_refused() {
    let refused = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
    assert!(refused(r#"{ "classes": [] }"#).contains("write 1 to 65535"));
    assert!(
        refused(r#"{ "classes": [{ "name": "a", "parent": "b" }] }"#).contains("no class `b` before `a`")
    );
    assert!(refused(r#"{ "classes": [{}, {}] }"#).contains("two classes are called `leaf`"));
    assert!(refused(r#"{ "classes": [{ "ceil": "1 Mbit/s" }] }"#).contains("below its rate of 10 Mbit/s"));
    assert!(refused(r#"{ "classes": [{ "prio": 8 }] }"#).contains("write 0 to 7"));
}

#[test]
fn flows_are_shaped_by_the_ceilings_of_the_leaves_that_take_them() {
    let shaping = |classes: &str, flows: &[u32]| {
        let config = config(&format!(r#"{{ "overhead": "10 B", "classes": [{classes}] }}"#));
        let shaping = crate::Config::Htb(config).shaping(flows)?;
        assert_eq!(shaping.overhead, Bytes::new(10));
        Some(shaping.rate.bits_per_sec() / 1_000_000)
    };
    let root = r#"{ "name": "root", "rate": "90 Mbit/s" }"#;
    let a = r#"{ "name": "a", "parent": "root", "rate": "8 Mbit/s", "ceil": "20 Mbit/s", "flows": [0, 1] }"#;
    let b = r#"{ "name": "b", "parent": "root", "rate": "5 Mbit/s", "flows": [2] }"#;
    let rest = r#"{ "name": "rest", "parent": "root", "rate": "1 Mbit/s" }"#;
    let named = [root, a, b].join(",");
    assert_eq!(shaping(&named, &[0, 1]), Some(20), "once for both flows");
    assert_eq!(shaping(&named, &[1, 2]), Some(25));
    assert_eq!(shaping(&named, &[2, 3]), None, "flow 3 is not shaped");
    assert_eq!(shaping(&named, &[]), None);
    assert_eq!(shaping(&[root, a, b, rest].join(","), &[2, 3]), Some(6));
    let by_codepoint = r#"{ "name": "marked", "rate": "2 Mbit/s", "ecn": ["ect0"] }"#;
    assert_eq!(
        shaping(&[rest.replace("\"parent\": \"root\", ", "").as_str(), by_codepoint].join(","), &[0]),
        None
    );
}
