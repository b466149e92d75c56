//! Delay: virtual depth against a rate that steps, and traffic with deadlines.

use super::{PAYLOAD, config, ms};
use crate::harness::{Change, Flow, Net, at, group, node};
use crate::node::Config;
use crate::zombie;
use weir_base::Rate;

fn zombies(name: &str) -> zombie::Config {
    name.parse().unwrap()
}

/// Digest X 2.2.2b: two groups over one link, which has 2, 4 and 1 Mbit/s for 15 s each. K is that of the study, 5,000 packets squared.
pub(super) fn steps_with(zombies: zombie::Config) -> (Net, [usize; 2]) {
    let mut net = Net::new(8, Config { zombies, k: Some(5e11), ..config() });
    // Sources 0 and 1, the link 2 to 3, receivers 4 to 7.
    for (a, b, rate) in [
        (0, 2, 10_000),
        (1, 2, 10_000),
        (2, 3, 2000),
        (3, 4, 10_000),
        (3, 5, 10_000),
        (3, 6, 10_000),
        (3, 7, 10_000),
    ] {
        net.link(a, b, rate, ms(1));
    }
    net.change(at(16_000), Change::Rate(2, 3, 4000));
    net.change(at(31_000), Change::Rate(2, 3, 1000));
    [(4, 1), (5, 1), (6, 2), (7, 2)].iter().for_each(|(node, group)| net.join(*node, *group));
    let flows =
        [0, 1].map(|from| net.flow(Flow { bytes: 1222, ..Flow::log(from, group(u32::from(from) + 1), 1.0) }));
    net.run(at(46_000));
    (net, flows)
}

/// Rate in parts of what the link has, and the mean and 99th percentile of the delay, in each interval from so many seconds after its begin.
fn intervals(name: &str, from: u64) -> Vec<(f64, f64, f64)> {
    let (net, flows) = steps_with(zombies(name));
    let payload = 0.99 * 1222.0 / (1222.0 + 28.0 + 14.0);
    let measure = |(begin, rate): (u64, f64)| {
        let (from, until) = (at(begin + 1000 * from), at(begin + 15_000));
        let sum: f64 = flows.iter().zip([4, 6]).map(|(flow, node)| net.rate(*flow, node, from, until)).sum();
        let (mean, most) = net.delay(flows[0], 4, from, until);
        (sum / rate / payload, mean, most)
    };
    let all: Vec<_> = [(1000, 2.0), (16_000, 4.0), (31_000, 1.0)].map(measure).to_vec();
    all
}

#[test]
fn improved_zlr_follows_a_link_of_2_4_and_1_mbit_within_2_s_and_its_queue_becomes_short() {
    for (rate, ..) in intervals("zlr-improved", 2) {
        assert!(rate > 0.95, "{rate} of the link");
    }
    // At first it takes the time in which what stands drains; that is longest after the rate has fallen to a quarter.
    for (_, mean, most) in intervals("zlr-improved", 10) {
        assert!(mean < 45.0 && most < 80.0, "{mean} ms, 99 % {most} ms");
    }
}

#[test]
fn basic_backpressure_has_delays_of_up_to_seconds() {
    let delays: Vec<f64> = intervals("none", 2).iter().map(|(_, mean, _)| *mean).collect();
    assert!(delays[2] > 1000.0 && delays.iter().all(|mean| *mean > 200.0), "{delays:?} ms");
}

#[test]
fn learned_virtual_depth_does_not_follow_a_link_that_changes() {
    let learned = intervals("idg", 5);
    // While it learns it serves the link with a short queue; then too little is admitted, and at last packets stand.
    assert!(learned[0].0 > 0.6 && learned[0].1 < 100.0, "{learned:?}");
    assert!(learned[1].0 < 0.8, "{learned:?}");
    assert!(learned[2].1 > 1000.0, "{learned:?}");
}

/// Digest 4.17: direct 70 ms, indirect 2 ms; a sensitive flow of 5 Mbit/s with a deadline of 70 ms, and one of 10 without. The direct link
/// fails for 10 s.
fn system() -> (Net, usize, usize) {
    let mut net = Net::new(3, Config { k: Some(1.5e11), ..config() });
    net.link(0, 1, 10_000, ms(70));
    net.link(0, 2, 10_000, ms(1));
    net.link(1, 2, 10_000, ms(1));
    let cap = |flow: Flow, mbit: u64, priority| {
        let cap = Rate::from_mbit_per_sec(mbit);
        Flow { log: Some(crate::utility::log::Config { priority, cap, shape: 10.0 }), ..flow }
    };
    let sensitive = net.flow(Flow { deadline: Some(ms(70)), ..cap(Flow::log(0, node(1), 1.0), 5, 1.0) });
    let other = net.flow(cap(Flow { bytes: 1016, ..Flow::log(0, node(1), 5.0) }, 10, 5.0));
    net.change(at(11_000), Change::Loss(0, 1, 1.0));
    net.change(at(21_000), Change::Loss(0, 1, 0.0));
    net.run(at(35_000));
    (net, sensitive, other)
}

#[test]
fn sensitive_packets_keep_their_deadline_and_never_visit_a_node_twice() {
    let (net, sensitive, other) = system();
    let receipts: Vec<_> = net.receipts(sensitive, 1, at(0), at(35_000)).copied().collect();
    assert!(receipts.iter().all(|one| one.delay <= ms(70) && !one.came_back));
    for (name, from, until) in
        [("before", 3000, 11_000), ("outage", 13_000, 21_000), ("after", 24_000, 35_000)]
    {
        let rates = [sensitive, other].map(|flow| net.rate(flow, 1, at(from), at(until)));
        let (mean, most) = net.delay(sensitive, 1, at(from), at(until));
        assert!(most < 40.0, "{name} {most} ms");
        if name == "outage" {
            assert!((rates[1] / rates[0] - 5.0).abs() < 0.5, "{rates:?}");
            assert!(rates[0] + rates[1] > 0.93 * 10.0 * PAYLOAD, "{rates:?}");
        } else {
            assert!(rates[0] > 4.7 && rates[1] > 9.0, "{name} {rates:?}");
            assert!(mean < 12.0, "{name} {mean} ms");
        }
    }
}

#[test]
fn what_cannot_be_in_time_is_not_carried() {
    let mut net = Net::new(3, config());
    net.link(0, 1, 10_000, ms(40));
    net.link(1, 2, 10_000, ms(40));
    let late = net.flow(Flow::constant(0, node(2), 1000, Some(ms(60))));
    let slow = net.flow(Flow::constant(0, node(2), 1000, Some(ms(90))));
    net.run(at(4000));
    assert_eq!(net.received.get(&(late, 2)).map_or(0, Vec::len), 0);
    assert!(net.discarded[&(late, "expired")] > 300);
    assert!(net.rate(slow, 2, at(2000), at(4000)) > 0.98);
}

/// Digest X 2.2.2a: five groups on the diamond with stubs. Mean and 99th percentile of the delay of each group at each receiver.
fn five_groups(name: &str) -> Vec<(f64, f64)> {
    let groups: [(u8, &[u8]); 5] =
        [(0, &[6, 7]), (5, &[0, 6, 7]), (7, &[0, 5, 6]), (8, &[5, 6, 7]), (9, &[0, 5, 7])];
    let mut net = Net::new(10, Config { zombies: zombies(name), k: Some(5e11), ..config() });
    for (a, b) in [(0, 1), (1, 2), (1, 3), (2, 5), (4, 6), (3, 7), (2, 8), (3, 9)] {
        net.link(a, b, 4000, ms(2));
    }
    net.link(2, 4, 3000, ms(2));
    net.link(3, 4, 3000, ms(2));
    let mut flows = vec![];
    for (number, (from, members)) in (0u32..).zip(groups) {
        members.iter().for_each(|member| net.join(*member, number));
        flows.push((net.flow(Flow { bytes: 1222, ..Flow::log(from, group(number), 1.0) }), members));
    }
    net.run(at(30_000));
    let mut all = vec![];
    for (flow, members) in flows {
        all.extend(members.iter().map(|node| net.delay(flow, *node, at(15_000), at(30_000))));
    }
    all
}

#[test]
fn virtual_depth_takes_most_of_the_delay_of_five_groups_away() {
    let mean = |all: Vec<(f64, f64)>| all.iter().map(|(mean, _)| mean).sum::<f64>() / all.len() as f64;
    let (none, improved) = (mean(five_groups("none")), mean(five_groups("zlr-improved")));
    assert!(improved < none / 3.0, "{none} and {improved} ms");
}
