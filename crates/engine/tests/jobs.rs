//! A tree of runs on a made-up engine: what is kept, in which files, and what a failure, a panic or an interruption leaves.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use weir_base::{Bytes, Span, Time};
use weir_engine::{
    Cell, Engine, EngineError, FinishedRun, Jobs, MOST_FOLDERS, Outcome, Place, Progress, ResultFolder,
    Results, ResultsError, Tally, Watch, run_all,
};
use weir_plan::{Lab, Run};
use weir_record::{
    FlowSample, LinkSample, Message, MessageFate, MessageKind, Recorder, Records, Table, Value,
};

/// Writes the records of a link that is as busy as the run's repeat, in percent modulo 100.
#[derive(Default)]
struct MadeUp {
    /// Ids of runs that fail, and how often.
    fails: Mutex<BTreeMap<String, usize>>,
    /// Ids of runs whose command fails.
    commands: Vec<String>,
    /// Ids of runs that panic, once.
    panics: Mutex<Vec<String>>,
    /// How many runs were begun.
    begun: AtomicUsize,
    /// Cancels the session in the middle of this one, counted from 1.
    cancel_at: usize,
    /// Wants the machine for itself.
    alone: bool,
    /// Runs that are under way, and the most that were at once; each waits a little for this many.
    under_way: Mutex<[usize; 2]>,
    joined: Condvar,
    waits_for: usize,
}

impl MadeUp {
    /// Counts a run in, and waits for others to be under way, though not for long.
    fn begin(&self) {
        let mut count = self.under_way.lock().unwrap();
        count[0] += 1;
        count[1] = count[1].max(count[0]);
        self.joined.notify_all();
        let few = |count: &mut [usize; 2]| count[1] < self.waits_for;
        drop(self.joined.wait_timeout_while(count, Duration::from_millis(200), few).unwrap());
    }
}

impl Engine for MadeUp {
    fn name(&self) -> &'static str {
        "sim"
    }
    fn runs_alone(&self) -> bool {
        self.alone
    }
    fn check(&self, _: &Run) -> Result<(), EngineError> {
        Ok(())
    }
    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.begin();
        self.under_way.lock().unwrap()[0] -= 1;
        let (link, _) = run.measured_links().next().unwrap();
        for period in 1..=10 {
            let at = Time::from_nanos(period * 100_000_000);
            let sent_bytes = [1250 * u64::from(run.repeat % 100), 0, 0, 0];
            let capacity = Bytes::new(125_000);
            recorder.link(&LinkSample {
                at,
                link: link as u32,
                sent_bytes,
                capacity,
                ..LinkSample::default()
            });
            recorder.flow(&FlowSample { at, read_bytes: 1000, ..FlowSample::default() });
        }
        recorder.message(&message(run.repeat));
        let panics = {
            let mut panics = self.panics.lock().unwrap();
            let before = panics.len();
            panics.retain(|id| *id != run.id);
            panics.len() < before
        };
        assert!(!panics, "made to panic");
        if let Some(left) = self.fails.lock().unwrap().get_mut(&run.id).filter(|left| **left > 0) {
            *left -= 1;
            return Err(EngineError::Failed("made to fail".into()));
        }
        if self.commands.contains(&run.id) {
            return Err(EngineError::Command("ended with status 3".into()));
        }
        if begun == self.cancel_at {
            watch.cancel.store(true, Ordering::Relaxed);
            return Err(EngineError::Cancelled);
        }
        Ok(Outcome::default())
    }
}

/// The one answer of the run of this repeat.
fn message(repeat: u32) -> Message {
    let (at, took) = (Time::from_nanos(1_000_000_000), Some(Span::from_millis(repeat.into())));
    Message {
        at,
        flow: 0,
        kind: MessageKind::Request,
        number: u64::from(repeat),
        fate: MessageFate::Done,
        took,
    }
}

struct Quiet;
impl Progress for Quiet {
    fn share(&self, _: usize, _: f64) {}
    fn ended(&self, _: usize, _: Result<&Outcome, &str>) {}
}

/// A lab of so many runs of a second.
fn lab(runs: usize) -> Lab {
    let text = format!(
        "format = 1\nname = 'tree'\n[run]\nduration = '1 s'\nwarmup = '0 s'\nrepeats = {runs}\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n[traffic.a]\n"
    );
    Lab::from_str(&text, "tree.toml", Path::new("."), &[]).unwrap()
}

fn run(engine: &MadeUp, lab: &Lab, out: &Path, jobs: &Jobs<'_>, wanted: impl Fn(&Run) -> bool) -> Tally {
    let folder = ResultFolder::open(out, lab.source(), "build", false).unwrap();
    let runs = lab.runs();
    let cell = |(number, run)| Cell { engine, run, number, wanted: wanted(run) };
    let cells: Vec<_> = runs.iter().enumerate().map(cell).collect();
    run_all(&cells, &folder, jobs, &AtomicBool::new(false), &Quiet).unwrap()
}

fn everything(_: &Run) -> bool {
    true
}

/// Utilisation of each run, by its repeat.
fn used(out: &Path) -> Vec<(u32, f64)> {
    let summary = Results::open(out).unwrap().summary(None).unwrap();
    let used = |value| match value {
        Value::Number(number) => number,
        other => panic!("{other:?}"),
    };
    summary.runs.iter().map(|run| (run.repeat, used(run.metrics.get("utilisation_percent")))).collect()
}

fn expected(runs: impl IntoIterator<Item = u32>) -> Vec<(u32, f64)> {
    runs.into_iter().map(|repeat| (repeat, f64::from(repeat % 100))).collect()
}

#[test]
fn live_runs_have_the_machine_for_themselves_unless_told_otherwise() {
    let lab = lab(4);
    let most_at_once = |live: usize| {
        let out = tempfile::tempdir().unwrap();
        let engine = MadeUp { alone: true, waits_for: 2, ..MadeUp::default() };
        let tally = run(&engine, &lab, out.path(), &Jobs { threads: 4, live, ..Jobs::default() }, everything);
        assert_eq!(tally.done, 4);
        engine.under_way.into_inner().unwrap()[1]
    };
    assert_eq!((most_at_once(1), most_at_once(2)), (1, 2));
}

/// All files below a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, std::fs::read(path).unwrap());
        }
    }
    found
}

#[test]
fn up_to_two_hundred_runs_have_a_folder_each_and_more_share_shards_of_64() {
    let place = tempfile::tempdir().unwrap();
    for (runs, folders, first) in [(MOST_FOLDERS, 200, "sim-r1"), (MOST_FOLDERS + 1, 4, "sim-0000")] {
        let out = place.path().join(runs.to_string());
        let tally = run(&MadeUp::default(), &lab(runs), &out, &Jobs::default(), everything);
        assert_eq!((tally.done, tally.failed.len()), (runs, 0));
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
    assert_eq!((tally.kept, tally.done, engine.begun.into_inner()), (100, 200, 200));
    assert!(files(&out) == files(&whole));
}

#[test]
fn what_a_killed_session_was_replacing_is_put_back() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    run(&MadeUp::default(), &lab(201), &out, &Jobs::default(), everything);
    // Killed between the two renames: the old shard has made room, the new one is not in its place yet.
    let shard = |name: &str| out.join("runs").join(name);
    std::fs::rename(shard("sim-0002"), shard(".sim-0002.old")).unwrap();
    std::fs::create_dir(shard(".sim-0002")).unwrap();
    let engine = MadeUp::default();
    assert_eq!(run(&engine, &lab(201), &out, &Jobs::default(), everything).kept, 201);
    assert_eq!(engine.begun.into_inner(), 0);
    assert!(!shard(".sim-0002").exists() && !shard(".sim-0002.old").exists());
    assert_eq!(used(&out).len(), 201);
}

#[test]
fn a_run_whose_command_fails_is_not_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp { commands: vec!["r2".into()], ..MadeUp::default() };
    let jobs = Jobs { retries: 5, ..Jobs::default() };
    let tally = run(&engine, &lab(3), place.path(), &jobs, everything);
    assert_eq!((tally.done, tally.retried), (2, 0));
    assert_eq!(tally.failed, [("sim-r2".to_owned(), "ended with status 3".to_owned())]);
    assert_eq!(engine.begun.into_inner(), 3);
}

#[test]
fn what_applications_waited_for_is_read_and_exported_in_both_layouts() {
    let place = tempfile::tempdir().unwrap();
    for runs in [3, MOST_FOLDERS + 1] {
        let out = place.path().join(runs.to_string());
        run(&MadeUp::default(), &lab(runs), &out, &Jobs::default(), everything);
        let results = Results::open(&out).unwrap();
        let read = |_: usize, run: &FinishedRun, records: &Records| {
            Ok::<_, ResultsError>((run.file.run.repeat, records.messages.clone()))
        };
        let read = results.each(&[Table::Messages], |_| true, read).unwrap();
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
fn a_run_that_fails_is_tried_again_and_then_told_and_harms_no_other() {
    for runs in [5, 201] {
        let place = tempfile::tempdir().unwrap();
        let engine = MadeUp {
            fails: Mutex::new(BTreeMap::from([("r2".into(), 1), ("r3".into(), 2)])),
            panics: Mutex::new(vec!["r4".into()]),
            ..MadeUp::default()
        };
        let tally = run(&engine, &lab(runs), place.path(), &Jobs::default(), everything);
        assert_eq!((tally.done, tally.retried), (runs - 1, 2), "r2 and r4 at the second attempt");
        assert_eq!(tally.failed, [("sim-r3".to_owned(), "made to fail".to_owned())]);
        assert_eq!(engine.begun.load(Ordering::Relaxed), runs + 3);
        let without_r3 = (1..=runs as u32).filter(|repeat| *repeat != 3);
        assert_eq!(used(place.path()), expected(without_r3));
        // The same again runs what is missing.
        let tally = run(&engine, &lab(runs), place.path(), &Jobs::default(), everything);
        assert_eq!((tally.kept, tally.done), (runs - 1, 1));
    }
}

#[test]
fn without_retries_a_panic_is_a_failure_that_says_what_it_said() {
    let place = tempfile::tempdir().unwrap();
    let engine = MadeUp { panics: Mutex::new(vec!["r1".into()]), ..MadeUp::default() };
    let tally = run(&engine, &lab(2), place.path(), &Jobs { retries: 0, ..Jobs::default() }, everything);
    assert_eq!(tally.failed, [("sim-r1".to_owned(), "weir itself failed: made to panic".to_owned())]);
    assert_eq!(tally.done, 1);
}

#[test]
fn some_runs_can_be_run_again_and_the_others_stay() {
    for runs in [5, 201] {
        let place = tempfile::tempdir().unwrap();
        run(&MadeUp::default(), &lab(runs), place.path(), &Jobs::default(), everything);
        let before = files(place.path());
        let engine = MadeUp::default();
        let again = Jobs { again: true, ..Jobs::default() };
        let tally = run(&engine, &lab(runs), place.path(), &again, |run| run.repeat < 3);
        assert_eq!((tally.done, tally.kept, engine.begun.into_inner()), (2, runs - 2, 2));
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
    let all = results.each(&Table::ALL, |_| true, each).unwrap();
    assert_eq!(all, (1..=201).map(|repeat| (repeat, 12_500 * u64::from(repeat % 100))).collect::<Vec<_>>());
    let some = results.each(&Table::ALL, |run| run % 100 == 7, each).unwrap();
    assert_eq!(some, [(8, 100_000), (108, 100_000)]);
    assert!(matches!(results.runs[70].place, Place::Shard(_, 6)), "the seventh of the second shard");
    assert_eq!(busy(&results.runs[70].records().unwrap()), 12_500 * 71);
    // What is damaged is told by the first run that needs it.
    std::fs::write(results.runs[70].place.folder().join("links.parquet"), "torn").unwrap();
    let error = results.each(&Table::ALL, |_| true, each).unwrap_err().to_string();
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
