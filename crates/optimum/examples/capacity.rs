//! Measures how long capacities take to compute, and prints the table of docs/capacity-speed.md. Each case runs in a process of its
//! own, so that its peak of memory is its own. One thread computes.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use std::process::Command;
use std::time::{Duration, Instant};
use weir_base::{Random, Span};
use weir_optimum::{Answer, Mode, Network, Problem, Session, Values, Verified, grid, random, verify};

/// How often a case is computed; the shortest time counts.
const ROUNDS: usize = 3;

struct Case {
    name: &'static str,
    what: &'static str,
    seconds: f64,
    make: fn() -> (Network, Vec<Session>, Vec<u64>),
}

/// The deadlines of the study's table, in milliseconds.
const STUDY: [u64; 9] = [30, 35, 40, 50, 60, 70, 80, 90, 100];

const CASES: [Case; 7] = [
    Case {
        name: "grid-8x8",
        what: "grid of 8 x 8 (`grid`, seed 10), from 14 to 54 and 64",
        seconds: 0.1,
        make: || {
            let session = Session::new("1", 13, vec![53, 63]);
            (grid(8, Values::default(), 10), vec![session], STUDY.into())
        },
    },
    Case {
        name: "grid-30x30",
        what: "grid of 30 x 30 (`grid`, seed 1), four receivers (seed 2), tight",
        seconds: 10.0,
        make: || in_grid(1, 2, 130),
    },
    Case { name: "grid-30x30-loose", what: "the same, loose", seconds: 10.0, make: || in_grid(1, 2, 300) },
    Case {
        name: "random-1000",
        what: "1,000 nodes, 3,000 pairs (`random`, seed 1), four receivers (seed 3), tight",
        seconds: 10.0,
        make: || in_random(3, 26),
    },
    Case { name: "random-1000-loose", what: "the same, loose", seconds: 10.0, make: || in_random(3, 60) },
    Case {
        name: "sessions-20-tight",
        what: "twenty sessions of four receivers (seed 1) on the grid of 30 x 30, tight",
        seconds: 60.0,
        make: || in_grid(20, 1, 80),
    },
    Case { name: "sessions-20", what: "the same, loose", seconds: 60.0, make: || in_grid(20, 1, 150) },
];

/// Sessions of four receivers on the grid of 30 x 30, and a deadline.
fn in_grid(sessions: usize, seed: u64, deadline: u64) -> (Network, Vec<Session>, Vec<u64>) {
    let network = grid(30, Values::default(), 1);
    let sessions = drawn(&network, sessions, 4, seed);
    (network, sessions, vec![deadline])
}

/// A session of four receivers on a random graph, and a deadline.
fn in_random(seed: u64, deadline: u64) -> (Network, Vec<Session>, Vec<u64>) {
    let network = random(1000, 3000, Values::default(), 1);
    let sessions = drawn(&network, 1, 4, seed);
    (network, sessions, vec![deadline])
}

/// Sessions whose sources and receivers are drawn uniformly.
fn drawn(network: &Network, sessions: usize, receivers: usize, seed: u64) -> Vec<Session> {
    let mut draws = Random::stream(seed, "sessions");
    let session = |number: usize| {
        let mut ends: Vec<usize> = Vec::new();
        while ends.len() <= receivers {
            let node = draws.below(network.nodes().len() as u64) as usize;
            if !ends.contains(&node) {
                ends.push(node);
            }
        }
        Session::new(number.to_string(), ends[0], ends[1..].to_vec())
    };
    (1..=sessions).map(session).collect()
}

fn main() {
    match std::env::args().nth(1) {
        Some(name) => row(CASES.iter().find(|case| case.name == name).unwrap()),
        None => table(),
    }
}

fn table() {
    let build = if cfg!(debug_assertions) { "checked" } else { "release" };
    println!(
        "The {build} build on one core; the shortest of {ROUNDS} times, but a case of more than a second is computed once, and"
    );
    println!(
        "stopped after the round in which its bar passes. The verifier, which shares no code with the search, has checked every answer; its time is beside. Memory is"
    );
    println!(
        "the peak of the process. Links have whole rates and delays from 1 to 10 (Mbit/s, ms); ends are drawn by the seed.\n"
    );
    println!(
        "| case | deadline | rate, Mbit/s | gap | rounds | time, s | must hold, s | check, s | memory, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for case in &CASES {
        let output = Command::new(std::env::current_exe().unwrap()).arg(case.name).output().unwrap();
        assert!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
        print!("{}", String::from_utf8(output.stdout).unwrap());
    }
}

/// A case that was computed.
struct Computed {
    time: Duration,
    rounds: usize,
    answers: Vec<Answer>,
}

/// Computes a case, but for no longer than its bar.
fn compute(case: &Case, network: &Network, sessions: &[Session], deadlines: &[Span]) -> Computed {
    let mut rounds = 0;
    let start = Instant::now();
    let problem = Problem::new(network, sessions, Mode::Coded).unwrap();
    let answers = problem.sweep(deadlines, &mut |_| {
        rounds += 1;
        start.elapsed().as_secs_f64() < case.seconds
    });
    Computed { time: start.elapsed(), rounds, answers }
}

/// Computes a case and prints its row.
fn row(case: &Case) {
    let (network, sessions, deadlines) = (case.make)();
    let deadlines: Vec<Span> = deadlines.into_iter().map(Span::from_millis).collect();
    let mut best = compute(case, &network, &sessions, &deadlines);
    for _ in 1..ROUNDS {
        if best.time < Duration::from_secs(1) {
            let again = compute(case, &network, &sessions, &deadlines);
            best = if again.time < best.time { again } else { best };
        }
    }
    let start = Instant::now();
    for answer in &best.answers {
        assert_eq!(verify(&network, &sessions, answer), Ok(Verified::All));
    }
    let check = start.elapsed();
    let gap = best.answers.iter().map(|answer| answer.bounds.gap()).fold(0.0, f64::max);
    let is_exact = best.answers.iter().all(|answer| answer.bounds.are_exact());
    println!(
        "| {} | {} | {} | {gap:.0e} | {} | {:.3} | {} ({}) | {:.3} | {} |",
        case.what,
        deadlines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        best.answers.iter().map(rate).collect::<Vec<_>>().join(", "),
        best.rounds,
        best.time.as_secs_f64(),
        case.seconds,
        if is_exact && best.time.as_secs_f64() <= case.seconds { "holds" } else { "missed" },
        check.as_secs_f64(),
        peak() / 1024,
    );
}

/// A rate, or the bounds that it is between.
fn rate(answer: &Answer) -> String {
    let text = |bits: f64| format!("{}", (bits / 100.0).round() / 1e4);
    match answer.bounds.are_exact() {
        true => text(answer.bounds.upper),
        false => format!("{} to {}", text(answer.bounds.lower), text(answer.bounds.upper)),
    }
}

/// The peak of this process's memory in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
