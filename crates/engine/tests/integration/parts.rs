//! A tree whose parts are run into folders of their own and taken in: its files are those of one session.

use crate::made_up::{MadeUp, Quiet, everything, files, lab, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use weir_engine::{
    Cell, FinishedRun, FolderError, Jobs, MOST_FOLDERS, Outcome, Part, Progress, ResultFolder, Results,
    parts, run_part, shard_size,
};
use weir_plan::{Lab, Run};
use weir_record::Records;

/// The missing parts of a lab's folder, and the size of its shards.
fn missing(lab: &Lab, folder: &ResultFolder, most: usize) -> (Vec<Part>, Option<usize>) {
    let engine = MadeUp::default();
    let runs: Vec<Arc<Run>> = lab.runs().into_iter().map(Arc::new).collect();
    let cell = |(number, run)| Cell { engine: &engine, run, number, wanted: true };
    let cells: Vec<_> = runs.iter().enumerate().map(cell).collect();
    let size = shard_size(&cells);
    (parts(&cells, size, most, folder).unwrap(), size)
}

fn open(lab: &Lab, out: &Path) -> ResultFolder {
    ResultFolder::open(out, lab.source(), "build").unwrap()
}

/// Runs a part beside the folder.
fn run_beside(lab: &Lab, part: &Part, size: Option<usize>, engine: &MadeUp, build: &str, place: &Path) {
    run_part(lab, &part.runs, size, engine, build, place, &Quiet).unwrap();
}

fn ids(runs: &[usize]) -> BTreeMap<String, usize> {
    runs.iter().map(|run| (format!("sim-r{}", run + 1), *run)).collect()
}

/// The ids of runs and the places of their records, in the order of the tree.
fn told(mut runs: Vec<FinishedRun>) -> Vec<(String, PathBuf)> {
    runs.sort_by_key(|run| run.number);
    runs.iter().map(|run| (run.file.id.clone(), run.location.folder().to_owned())).collect()
}

#[test]
fn a_tree_run_part_by_part_in_any_order_has_the_files_of_one_session() {
    let place = tempfile::tempdir().unwrap();
    for (runs, counts) in [(MOST_FOLDERS, vec![60, 60, 60, 20]), (330, vec![64, 64, 64, 64, 64, 10])] {
        let (lab, out) = (lab(runs), place.path().join(format!("parts-{runs}")));
        let mut folder = open(&lab, &out);
        let (parts, size) = missing(&lab, &folder, 60);
        assert_eq!(parts.iter().map(|part| part.runs.len()).collect::<Vec<_>>(), counts);
        let mut taken = vec![];
        for (number, part) in parts.iter().enumerate().rev() {
            let beside = place.path().join(format!("{runs}-{number}"));
            run_beside(&lab, part, size, &MadeUp::default(), "build", &beside);
            taken.extend(folder.adopt(&beside, &ids(&part.runs)).unwrap());
        }
        drop(folder);
        // They are told as a reader finds them.
        assert_eq!(told(taken), told(Results::open(&out).unwrap().runs));
        let whole = place.path().join(format!("whole-{runs}"));
        run(&MadeUp::default(), &lab, &whole, &Jobs::default(), everything);
        assert!(files(&out) == files(&whole), "{runs} runs");
    }
}

#[test]
fn a_shard_of_which_a_run_is_missing_is_a_part_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let (lab, out) = (lab(300), place.path().join("out"));
    run(&MadeUp { cancel_at: 101, ..MadeUp::default() }, &lab, &out, &Jobs::default(), everything);
    let mut folder = open(&lab, &out);
    let (parts, size) = missing(&lab, &folder, 64);
    assert_eq!(
        parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(),
        ["sim-0001", "sim-0002", "sim-0003", "sim-0004"]
    );
    for part in &parts {
        let beside = place.path().join(&part.name);
        run_beside(&lab, part, size, &MadeUp::default(), "build", &beside);
        folder.adopt(&beside, &ids(&part.runs)).unwrap();
    }
    drop(folder);
    let whole = place.path().join("whole");
    run(&MadeUp::default(), &lab, &whole, &Jobs::default(), everything);
    assert!(files(&out) == files(&whole));
}

#[test]
fn runs_that_fail_are_named_and_the_others_of_the_part_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp {
        fails: [("r3".into(), 9)].into_iter().collect::<std::collections::BTreeMap<_, _>>().into(),
        ..MadeUp::default()
    };
    let lab = lab(300);
    let (beside, out) = (place.path().join("beside"), place.path().join("out"));
    let tally = run_part(&lab, &[0, 1, 2, 3], Some(64), &engine, "build", &beside, &Quiet).unwrap();
    assert_eq!(tally.failed, [("sim-r3".to_owned(), "made to fail".to_owned())]);
    let taken = open(&lab, &out).adopt(&beside, &ids(&[0, 1, 2, 3])).unwrap();
    let shard = out.join("runs/sim-0000");
    assert_eq!(told(taken), ["sim-r1", "sim-r2", "sim-r4"].map(|id| (id.to_owned(), shard.clone())));
}

#[test]
fn runs_of_a_part_that_fail_now_do_not_count_though_they_were_there() {
    let place = tempfile::tempdir().unwrap();
    let (lab, out) = (lab(300), place.path().join("out"));
    run(&MadeUp { cancel_at: 11, ..MadeUp::default() }, &lab, &out, &Jobs::default(), everything);
    let mut folder = open(&lab, &out);
    let engine = MadeUp { fails: Mutex::new([("r3".into(), 9)].into()), ..MadeUp::default() };
    let part = Part { name: "sim-0000".into(), runs: (0..64).collect() };
    let beside = place.path().join("beside");
    run_beside(&lab, &part, Some(64), &engine, "build", &beside);
    let taken = folder.adopt(&beside, &ids(&part.runs)).unwrap();
    let results = Results::of_session(&folder, lab, taken).unwrap();
    assert_eq!(told(results.runs), told(Results::open(&out).unwrap().runs));
}

/// Notes whether the folder of runs was empty whenever a run had ended.
struct Looking<'a>(&'a Path, Mutex<Vec<bool>>);

impl Progress for Looking<'_> {
    fn share(&self, _: usize, _: f64) {}
    fn ended(&self, _: usize, _: Result<&Outcome, &str>) {}
    fn recorded(&self, _: &FinishedRun, _: &Records) {
        self.1.lock().unwrap().push(std::fs::read_dir(self.0).unwrap().next().is_none());
    }
}

#[test]
fn the_shard_of_a_part_is_written_once() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let looking = Looking(&runs, Mutex::default());
    // Each run waits for a fifth of a second: a session would have written the first ones after a second.
    let engine = MadeUp { waits_for: 2, ..MadeUp::default() };
    let part: Vec<usize> = (0..9).collect();
    run_part(&lab(300), &part, Some(64), &engine, "build", place.path(), &looking).unwrap();
    assert_eq!(looking.1.into_inner().unwrap(), [true; 9]);
    assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 1);
}

#[test]
fn what_is_no_part_of_it_is_refused_and_stays_where_it_is() {
    let place = tempfile::tempdir().unwrap();
    let (lab, out) = (lab(300), place.path().join("out"));
    let mut folder = open(&lab, &out);
    let part = Part { name: "sim-0000".into(), runs: (0..64).collect() };
    for (name, build, ids, told) in [
        ("strange", "build", ids(&[0, 1]), "which is none of its part"),
        ("other", "another build", ids(&part.runs), "runs by another build of weir (another build)"),
    ] {
        let beside = place.path().join(name);
        run_beside(&lab, &part, Some(64), &MadeUp::default(), build, &beside);
        let refused = folder.adopt(&beside, &ids).unwrap_err();
        assert!(
            matches!(&refused, FolderError::Records(_)) && refused.to_string().contains(told),
            "{refused}"
        );
    }
    let damaged = place.path().join("damaged");
    run_beside(&lab, &part, Some(64), &MadeUp::default(), "build", &damaged);
    std::fs::write(damaged.join("runs/sim-0000/runs.json"), "[]").unwrap();
    folder.adopt(&damaged, &ids(&part.runs)).unwrap_err();
    assert_eq!(std::fs::read_dir(out.join("runs")).unwrap().count(), 0);
}
