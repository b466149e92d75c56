//! Random kills and returns of nodes and links, by seeds, each for a minute of its own. `make soak` runs thirty of them.

use super::{config, ms};
use crate::harness::{Change, Faults, Flow, Net, at, group, node};
use crate::nodes::Nodes;
use crate::utility::log;
use crate::{GroupId, Node};
use std::collections::BTreeSet;
use weir_base::{Random, Rate, Span, Time};

const NODES: u8 = 9;
/// Where the measured flows begin and end. Neither node is killed.
const FROM: u8 = 0;
const TO: u8 = 8;
/// From one kill to the next, and how long its victim stays away at least and at most, in milliseconds. There are six kills a minute.
const PERIOD: u64 = 8000;
const AWAY: (u64, u64) = (3200, 4800);
const MINUTE: u64 = 60_000;
/// Packets of the probe are this far apart.
const GAP: Span = Span::from_millis(20);

/// What is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Node(u8),
    Link(u8, u8),
}

/// A kill, and the return.
#[derive(Debug, Clone, Copy)]
struct Kill {
    victim: Victim,
    at: u64,
    back: u64,
}

/// Links of a ring with chords: without one node or one link the others are still joined.
fn links(random: &mut Random) -> BTreeSet<(u8, u8)> {
    let mut links: BTreeSet<(u8, u8)> = (0..NODES).map(|a| (a, (a + 1) % NODES)).collect();
    links.extend((0..NODES).map(|a| (a, (a + 2 + random.below(3) as u8) % NODES)));
    links.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect()
}

/// Hops of the shortest way from one node to another, without a victim.
fn shortest(links: &BTreeSet<(u8, u8)>, without: Option<Victim>) -> u8 {
    let is_up = |(a, b): &(u8, u8)| match without {
        Some(Victim::Node(node)) => *a != node && *b != node,
        Some(Victim::Link(x, y)) => (*a, *b) != (x, y),
        None => true,
    };
    let (mut reached, mut hops) = (BTreeSet::from([FROM]), 0);
    while !reached.contains(&TO) {
        let ways = links.iter().filter(|link| is_up(link)).flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let next: Vec<u8> = ways.filter(|(a, _)| reached.contains(a)).map(|(_, b)| b).collect();
        reached.extend(next);
        hops += 1;
        assert!(hops <= NODES, "a kill divides the network");
    }
    hops
}

fn kills(links: &BTreeSet<(u8, u8)>, random: &mut Random) -> Vec<Kill> {
    let links: Vec<(u8, u8)> = links.iter().copied().collect();
    (0..6)
        .map(|number| {
            let victim = if random.chance(0.5) {
                Victim::Node(1 + random.below(u64::from(NODES) - 2) as u8)
            } else {
                let (a, b) = links[random.below(links.len() as u64) as usize];
                Victim::Link(a, b)
            };
            let at = 4000 + PERIOD * number + random.below(1000);
            Kill { victim, at, back: at + AWAY.0 + random.below(AWAY.1 - AWAY.0) }
        })
        .collect()
}

/// A minute of kills. Round trips of links are up to 100 ms.
struct Minute {
    net: Net,
    links: BTreeSet<(u8, u8)>,
    kills: Vec<Kill>,
    probe: usize,
    timed: usize,
}

fn minute(seed: u64, damage: f64) -> Minute {
    let mut random = Random::stream_of(7, "overlay soak", seed);
    let mut net = Net::new(NODES, config());
    let links = links(&mut random);
    for (a, b) in &links {
        let kbit = 2000 + random.below(6000);
        net.link(*a, *b, kbit, ms(1 + random.below(49)));
    }
    net.faults = Faults { damage, repeat: 0.01, jitter: ms(3) };
    let kills = kills(&links, &mut random);
    let mut epoch = 1000;
    for kill in &kills {
        match kill.victim {
            Victim::Node(node) => {
                // Every third restart has an epoch that is older than the last one.
                epoch = if random.below(3) == 0 { epoch - 5 } else { epoch + 10 };
                net.change(at(kill.at), Change::Kill(node));
                net.change(at(kill.back), Change::Start(node, epoch));
            }
            Victim::Link(a, b) => {
                net.change(at(kill.at), Change::Loss(a, b, 1.0));
                net.change(at(kill.back), Change::Loss(a, b, 0.0));
            }
        }
    }
    let cap = |kbit: u64| {
        Some(log::Config { priority: 1.0, cap: Rate::from_bits_per_sec(kbit * 1000), shape: 20.0 })
    };
    net.join(TO, 1);
    net.join(4, 1);
    let probe = net.flow(Flow { bytes: 250, ..Flow::constant(FROM, node(TO), 100, None) });
    let timed = net.flow(Flow { bytes: 250, ..Flow::constant(FROM, node(TO), 100, Some(ms(400))) });
    net.flow(Flow { log: cap(1000), ..Flow::log(2, group(1), 1.0) });
    net.flow(Flow { log: cap(1000), ..Flow::log(6, node(3), 1.0) });
    Minute { net, links, kills, probe, timed }
}

impl Minute {
    /// The longest time without a packet of the probe at its receiver, between these times.
    fn silence(&self, from: Time, until: Time) -> Span {
        let arrivals = self.net.receipts(self.probe, TO, from, until).map(|receipt| receipt.at);
        let (longest, last) = arrivals
            .fold((Span::ZERO, from), |(longest, last), arrival| (longest.max(arrival.since(last)), arrival));
        longest.max(until.since(last))
    }

    /// Hops of the probe's packets beyond the shortest way, from 2 s after each kill to the victim's return.
    fn detours(&self) -> Vec<u8> {
        let mut detours = vec![];
        for kill in &self.kills {
            let shortest = shortest(&self.links, Some(kill.victim));
            let receipts = self.net.receipts(self.probe, TO, at(kill.at + 2000), at(kill.back));
            detours.extend(receipts.map(|receipt| receipt.hops.saturating_sub(shortest)));
        }
        detours.sort_unstable();
        detours
    }

    /// What holds however bad the links are: when all are back, every node finds all others and the groups, and queues are short.
    fn ends_well(&mut self, seed: u64) {
        self.net.faults = Faults::default();
        self.net.run(at(MINUTE));
        for one in &self.net.nodes {
            assert_eq!(one.reachable().len(), usize::from(NODES), "seed {seed}: node {}", one.id().number());
            assert_eq!(
                one.members(GroupId(1)),
                [TO, 4].into_iter().filter_map(crate::NodeId::new).collect::<Nodes>()
            );
        }
        let held: usize = self.net.nodes.iter().map(Node::held).sum();
        assert!(held < 3000, "seed {seed}: {held} packets wait");
    }
}

/// Kills by this seed: how flows fare is judged where packets are not damaged, since a damaged header may name other nodes.
fn soak(seed: u64) {
    let mut minute = minute(seed, 0.0);
    minute.net.run(at(MINUTE - 6000));
    for kill in &minute.kills {
        // Rerouted within a second: from then on packets come as they were sent, but for the jitter of links and queues.
        let silence = minute.silence(at(kill.at + 1000), at(kill.back));
        assert!(silence < GAP + ms(280), "seed {seed}, {kill:?}: nothing for {silence}");
    }
    let came_back = minute.net.receipts(minute.timed, TO, at(0), at(MINUTE)).any(|receipt| receipt.came_back);
    assert!(!came_back, "seed {seed}: a packet with a deadline was at a node twice");
    let detours = minute.detours();
    let p99 = detours[detours.len() * 99 / 100];
    assert!(p99 <= 4, "seed {seed}: {p99} hops more than the shortest way");
    minute.ends_well(seed);
}

/// A minute with damaged packets and messages: nothing lasts.
fn soak_damaged(seed: u64) {
    let mut minute = minute(seed, 0.01);
    minute.net.run(at(MINUTE - 6000));
    minute.ends_well(seed);
}

/// Minutes of each kind: two, or as many as `WEIR_OVERLAY_MINUTES` says when the test is built.
fn seeds() -> std::ops::Range<u64> {
    let minutes = option_env!("WEIR_OVERLAY_MINUTES").and_then(|minutes| minutes.parse().ok());
    0..minutes.unwrap_or(2)
}

#[test]
fn after_random_kills_flows_are_rerouted_within_a_second_on_short_ways() {
    seeds().for_each(soak);
}

#[test]
fn after_random_kills_over_links_that_damage_packets_nothing_stale_is_left() {
    seeds().for_each(soak_damaged);
}

#[test]
fn what_an_interior_kill_loses_is_what_the_node_held_and_what_was_on_its_way() {
    let mut net = Net::new(4, config());
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        net.link(a, b, 4000, ms(10));
    }
    let flow = net.flow(Flow { until: at(9000), ..Flow::log(0, node(3), 1.0) });
    net.change(at(5000), Change::Kill(1));
    net.run(at(12_000));
    let received = net.receipts(flow, 3, at(0), at(12_000)).count() as u64;
    let discarded: u64 = net.discarded.values().sum();
    let held: usize = [0, 2, 3].iter().map(|node| net.nodes[*node].held()).sum();
    let fates = net.fates;
    assert_eq!(net.sent[flow], received + discarded + fates.killed + fates.unheard + held as u64);
    // Half a second of silence at 4 Mbit/s, and what was in the queue.
    assert!(fates.unheard < 300, "{} packets were sent to a node that was gone", fates.unheard);
    assert!(fates.killed < 100, "{} packets were in its queues", fates.killed);
}
