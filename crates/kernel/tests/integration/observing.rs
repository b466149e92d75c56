//! The program that observes queues leaves nothing behind when its process is killed: five times by default, or as often as WEIR_KILLS says.
//! Skipped, with a message, where it may not be loaded; with WEIR_REQUIRE_LIVE=1 that is a failure.
#![cfg(feature = "bpf")]

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_base::Random;
use weir_kernel::{Observer, Problem};

/// Set for the process that is to be killed.
const VICTIM: &str = "WEIR_OBSERVING_VICTIM";
/// How long the kernel may take to clear up, which it does in the background.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program's functions and maps in the kernel, by number.
fn left() -> BTreeSet<(bool, u32)> {
    let programs = ProgInfoIter::default()
        .filter(|program| program.name.to_string_lossy().starts_with("observe_"))
        .map(|program| (true, program.id));
    let maps = MapInfoIter::default()
        .filter(|map| map.name.to_string_lossy().starts_with("observe."))
        .map(|map| (false, map.id));
    programs.chain(maps).collect()
}

/// The process that is killed: it observes the loopback device until then.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let mut observer = Observer::load().unwrap();
    observer.switch(Some(1)).unwrap();
    println!("\nobserving");
    let mut events = vec![];
    loop {
        observer.take(&mut events).unwrap();
        events.clear();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_observer_leaves_no_program_and_no_map() {
    match Observer::load() {
        Ok(_) => {}
        Err(problem @ (Problem::Forbidden(_) | Problem::Missing { .. })) => {
            println!("skipped: {problem}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return;
        }
        Err(problem) => panic!("{problem}"),
    }
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut random = Random::stream(1, "kills");
    let mut seen = 0;
    for kill in 0..kills {
        let before = left();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["observing::victim", "--exact", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Each second one is killed while it is loading, the others while they observe.
        if kill % 2 == 0 {
            let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line == "observing"));
            let there = left().difference(&before).count();
            // Five functions, and the maps of `.data` and `.bss`, while it lives.
            assert!(there >= 7, "{there}");
            seen += 1;
        } else {
            std::thread::sleep(Duration::from_micros(random.below(200_000)));
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let start = Instant::now();
        while left().difference(&before).next().is_some() {
            assert!(start.elapsed() < PATIENCE, "kill {kill} leaves {:?}", left());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert!(seen > 0 || kills == 0);
}
