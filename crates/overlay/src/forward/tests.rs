use super::*;
use crate::cat::Delay;
use crate::harness::{Load, at, group, id, node, set};
use crate::linkstate::{Database, Neighbour};
use crate::message::{Depth, Depths, LinkInfo, Links, Range, Stamp};
use crate::packet::{Flow, GroupId, Packet};
use crate::queue::{Limits, Queued};
use weir_base::{Rate, Span};

/// Node 0 with neighbours: each of these pairs of nodes has a link of this delay in milliseconds.
struct Scene {
    queues: Queues<Load, ()>,
    ports: Vec<Port>,
    advertised: Vec<Advertised>,
    routes: Routes,
    forwarder: Forwarder,
    now: Time,
}

impl Scene {
    fn new(links: &[(u8, u8, u64)], config: Config) -> Scene {
        let mut database = Database::default();
        let mut neighbours = vec![];
        for origin in 0..10 {
            let mut all = PerNode::default();
            for (a, b, millis) in links {
                let delay = Delay::constant(Span::from_millis(*millis));
                let capacity = Rate::from_mbit_per_sec(10);
                if *a == origin || *b == origin {
                    all.set(id(a + b - origin), LinkInfo { delay, capacity });
                }
            }
            if origin == 0 {
                let near = all.iter().enumerate();
                neighbours = near
                    .map(|(port, (node, link))| Neighbour { port, node, delay: link.delay })
                    .collect::<Vec<_>>();
            }
            let stamp = Stamp { epoch: 1, sequence: 1 };
            database.put_links(
                Links {
                    origin: id(origin),
                    stamp,
                    k: None,
                    is_drained: false,
                    neighbours: all,
                    queue_delays: PerNode::default(),
                },
                at(0),
            );
        }
        let mut routes = Routes::default();
        routes.compute(id(0), neighbours.len(), &neighbours, &database, false);
        let port = |one: &Neighbour| Port {
            number: one.port,
            node: one.node,
            room: 6000,
            drains: true,
            yields: false,
        };
        let ports: Vec<Port> = neighbours.iter().map(port).collect();
        let mut advertised = vec![Advertised::default(); ports.len()];
        advertised
            .iter_mut()
            .for_each(|one| assert!(one.apply(Depths::new(Stamp::default(), Range::ALL), at(0))));
        let queues = Queues::new(Limits::default());
        Scene { queues, ports, advertised, routes, forwarder: Forwarder::new(config), now: at(0) }
    }

    fn put(&mut self, to: Key, receivers: &[u8], bytes: u32, due: Option<u64>, visited: &[u8]) {
        let class = if due.is_some() { Class::LowLatency } else { Class::Normal };
        let packet = Packet {
            flow: Flow { source: id(0), generation: 0, number: 0 },
            sequence: 0,
            to,
            receivers: set(receivers),
            due: due.map(at),
            is_sensitive: due.is_some(),
            visited: set(visited),
            hops: 0,
            ecn: 0,
            checksum: 0,
            body: Load { source: 0, bytes, sent: at(0), trace: Nodes::EMPTY, came_back: false },
        };
        assert!(matches!(
            self.queues.enqueue(packet, class, due.map_or(at(0), at), self.now),
            Queued::Waits(_)
        ));
    }

    fn told(&mut self, port: usize, fill: impl FnOnce(&mut Depths)) {
        let mut depths = Depths::new(Stamp { epoch: 1, sequence: 1 }, Range::ALL);
        fill(&mut depths);
        assert!(self.advertised[port].apply(depths, at(0)));
    }

    fn decide(&mut self) -> Option<Decision> {
        let Scene { queues, ports, advertised, routes, forwarder, now } = self;
        let view = View { queues, ports, advertised, routes, now: *now };
        forwarder.decide(&view, |one, sensitive| one.real(sensitive) + one.zombies(sensitive))
    }

    /// The neighbour, the bin's name and the reason of the decision.
    fn outcome(&mut self) -> Option<(u8, Key, Reason)> {
        let decision = self.decide()?;
        Some((self.ports[decision.port].node.number(), self.queues.bin(decision.bin).key, decision.reason))
    }
}

fn total(total: u64) -> Depth {
    Depth { total, sensitive: 0 }
}

const TRIANGLE: [(u8, u8, u64); 3] = [(0, 1, 10), (0, 2, 10), (1, 2, 10)];

/// Three nodes, all joined. Node 0 has 6,000 bytes for node 1 and 4,000 for node 2; node 1 has 3,000 for node 2, node 2 has 1,000 for
/// node 1. Each is one hop from each other, which is 1,100 bytes. By hand:
///
/// | to neighbour | for 1 | for 2 |
/// |---|---|---|
/// | 1 | 6,000 + 1,100 - 0 = 7,100 | 4,000 + 1,100 - (3,000 + 1,100) = 1,000 |
/// | 2 | 6,000 + 1,100 - (1,000 + 1,100) = 5,000 | 4,000 + 1,100 - 0 = 5,100 |
///
/// A neighbour that is the destination has 1 byte more.
fn three_nodes() -> Scene {
    let mut scene = Scene::new(&TRIANGLE, Config::default());
    scene.put(node(1), &[1], 6000, None, &[]);
    scene.put(node(2), &[2], 4000, None, &[]);
    scene.told(0, |depths| depths.nodes.set(id(2), total(3000)));
    scene.told(1, |depths| depths.nodes.set(id(1), total(1000)));
    scene
}

#[test]
fn the_decision_of_three_nodes_is_the_one_computed_by_hand() {
    let mut scene = three_nodes();
    assert_eq!(scene.outcome(), Some((1, node(1), Reason::Gradient(7101))));
    // The link to node 1 has no room: the direct way of the other bin is the best that is left.
    scene.ports[0].room = 0;
    assert_eq!(scene.outcome(), Some((2, node(2), Reason::Gradient(5101))));
    // With less for node 2, what is for node 1 goes by way of node 2.
    let mut scene = three_nodes();
    scene.ports[0].room = 0;
    let bin = scene.queues.find(node(2)).unwrap();
    let place = scene.queues.bin(bin).first(Class::Normal).unwrap();
    scene.queues.remove(bin, Class::Normal, place);
    scene.put(node(2), &[2], 3800, None, &[]);
    assert_eq!(scene.outcome(), Some((2, node(1), Reason::Gradient(5000))));
    scene.ports[1].room = 0;
    assert_eq!(scene.outcome(), None);
}

#[test]
fn nothing_goes_uphill_or_to_a_dead_end() {
    // Node 3 hangs at node 0 alone: what is for node 1 has no way over it.
    let mut scene = Scene::new(&[(0, 1, 10), (0, 3, 10)], Config::default());
    scene.put(node(1), &[1], 60_000, None, &[]);
    scene.ports[0].room = 0;
    assert_eq!(scene.outcome(), None);
    let mut scene = Scene::new(&TRIANGLE, Config::default());
    scene.put(node(1), &[1], 1000, None, &[]);
    scene.ports[0].room = 0;
    scene.told(1, |depths| depths.nodes.set(id(1), total(1000)));
    assert_eq!(scene.outcome(), None);
}

#[test]
fn a_packet_goes_to_a_node_that_it_has_visited_only_if_that_is_closer() {
    let decide = |visited: u8| {
        let mut scene = Scene::new(&TRIANGLE, Config::default());
        scene.put(node(1), &[1], 9000, None, &[visited]);
        scene.ports[usize::from(2 - visited)].room = 0;
        scene.outcome().map(|(node, ..)| node)
    };
    assert_eq!((decide(1), decide(2)), (Some(1), None));
}

#[test]
fn sensitive_packets_come_first_and_only_over_ways_that_are_fast_enough() {
    // Direct 70 ms, indirect 1 + 1 ms.
    let mut scene = Scene::new(&[(0, 1, 70), (0, 2, 1), (1, 2, 1)], Config::default());
    scene.put(node(1), &[1], 50_000, None, &[]);
    scene.put(node(1), &[1], 1000, Some(50), &[]);
    let sensitive = |outcome: Option<(u8, Key, Reason)>| {
        outcome.map(|(node, _, reason)| (node, matches!(reason, Reason::Sensitive(_))))
    };
    assert_eq!(sensitive(scene.outcome()), Some((2, true)));
    // The fast way has no room: the sensitive packet waits, the others take the slow one.
    scene.ports[1].room = 0;
    assert_eq!(sensitive(scene.outcome()), Some((1, false)));
}

#[test]
fn a_packet_with_a_deadline_does_not_return_to_a_node_that_it_has_visited() {
    let mut scene = Scene::new(&[(0, 1, 70), (0, 2, 1), (1, 2, 1)], Config::default());
    scene.put(node(1), &[1], 1000, Some(50), &[2]);
    assert_eq!(scene.outcome(), None);
}

#[test]
fn a_critical_packet_goes_to_the_fastest_node_that_it_has_not_visited_if_it_can_be_in_time() {
    let decide = |due| {
        let mut scene = Scene::new(&[(0, 1, 70), (0, 2, 1), (1, 2, 1)], Config::default());
        scene.put(node(1), &[1], 1000, Some(due), &[2]);
        let bin = scene.queues.find(node(1)).unwrap();
        let place = scene.queues.bin(bin).first(Class::LowLatency).unwrap();
        scene.queues.make_critical(bin, place);
        scene.outcome()
    };
    assert_eq!(decide(100), Some((1, node(1), Reason::Critical)));
    assert_eq!(decide(50), None);
}

#[test]
fn a_group_packet_parts_for_the_destinations_that_go_downhill() {
    let mut scene = Scene::new(&[(0, 1, 10), (0, 2, 10), (1, 3, 10), (2, 3, 10)], Config::default());
    scene.put(group(5), &[1, 3], 1000, None, &[]);
    let mut members = PerNode::default();
    // Node 1 has much for node 3, so for that node the way over node 2 is better by far.
    members.set(id(3), total(9000));
    scene.told(0, |depths| depths.groups.push_members(GroupId(5), &members));
    scene.ports[1].room = 0;
    assert_eq!(scene.decide().map(|decision| decision.nodes), Some(set(&[1])));
}

#[test]
fn a_group_packet_stays_whole_where_the_rest_is_only_a_little_uphill() {
    let mut scene = Scene::new(&[(0, 1, 10), (1, 2, 10), (1, 3, 10)], Config::default());
    scene.put(group(5), &[2, 3], 1000, None, &[]);
    let mut members = PerNode::default();
    members.set(id(3), total(5000));
    scene.told(0, |depths| depths.groups.push_members(GroupId(5), &members));
    // For 3 the difference is 1,000 + 2 * 1,100 - (5,000 + 1,100) = -2,900, and no other neighbour is better.
    assert_eq!(scene.decide().map(|decision| decision.nodes), Some(set(&[2, 3])));
}

/// One link, and a group with 1,000 bytes of packets for node 1 and zombies for node 2.
fn with_zombies(zombies_first: bool, zombies: u64) -> Scene {
    let mut scene = Scene::new(&[(0, 1, 10), (1, 2, 10)], Config { zombies_first, ..Config::default() });
    scene.put(group(5), &[1, 2], 1000, None, &[]);
    scene.put(group(5), &[1], 1000, None, &[]);
    let bin = scene.queues.find(group(5)).unwrap();
    let place = scene.queues.bin(bin).first(Class::Normal).unwrap();
    scene.queues.take(bin, Class::Normal, place, set(&[2]), at(0));
    scene.queues.add_zombies(bin, id(2), Class::Virtual, zombies);
    scene
}

#[test]
fn zombies_come_before_packets_of_their_bin_only_if_improved_and_heavier() {
    let is_zombies = |zombies_first, zombies| {
        let decision = with_zombies(zombies_first, zombies).decide().unwrap();
        matches!(decision.action, Action::Zombies { .. })
    };
    // Packets: 2,000 + 1,100. Zombies: 500 + 1,100, or 5,000 + 1,100.
    assert!(!is_zombies(true, 500) && is_zombies(true, 5000) && !is_zombies(false, 5000));
}

#[test]
fn zombies_wait_for_the_drain_of_the_link_and_packets_do_not() {
    let mut scene = with_zombies(true, 5000);
    scene.ports[0].drains = false;
    assert!(matches!(scene.decide().unwrap().action, Action::Packet { .. }));
}

/// One link that has no time for zombies. Those for node 2 have the turn; a packet for node 1 would go against the prices.
#[test]
fn packets_of_another_bin_wait_for_zombies_that_outweigh_them() {
    for forwarding in [Forwarding::PerBin, Forwarding::Total] {
        let multicast = multicast::Config { forwarding, ..Default::default() };
        let config = Config { zombies_first: true, multicast, ..Config::default() };
        let mut scene = Scene::new(&[(0, 1, 10), (1, 2, 10)], config);
        scene.put(node(1), &[1], 1000, None, &[]);
        scene.put(node(2), &[2], 500, None, &[]);
        let bin = scene.queues.find(node(2)).unwrap();
        let place = scene.queues.bin(bin).first(Class::Normal).unwrap();
        scene.queues.take(bin, Class::Normal, place, set(&[2]), at(0));
        scene.queues.add_zombies(bin, id(2), Class::Virtual, 5000);
        (scene.ports[0].drains, scene.ports[0].yields) = (false, true);
        assert_eq!(scene.decide(), None);
        assert!(scene.forwarder.waits_for(0));
        scene.ports[0].drains = true;
        assert!(matches!(scene.decide().unwrap().action, Action::Zombies { .. }));
        scene.queues.take_zombies(bin, id(2), Class::Virtual, 4500);
        scene.ports[0].drains = false;
        assert!(matches!(scene.decide().unwrap().action, Action::Packet { .. }));
    }
}

#[test]
fn by_one_depth_a_group_the_largest_fall_wins_and_a_packet_goes_even_uphill() {
    let multicast = multicast::Config { forwarding: Forwarding::Total, ..Default::default() };
    let mut scene = Scene::new(&[(0, 1, 10), (1, 2, 10)], Config { multicast, ..Config::default() });
    scene.put(group(5), &[1, 2], 3000, None, &[]);
    scene.put(group(6), &[2], 1000, None, &[]);
    // Group 5 falls by 6,000 + 2,200 - 2,000. By destination node 1 has far more than this node, so the packet goes uphill.
    scene.told(0, |depths| {
        depths.groups.push_total(GroupId(5), 2000);
        depths.sums.set(id(1), total(90_000));
        depths.sums.set(id(2), total(90_000));
    });
    let decision = scene.decide().unwrap();
    assert_eq!(scene.queues.bin(decision.bin).key, group(5));
    assert_eq!(decision.nodes, set(&[1, 2]));
    assert!(matches!(decision.reason, Reason::Uphill(score) if score < 0), "{:?}", decision.reason);
}

#[test]
fn coded_packets_go_to_all_destinations_that_fall() {
    let multicast = multicast::Config { forwarding: Forwarding::Coded, ..Default::default() };
    let mut scene = Scene::new(&[(0, 1, 10), (1, 2, 10)], Config { multicast, ..Config::default() });
    scene.put(group(5), &[1], 1000, None, &[]);
    scene.put(group(5), &[2], 1000, None, &[]);
    let decision = scene.decide().unwrap();
    assert_eq!((decision.nodes, decision.action), (set(&[1, 2]), Action::Coded));
}

/// Random arrivals, depths and departures: a forwarder that keeps gradients decides as one does that has just been made.
#[test]
fn kept_gradients_decide_as_fresh_ones_do() {
    let config = Config { zombies_first: true, ..Config::default() };
    let mut scene = Scene::new(&TRIANGLE, config.clone());
    let mut random = weir_base::Random::stream(5, "kept gradients");
    let mut decisions = 0;
    for step in 1..3000u32 {
        let to = [node(1), node(2), group(7), group(8)][random.below(4) as usize];
        match random.below(3) {
            0 => {
                let receivers: &[u8] = match to {
                    Key::Node(one) => &[one.number()],
                    Key::Group(_) => [&[1][..], &[2], &[1, 2]][random.below(3) as usize],
                };
                let visited: &[u8] = if random.chance(0.2) { &[1] } else { &[] };
                scene.put(to, receivers, 100 + random.below(1000) as u32, None, visited);
            }
            1 => {
                let range = if random.chance(0.5) { Range::ALL } else { Range { first: node(0), last: to } };
                let mut depths = Depths::new(Stamp { epoch: 2, sequence: step }, range);
                depths.nodes.set(id(2), total(random.below(3000)));
                if range.has(group(7)) {
                    let mut members = PerNode::default();
                    members.set(id(1), total(random.below(3000)));
                    depths.groups.push_members(GroupId(7), &members);
                }
                assert!(scene.advertised[random.below(2) as usize].apply(depths, at(0)));
            }
            _ => {
                if let Some(bin) = scene.queues.find(to)
                    && scene.queues.bin(bin).destinations.get(id(1)).is_some()
                {
                    scene.queues.add_zombies(bin, id(1), Class::Virtual, random.below(2000));
                }
            }
        }
        scene.ports.iter_mut().for_each(|port| {
            port.room = random.below(2) * 3000;
            port.drains = random.chance(0.5);
        });
        let kept = scene.decide();
        let fresh = std::mem::replace(&mut scene.forwarder, Forwarder::new(config.clone()));
        let anew = scene.decide();
        scene.forwarder = fresh;
        assert_eq!(kept, anew, "step {step}");
        scene.queues.settle();
        let Some(decision) = kept else { continue };
        decisions += 1;
        match decision.action {
            Action::Packet { class, place } => {
                assert!(scene.queues.take(decision.bin, class, place, decision.nodes, at(0)).is_some());
            }
            Action::Zombies { .. } => {
                for node in decision.nodes.iter() {
                    scene.queues.take_zombies(decision.bin, node, Class::Virtual, 1024);
                }
            }
            Action::Coded => panic!("nothing is coded"),
        }
    }
    assert!(decisions > 1000, "{decisions}");
}

/// Two packets of a group are worth the same to node 1: one for it alone, and an older one that would have to part.
#[test]
fn of_packets_that_are_worth_the_same_one_that_need_not_part_goes_first() {
    let mut scene = Scene::new(&[(0, 1, 10), (0, 2, 10)], Config::default());
    scene.put(group(7), &[1, 2], 1000, None, &[]);
    scene.put(group(7), &[1], 1000, None, &[]);
    // The link to node 2 is full, and node 1 is a dead end for it.
    scene.ports[1].room = 0;
    let decision = scene.decide().unwrap();
    let Action::Packet { place, .. } = decision.action else { panic!("{decision:?}") };
    assert_eq!(scene.queues.entry(place).unwrap().packet.receivers, set(&[1]));
}
