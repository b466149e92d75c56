//! Kills, returns, partitions and bad links.

use super::{Node, PAYLOAD, config, ms};
use crate::cat::Reported;
use crate::harness::{Change, Faults, Flow, Net, at, group, id, node};
use crate::linkstate::database::OLDEST;
use crate::site::Carried;
use weir_base::{Bytes, Random, Rate, Span};

/// Two paths of two links from node 0 to node 3, over nodes 1 and 2.
fn two_paths() -> Net {
    let mut net = Net::new(4, config());
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        net.link(a, b, 10_000, ms(10));
    }
    net
}

#[test]
fn a_flow_is_rerouted_within_a_second_of_a_kill() {
    let mut net = two_paths();
    let flow = net.flow(Flow::constant(0, node(3), 4000, None));
    net.change(at(5000), Change::Kill(1));
    net.run(at(12_000));
    let rate = net.rate(flow, 3, at(6000), at(12_000));
    assert!(rate > 3.9, "{rate} Mbit/s of 4");
    assert!(!net.nodes[0].reachable().has(id(1)));
}

/// What a drained node holds is carried on, so that it can be stopped without loss; its own site is still reached, over others too.
#[test]
fn a_drained_node_forwards_nothing_new_and_loses_nothing() {
    let mut net = two_paths();
    net.link(1, 2, 10_000, ms(10));
    let passes = net.flow(Flow::constant(0, node(3), 4000, None));
    let ends = net.flow(Flow::constant(3, node(1), 500, None));
    let begins = net.flow(Flow::constant(1, node(3), 500, None));
    net.run(at(5000));
    net.change(at(5000), Change::Drain(1));
    net.run(at(8000));
    let forwarded = net.nodes[1].counters().packets;
    assert_eq!(net.nodes[1].held(), 0);
    net.change(at(8000), Change::Loss(1, 3, 1.0));
    net.run(at(14_000));
    for (flow, to, mbit) in [(passes, 3, 4.0), (ends, 1, 0.5), (begins, 3, 0.5)] {
        for (from, until) in [(3000, 5000), (5000, 8000), (10_000, 14_000)] {
            let rate = net.rate(flow, to, at(from), at(until));
            assert!(rate > 0.97 * mbit, "flow {flow}: {rate} Mbit/s from {from} ms");
        }
    }
    // Neighbours count what has entered at the node too.
    let entered = net.receipts(begins, 3, at(8000), at(14_000)).count() as u64;
    let later = net.nodes[1].counters().packets - forwarded;
    assert!(later <= entered + 50, "{later} packets, {entered} of them its own");
}

#[test]
fn a_node_that_returns_is_used_again_even_with_an_older_epoch() {
    let mut net = two_paths();
    let flow = net.flow(Flow::log(0, node(3), 1.0));
    net.change(at(5000), Change::Kill(1));
    net.change(at(7000), Change::Start(1, 2));
    net.change(at(10_000), Change::Kill(1));
    // Its clock has gone back: the epoch is older than the one that the others hold.
    net.change(at(10_700), Change::Start(1, 1));
    net.run(at(16_000));
    for (from, until) in [(8500, 10_000), (13_000, 16_000)] {
        let rate = net.rate(flow, 3, at(from), at(until));
        assert!(rate > 0.93 * 20.0 * PAYLOAD, "{rate} Mbit/s from {from} ms");
    }
}

#[test]
fn a_partition_is_seen_and_heals() {
    let mut net = Net::new(4, config());
    for (a, b) in [(0, 1), (1, 2), (2, 3)] {
        net.link(a, b, 10_000, ms(10));
    }
    net.join(3, 9);
    net.change(at(5000), Change::Loss(1, 2, 1.0));
    net.run(at(6000));
    assert_eq!((net.nodes[0].reachable().len(), net.nodes[3].reachable().len()), (2, 2));
    net.run(at(5500) + OLDEST + ms(2000));
    assert!(net.nodes[0].members(crate::GroupId(9)).is_empty(), "what is not repeated is forgotten");
    net.change(at(13_000), Change::Loss(1, 2, 0.0));
    net.run(at(14_500));
    assert_eq!(net.nodes[0].reachable().len(), 4);
    assert!(net.nodes[0].members(crate::GroupId(9)).has(id(3)));
}

#[test]
fn a_restarted_receiver_asks_for_the_contexts_that_it_has_lost() {
    let mut net = Net::new(2, config());
    net.link(0, 1, 10_000, ms(10));
    let flow = net.flow(Flow::constant(0, node(1), 4000, None));
    net.change(at(4000), Change::Kill(1));
    net.change(at(4100), Change::Start(1, 2));
    net.run(at(8000));
    let rate = net.rate(flow, 1, at(6000), at(8000));
    assert!(rate > 3.8, "{rate} Mbit/s of 4");
}

#[test]
fn zombies_wait_a_second_at_most_for_a_link_that_has_told_no_capacity_yet() {
    let mut node: Node<Carried, Reported> = Node::new(id(0), 1, config()).unwrap();
    let port = node.connect(Reported { is_up: true, ..Reported::default() }).unwrap();
    let kind = node.config.zombies;
    // By the least rate these are 44 s.
    (0..40).for_each(|_| node.gates[port].offer(&mut node.ports[port].cat, Bytes::new(1100), &kind, at(0)));
    assert_eq!(node.gates[port].drains_at, at(1000));
}

#[test]
fn random_kills_and_bad_links_leave_nothing_stale_and_memory_bounded() {
    let mut net = Net::new(8, config());
    for a in 0..8u8 {
        for b in a + 1..8 {
            if (a + b) % 3 != 0 {
                net.link(a, b, 4000, ms(5 + 5 * u64::from(a)));
            }
        }
    }
    net.faults = Faults { damage: 0.0, repeat: 0.01, jitter: ms(5) };
    let mut random = Random::stream(7, "kills");
    let mut epochs = [1; 8];
    for second in 2..39 {
        let victim = 1 + random.below(6) as u8;
        epochs[usize::from(victim)] += 1;
        let kill = at(1000 * second) + random.within(Span::from_secs(1));
        net.change(kill, Change::Kill(victim));
        net.change(
            kill + random.within(Span::from_secs(2)),
            Change::Start(victim, epochs[usize::from(victim)]),
        );
        let (a, b) = (random.below(8) as u8, random.below(8) as u8);
        net.change(kill, Change::Loss(a, b, 0.3));
        net.change(kill + Span::from_secs(1), Change::Loss(a, b, 0.01));
    }
    [3, 5, 7].iter().for_each(|node| net.join(*node, 1));
    // Less than the links carry: a flow that takes all that there is goes over long ways too.
    let cap = Rate::from_mbit_per_sec(6);
    let log = Some(crate::utility::log::Config { priority: 1.0, cap, shape: 20.0 });
    let flow = net.flow(Flow { log, ..Flow::log(0, node(7), 1.0) });
    let timed = net.flow(Flow::constant(0, node(7), 500, Some(ms(150))));
    net.flow(Flow::log(0, group(1), 1.0));
    net.run(at(50_000));
    assert!((0..8).all(|node| net.nodes[node].reachable().len() == 8));
    let all = |source| net.receipts(source, 7, at(0), at(50_000));
    assert!(all(timed).all(|one| !one.came_back));
    // What links add at random is not known to the nodes: up to 5 ms each.
    let late = all(timed).filter(|one| one.delay > ms(150) + ms(5) * u64::from(one.hops)).count();
    assert_eq!(late, 0);
    // Nodes 0 and 7 are neighbours. The last change is at 41 s.
    let mut hops: Vec<u8> = net.receipts(flow, 7, at(43_000), at(50_000)).map(|one| one.hops).collect();
    hops.sort_unstable();
    // The group takes all that the links carry, so some packets go long ways.
    assert!(hops[hops.len() * 99 / 100] <= 8, "{}", hops[hops.len() * 99 / 100]);
    let held: usize = net.nodes.iter().map(crate::Node::held).sum();
    assert!(held < 20_000, "{held} packets wait");
}

#[test]
fn damaged_datagrams_do_no_harm_that_lasts() {
    let mut net = two_paths();
    net.faults = Faults { damage: 0.05, repeat: 0.01, jitter: ms(1) };
    net.flow(Flow::log(0, node(3), 1.0));
    net.run(at(10_000));
    net.faults = Faults::default();
    // What damaged announcements have made up is forgotten.
    net.run(at(17_000));
    assert!(net.nodes.iter().all(|node| node.reachable().len() == 4));
}
