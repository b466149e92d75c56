//! A tree of runs on a made-up engine: the runs that are kept, their files, and the state after a failure, a panic or an
//! interruption.

use crate::made_up::{MadeUp, everything, expected, files, lab, message, rerun, run, used};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use weir_base::Span;
use weir_engine::{FinishedRun, Jobs, MOST_FOLDERS, Results, ResultsError};
use weir_plan::Lab;
use weir_record::{Records, Value};

#[test]
fn live_runs_have_the_machine_for_themselves_unless_told_otherwise() {
    let lab = lab(4);
    let most_at_once = |live: usize| {
        let out = tempfile::tempdir().unwrap();
        let engine = MadeUp { alone: true, waits_for: 2, ..MadeUp::default() };
        let tally = run(&engine, &lab, out.path(), &Jobs { threads: 4, live, ..Jobs::default() }, everything);
        assert_eq!(tally.finished.len(), 4);
        engine.under_way.into_inner().unwrap()[1]
    };
    assert_eq!((most_at_once(1), most_at_once(2)), (1, 2));
}

#[test]
fn up_to_two_hundred_runs_have_a_folder_each_and_more_share_shards_of_64() {
    let place = tempfile::tempdir().unwrap();
    for (runs, folders, first) in [(MOST_FOLDERS, 200, "sim-r1"), (MOST_FOLDERS + 1, 4, "sim-0000")] {
        let out = place.path().join(runs.to_string());
        let tally = run(&MadeUp::default(), &lab(runs), &out, &Jobs::default(), everything);
        assert_eq!((tally.finished.len(), tally.failed.len()), (runs, 0));
        assert_eq!(std::fs::read_dir(out.join("runs")).unwrap().count(), folders);
        assert!(out.join("runs").join(first).is_dir());
        assert_eq!(used(&out), expected(1..=runs as u32));
    }
}

#[test]
fn the_files_of_shards_do_not_depend_on_the_jobs() {
    let place = tempfile::tempdir().unwrap();
    let folder = |threads: usize| {
        let out = place.path().join(threads.to_string());
        run(&MadeUp::default(), &lab(300), &out, &Jobs { threads, ..Jobs::default() }, everything);
        files(&out)
    };
    let one = folder(1);
    assert!(one.contains_key("runs/sim-0004/flows.parquet"));
    assert!(one == folder(4));
}

#[test]
fn an_interrupted_tree_of_shards_keeps_every_finished_run_and_ends_as_if_never_interrupted() {
    let place = tempfile::tempdir().unwrap();
    let (out, whole) = (place.path().join("out"), place.path().join("whole"));
    run(&MadeUp::default(), &lab(300), &whole, &Jobs::default(), everything);
    let engine = MadeUp { cancel_at: 101, ..MadeUp::default() };
    let tally = run(&engine, &lab(300), &out, &Jobs::default(), everything);
    assert!(tally.cancelled);
    assert_eq!(used(&out), expected(1..=100), "64 in the first shard, 36 in the second");
    let engine = MadeUp::default();
    let tally = run(&engine, &lab(300), &out, &Jobs::default(), everything);
    assert_eq!((tally.kept, tally.finished.len(), engine.begun.into_inner()), (100, 200, 200));
    assert!(files(&out) == files(&whole));
}

#[test]
fn files_that_a_killed_session_was_replacing_are_restored() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    run(&MadeUp::default(), &lab(201), &out, &Jobs::default(), everything);
    // Killed between the two renames: the old shard has made room, the new one is not in its place yet.
    let shard = |name: &str| out.join("runs").join(name);
    std::fs::rename(shard("sim-0002"), shard(".weir-old.sim-0002")).unwrap();
    std::fs::create_dir(shard(".weir-draft.sim-0002")).unwrap();
    std::fs::create_dir(shard(".somebody")).unwrap();
    assert_eq!(used(&out).len(), 201, "a reader finds it where it is");
    let engine = MadeUp::default();
    assert_eq!(run(&engine, &lab(201), &out, &Jobs::default(), everything).kept, 201);
    assert_eq!(engine.begun.into_inner(), 0);
    assert!(!shard(".weir-draft.sim-0002").exists() && !shard(".weir-old.sim-0002").exists());
    assert!(shard(".somebody").is_dir(), "what is not weir's stays");
    assert_eq!(used(&out).len(), 201);
}

#[test]
fn a_run_whose_command_fails_is_not_retried() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp { commands: vec!["r2".into()], ..MadeUp::default() };
    let jobs = Jobs { retries: 5, ..Jobs::default() };
    let tally = run(&engine, &lab(3), place.path(), &jobs, everything);
    assert_eq!((tally.finished.len(), tally.retried), (2, 0));
    assert_eq!(tally.failed, [("sim-r2".to_owned(), "ended with status 3".to_owned())]);
    assert_eq!(engine.begun.into_inner(), 3);
}

#[test]
fn messages_of_applications_are_read_and_exported_in_both_layouts() {
    let place = tempfile::tempdir().unwrap();
    for runs in [3, MOST_FOLDERS + 1] {
        let out = place.path().join(runs.to_string());
        run(&MadeUp::default(), &lab(runs), &out, &Jobs::default(), everything);
        let results = Results::open(&out).unwrap();
        let read = |_: usize, run: &FinishedRun, records: &Records| {
            Ok::<_, ResultsError>((run.file.run.repeat, records.messages.clone()))
        };
        let read = results.each(|_| true, read).unwrap();
        assert_eq!(read.len(), runs);
        assert!(read.iter().all(|(repeat, messages)| *messages == [message(*repeat)]));
        let summary = results.summary(None).unwrap();
        let Value::Distribution(waited) = summary.runs[2].groups[0].metrics.get("request_time_ms") else {
            panic!("{:?}", summary.runs[2].groups[0].metrics)
        };
        assert_eq!((waited.count, waited.p50), (1, 3.0));
        let csv = place.path().join(format!("csv-{runs}"));
        results.export(&csv).unwrap();
        let text = std::fs::read_to_string(csv.join("sim-r3").join("messages.csv")).unwrap();
        assert_eq!(text.lines().nth(1), Some("1000000000,0,request,3,done,3000000"), "{text}");
    }
}

#[test]
fn a_failed_run_is_retried_then_reported_and_affects_no_other_run() {
    for runs in [5, 201] {
        let place = tempfile::tempdir().unwrap();
        let engine = MadeUp {
            fails: Mutex::new(BTreeMap::from([("r2".into(), 1), ("r3".into(), 2)])),
            panics: Mutex::new(vec!["r4".into()]),
            ..MadeUp::default()
        };
        let tally = run(&engine, &lab(runs), place.path(), &Jobs::default(), everything);
        assert_eq!((tally.finished.len(), tally.retried), (runs - 1, 2), "r2 and r4 at the second attempt");
        assert_eq!(tally.failed, [("sim-r3".to_owned(), "made to fail".to_owned())]);
        assert_eq!(engine.begun.load(Ordering::Relaxed), runs + 3);
        let without_r3 = (1..=runs as u32).filter(|repeat| *repeat != 3);
        assert_eq!(used(place.path()), expected(without_r3));
        // The same command again runs the missing runs.
        let tally = run(&engine, &lab(runs), place.path(), &Jobs::default(), everything);
        assert_eq!((tally.kept, tally.finished.len()), (runs - 1, 1));
    }
}

#[test]
fn a_panic_without_retries_is_a_failure_with_the_panics_message() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp { panics: Mutex::new(vec!["r1".into()]), ..MadeUp::default() };
    let tally = run(&engine, &lab(2), place.path(), &Jobs { retries: 0, ..Jobs::default() }, everything);
    assert_eq!(tally.failed, [("sim-r1".to_owned(), "weir itself failed: made to panic".to_owned())]);
    assert_eq!(tally.finished.len(), 1);
}

#[test]
fn selected_runs_can_be_repeated_and_the_others_stay() {
    for runs in [5, 201] {
        let place = tempfile::tempdir().unwrap();
        run(&MadeUp::default(), &lab(runs), place.path(), &Jobs::default(), everything);
        let before = files(place.path());
        let engine = MadeUp::default();
        let tally = rerun(&engine, &lab(runs), place.path(), &[1, 2]);
        assert_eq!((tally.finished.len(), tally.kept, engine.begun.into_inner()), (2, runs - 2, 2));
        assert!(files(place.path()) == before, "one seed, one result");
    }
}

#[test]
fn records_of_shards_come_back_run_by_run_and_all_at_once() {
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab(201), place.path(), &Jobs { threads: 2, ..Jobs::default() }, everything);
    let results = Results::open(place.path()).unwrap();
    let busy = |records: &Records| records.links.iter().map(|link| link.sent_bytes[0]).sum::<u64>();
    let each = |_: usize, run: &FinishedRun, records: &Records| {
        Ok::<_, weir_engine::ResultsError>((run.file.run.repeat, busy(records)))
    };
    let all = results.each(|_| true, each).unwrap();
    assert_eq!(all, (1..=201).map(|repeat| (repeat, 12_500 * u64::from(repeat % 100))).collect::<Vec<_>>());
    let some = results.each(|run| run % 100 == 7, each).unwrap();
    assert_eq!(some, [(8, 100_000), (108, 100_000)]);
    assert!(results.runs[70].location.folder().ends_with("sim-0001"), "the seventh of the second shard");
    assert_eq!(busy(&results.runs[70].records().unwrap()), 12_500 * 71);
    // The first run that needs the damaged file reports it.
    std::fs::write(results.runs[70].location.folder().join("links.parquet"), "torn").unwrap();
    let error = results.each(|_| true, each).unwrap_err().to_string();
    assert!(error.contains("sim-r65") && error.contains("links.parquet"), "{error}");
}

#[test]
fn levels_can_be_put_in_another_order() {
    let text = "format = 1\n[run]\nrepeats = 2\nduration = '1 s'\nwarmup = '0 s'\n[dumbbell]\nrate = '10 Mbit/s'\n\
                rtt = '20 ms'\n[traffic.a]\n[vary]\n'dumbbell.rtt' = ['20 ms', '10 ms']\n\
                'traffic.a.cc' = ['cubic', 'newreno']\n";
    let lab = Lab::from_str(text, "two.toml", Path::new("."), &[]).unwrap();
    let place = tempfile::tempdir().unwrap();
    run(&MadeUp::default(), &lab, place.path(), &Jobs::default(), everything);
    let mut results = Results::open(place.path()).unwrap();
    results.reorder(&["traffic.a.cc".into()]).unwrap();
    let told: Vec<String> = results
        .runs
        .iter()
        .map(|run| {
            let values: Vec<_> = run.info.params.iter().map(|param| param.value.as_str()).collect();
            format!("{} {}", values.join(" "), run.file.run.repeat)
        })
        .collect();
    let expected = [
        "cubic 20 ms 1",
        "cubic 20 ms 2",
        "cubic 10 ms 1",
        "cubic 10 ms 2",
        "newreno 20 ms 1",
        "newreno 20 ms 2",
        "newreno 10 ms 1",
        "newreno 10 ms 2",
    ];
    assert_eq!(told, expected);
    assert_eq!(results.reorder(&["queue".into()]), Err("queue".into()));
    assert_eq!(results.reorder(&["traffic.a.cc".into(), "traffic.a.cc".into()]), Err("traffic.a.cc".into()));
    assert_eq!(results.runs[0].info.duration, Span::from_secs(1));
}
