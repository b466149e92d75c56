//! Result folders of a made-up engine: reruns, two writers, and damaged files.

use crate::made_up::{MadeUp, everything, expected, files, lab, rerun, run, used};
use std::fs;
use std::path::Path;
use weir_engine::{Asked, FolderError, Jobs, Lock, ResultFolder, Results, ResultsError};

/// Utilisation of each run, after these repeats were run again on links that are seven points busier.
fn busier(runs: usize, again: impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
    expected(1..=runs as u32)
        .into_iter()
        .map(|(repeat, used)| (repeat, if again(repeat) { (used + 7.0) % 100.0 } else { used }))
        .collect()
}

fn first_set(out: &Path, runs: usize) {
    run(&MadeUp::default(), &lab(runs), out, &Jobs::default(), everything);
    fs::write(out.join("notes.txt"), "mine").unwrap();
    fs::create_dir(out.join("runs/notes")).unwrap();
    fs::write(out.join("runs/notes/a.txt"), "mine").unwrap();
}

fn notes_are_there(out: &Path) {
    for note in ["notes.txt", "runs/notes/a.txt"] {
        assert_eq!(fs::read_to_string(out.join(note)).unwrap(), "mine", "{note}");
    }
}

#[test]
fn an_interrupted_rerun_leaves_the_older_set_and_the_same_command_resumes_it() {
    for runs in [6, 201] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        first_set(&out, runs);
        let before = files(&out);
        let engine = MadeUp { more: 7, cancel_at: 4, ..MadeUp::default() };
        assert!(rerun(&engine, &lab(runs), &out, &[]).cancelled);
        let mut left = files(&out);
        left.retain(|name, _| !name.starts_with(".weir-rerun/"));
        assert!(left == before, "the older set is whole");
        assert_eq!(used(&out), expected(1..=runs as u32), "and is what readers see");
        assert!(Results::open(&out).unwrap().unfinished_rerun().is_some());
        // Another interruption, and then the end: three runs are kept each time.
        let engine = MadeUp { more: 7, cancel_at: 1, ..MadeUp::default() };
        assert_eq!(rerun(&engine, &lab(runs), &out, &[]).kept, 3);
        let engine = MadeUp { more: 7, ..MadeUp::default() };
        let tally = rerun(&engine, &lab(runs), &out, &[]);
        assert_eq!((tally.kept, tally.finished.len()), (3, runs - 3));
        assert_eq!(used(&out), busier(runs, |_| true));
        notes_are_there(&out);
        assert!(!out.join(".weir-rerun").exists());
    }
}

#[test]
fn a_rerun_of_some_runs_ends_with_those_new_and_the_others_as_they_were() {
    for runs in [6, 201] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        first_set(&out, runs);
        let engine = MadeUp { more: 7, cancel_at: 2, ..MadeUp::default() };
        assert!(rerun(&engine, &lab(runs), &out, &[2, 3]).cancelled);
        assert_eq!(used(&out), expected(1..=runs as u32));
        let engine = MadeUp { more: 7, ..MadeUp::default() };
        let tally = rerun(&engine, &lab(runs), &out, &[2, 3]);
        assert_eq!((tally.finished.len(), tally.kept), (1, runs - 1), "one of the two had ended before");
        assert_eq!(used(&out), busier(runs, |repeat| [2, 3].contains(&repeat)));
        notes_are_there(&out);
        // A rerun that asks for something else does not take over what another one has finished.
        let engine = MadeUp { cancel_at: 2, ..MadeUp::default() };
        assert!(rerun(&engine, &lab(runs), &out, &[4, 5]).cancelled);
        let tally = rerun(&MadeUp::default(), &lab(runs), &out, &[4, 5, 6]);
        assert_eq!((tally.finished.len(), tally.kept), (3, runs - 3));
    }
}

#[test]
fn a_summary_is_taken_from_its_file_until_a_run_is_newer_or_missing() {
    for runs in [6, 201] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path();
        run(&MadeUp::default(), &lab(runs), out, &Jobs::default(), everything);
        let open = || Results::open(out).unwrap();
        assert_eq!(open().written_summary(), None, "none was written");
        let computed = open().summary(None).unwrap();
        open().write_summary(&computed).unwrap();
        assert_eq!(open().written_summary().as_ref(), Some(&computed));
        // A file that lacks a run.
        let mut fewer = computed.clone();
        fewer.runs.pop();
        open().write_summary(&fewer).unwrap();
        assert_eq!(open().written_summary(), None);
        // A run that has come since.
        open().write_summary(&computed).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let first = open().runs[0].location.folder().to_owned();
        fs::write(first.join("notes.txt"), "mine").unwrap();
        assert_eq!(open().written_summary(), None);
        open().write_summary(&computed).unwrap();
        assert_eq!(open().written_summary().as_ref(), Some(&computed));
        // A table that was changed in its place, or cut.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let table = first.join("links.parquet");
        let bytes = fs::read(&table).unwrap();
        fs::write(&table, &bytes).unwrap();
        assert_eq!(open().written_summary(), None);
        fs::write(&table, &bytes[..bytes.len() - 1]).unwrap();
        open().write_summary(&computed).unwrap();
        assert_eq!(open().written_summary(), None);
    }
}

#[test]
fn a_failed_rerun_leaves_the_older_set_and_is_retried() {
    let place = tempfile::tempdir().unwrap();
    first_set(place.path(), 3);
    let engine = MadeUp { more: 7, commands: vec!["r2".into()], ..MadeUp::default() };
    assert_eq!(rerun(&engine, &lab(3), place.path(), &[]).failed.len(), 1);
    assert_eq!(used(place.path()), expected(1..=3));
    let engine = MadeUp { more: 7, ..MadeUp::default() };
    assert_eq!(rerun(&engine, &lab(3), place.path(), &[]).finished.len(), 1);
    assert_eq!(used(place.path()), busier(3, |_| true));
}

#[test]
fn a_first_set_may_be_a_rerun_and_a_reader_learns_its_staging_folder() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp { cancel_at: 3, ..MadeUp::default() };
    assert!(rerun(&engine, &lab(3), place.path(), &[]).cancelled);
    let Err(ResultsError::Staged { staging, .. }) = Results::open(place.path()) else { panic!("results") };
    assert_eq!(used(Path::new(&staging)), expected(1..=2), "it is a result folder in itself");
    assert_eq!(rerun(&MadeUp::default(), &lab(3), place.path(), &[]).kept, 2);
    assert_eq!(used(place.path()), expected(1..=3));
}

#[test]
fn a_rerun_is_the_way_out_of_a_damaged_set() {
    for runs in [3, 201] {
        let place = tempfile::tempdir().unwrap();
        first_set(place.path(), runs);
        let folder = Results::open(place.path()).unwrap().runs[0].location.folder().to_owned();
        let description = ["run.json", "runs.json"].map(|name| folder.join(name));
        let description = description.iter().find(|path| path.is_file()).unwrap();
        fs::write(description, "").unwrap();
        assert!(ResultFolder::open(place.path(), lab(runs).source(), "build").is_err());
        assert_eq!(rerun(&MadeUp::default(), &lab(runs), place.path(), &[]).finished.len(), runs);
        assert_eq!(used(place.path()).len(), runs);
    }
}

#[test]
fn a_symbolic_link_to_the_folder_stays_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    first_set(&link, 2);
    rerun(&MadeUp { more: 7, ..MadeUp::default() }, &lab(2), &link, &[]);
    assert!(link.is_symlink() && real.join("runs/sim-r1/run.json").is_file());
    assert_eq!(used(&link), busier(2, |_| true));
    notes_are_there(&link);
}

#[test]
fn a_second_writer_is_refused_and_touches_nothing() {
    let place = tempfile::tempdir().unwrap();
    first_set(place.path(), 2);
    let lock = Lock::take(place.path()).unwrap();
    let before = files(place.path());
    let lab = lab(2);
    let asked = Asked { engines: vec!["sim".into()], only: vec![] };
    let refused = [
        ResultFolder::open(place.path(), lab.source(), "build"),
        ResultFolder::rerun(place.path(), lab.source(), "build", &asked, |_| true),
    ];
    assert!(refused.iter().all(|folder| matches!(folder, Err(FolderError::Held { .. }))));
    assert!(matches!(Results::lock(place.path()), Err(ResultsError::Folder(FolderError::Held { .. }))));
    assert!(files(place.path()) == before);
    assert_eq!(used(place.path()), expected(1..=2), "whoever only reads needs no leave");
    drop(lock);
    assert!(ResultFolder::open(place.path(), lab.source(), "build").is_ok());
}

/// The error of reading a folder; panics if there is none.
fn told(out: &Path) -> String {
    match Results::open(out).and_then(|results| results.summary(None)) {
        Ok(summary) => panic!("{} runs were read", summary.runs.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_description_that_was_emptied_changed_or_removed_is_refused_by_name() {
    for (runs, file) in [(3, "runs/sim-r2/run.json"), (201, "runs/sim-0001/runs.json")] {
        let place = tempfile::tempdir().unwrap();
        run(&MadeUp::default(), &lab(runs), place.path(), &Jobs::default(), everything);
        let path = place.path().join(file);
        let whole = fs::read_to_string(&path).unwrap();
        let edited = whole.replacen("\"seed\": ", "\"seed\": 1", 1).replacen("\"seed\":", "\"seed\":1", 1);
        assert_ne!(edited, whole);
        for text in ["", "{}", "[]", "null", &whole[..whole.len() / 2], &edited] {
            fs::write(&path, text).unwrap();
            let told = told(place.path());
            assert!(told.contains(file), "{told}");
            let open = ResultFolder::open(place.path(), lab(runs).source(), "build");
            assert!(open.unwrap_err().to_string().contains(file), "resuming says so too");
        }
        fs::remove_file(&path).unwrap();
        assert!(told(place.path()).contains(file.rsplit_once('/').unwrap().0));
        fs::write(&path, whole).unwrap();
        assert_eq!(used(place.path()).len(), runs);
    }
}

/// Removes the checksums from `records.json`, as an older weir wrote it.
fn without_checksum(folder: &Path) {
    let path = folder.join("records.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest.as_object_mut().unwrap().remove("files");
    fs::write(path, manifest.to_string()).unwrap();
}

#[test]
fn descriptions_of_an_older_weir_are_read_and_counted() {
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab(2), place.path(), &Jobs::default(), everything);
    assert_eq!(Results::open(place.path()).unwrap().unchecked, 0);
    without_checksum(&place.path().join("runs/sim-r1"));
    let results = Results::open(place.path()).unwrap();
    assert_eq!((results.runs.len(), results.unchecked), (2, 1));
    assert_eq!(used(place.path()), expected(1..=2));
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab(2), place.path(), &Jobs::default(), everything);
    let folder = place.path().join("runs/sim-r1");
    without_checksum(&folder);
    let whole = fs::read_to_string(folder.join("run.json")).unwrap();
    for (from, to) in [
        ("\"engine\": \"sim\"", "\"engine\": \"../../../ESC\""),
        ("\"id\": \"sim-r1\"", "\"id\": \"../../../ESC\""),
        ("\"id\": \"r1\"", "\"id\": \"../../../ESC\""),
        ("\"name\": \"down\"", "\"name\": \"<script>\""),
        ("\"name\": \"a\"", "\"name\": \"../a\""),
        ("\"group\": 0", "\"group\": 4000000000"),
        ("\"sample\": \"100 ms\"", "\"sample\": \"0 s\""),
    ] {
        let forged = whole.replace(from, to);
        assert_ne!(forged, whole, "{from}");
        fs::write(folder.join("run.json"), forged).unwrap();
        let told = told(place.path());
        assert!(told.contains("runs/sim-r1/run.json"), "{to}: {told}");
    }
}

#[test]
fn a_run_in_a_folder_of_another_name_and_a_run_outside_the_lab_are_refused() {
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab(2), place.path(), &Jobs::default(), everything);
    let at = |name: &str| place.path().join("runs").join(name);
    fs::rename(at("sim-r2"), at("copy")).unwrap();
    assert!(told(place.path()).contains("sim-r2"));
    fs::rename(at("copy"), at("sim-r2")).unwrap();
    fs::write(place.path().join("lab.toml"), lab(1).source()).unwrap();
    assert!(told(place.path()).contains("sim-r2"));
}

#[test]
fn the_numbers_of_present_and_planned_runs_are_known() {
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab(60), place.path(), &Jobs::default(), |run| run.repeat <= 22);
    let results = Results::open(place.path()).unwrap();
    assert_eq!(results.count().to_string(), "22 of 60 runs");
    assert_eq!(results.summary(None).unwrap().planned_runs, 60);
    run(&MadeUp::default(), &lab(60), place.path(), &Jobs::default(), everything);
    assert_eq!(Results::open(place.path()).unwrap().count().to_string(), "60 runs");
}
