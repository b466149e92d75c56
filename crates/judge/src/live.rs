//! Two live runs at once would spoil each other: before each one the judge waits until no other process of weir runs live, be
//! it a person's or one that a killed judge left behind.

use std::fs;
use std::time::{Duration, Instant};

/// The longest that the judge waits.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until no other live run is under way, or until half an hour is over.
pub(crate) fn wait_for_others() {
    let began = Instant::now();
    let mut said = false;
    while let Some(process) = (began.elapsed() < PATIENCE).then(other).flatten() {
        if !said {
            eprintln!("    process {process} runs live: waiting for its end");
            said = true;
        }
        std::thread::sleep(LOOK);
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
    fn a_live_run_of_weir_is_known_by_its_command() {
        assert!(runs_live(&["/tmp/judge-weir", "run", "lab.toml", "--on", "live"]));
        assert!(runs_live(&["target/release/weir", "reproduce", "lbe", "--on", "sim,live"]));
        assert!(!runs_live(&["weir", "run", "live.toml", "--on", "sim"]));
        assert!(!runs_live(&["grep", "live"]));
        assert!(!runs_live(&["target/release/weir-judge", "live"]));
    }
}
