//! Networks that are worked out by hand.

use super::mbit;
use std::time::Instant;
use weir_base::Span;
use weir_optimum::{
    Allocation, Blocked, Class, ClassError, Forwarding, Log, Network, Utility, Why, read_csv, utility_optimum,
};

/// Links of 10 ms with these rates in Mbit/s, written `a-b 10` for both directions.
fn network(links: &[&str]) -> Network {
    let mut text = String::from("from,to,rate,delay\n");
    for link in links {
        let (ends, rate) = link.split_once(' ').unwrap();
        let (from, to) = ends.split_once('-').unwrap();
        text += &format!("{from},{to},{rate} Mbit/s,10 ms\n{to},{from},{rate} Mbit/s,10 ms\n");
    }
    read_csv(&text).unwrap()
}

fn log(priority: f64, cap: f64) -> Utility {
    Utility::Log(Log { priority, shape: 20.0, cap: mbit(cap) })
}

fn strap(priority: f64, rate: f64) -> Utility {
    Utility::Strap { priority, rate: mbit(rate) }
}

/// `count` flows from a node to others.
fn flows(network: &Network, count: u32, ends: &str, utility: Utility) -> Class {
    let (from, to) = ends.split_once('>').unwrap();
    let node = |name: &str| network.node(name).unwrap();
    Class {
        name: ends.into(),
        source: node(from),
        receivers: to.split(',').map(node).collect(),
        count,
        deadline: None,
        utility,
        loads: Vec::new(),
        answers: 0.0,
    }
}

fn optimum(network: &Network, classes: &[Class]) -> Allocation {
    let found = utility_optimum(network, classes, Forwarding::Coded).unwrap();
    assert!(found.gap <= 1e-8, "{found:?}");
    found
}

/// The rates in kbit/s, and how many flows are on.
fn shares(found: &Allocation) -> Vec<(u32, u64)> {
    found.shares.iter().map(|share| (share.on, (share.rate / 1e3).round() as u64)).collect()
}

#[test]
fn flows_share_a_link_by_priority_at_its_price() {
    let network = network(&["a-b 9"]);
    let both = [(2.0, 20.0), (1.0, 20.0)].map(|(p, cap)| flows(&network, 1, "a>b", log(p, cap)));
    let found = optimum(&network, &both);
    assert_eq!(shares(&found), [(1, 6000), (1, 3000)]);
    let link = network.links().iter().position(|link| link.from == network.node("a").unwrap()).unwrap();
    assert!((found.prices[link] * 9e6 - 3.0).abs() < 1e-4, "{found:?}");
    assert!((found.loads[link] - 9e6).abs() < 9.0, "{found:?}");
    assert_eq!(found.prices.iter().filter(|price| **price > 0.0).count(), 1);
    let told = &found.shares[0];
    assert_eq!((&told.why, told.crosses.as_slice()), (&Why::Price, &[link as u32][..]));
    assert!((told.cost - found.prices[link]).abs() < 1e-12);
    // A cap leaves the rest to the other.
    let capped = [flows(&network, 1, "a>b", log(2.0, 4.0)), both[1].clone()];
    let found = optimum(&network, &capped);
    assert_eq!(shares(&found), [(1, 4000), (1, 5000)]);
    assert_eq!((&found.shares[0].why, &found.shares[1].why), (&Why::Whole, &Why::Price));
}

#[test]
fn headers_take_their_part_of_a_link() {
    let network = network(&["a-b 9"]);
    let mut one = flows(&network, 3, "a>b", log(1.0, 20.0));
    one.loads = vec![1.2; network.links().len()];
    assert_eq!(shares(&optimum(&network, &[one])), [(3, 2500)]);
}

#[test]
fn answers_take_their_part_of_the_link_back() {
    // 6 and half of 6 for the answers to the other flow; alone a flow has all, and its answers the idle direction.
    let network = network(&["a-b 9"]);
    let [there, back] =
        ["a>b", "b>a"].map(|ends| Class { answers: 0.5, ..flows(&network, 1, ends, log(1.0, 20.0)) });
    let found = optimum(&network, &[there.clone(), back]);
    assert_eq!(shares(&found), [(1, 6000), (1, 6000)]);
    assert!(found.loads.iter().all(|load| (load - 9e6).abs() < 9.0), "{found:?}");
    let alone = optimum(&network, &[there]);
    assert_eq!(shares(&alone), [(1, 9000)]);
    let mut loads = alone.loads;
    loads.sort_by(f64::total_cmp);
    assert!((loads[0] - 4.5e6).abs() < 9.0 && (loads[1] - 9e6).abs() < 9.0, "{loads:?}");
}

#[test]
fn a_flow_over_two_paths_beside_flows_over_each_link_of_one() {
    // Report 4.21: r1 / r2 = p1 / (2 p2), and 20 r1 + 20 r2 is what both links to the receiver carry.
    let network = network(&["1-2 10", "1-3 10", "3-2 10"]);
    for (priority, far, near) in [(16.0, 667, 333), (8.0, 500, 500)] {
        let classes = [("1>2", priority), ("1>3", 4.0), ("3>2", 4.0)]
            .map(|(ends, priority)| flows(&network, 20, ends, log(priority, 25.0)));
        assert_eq!(shares(&optimum(&network, &classes)), [(20, far), (20, near), (20, near)]);
    }
}

#[test]
fn a_group_pays_for_all_its_receivers() {
    // With x the price of either branch, 1 / r = 2 x for the group of both receivers, 1 / s = x for the others, and r + s = 9.
    let network = network(&["s-m 100", "m-a 9", "m-b 9"]);
    let classes = ["s>a,b", "s>a", "s>b"].map(|ends| flows(&network, 1, ends, log(1.0, 50.0)));
    assert_eq!(shares(&optimum(&network, &classes)), [(1, 3000), (1, 6000), (1, 6000)]);
}

#[test]
fn coding_carries_more_than_trees_in_the_butterfly() {
    let links = ["s,a", "s,b", "a,c", "b,c", "c,d", "a,x", "b,y", "d,x", "d,y"];
    let lines: String = links.iter().map(|link| format!("{link},1 Mbit/s,1 ms\n")).collect();
    let network = read_csv(&format!("from,to,rate,delay\n{lines}")).unwrap();
    let group = flows(&network, 1, "s>x,y", log(1.0, 10.0));
    let of =
        |forwarding| shares(&utility_optimum(&network, std::slice::from_ref(&group), forwarding).unwrap());
    assert_eq!(of(Forwarding::Coded), [(1, 2000)]);
    assert_eq!(of(Forwarding::Trees), [(1, 1500)]);
}

#[test]
fn a_deadline_leaves_only_the_fast_path() {
    let network = network(&["a-b 4", "a-c 10", "c-b 10"]);
    let mut urgent = flows(&network, 1, "a>b", log(1.0, 50.0));
    let free = flows(&network, 1, "a>b", log(1.0, 50.0));
    // Without a deadline both have 7; with one of 19 ms the urgent flow has at most the direct link.
    assert_eq!(shares(&optimum(&network, &[urgent.clone(), free.clone()])), [(1, 7000), (1, 7000)]);
    urgent.deadline = Some(Span::from_millis(19));
    assert_eq!(shares(&optimum(&network, &[urgent.clone(), free.clone()])), [(1, 4000), (1, 10_000)]);
    urgent.deadline = Some(Span::from_millis(9));
    let found = optimum(&network, &[urgent, free]);
    assert_eq!(shares(&found), [(0, 0), (1, 14_000)]);
    assert_eq!(found.shares[0].why, Why::Unreachable);
}

#[test]
fn an_inelastic_flow_yields_to_an_elastic_one_that_pays_more() {
    let network = network(&["a-b 10"]);
    let elastic = flows(&network, 1, "a>b", log(10.0, 20.0));
    // Alone the elastic flow pays 10 / 10 a Mbit/s, and beside 4 Mbit/s 10 / 6.
    for (priority, on) in [(3.9, false), (6.6, false), (6.7, true)] {
        let found = optimum(&network, &[elastic.clone(), flows(&network, 1, "a>b", strap(priority, 4.0))]);
        let expected = if on { [(1, 6000), (1, 4000)] } else { [(1, 10_000), (0, 0)] };
        assert_eq!(shares(&found), expected, "{priority}");
        match (on, &found.shares[1].why) {
            (true, Why::Whole) => {}
            (false, Why::Off(Blocked::Price)) => assert_eq!(priority, 3.9),
            (false, Why::Off(Blocked::Room { left })) => {
                // At 6.6 / 4 a Mbit/s the elastic flow keeps 6.06.
                assert!((left / 1e6 - (10.0 - 10.0 / 1.65)).abs() < 1e-3, "{left}");
            }
            (_, why) => panic!("{priority}: {why:?}"),
        }
    }
}

#[test]
fn strap_of_the_study() {
    // Report 4.22 with 8.6 Mbit/s a link: 3 to 6 Mbit/s of priority 2 beside two elastic flows; then two links are cut.
    let classes = |network: &Network| {
        let mut classes = vec![flows(network, 2, "1>3", log(1.0, 20.0))];
        classes.extend([3.0, 4.0, 5.0, 6.0].map(|rate| flows(network, 1, "1>3", strap(2.0, rate))));
        classes
    };
    let whole = network(&["1-2 8.6", "1-3 8.6", "1-4 8.6", "2-3 8.6", "2-4 8.6", "3-4 8.6"]);
    let found = optimum(&whole, &classes(&whole));
    assert_eq!(shares(&found), [(2, 3900), (1, 3000), (1, 4000), (1, 5000), (1, 6000)]);
    let cut = network(&["1-2 8.6", "1-4 8.6", "2-3 8.6", "3-4 8.6"]);
    let found = optimum(&cut, &classes(&cut));
    assert_eq!(shares(&found), [(2, 2600), (1, 3000), (1, 4000), (1, 5000), (0, 0)]);
}

#[test]
fn many_flows_of_the_study() {
    // Report 4.24 at 42.5 and 17 Mbit/s a pair: 77.8 and 155.6 kbit/s when the cheap inelastic flows are off.
    for (rate, small, expected) in [("42.5", 100, [611, 306]), ("17", 0, [156, 78])] {
        let network = network(&[&format!("n-s {rate}")]);
        let classes =
            [(30, log(10.0, 0.8)), (30, log(5.0, 0.8)), (100, strap(10.0, 0.1)), (100, strap(1.0, 0.05))]
                .map(|(count, utility)| flows(&network, count, "n>s", utility));
        let [first, second] = expected;
        let last = if small > 0 { (small, 50) } else { (0, 0) };
        assert_eq!(shares(&optimum(&network, &classes)), [(30, first), (30, second), (100, 100), last]);
    }
    // Some of a class may be on: at 20 / Mbit/s the elastic flows keep 22.5, and 2.61 are left for 52 flows.
    let network = network(&["n-s 35.11"]);
    let classes = [(45, log(10.0, 0.8)), (100, strap(10.0, 0.1)), (100, strap(1.0, 0.05))]
        .map(|(count, utility)| flows(&network, count, "n>s", utility));
    let found = optimum(&network, &classes);
    assert_eq!((shares(&found)[1], found.shares[2].on), ((100, 100), 52));
    assert!(matches!(found.shares[2].why, Why::Off(Blocked::Room { .. })));
}

#[test]
fn nine_hundred_and_sixty_flows_of_the_study() {
    // Report 4.23 with 18.2 and then 9.1 Mbit/s a link. First 10 go to inelastic flows and 6 to elastic ones at their cap, and 30 share the
    // rest. Then 330 of priority pay at most 64 a Mbit/s, which leaves room for one flow of 125 kbit/s: 330 / 64 = 5.35 - 0.19.
    for (rate, expected) in [
        ("18.2", [(30, 200), (30, 73), (50, 75), (50, 125)]),
        ("9.1", [(30, 158), (30, 16), (50, 75), (1, 125)]),
    ] {
        let links = ["1-2", "1-3", "2-3"].map(|ends| format!("{ends} {rate}"));
        let network = network(&links.each_ref().map(String::as_str));
        let kinds =
            [(30, log(10.0, 0.2)), (30, log(1.0, 0.2)), (50, strap(80.0, 0.075)), (50, strap(8.0, 0.125))];
        let ends = ["1>2", "2>1", "1>3", "3>1", "2>3", "3>2"];
        let classes = ends.map(|ends| kinds.map(|(count, utility)| flows(&network, count, ends, utility)));
        let start = Instant::now();
        let found = optimum(&network, &classes.concat());
        eprintln!("960 flows took {:?}", start.elapsed());
        for (pair, shares) in shares(&found).chunks(4).enumerate() {
            assert_eq!(shares, expected, "{rate} Mbit/s, {}", ends[pair]);
        }
    }
}

#[test]
fn floors_of_the_study() {
    // Report 4.25: 3, 6 and 10 Mbit/s with floors near them, over 17 Mbit/s and then 8.5.
    let flog = |priority: f64, rate: f64| Utility::Flog {
        log: Log { priority, shape: 20.0, cap: mbit(rate) },
        floor: mbit(0.9 * rate),
    };
    let classes = |network: &Network| {
        [(1.0, 3.0), (5.0, 6.0), (5.0, 10.0)].map(|(p, rate)| flows(network, 1, "1>2", flog(p, rate)))
    };
    let whole = network(&["1-2 8.5", "1-3 8.5", "3-2 8.5"]);
    assert_eq!(shares(&optimum(&whole, &classes(&whole))), [(0, 0), (1, 6000), (1, 10_000)]);
    let cut = network(&["1-3 8.5", "3-2 8.5"]);
    let found = optimum(&cut, &classes(&cut));
    assert_eq!(shares(&found), [(0, 0), (1, 6000), (0, 0)]);
}

#[test]
fn what_fits_nothing_is_refused() {
    let network = network(&["a-b 10"]);
    let good = flows(&network, 1, "a>b", log(1.0, 1.0));
    let error = |change: &dyn Fn(&mut Class)| {
        let mut class = good.clone();
        change(&mut class);
        utility_optimum(&network, &[class], Forwarding::Coded).unwrap_err()
    };
    let what = |error: ClassError| match error {
        ClassError::Number { what, .. } => what,
        _ => "",
    };
    assert!(matches!(error(&|class| class.count = 0), ClassError::Count(_)));
    assert!(matches!(error(&|class| class.receivers.clear()), ClassError::Count(_)));
    assert!(matches!(error(&|class| class.receivers = vec![class.source]), ClassError::Ends(_)));
    assert!(matches!(error(&|class| class.receivers.push(99)), ClassError::Ends(_)));
    for priority in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(what(error(&|class| class.utility = log(priority, 1.0))), "priority");
    }
    assert_eq!(what(error(&|class| class.utility = strap(1.0, 0.0))), "rate");
    assert_eq!(what(error(&|class| class.loads = vec![1.0])), "load");
    let floor = |floor: f64| Utility::Flog {
        log: Log { priority: 1.0, shape: 20.0, cap: mbit(1.0) },
        floor: mbit(floor),
    };
    assert_eq!(what(error(&|class| class.utility = floor(1.1))), "floor");
    assert!(matches!(
        utility_optimum(&network, &vec![good.clone(); 2001], Forwarding::Coded),
        Err(ClassError::Size { classes: 2001, .. })
    ));
}
