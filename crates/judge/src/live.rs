//! Two live runs at once would spoil each other: before each one the judge waits until no other process of weir runs live, be
//! it a person's or one that a killed judge left behind.

use std::fs;
use std::time::{Duration, Instant};

/// The longest that the judge waits.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);
/// The share of the processors' time below which a machine is quiet. Weir calls a run invalid where others use half of it.
const QUIET: f64 = 0.2;
/// How long the processors are watched.
const MOMENT: Duration = Duration::from_millis(300);

/// Waits until no other live run is under way, or until half an hour is over; then until the machine is quiet, or until `patience`
/// is over. Without patience it waits for nothing.
pub(crate) fn wait(patience: Duration) {
    if patience.is_zero() {
        return;
    }
    wait_until("another process runs live", PATIENCE, || other().is_none());
    wait_until("the machine is busy", patience, is_quiet);
}

fn wait_until(why: &str, patience: Duration, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    let mut said = false;
    while began.elapsed() < patience && !is_so() {
        if !said {
            eprintln!("    {why}: waiting");
            said = true;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether the processors are nearly idle for a moment. What cannot be read counts as quiet.
fn is_quiet() -> bool {
    let before = Processors::now();
    std::thread::sleep(MOMENT);
    let after = Processors::now();
    before.zip(after).and_then(|(before, after)| after.busy_since(before)).is_none_or(|share| share < QUIET)
}

/// Ticks of all processors since the machine started.
#[derive(Debug, Clone, Copy)]
struct Processors {
    idle: u64,
    all: u64,
}

impl Processors {
    fn now() -> Option<Processors> {
        Processors::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Processes of lower priority
    /// than usual (nice) leave their processor to a live run, so their time counts as idle.
    fn of(stat: &str) -> Option<Processors> {
        let words = stat.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        Some(Processors { idle: ticks.get(1)? + ticks.get(3)? + ticks.get(4)?, all: ticks.iter().sum() })
    }

    /// The share of the time in which they were busy; `None` if no time has passed.
    fn busy_since(self, before: Processors) -> Option<f64> {
        let (all, idle) = (self.all.checked_sub(before.all)?, self.idle.saturating_sub(before.idle));
        (all > 0).then(|| 1.0 - idle as f64 / all as f64)
    }
}

/// A process that runs a lab live.
fn other() -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?;
    processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).find(|process| {
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        runs_live(&words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>())
    })
}

/// Whether a command runs live: `weir run LAB --on live`, or another command of weir with that engine.
fn runs_live(words: &[impl AsRef<str>]) -> bool {
    let program = words.first().map(AsRef::as_ref).unwrap_or_default();
    let named = program.rsplit('/').next().is_some_and(|name| name.contains("weir") && name != "weir-judge");
    let on_live = |word: &str| word.trim_start_matches("--on=").split(',').any(|engine| engine == "live");
    named && words.iter().skip(1).any(|word| on_live(word.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_are_busy_for_the_time_in_which_they_are_not_idle() {
        let before = Processors::of("cpu  10 0 10 100 20 0 0 0 0 0\ncpu0 1").unwrap();
        let after = Processors::of("cpu  20 0 30 160 30 0 0 0 0 0\n").unwrap();
        // 30 ticks of work, 70 idle or waiting for a disk.
        assert!((after.busy_since(before).unwrap() - 0.3).abs() < 1e-12);
        assert!(before.busy_since(before).is_none());
    }

    #[test]
    fn a_live_run_of_weir_is_known_by_its_command() {
        assert!(runs_live(&["/tmp/judge-weir", "run", "lab.toml", "--on", "live"]));
        assert!(runs_live(&["target/release/weir", "reproduce", "lbe", "--on", "sim,live"]));
        assert!(!runs_live(&["weir", "run", "live.toml", "--on", "sim"]));
        assert!(!runs_live(&["grep", "live"]));
        assert!(!runs_live(&["target/release/weir-judge", "live"]));
    }
}
