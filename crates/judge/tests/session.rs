//! Whole sessions with a program in place of weir (`fake-weir`), so that nothing runs live: verdicts, the document, interruption,
//! another build, invalid runs, failures, and shrinking.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;
use weir_judge::session::State;
use weir_judge::trial::Outcome;

/// Cells of a session here.
const CELLS: u64 = 8;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        bench.build("");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Another build of weir: another content of the program. It is not called weir, so that no test waits for another's live run. A child
    /// process writes it: if this process did, a child that another test forks meanwhile could hold it open for writing, and no one could
    /// run it then (ETXTBSY).
    fn build(&self, name: &str) {
        let source =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-weir")).unwrap();
        let part = self.path("program.part");
        fs::write(&part, format!("{source}# {name}\n")).unwrap();
        let mut command = Command::new("install");
        command.arg("--mode=755").arg(part).arg(self.path("program"));
        assert!(command.status().unwrap().success());
    }

    fn set(&self, name: &str, value: &str) {
        fs::write(self.path(name), value).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-judge"));
        command.arg(self.path("program")).args(["--cells", &CELLS.to_string(), "--patience", "0"]);
        for (option, name) in [
            ("--results", "results"),
            ("--live", "live"),
            ("--document", "judge.md"),
            ("--causes", "causes.toml"),
        ] {
            command.arg(option).arg(self.path(name));
        }
        command.args(more);
        command
    }

    fn judge(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn state(&self) -> State {
        serde_json::from_slice(&fs::read(self.path("results/seed-1/session.json")).unwrap()).unwrap()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.state().cells.values().map(|judged| judged.outcome).collect()
    }

    fn document(&self) -> String {
        fs::read_to_string(self.path("judge.md")).unwrap()
    }

    /// How many runs of an engine there were.
    fn calls(&self, engine: &str) -> usize {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().filter(|line| line.starts_with(engine)).count()
    }
}

/// Cells of seed 1 with BBR.
fn with_bbr() -> usize {
    (1..=CELLS)
        .filter(|&number| {
            weir_judge::draw::draw(weir_judge::id::Id { seed: 1, number }).toml().contains("\"bbr\"")
        })
        .count()
}

#[test]
fn a_simulator_that_comes_out_where_the_kernel_does_agrees_after_two_live_runs() {
    let bench = Bench::new();
    let output = bench.judge(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(bench.outcomes(), [Outcome::Agree; CELLS as usize]);
    assert_eq!((bench.calls("sim"), bench.calls("live")), (20 * CELLS as usize, 2 * CELLS as usize));
    assert!(
        bench.document().contains("**8 of 8 cells agree (100 %).** None differs."),
        "{}",
        bench.document()
    );
    // The same command has nothing left to do.
    bench.judge(&[]);
    assert_eq!(bench.calls("sim"), 20 * CELLS as usize);
}

#[test]
fn a_cell_that_differs_is_simulated_again_with_the_pauses_of_its_live_runs() {
    let bench = Bench::new();
    bench.set("bias", "-50");
    bench.set("pauses", "0");
    assert_eq!(bench.judge(&[]).status.code(), Some(0));
    let paused = bench.outcomes().into_iter().filter(|outcome| *outcome == Outcome::AgreePaused).count();
    assert_eq!(paused, with_bbr());
    assert!(bench.document().contains("once simulated hosts pause when those of the live runs did"));
    // The pauses are kept with the live runs: another build is judged by them on another machine.
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    bench.build("another");
    let live = bench.calls("live");
    bench.judge(&["--resimulate"]);
    let again = bench.outcomes().into_iter().filter(|outcome| *outcome == Outcome::AgreePaused).count();
    assert_eq!((again, bench.calls("live")), (paused, live));
}

#[test]
fn a_cell_that_differs_without_pauses_gets_all_live_runs_if_they_cannot_tell_with_them() {
    let bench = Bench::new();
    bench.set("bias", "-50");
    // Around the bound, 3 points.
    bench.set("pauses", "-6 * (seed % 2)");
    bench.judge(&["--no-shrink"]);
    let differ: Vec<usize> = bench
        .state()
        .cells
        .values()
        .filter(|judged| judged.outcome == Outcome::Differs)
        .map(|judged| judged.live)
        .collect();
    assert_eq!(differ, vec![10; with_bbr()]);
}

#[test]
fn a_fault_is_found_shrunk_and_explained_by_a_cause() {
    let bench = Bench::new();
    bench.set("bias", "-50");
    assert!(with_bbr() > 0);
    assert_eq!(bench.judge(&[]).status.code(), Some(1));
    let state = bench.state();
    let differ: Vec<_> =
        state.cells.iter().filter(|(_, judged)| judged.outcome == Outcome::Differs).collect();
    assert_eq!(differ.len(), with_bbr());
    for (number, judged) in &differ {
        assert_eq!(judged.live, 4);
        let shrunk = judged.shrunk.as_ref().unwrap();
        assert!(shrunk.lab.contains("\"bbr\"") && shrunk.live <= 34, "{shrunk:?}");
        assert_eq!(shrunk.row.as_ref().unwrap().measure, "utilisation");
        let file = bench.path(&format!("results/seed-1/cell-{number}/shrunk.toml"));
        assert_eq!(fs::read_to_string(file).unwrap(), shrunk.lab);
    }
    assert!(bench.document().contains("**none yet**") && bench.document().contains("shrunk.toml"));
    let names: Vec<String> = differ.iter().map(|(number, _)| format!("\"1-{number}\"")).collect();
    let causes = format!(
        "[[cause]]\ncells = [{}]\ncause = \"A test.\"\nevidence = \"This file.\"\n",
        names.join(", ")
    );
    bench.set("causes.toml", &causes);
    let live = bench.calls("live");
    assert_eq!(bench.judge(&[]).status.code(), Some(0));
    assert!(bench.document().contains("none is without a cause"), "{}", bench.document());
    assert_eq!(bench.calls("live"), live);
}

#[test]
fn a_mended_simulator_is_judged_again_with_the_live_runs_that_are_there() {
    let bench = Bench::new();
    bench.set("bias", "-50");
    bench.judge(&["--no-shrink"]);
    let (sim, live) = (bench.calls("sim"), bench.calls("live"));
    bench.set("bias", "0");
    bench.build("mended");
    assert_eq!(bench.judge(&["--resimulate"]).status.code(), Some(0));
    assert_eq!(bench.outcomes(), [Outcome::Agree; CELLS as usize]);
    assert_eq!((bench.calls("sim"), bench.calls("live")), (2 * sim, live));
}

#[test]
fn live_runs_are_kept_for_another_machine() {
    let bench = Bench::new();
    bench.judge(&[]);
    let live = bench.calls("live");
    fs::remove_dir_all(bench.path("results")).unwrap();
    assert_eq!(bench.judge(&[]).status.code(), Some(0));
    assert_eq!((bench.outcomes(), bench.calls("live")), (vec![Outcome::Agree; CELLS as usize], live));

    // Another kernel's runs are judged by, and not added to.
    let kept = bench.path("live/seed-1.jsonl");
    let there = fs::read_to_string(&kept).unwrap();
    let kernel = bench.state().kernels.into_iter().next().unwrap();
    let other = there.replace(&format!("\"kernel\":\"{kernel}\""), "\"kernel\":\"2.6.32\"");
    assert_ne!(other, there);
    fs::write(&kept, &other).unwrap();
    let refused = bench.judge(&[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("has live runs of Linux 2.6.32") && said.contains("--resimulate"), "{said}");
    assert_eq!(bench.judge(&["--resimulate"]).status.code(), Some(0));
    assert!(bench.document().contains("Linux 2.6.32."), "{}", bench.document());
    assert_eq!((fs::read_to_string(&kept).unwrap(), bench.calls("live")), (other, live));

    // A file that cannot be read is left as it is.
    fs::write(&kept, "no JSON\n").unwrap();
    let refused = bench.judge(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("seed-1.jsonl: line 1: "));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "no JSON\n");
}

#[test]
fn a_resimulated_cell_that_needs_more_live_runs_gets_them_in_the_next_session() {
    let bench = Bench::new();
    bench.judge(&[]);
    let live = bench.calls("live");
    // Two live runs are enough to agree, but not to differ.
    bench.set("bias", "-50");
    bench.build("broken");
    bench.judge(&["--resimulate"]);
    let count = |outcome| bench.outcomes().into_iter().filter(|it| *it == outcome).count();
    assert_eq!((count(Outcome::CannotTell), bench.calls("live")), (with_bbr(), live));
    bench.judge(&["--no-shrink"]);
    assert_eq!((count(Outcome::Differs), bench.calls("live")), (with_bbr(), live + 2 * with_bbr()));
}

#[test]
fn another_build_simulates_anew_unless_its_verdicts_are_kept() {
    let bench = Bench::new();
    bench.judge(&[]);
    let (sim, live) = (bench.calls("sim"), bench.calls("live"));
    bench.build("other");
    bench.judge(&["--keep"]);
    assert_eq!((bench.calls("sim"), bench.calls("live")), (sim, live));
    bench.judge(&[]);
    assert_eq!((bench.calls("sim"), bench.calls("live")), (2 * sim, live));
    let builds: Vec<String> = bench.state().cells.into_values().map(|judged| judged.build).collect();
    assert!(builds.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_killed_session_goes_on_and_repeats_no_finished_run() {
    let bench = Bench::new();
    bench.set("slow", "0.2");
    for _ in 0..4 {
        let mut child = bench.command(&[]).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(900));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    bench.set("slow", "0");
    assert_eq!(bench.judge(&[]).status.code(), Some(0));
    assert_eq!(bench.outcomes(), [Outcome::Agree; CELLS as usize]);
    // Each kill costs at most the live run and the two simulated runs that were under way.
    assert!(bench.calls("live") <= 2 * CELLS as usize + 4, "{}", bench.calls("live"));
    assert!(bench.calls("sim") <= 20 * CELLS as usize + 4 * 16, "{}", bench.calls("sim"));
}

#[test]
fn an_invalid_live_run_is_repeated_and_five_in_a_row_leave_the_cell_out() {
    let bench = Bench::new();
    bench.set("invalid", "3");
    bench.judge(&[]);
    assert_eq!(bench.outcomes(), [Outcome::Agree; CELLS as usize]);
    assert_eq!(bench.calls("live"), 2 * CELLS as usize + 3);

    let bench = Bench::new();
    bench.set("invalid", "5");
    assert_eq!(bench.judge(&[]).status.code(), Some(0));
    assert_eq!(bench.outcomes()[..2], [Outcome::Invalid, Outcome::Agree]);
    assert!(
        bench.document().contains("**7 of 7 cells agree")
            && bench.document().contains("the machine was busy")
    );
    bench.judge(&["--retry-invalid"]);
    assert_eq!(bench.outcomes(), [Outcome::Agree; CELLS as usize]);
}

#[test]
fn a_simulator_that_fails_is_a_fault_with_its_last_words() {
    let bench = Bench::new();
    bench.set("crash", "");
    assert_eq!(bench.judge(&[]).status.code(), Some(1));
    let failed = bench.outcomes().into_iter().filter(|outcome| *outcome == Outcome::Failed).count();
    assert_eq!(failed, with_bbr());
    assert!(bench.document().contains("time goes back"), "{}", bench.document());
    let shrunk = bench.state().cells.into_values().filter_map(|judged| judged.shrunk).next().unwrap();
    assert!(shrunk.row.is_none() && shrunk.live == 0 && !shrunk.lab.contains("flows"));
}

#[test]
fn two_judges_of_one_seed_do_not_work_at_once() {
    let bench = Bench::new();
    bench.set("slow", "2");
    let mut child = bench.command(&[]).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let output = bench.judge(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another judge is at work"));
    child.kill().unwrap();
    child.wait().unwrap();
}
