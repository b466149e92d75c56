//! The utility optimum is equal to enumeration: all paths in time are listed, and logarithms are replaced by tangents until no tangent is
//! missing (Kelley, "The cutting-plane method for solving convex programs", SIAM Journal 1960), by the test's own simplex method.

mod by_hand;

use super::{paths, simplex::Program};
use std::collections::HashMap;
use weir_base::{Random, Rate, Span};
use weir_optimum::{Class, Forwarding, Log, Network, Utility, Values, Why, random, utility_optimum};

/// The sum of utilities and the rate of each class, of all its flows together, where `on` flows of each class take part. An inelastic flow
/// is worth what it pays for each bit.
fn enumerated(network: &Network, classes: &[Class], on: &[u32]) -> (f64, Vec<f64>) {
    let mut program = Program::default();
    let mbit = |link: usize| network.links()[link].rate.unwrap().mbit_per_sec();
    let links: Vec<usize> = (0..network.links().len()).map(|link| program.row(mbit(link))).collect();
    let mut concave = Vec::new();
    let mut rates = Vec::new();
    for (class, &on) in classes.iter().zip(on) {
        let count = f64::from(on);
        let (value, most, log) = match class.utility {
            Utility::Strap { priority, rate } => (priority / rate.mbit_per_sec(), rate, None),
            Utility::Log(log) | Utility::Flog { log, .. } => (0.0, log.cap, Some(log)),
        };
        let cap = program.row(count * most.mbit_per_sec());
        let flows: Vec<usize> = class.receivers.iter().map(|_| program.row(0.0)).collect();
        let mut entries: Vec<_> = flows.iter().map(|&row| (row, 1.0)).collect();
        entries.push((cap, 1.0));
        let rate = program.values.len();
        program.column(value, &entries);
        rates.push(rate);
        concave.extend(log.filter(|_| on > 0).map(|log| (rate, count, log)));
        let load = |link: usize| class.loads.get(link).copied().unwrap_or(1.0);
        let mut shares: HashMap<(usize, usize), usize> = HashMap::new();
        if class.receivers.len() > 1 {
            for (link, &row) in links.iter().enumerate() {
                let own: Vec<usize> = class.receivers.iter().map(|_| program.row(0.0)).collect();
                let share: Vec<_> = own.iter().map(|&own| (own, -1.0)).chain([(row, load(link))]).collect();
                program.column(0.0, &share);
                shares.extend((0..own.len()).map(|place| ((place, link), own[place])));
            }
        }
        let most = class.deadline.map_or(u64::MAX / 2, Span::as_nanos);
        for (place, &receiver) in class.receivers.iter().enumerate() {
            paths::each_path(network, (class.source, receiver), most, &mut |path| {
                let over = path.iter().map(|&link| match shares.get(&(place, link as usize)) {
                    Some(&row) => (row, 1.0),
                    None => (links[link as usize], load(link as usize)),
                });
                let mut column: Vec<_> = over.chain([(flows[place], -1.0)]).collect();
                if class.answers > 0.0 {
                    column.extend(
                        path.iter().filter_map(|&link| Some((links[back(network, link)?], class.answers))),
                    );
                }
                program.column(0.0, &column);
            });
        }
    }
    // For each logarithm a number below all its tangents.
    let tangents: Vec<usize> = concave
        .iter()
        .map(|_| {
            program.column(1.0, &[]);
            program.values.len() - 1
        })
        .collect();
    let utility = |count: f64, log: &Log, rate: f64| {
        let shape = log.shape * 1e6 / count;
        (count * log.priority * (shape * rate).ln_1p(), count * log.priority * shape / (1.0 + shape * rate))
    };
    let tangent = |program: &mut Program, number: usize, at: f64| {
        let (rate, count, log) = &concave[number];
        let (value, slope) = utility(*count, log, at);
        let row = program.row((value - slope * at).max(0.0));
        program.rows[row] = vec![(*rate, -slope), (tangents[number], 1.0)];
    };
    for number in 0..concave.len() {
        (0..7).for_each(|step| tangent(&mut program, number, 0.1 * 2f64.powi(step)));
    }
    for round in 0.. {
        let (value, x) = program.solve();
        let mut missing = 0.0;
        for (number, (rate, count, log)) in concave.iter().enumerate() {
            let over = x[tangents[number]] - utility(*count, log, x[*rate]).0;
            missing += over;
            if over > 1e-11 {
                tangent(&mut program, number, x[*rate]);
            }
        }
        // Where rounding keeps the simplex from the last digits, rates are exact to sqrt(2e-7) of themselves.
        if missing < 1e-9 || round > 60 && missing < 1e-7 {
            return (value, rates.iter().map(|&rate| x[rate] * 1e6).collect());
        }
        assert!(round < 500, "tangents do not close: {missing} is missing");
    }
    unreachable!("rounds go on until the assertion above")
}

/// The link in the other direction; random networks have one at most between two nodes.
fn back(network: &Network, link: u32) -> Option<usize> {
    let there = &network.links()[link as usize];
    network.links().iter().position(|other| (other.from, other.to) == (there.to, there.from))
}

fn mbit(rate: f64) -> Rate {
    Rate::from_bits_per_sec((rate * 1e6) as u64)
}

/// A network and classes: elastic ones, some of them multicast, some with a deadline or headers, then `inelastic` ones.
fn drawn(seed: u64, nodes: usize, elastic: usize, inelastic: usize) -> (Network, Vec<Class>) {
    let network = random(nodes, nodes + nodes / 2, Values::default(), seed);
    let mut draws = Random::stream(seed, "classes");
    let mut answers = Random::stream(seed, "answers");
    let classes = (0..elastic + inelastic).map(|number| {
        let mut places: Vec<usize> = (0..nodes).collect();
        let receivers = if number < elastic { 1 + draws.below(2) } else { 1 };
        let mut draw = |draws: &mut Random| places.swap_remove(draws.below(places.len() as u64) as usize);
        let source = draw(&mut draws);
        let ends = (0..receivers).map(|_| draw(&mut draws)).collect();
        let priority = 1.0 + draws.below(5) as f64;
        let log = Log { priority, shape: 1e-5, cap: mbit(1.0 + draws.below(12) as f64) };
        let utility = match (number < elastic, draws.below(3)) {
            (true, _) => Utility::Log(log),
            (false, 0) => Utility::Flog { log, floor: mbit(0.3 + 0.31 * draws.below(3) as f64) },
            (false, _) => Utility::Strap { priority, rate: mbit(0.5 + 0.61 * draws.below(6) as f64) },
        };
        let links = network.links().len();
        let is_answered = receivers == 1 && inelastic == 0 && answers.below(2) == 0;
        Class {
            name: number.to_string(),
            source,
            receivers: ends,
            count: 1 + draws.below(3) as u32,
            deadline: (draws.below(3) == 0).then(|| Span::from_millis(8 + draws.below(20))),
            utility,
            loads: if draws.below(2) == 0 {
                Vec::new()
            } else {
                vec![1.0 + 0.1 * draws.below(3) as f64; links]
            },
            answers: if is_answered { 0.25 } else { 0.0 },
        }
    });
    (network.clone(), classes.collect())
}

#[test]
fn elastic_flows_are_equal_to_enumeration_on_a_hundred_random_labs() {
    for seed in 0..100 {
        let (network, classes) = drawn(seed, 6, 2 + seed as usize % 3, 0);
        let on: Vec<u32> = classes.iter().map(|class| class.count).collect();
        let (expected, rates) = enumerated(&network, &classes, &on);
        let found = utility_optimum(&network, &classes, Forwarding::Coded).unwrap();
        let scale: f64 = classes.iter().map(|class| f64::from(class.count) * 5.0).sum();
        assert!((found.utility - expected).abs() <= 1e-6 * scale, "seed {seed}: {found:?}, not {expected}");
        assert!(found.gap <= 1e-8, "seed {seed}: {found:?}");
        for ((share, rate), class) in found.shares.iter().zip(rates).zip(&classes) {
            let own = share.rate * f64::from(share.on);
            assert!(
                (own - rate).abs() <= 5e-4 * rate + 1.0,
                "seed {seed}, {}: {own}, not {rate}",
                class.name
            );
        }
    }
}

/// Whether all inelastic flows that are on are whole.
fn are_whole(classes: &[Class], on: &[u32], rates: &[f64]) -> bool {
    classes.iter().zip(on).zip(rates).all(|((class, &on), &rate)| {
        let least = match class.utility {
            Utility::Log(_) => return true,
            Utility::Strap { rate, .. } => rate,
            Utility::Flog { floor, .. } => floor,
        };
        rate >= f64::from(on) * least.bits_per_sec() as f64 * (1.0 - 1e-6)
    })
}

#[test]
fn the_inelastic_flows_that_are_on_are_those_of_enumeration_on_a_hundred_random_labs() {
    let mut seen = [0; 2];
    for seed in 0..100 {
        let (network, classes) = drawn(seed, 5, 1 + seed as usize % 2, 3);
        let found = utility_optimum(&network, &classes, Forwarding::Coded).unwrap();
        let mut on: Vec<u32> = classes.iter().map(|class| class.count).collect();
        let inelastic = on.len() - 3;
        on[inelastic..].fill(0);
        let mut order: Vec<usize> = (inelastic..on.len()).collect();
        order.sort_by(|&a, &b| {
            let worth = |class: usize| classes[class].utility.worth().unwrap();
            worth(b).total_cmp(&worth(a))
        });
        for class in order {
            let reached = found.shares[class].why != Why::Unreachable;
            // Of all numbers of flows, the largest up to which all are whole.
            let fits = |count: &u32| {
                let mut tried = on.clone();
                tried[class] = *count;
                reached && are_whole(&classes, &tried, &enumerated(&network, &classes, &tried).1)
            };
            on[class] = (1..=classes[class].count).take_while(fits).last().unwrap_or(0);
            seen[usize::from(on[class] == classes[class].count)] += 1;
        }
        let told: Vec<u32> = found.shares.iter().map(|share| share.on).collect();
        assert_eq!(told[inelastic..], on[inelastic..], "seed {seed}: {found:#?} {classes:#?}");
    }
    assert!(seen.iter().all(|&count| count > 50), "both happen often: {seen:?}");
}
