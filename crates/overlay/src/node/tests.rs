//! Whole networks of nodes over ideal links.

mod faults;
mod latency;
mod multicast;
mod soak;

use super::*;
use crate::harness::{Flow as Source, Net, at, group, id, node};
use crate::message::header::LONGEST;
use weir_base::Rate;

fn config() -> Config {
    Config { k: Some(1e12), ..Config::default() }
}

/// What of a link's rate reaches a receiver as payload: 1,024 of 1,024 + 28 + about 14 bytes, less 1 % of signalling.
const PAYLOAD: f64 = 0.99 * 1024.0 / (1024.0 + 28.0 + 14.0);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

#[test]
fn nodes_find_each_other_and_the_ways_within_a_second() {
    let mut net = Net::new(4, config());
    for (a, b) in [(0, 1), (1, 2), (2, 3)] {
        net.link(a, b, 10_000, ms(10));
    }
    net.run(at(1000));
    assert_eq!(net.nodes[0].reachable().len(), 4);
    assert_eq!(net.nodes[0].route_delay(id(3)), Some(ms(30)));
    assert_eq!(net.nodes[1].neighbour(0), Some(id(0)));
}

#[test]
fn a_flow_uses_both_paths_of_a_diamond_fully() {
    let mut net = Net::new(4, config());
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        net.link(a, b, 4000, ms(5));
    }
    let flow = net.flow(Source::log(0, node(3), 1.0));
    net.run(at(15_000));
    let rate = net.rate(flow, 3, at(5000), at(15_000));
    assert!(rate > 0.95 * 8.0 * PAYLOAD, "{rate} Mbit/s");
}

/// A small flow of control, a sensitive one and a bulk flow offer more than a link carries.
#[test]
fn control_and_sensitive_packets_do_not_wait_for_normal_ones() {
    let mut net = Net::new(3, config());
    net.link(0, 1, 10_000, ms(2));
    net.link(1, 2, 2000, ms(2));
    let control = Source { dscp: crate::context::CONTROL, ..Source::constant(0, node(2), 200, None) };
    let sensitive = Source { deadline: Some(ms(500)), ..Source::log(0, node(2), 1.0) };
    let flows = [control, sensitive, Source::log(0, node(2), 1.0)].map(|flow| net.flow(flow));
    net.run(at(10_000));
    let delays = flows.map(|flow| net.delay(flow, 2, at(3000), at(10_000)));
    let rate = net.rate(flows[0], 2, at(3000), at(10_000));
    // A packet takes 4.3 ms on the slow link, which holds up to 8 ms of others when it is filled; 4 ms are of links.
    assert!((rate - 0.2).abs() < 0.01 && delays[0].1 < 25.0, "{rate} Mbit/s, {delays:?} ms");
    assert!(delays[0].0 < delays[2].0 / 2.0 && delays[1].0 < delays[2].0 / 2.0, "{delays:?} ms");
}

/// Two flows fill a link. What it sends and the zombies that leave, two bytes for each of idle time, take no more than its rate.
#[test]
fn zombies_leave_in_the_time_that_a_link_does_not_need_for_packets() {
    let zombies = "zlr".parse().unwrap();
    let mut net = Net::new(4, Config { zombies, ..config() });
    net.link(0, 2, 5000, ms(5));
    net.link(1, 2, 5000, ms(5));
    net.link(2, 3, 4000, ms(5));
    [0, 1].iter().for_each(|from| _ = net.flow(Source::log(*from, node(3), 1.0)));
    let taken = |net: &Net| {
        let sent = net.nodes[2].ports[2].sent;
        let datagrams = net.nodes[2].counters().packets + net.nodes[2].counters().signals;
        (sent.data + sent.signals + 28 * datagrams, sent.zombies)
    };
    net.run(at(3000));
    let before = taken(&net);
    net.run(at(13_000));
    let (data, zombies) = (taken(&net).0 - before.0, taken(&net).1 - before.1);
    // Messages to nodes 0 and 1 have headers too, of 1 % of this link's rate.
    assert!(data > 4_700_000 && zombies > 0 && data + zombies / 2 < 5_060_000, "{data} and {zombies} bytes");
}

#[test]
fn flows_share_a_bottleneck_in_proportion_to_their_priorities() {
    let mut net = Net::new(4, config());
    net.link(0, 2, 20_000, ms(5));
    net.link(1, 2, 20_000, ms(5));
    net.link(2, 3, 10_000, ms(5));
    let flows =
        [(0, 1.0), (0, 2.0), (1, 5.0)].map(|(from, priority)| net.flow(Source::log(from, node(3), priority)));
    net.run(at(20_000));
    let rates = flows.map(|flow| net.rate(flow, 3, at(8000), at(20_000)));
    let [one, two, five] = rates;
    assert!((two / one - 2.0).abs() < 0.07 && (five / one - 5.0).abs() < 0.2, "{rates:?}");
    assert!(one + two + five > 0.95 * 10.0 * PAYLOAD, "{rates:?}");
}

#[test]
fn all_nodes_take_the_same_k_from_the_capacities() {
    let mut net = Net::new(3, Config { k: None, ..config() });
    net.link(0, 1, 10_000, ms(10));
    net.link(1, 2, 10_000, ms(10));
    let flow = net.flow(Source::log(2, node(0), 1.0));
    net.run(at(6000));
    let k: Vec<_> = net.nodes.iter().map(Node::k).collect();
    assert_eq!(k, [Some(libm::exp2(41.0)); 3]);
    assert!(net.rate(flow, 0, at(3000), at(6000)) > 0.95 * 10.0 * PAYLOAD);
}

#[test]
fn a_small_flow_is_starved_without_asap_and_not_with_it() {
    let rate = |asap| {
        let mut net = Net::new(4, Config { asap, ..config() });
        net.link(0, 1, 10_000, ms(10));
        net.link(1, 2, 10_000, ms(10));
        net.link(1, 3, 10_000, ms(10));
        net.flow(Source::log(0, node(2), 10.0));
        let small = net.flow(Source { bytes: 100, ..Source::constant(0, node(3), 5, None) });
        net.run(at(20_000));
        net.rate(small, 3, at(10_000), at(20_000)) * 1000.0
    };
    let (without, with) = (rate(false), rate(true));
    assert!(with > 4.5, "{with} kbit/s");
    assert!(without < with, "{without} kbit/s");
}

#[test]
fn headers_and_signalling_stay_within_their_bounds() {
    let mut net = Net::new(3, config());
    net.link(0, 1, 10_000, ms(10));
    net.link(1, 2, 10_000, ms(10));
    net.flow(Source::log(0, node(2), 1.0));
    net.run(at(10_000));
    let counters = net.counters();
    let header = counters.header_bytes as f64 / counters.packets as f64;
    // Four directions of 10 Mbit/s for 10 s.
    let signalling = (counters.signal_bytes + 28 * counters.signals) as f64 * 8.0 / (4.0 * 10e6 * 10.0);
    assert!(header < 15.0, "{header}");
    assert!(signalling < 0.013, "{signalling}");
}

#[test]
fn depths_of_100_bins_are_at_most_100_ms_old_at_10_mbit() {
    let mut net = Net::new(2, config());
    net.link(0, 1, 10_000, ms(1));
    for number in 0..100 {
        net.join(1, 0xe000_0000 + number);
        net.flow(Source {
            rate: Rate::from_bits_per_sec(200_000),
            log: None,
            ..Source::log(0, group(0xe000_0000 + number), 1.0)
        });
    }
    net.run(at(4000));
    let mut oldest = Span::ZERO;
    for millis in 4000..5000 {
        net.run(at(millis));
        oldest = oldest.max(net.nodes[1].advertised_by(0).unwrap().age(at(millis)));
    }
    assert!(oldest < ms(55), "{oldest}");
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_its_key() {
    let key = |config: Config| config.fault().map(|fault| fault.key);
    let nplb = depth::Config::Nplb(Default::default());
    assert_eq!(key(Config::default()), None);
    assert_eq!(key(Config { depth: nplb.clone(), ..Config::default() }), Some("asap"));
    assert_eq!(key(Config { depth: nplb, asap: false, ..Config::default() }), None);
    assert_eq!(key(Config { k: Some(0.0), ..Config::default() }), Some("k"));
    assert_eq!(key(Config { depth_share: 0.0, ..Config::default() }), Some("depth_share"));
    let multicast = crate::multicast::Config { rendezvous: 128, ..Default::default() };
    assert_eq!(key(Config { multicast, ..Config::default() }), Some("rendezvous"));
}

#[test]
fn the_scratch_header_never_grows_beyond_the_longest() {
    let mut net = Net::new(3, config());
    net.link(0, 1, 10_000, ms(10));
    net.link(1, 2, 10_000, ms(10));
    net.flow(Source::constant(0, node(2), 1000, Some(ms(100))));
    net.run(at(3000));
    let counters = net.counters();
    assert!(counters.packets > 0 && counters.header_bytes <= counters.packets * LONGEST as u64);
}
