//! Answers are equal to those of enumeration: all paths or trees in time are listed, and the program over all of them is solved by
//! another method. The verifier passes these answers and finds what is wrong with others.

mod paths;
mod simplex;
mod utility;
mod wrong;

use simplex::Program;
use std::collections::HashMap;
use weir_base::{Random, Span};
use weir_optimum::{
    Answer, Mode, Network, Problem, Session, Stop, Values, Verified, grid, random, read_csv, verify,
    write_csv,
};

pub(crate) fn always(_: weir_optimum::Bounds) -> bool {
    true
}

fn stand_in(name: &str) -> Network {
    let file = format!("{}/../../labs/overlay/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    read_csv(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn named(network: &Network, from: &str, to: &[&str]) -> Session {
    let node = |name: &str| network.node(name).unwrap();
    Session::new("one", node(from), to.iter().map(|name| node(name)).collect())
}

/// With coding, the program of `docs/capacity.md` over all paths in time.
fn enumerated(network: &Network, sessions: &[Session], deadline: Span) -> f64 {
    let mut program = Program::default();
    let mbit = |link: usize| network.links()[link].rate.unwrap().mbit_per_sec();
    let links: Vec<usize> = (0..network.links().len()).map(|link| program.row(mbit(link))).collect();
    for session in sessions {
        let flows: Vec<usize> = session.receivers.iter().map(|_| program.row(0.0)).collect();
        let rate: Vec<_> = flows.iter().map(|&row| (row, 1.0)).collect();
        program.column(session.weight, &rate);
        let mut shares: HashMap<(usize, usize), usize> = HashMap::new();
        for (link, &row) in links.iter().enumerate() {
            let mut share = vec![(row, 1.0)];
            for &receiver in &session.receivers {
                let own = program.row(0.0);
                shares.insert((receiver, link), own);
                share.push((own, -1.0));
            }
            program.column(0.0, &share);
        }
        for (&receiver, &flow) in session.receivers.iter().zip(&flows) {
            paths::each_path(network, (session.source, receiver), deadline.as_nanos(), &mut |path| {
                let over = path.iter().map(|&link| (shares[&(receiver, link as usize)], 1.0));
                program.column(0.0, &over.chain([(flow, -1.0)]).collect::<Vec<_>>());
            });
        }
    }
    program.best() * 1e6
}

/// Without coding, the program over all trees in time.
fn enumerated_trees(network: &Network, sessions: &[Session], deadline: Span) -> f64 {
    let mut program = Program::default();
    let mbit = |link: usize| network.links()[link].rate.unwrap().mbit_per_sec();
    let links: Vec<usize> = (0..network.links().len()).map(|link| program.row(mbit(link))).collect();
    for session in sessions {
        for tree in paths::unions(network, session, deadline.as_nanos()) {
            let entries: Vec<_> = tree.iter().map(|&link| (links[link as usize], 1.0)).collect();
            program.column(session.weight, &entries);
        }
    }
    program.best() * 1e6
}

fn assert_exact(network: &Network, sessions: &[Session], answer: &Answer, expected: f64, what: &str) {
    // The bounds are apart by 1e-6 at most, and the program over all paths is exact to 1e-9.
    let near = (1e-6 + 1e-9) * expected;
    assert!((answer.bounds.lower - expected).abs() <= near, "{what}: {:?}, not {expected}", answer.bounds);
    assert!(answer.bounds.upper >= expected * (1.0 - 1e-9), "{what}: {:?} proves too much", answer.bounds);
    assert!(answer.bounds.are_exact(), "{what}: {:?}", answer.bounds);
    assert_eq!(verify(network, sessions, answer), Ok(Verified::All), "{what}");
}

/// A network of `nodes` nodes, one or more sessions, and a deadline that matters.
fn drawn(seed: u64, nodes: usize, sessions: usize) -> (Network, Vec<Session>, Span) {
    let network = random(nodes, nodes + nodes / 2, Values::default(), seed);
    let mut draws = Random::stream(seed, "sessions");
    let session = |number: usize| {
        let mut places: Vec<usize> = (0..nodes).collect();
        let mut draw = || places.swap_remove(draws.below(places.len() as u64) as usize);
        let (source, first, second) = (draw(), draw(), draw());
        let weight = 1.0 + draws.below(3) as f64;
        Session { weight, ..Session::new(number.to_string(), source, vec![first, second]) }
    };
    let sessions = (0..sessions).map(session).collect();
    (network, sessions, Span::from_millis(10 + Random::stream(seed, "deadline").below(25)))
}

/// Coded, on the network that is drawn from this seed.
fn assert_equal_to_enumeration(seed: u64, nodes: usize, sessions: usize) {
    let (network, sessions, deadline) = drawn(seed, nodes, sessions);
    let answer = Problem::new(&network, &sessions, Mode::Coded).unwrap().capacity(deadline, &mut always);
    let expected = enumerated(&network, &sessions, deadline);
    assert_exact(&network, &sessions, &answer, expected, &format!("seed {seed}"));
}

#[test]
fn one_session_is_equal_to_enumeration_on_a_hundred_random_graphs() {
    (0..100).for_each(|seed| assert_equal_to_enumeration(seed, 8, 1));
}

#[test]
fn several_sessions_are_equal_to_enumeration_on_a_hundred_random_graphs() {
    (0..100).for_each(|seed| assert_equal_to_enumeration(seed, 7, 2 + seed as usize % 2));
}

#[test]
fn trees_are_equal_to_enumeration_on_a_hundred_random_graphs() {
    for seed in 0..100 {
        let (network, mut sessions, deadline) = drawn(seed, 7, 1 + seed as usize % 2);
        let third = (0..7).find(|node| *node != sessions[0].source && !sessions[0].receivers.contains(node));
        sessions[0].receivers.extend(third);
        let expected = enumerated_trees(&network, &sessions, deadline);
        let what = format!("seed {seed}");
        let answer = Problem::new(&network, &sessions, Mode::Trees).unwrap().capacity(deadline, &mut always);
        assert_exact(&network, &sessions, &answer, expected, &what);
        let bounds =
            Problem::new(&network, &sessions, Mode::TreeBounds).unwrap().capacity(deadline, &mut always);
        assert_eq!(verify(&network, &sessions, &bounds), Ok(Verified::All), "{what}");
        let Answer { bounds, .. } = bounds;
        assert!(
            bounds.lower <= expected * (1.0 + 1e-6) && bounds.upper >= expected * (1.0 - 1e-6),
            "{what}: {bounds:?}"
        );
    }
}

#[test]
fn a_staircase_has_the_answer_of_every_deadline_in_its_range() {
    for seed in 0..20 {
        let (network, sessions, _) = drawn(seed, 7, 1 + seed as usize % 2);
        for mode in [Mode::Coded, Mode::Trees] {
            let problem = Problem::new(&network, &sessions, mode).unwrap();
            let steps = problem.staircase(Span::from_millis(3), Span::from_millis(40), &mut always);
            for milliseconds in 3..=40 {
                let deadline = Span::from_millis(milliseconds);
                let step = steps.iter().rev().find(|step| step.deadline <= deadline).unwrap();
                let alone = problem.capacity(deadline, &mut always).bounds;
                let near = (step.bounds.lower - alone.lower).abs() <= 4e-6 * alone.lower;
                assert!(near, "seed {seed}, {mode:?}, {deadline}: {:?} and {alone:?}", step.bounds);
            }
        }
    }
}

#[test]
fn the_enumerator_finds_the_known_numbers_of_paths_in_a_grid_of_five_by_five() {
    let network = stand_in("grid-5x5");
    let count = |to: &str| {
        let session = named(&network, "1", &[to]);
        paths::count(&network, (session.source, session.receivers[0]), u64::MAX / 2)
    };
    assert_eq!([count("5"), count("21"), count("25")], [8590, 8590, 8512]);
}

#[test]
fn the_grid_of_five_by_five_has_the_known_staircase() {
    let network = stand_in("grid-5x5");
    let sessions = [named(&network, "1", &["5", "21"])];
    let problem = Problem::new(&network, &sessions, Mode::Coded).unwrap();
    let steps = problem.staircase(Span::ZERO, Span::from_millis(200), &mut always);
    let known = [(0, 0), (21, 1), (28, 2), (33, 3), (38, 4), (42, 10), (44, 11), (49, 14)];
    let found: Vec<_> = steps
        .iter()
        .map(|step| (step.deadline.as_millis(), (step.bounds.lower / 1e6).round() as u64))
        .collect();
    assert_eq!(found, known);
    for step in &steps {
        let rate = (step.bounds.lower / 1e6).round() * 1e6;
        assert_exact(&network, &sessions, step, rate, &step.deadline.to_string());
    }
    let with_the_third = [named(&network, "1", &["5", "21", "25"])];
    let problem = Problem::new(&network, &with_the_third, Mode::Coded).unwrap();
    let answer = problem.capacity(Span::from_millis(200), &mut always);
    assert_exact(&network, &with_the_third, &answer, 10e6, "with the third corner");
}

#[test]
fn a_deadline_that_nothing_meets_has_the_answer_zero() {
    let network = grid(4, Values::default(), 1);
    let far = named(&network, "1", &["16", "2"]);
    for mode in [Mode::Coded, Mode::TreeBounds] {
        let answer = Problem::new(&network, std::slice::from_ref(&far), mode)
            .unwrap()
            .capacity(Span::from_millis(1), &mut always);
        assert_exact(&network, std::slice::from_ref(&far), &answer, 0.0, &format!("{mode:?}"));
    }
    // Another session is carried all the same.
    let near = named(&network, "1", &["2"]);
    let sessions = [far, near];
    let link = network.links()[0].delay;
    let answer = Problem::new(&network, &sessions, Mode::Coded).unwrap().capacity(link, &mut always);
    let rates: Vec<f64> = answer.sessions.iter().map(|session| session.rate).collect();
    assert!(rates[0] == 0.0 && rates[1] > 0.0, "{rates:?}");
    assert_eq!(verify(&network, &sessions, &answer), Ok(Verified::All));
}

#[test]
fn a_search_that_is_stopped_has_bounds_that_hold() {
    let network = stand_in("grid-5x5");
    let sessions = [named(&network, "1", &["5", "21"]), named(&network, "13", &["1", "24"])];
    let problem = Problem::new(&network, &sessions, Mode::Coded).unwrap();
    let deadline = Span::from_millis(49);
    let exact = problem.capacity(deadline, &mut always).bounds;
    for stop in 0..6 {
        let mut rounds = 0;
        let answer = problem.capacity(deadline, &mut |_| {
            rounds += 1;
            rounds <= stop
        });
        assert_eq!(verify(&network, &sessions, &answer), Ok(Verified::All), "after {stop}");
        let Answer { bounds, .. } = answer;
        assert!(
            bounds.lower <= exact.upper && bounds.upper >= exact.lower,
            "after {stop}: {bounds:?}, {exact:?}"
        );
    }
}

#[test]
fn a_search_that_is_stopped_at_any_moment_has_bounds_that_hold() {
    let network = stand_in("grid-8x8");
    let sessions = [named(&network, "14", &["54", "64"]), named(&network, "1", &["40", "8", "57"])];
    let deadline = Span::from_millis(100);
    for mode in [Mode::Coded, Mode::TreeBounds] {
        let problem = Problem::new(&network, &sessions, mode).unwrap();
        let exact = problem.capacity(deadline, &mut always).bounds;
        for micros in [0, 200, 1000, 5000, 20_000] {
            let stop = Stop::default();
            let stopped = Problem::new(&network, &sessions, mode).unwrap().stopped_by(&stop);
            let answer = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_micros(micros));
                    stop.set();
                });
                stopped.capacity(deadline, &mut always)
            });
            assert!(verify(&network, &sessions, &answer).is_ok(), "{mode:?} after {micros} us");
            let Answer { bounds, .. } = answer;
            assert!(
                bounds.lower <= exact.upper && bounds.upper >= exact.lower * (1.0 - 1e-9),
                "{mode:?} after {micros} us: {bounds:?}, {exact:?}"
            );
        }
    }
}

#[test]
fn a_search_for_trees_that_is_stopped_before_it_begins_proves_the_least_cuts() {
    let (network, sessions, _) = drawn(1, 7, 2);
    let stop = Stop::default();
    stop.set();
    let stopped = Problem::new(&network, &sessions, Mode::Trees).unwrap().stopped_by(&stop);
    let answer = stopped.capacity(Span::from_secs(1), &mut always);
    let exact =
        Problem::new(&network, &sessions, Mode::Trees).unwrap().capacity(Span::from_secs(1), &mut always);
    assert_eq!(answer.bounds.lower, 0.0);
    assert!(answer.bounds.upper.is_finite() && answer.bounds.upper >= exact.bounds.lower);
    assert_eq!(verify(&network, &sessions, &answer), Ok(Verified::All));
}

#[test]
fn coding_carries_more_than_trees_where_it_is_known_to() {
    // The butterfly of Ahlswede, Cai, Li and Yeung: with coding both receivers get 2, with trees 1.5.
    let links = ["s,a", "s,b", "a,c", "b,c", "c,d", "a,x", "b,y", "d,x", "d,y"];
    let lines: String = links.iter().map(|link| format!("{link},1 Mbit/s,1 ms\n")).collect();
    let network = read_csv(&format!("from,to,rate,delay\n{lines}")).unwrap();
    let sessions = [named(&network, "s", &["x", "y"])];
    let carried = |mode: Mode, ms: u64| {
        let answer =
            Problem::new(&network, &sessions, mode).unwrap().capacity(Span::from_millis(ms), &mut always);
        assert_eq!(verify(&network, &sessions, &answer), Ok(Verified::All));
        (answer.bounds.lower / 1e5).round() / 10.0
    };
    assert_eq!((carried(Mode::Coded, 4), carried(Mode::Trees, 4)), (2.0, 1.5));
    // In two hops each receiver has one path, which coding cannot improve.
    assert_eq!((carried(Mode::Coded, 2), carried(Mode::Trees, 2)), (1.0, 1.0));
}

#[test]
fn the_grid_of_eight_by_eight_has_the_rates_of_the_study() {
    let network = stand_in("grid-8x8");
    let generated = write_csv(&grid(8, Values::default(), 10));
    assert_eq!(write_csv(&network), generated, "the file is what the generator makes");
    let sessions = [named(&network, "14", &["54", "64"])];
    let problem = Problem::new(&network, &sessions, Mode::Coded).unwrap();
    let known = [(30, 3), (35, 4), (40, 5), (50, 10), (60, 10), (70, 10), (80, 10), (90, 10), (100, 10)];
    let deadlines: Vec<Span> = known.iter().map(|&(ms, _)| Span::from_millis(ms)).collect();
    for (answer, (_, rate)) in problem.sweep(&deadlines, &mut always).iter().zip(known) {
        assert_exact(&network, &sessions, answer, f64::from(rate) * 1e6, &answer.deadline.to_string());
    }
    for &receiver in &sessions[0].receivers {
        let count = paths::count(&network, (sessions[0].source, receiver), 100_000_000);
        assert!(count >= 400_000, "{count}");
    }
}
