//! A lab whose parts are run elsewhere: its folder is that of one session, and the records of its parts are not read again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_plan::Lab;
use weir_session::{Caller, Completion, Done, Execution, Plan, Show, Sweep, execute, run_part};
use weir_sim::Simulator;

struct Quiet;

impl Show for Quiet {
    fn tell(&self, _: &str) {}
    fn changed(&self, _: &Completion) {}
    fn tick(&self, _: &Completion) {}
    fn ended(&self) {}
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn caller(cancel: &AtomicBool) -> Caller<'_> {
    Caller { build: "build", cancel, show: &Quiet }
}

/// A lab of this many runs: 201 are kept in shards, and their pages in pieces.
fn lab(repeats: usize) -> Lab {
    let text = format!(
        "format = 1\nname = 'tree'\n[run]\nduration = '400 ms'\nwarmup = '100 ms'\nrepeats = {repeats}\n\
         [dumbbell]\nrate = '5 Mbit/s'\nrtt = '20 ms'\n[traffic.a]\ncc = 'cubic'\nflows = 2\n[traffic.b]\ncc = 'newreno'\n\
         [vary]\n'dumbbell.queue' = ['tail-drop', 'pie', 'codel']\n"
    );
    Lab::from_str(&text, "tree.toml", Path::new("."), &[]).unwrap()
}

/// Each file below a folder but the lock.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                left.push(entry);
            } else if entry.file_name().unwrap() != ".weir-lock" {
                let name = entry.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(entry).unwrap());
            }
        }
    }
    found
}

fn alone(lab: &Lab, out: &Path, report: bool) -> Done {
    let execution = Execution {
        out: out.to_owned(),
        jobs: NonZeroUsize::new(2),
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        rerun: false,
        only: &[],
        retries: 1,
        report,
    };
    execute(lab, &[Box::new(Simulator)], &execution, &caller(&NEVER)).unwrap()
}

/// Runs a lab part by part, the last one first, each into a folder of its own in `place`; `change` is called before a part is taken in.
/// Returns the sweep before its end.
fn parted(lab: &Lab, place: &Path, report: bool, change: impl Fn(&Path)) -> Sweep {
    let plan = Plan { out: place.join("out"), rerun: false, report, most: 40 };
    let mut sweep = Sweep::open(lab.clone(), plan, Box::new(Simulator), &caller(&NEVER)).unwrap();
    for part in (0..sweep.parts().len()).rev() {
        let beside = place.join(format!("part-{part}"));
        let runs = sweep.parts()[part].runs.clone();
        let failed =
            run_part(lab, &runs, sweep.size(), &Simulator, "build", &beside, sweep.groups()).unwrap();
        assert!(failed.is_empty());
        change(&beside);
        sweep.take_in(part, &beside, failed).unwrap();
    }
    sweep
}

/// Damages the tables of all runs in a folder.
fn damage(folder: &Path) {
    let tables = files(folder).into_keys().filter(|name| name.ends_with(".parquet"));
    let damaged = tables.map(|name| fs::write(folder.join(name), "damaged").unwrap()).count();
    assert!(damaged > 0);
}

#[test]
fn a_sweep_ends_without_reading_the_records_of_its_parts() {
    for (repeats, report) in [(67, true), (67, false), (3, true)] {
        let place = tempfile::tempdir().unwrap();
        let (lab, whole) = (lab(repeats), place.path().join("whole"));
        alone(&lab, &whole, report);
        let sweep = parted(&lab, place.path(), report, |_| ());
        let out = place.path().join("out");
        let before = files(&out.join("runs"));
        assert!(before == files(&whole.join("runs")), "{repeats} repeats");
        damage(&out.join("runs"));
        let done = sweep.finish().unwrap();
        assert_eq!((done.done, done.wanted, done.tally.kept), (3 * repeats, 3 * repeats, 0));
        fs::remove_dir_all(out.join("runs")).unwrap();
        fs::remove_dir_all(whole.join("runs")).unwrap();
        let (swept, whole) = (files(&out), files(&whole));
        assert_eq!(swept.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        assert!(swept == whole, "{repeats} repeats");
    }
}

#[test]
fn what_a_part_does_not_tell_is_computed_from_its_records() {
    for repeats in [67, 3] {
        let place = tempfile::tempdir().unwrap();
        let (lab, whole) = (lab(repeats), place.path().join("whole"));
        alone(&lab, &whole, true);
        let forget = |part: &Path| match part.ends_with("part-0") {
            true => fs::remove_file(part.join("digest")).unwrap(),
            false => fs::write(part.join("digest"), "damaged").unwrap(),
        };
        parted(&lab, place.path(), true, forget).finish().unwrap();
        assert!(files(&place.path().join("out")) == files(&whole), "{repeats} repeats");
    }
}

#[test]
fn a_sweep_goes_on_with_the_shards_that_are_there() {
    let place = tempfile::tempdir().unwrap();
    let (lab, whole, out) = (lab(67), place.path().join("whole"), place.path().join("out"));
    alone(&lab, &whole, true);
    drop(parted(&lab, place.path(), true, |_| ()));
    fs::remove_dir_all(out.join("runs/sim-0001")).unwrap();
    let second = place.path().join("second");
    fs::create_dir(&second).unwrap();
    fs::rename(&out, second.join("out")).unwrap();
    let sweep = parted(&lab, &second, true, |_| ());
    assert_eq!(sweep.parts().iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["sim-0001"]);
    let done = sweep.finish().unwrap();
    assert_eq!((done.done, done.wanted, done.tally.kept), (64, 201, 137));
    assert!(files(&second.join("out")) == files(&whole));
}
