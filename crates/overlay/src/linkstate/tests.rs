use super::adjacency::{Adjacency, Change, HELLO, SILENCE};
use super::database::{Accepted, Database, OLDEST};
use super::routes::{Neighbour, Routes, is_in_time};
use crate::cat::Delay;
use crate::harness::{at, id, set};
use crate::message::{Groups, Hello, LinkInfo, Links, Stamp};
use crate::nodes::{NODES, Nodes, PerNode};
use crate::packet::GroupId;
use weir_base::{Rate, Span};

fn links(origin: u8, epoch: u32, sequence: u32, to: &[(u8, u64)]) -> Links {
    let mut neighbours = PerNode::default();
    for (node, millis) in to {
        let delay = Delay::constant(Span::from_millis(*millis));
        neighbours.set(id(*node), LinkInfo { delay, capacity: Rate::from_mbit_per_sec(10) });
    }
    let stamp = Stamp { epoch, sequence };
    Links {
        origin: id(origin),
        stamp,
        k: None,
        is_drained: false,
        neighbours,
        queue_delays: PerNode::default(),
    }
}

fn hello(node: u8, epoch: u32, heard: Option<u32>) -> Hello {
    Hello { node: id(node), epoch, heard }
}

#[test]
fn a_neighbour_is_up_while_both_hear_each_other() {
    let mut link = Adjacency::default();
    assert_eq!(link.on_hello(hello(2, 7, None), 1, at(0)), Change::None);
    assert_eq!(link.hello(id(1), 1).heard, Some(7));
    assert_eq!(link.on_hello(hello(2, 7, Some(1)), 1, at(10)), Change::Up);
    assert_eq!((link.up(), link.on_hello(hello(2, 7, Some(1)), 1, at(20))), (Some(id(2)), Change::None));
    assert_eq!(link.on_hello(hello(2, 7, None), 1, at(30)), Change::Down);
}

#[test]
fn half_a_second_of_silence_is_an_outage_and_data_is_a_sign_of_life() {
    let mut link = Adjacency::default();
    link.on_hello(hello(2, 7, Some(1)), 1, at(0));
    link.heard(at(300));
    assert_eq!((link.on_timer(at(799)), link.silent_at()), (Change::None, at(300) + SILENCE));
    assert_eq!((link.on_timer(at(800)), link.up()), (Change::Down, None));
    link.said_hello(at(800));
    assert_eq!(link.hello_due(), at(800) + HELLO);
    assert!(link.wants_hello(at(880)) && !link.wants_hello(at(879)));
}

#[test]
fn a_restarted_or_another_neighbour_comes_up_anew() {
    let mut link = Adjacency::default();
    link.on_hello(hello(2, 7, Some(1)), 1, at(0));
    assert_eq!(link.on_hello(hello(2, 8, Some(1)), 1, at(10)), Change::Up);
    assert_eq!(link.on_hello(hello(3, 8, Some(1)), 1, at(20)), Change::Up);
    // One that has heard an earlier life of this node is not up.
    assert_eq!(link.on_hello(hello(3, 8, Some(0)), 1, at(30)), Change::Down);
}

#[test]
fn only_newer_announcements_are_taken_and_a_new_epoch_is_newer() {
    let mut database = Database::default();
    let mut accept = |links: &Links| database.accept_links(id(0), links, at(0));
    assert_eq!(accept(&links(1, 1, 500, &[(2, 10)])), Accepted::Changed);
    assert_eq!(accept(&links(1, 1, 500, &[(2, 10)])), Accepted::Old);
    assert_eq!(accept(&links(1, 1, 501, &[(2, 20)])), Accepted::New);
    assert_eq!(accept(&links(1, 1, 502, &[(2, 20)])), Accepted::Same);
    assert_eq!(accept(&links(1, 2, 1, &[(3, 10)])), Accepted::Changed);
    assert_eq!(accept(&links(1, 1, 503, &[(2, 10)])), Accepted::Old);
}

#[test]
fn a_node_that_hears_of_an_earlier_life_learns_the_epoch_to_exceed() {
    let mut database = Database::default();
    database.put_links(links(0, 1, 3, &[]), at(0));
    assert_eq!(database.accept_links(id(0), &links(0, 9, 1, &[]), at(0)), Accepted::Own(9));
    assert_eq!(database.accept_links(id(0), &links(0, 1, 2, &[]), at(0)), Accepted::Old);
}

#[test]
fn what_is_not_repeated_for_5_s_is_forgotten_except_of_oneself() {
    let mut database = Database::default();
    database.put_links(links(0, 1, 1, &[]), at(0));
    database.accept_links(id(0), &links(1, 1, 1, &[]), at(0));
    let joined = vec![GroupId(4), GroupId(9)];
    let groups = Groups { origin: id(1), stamp: Stamp { epoch: 1, sequence: 1 }, joined };
    database.accept_groups(id(0), &groups, at(1000));
    assert!(!database.age(id(0), at(4999)) && database.age(id(0), at(0) + OLDEST));
    assert!(database.links(id(0)).is_some() && database.links(id(1)).is_none());
    assert_eq!(database.members(GroupId(9)), set(&[1]));
    database.age(id(0), at(1000) + OLDEST);
    assert_eq!(database.members(GroupId(9)), Nodes::EMPTY);
}

#[test]
fn a_node_leaves_the_groups_that_it_no_longer_names() {
    let mut database = Database::default();
    for (sequence, joined) in [(1, vec![GroupId(4), GroupId(9)]), (2, vec![GroupId(9)])] {
        let groups = Groups { origin: id(1), stamp: Stamp { epoch: 1, sequence }, joined };
        assert_eq!(database.accept_groups(id(0), &groups, at(0)), Accepted::New);
    }
    assert_eq!((database.members(GroupId(4)), database.members(GroupId(9))), (Nodes::EMPTY, set(&[1])));
}

fn neighbour(port: usize, node: u8, millis: u64) -> Neighbour {
    Neighbour { port, node: id(node), delay: Delay::constant(Span::from_millis(millis)) }
}

/// The square of digest X 4.18: the fastest way from 1 to 3 has three links.
fn square() -> Routes {
    let mut database = Database::default();
    for announced in [
        links(1, 1, 1, &[(4, 10), (2, 75)]),
        links(4, 1, 1, &[(1, 10), (2, 10), (3, 100)]),
        links(2, 1, 1, &[(4, 10), (3, 10), (1, 75)]),
        links(3, 1, 1, &[(2, 10), (4, 100)]),
    ] {
        database.put_links(announced, at(0));
    }
    let mut routes = Routes::default();
    routes.compute(id(1), 2, &[neighbour(0, 4, 10), neighbour(1, 2, 75)], &database, false);
    routes
}

#[test]
fn hops_and_delays_take_different_ways() {
    let routes = square();
    assert_eq!(
        (routes.hops(id(3)), routes.hops_via(0, id(3)), routes.hops_via(1, id(3))),
        (Some(2), Some(1), Some(1))
    );
    assert_eq!(routes.delay_via(0, id(3)), Some(Span::from_millis(30)));
    assert_eq!(routes.delay_via(1, id(3)), Some(Span::from_millis(85)));
    assert_eq!(routes.best_delay(id(3)), Some(Span::from_millis(30)));
}

#[test]
fn a_neighbours_ways_do_not_pass_this_node() {
    let mut database = Database::default();
    // A line 0 - 1 - 2: node 0 reaches 2 only over this node, 1.
    for announced in [links(0, 1, 1, &[(1, 5)]), links(1, 1, 1, &[(0, 5), (2, 5)]), links(2, 1, 1, &[(1, 5)])]
    {
        database.put_links(announced, at(0));
    }
    let mut routes = Routes::default();
    routes.compute(id(1), 2, &[neighbour(0, 0, 5), neighbour(1, 2, 5)], &database, false);
    assert_eq!((routes.hops_via(0, id(2)), routes.delay_via(0, id(2))), (None, None));
    assert_eq!(routes.finite(1, set(&[0, 2])), set(&[2]));
}

#[test]
fn a_link_counts_only_while_both_ends_name_it() {
    let mut database = Database::default();
    for announced in
        [links(1, 1, 1, &[(0, 5), (2, 5)]), links(2, 1, 1, &[(1, 5), (3, 5)]), links(3, 1, 1, &[])]
    {
        database.put_links(announced, at(0));
    }
    let mut routes = Routes::default();
    routes.compute(id(0), 1, &[neighbour(0, 1, 5)], &database, false);
    assert_eq!(routes.reachable(), set(&[0, 1, 2]));
}

#[test]
fn queue_delays_along_the_path_count_if_they_shall() {
    let mut database = Database::default();
    for (node, queued) in [(1, 4), (2, 7), (3, 100)] {
        let near = [(node - 1, 5), (node + 1, 5)];
        let mut announced = links(node, 1, 1, if node == 3 { &near[..1] } else { &near });
        announced.queue_delays.set(id(3), Span::from_millis(queued));
        database.put_links(announced, at(0));
    }
    let mut routes = Routes::default();
    routes.compute(id(0), 1, &[neighbour(0, 1, 5)], &database, true);
    assert_eq!(routes.best_delay(id(3)), Some(Span::from_millis(15 + 4 + 7)));
}

#[test]
fn variances_add_before_the_root_is_taken() {
    let mut database = Database::default();
    let varying = Delay { mean: Span::from_millis(10), variance: 8e-6 };
    let mut announced = links(1, 1, 1, &[(0, 10), (2, 10)]);
    announced.neighbours.iter_mut().for_each(|(_, link)| link.delay = varying);
    database.put_links(announced, at(0));
    database.put_links(links(2, 1, 1, &[(1, 10)]), at(0));
    let mut routes = Routes::default();
    let near = Neighbour { port: 0, node: id(1), delay: varying };
    routes.compute(id(0), 1, &[near], &database, false);
    assert_eq!(routes.best_delay(id(2)), Some(Span::from_micros(28_800)));
    assert_eq!(routes.mean_via(0, id(2)), Some(Span::from_millis(20)));
}

#[test]
fn a_ring_of_128_nodes_has_64_hops_to_the_other_side() {
    let mut database = Database::default();
    for node in 0..NODES as u8 {
        let near = [(node + 127) % 128, (node + 1) % 128].map(|other| (other, 1));
        database.put_links(links(node, 1, 1, &near), at(0));
    }
    let mut routes = Routes::default();
    routes.compute(id(0), 2, &[neighbour(0, 1, 1), neighbour(1, 127, 1)], &database, false);
    assert_eq!((routes.hops(id(64)), routes.hops_via(0, id(127))), (Some(64), Some(126)));
    assert_eq!(routes.reachable().len(), NODES);
    routes.build_tree(id(3));
    assert_eq!((routes.tree_parent(id(60)), routes.tree_child(id(3), id(60))), (Some(id(59)), Some(id(4))));
}

#[test]
fn a_packet_is_in_time_only_if_the_bound_of_its_way_lets_it() {
    let bound = Some(Span::from_millis(30));
    assert!(is_in_time(bound, Some(at(41)), at(10)) && !is_in_time(bound, Some(at(40)), at(10)));
    assert!(is_in_time(None, None, at(10)) && !is_in_time(None, Some(at(40)), at(10)));
}
