//! A made-up engine that invents its records, and functions that run labs on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use weir_base::{Bytes, Span, Time};
use weir_engine::{
    Asked, Cell, Engine, EngineError, Jobs, Outcome, Progress, ResultFolder, Results, Tally, Watch, run_all,
};
use weir_plan::{Lab, Run};
use weir_record::{FlowSample, LinkCounters, LinkSample, Message, MessageFate, MessageKind, Recorder, Value};

/// Writes the records of a link that is as busy as the run's repeat, in percent modulo 100.
#[derive(Default)]
pub(crate) struct MadeUp {
    /// Ids of runs that fail, and how often.
    pub(crate) fails: Mutex<BTreeMap<String, usize>>,
    /// Ids of runs whose command fails.
    pub(crate) commands: Vec<String>,
    /// Ids of runs that panic, once.
    pub(crate) panics: Mutex<Vec<String>>,
    /// Number of runs that have begun.
    pub(crate) begun: AtomicUsize,
    /// Cancels the session in the middle of this run, counted from 1.
    pub(crate) cancel_at: usize,
    /// Percent that is added to the link's utilisation.
    pub(crate) more: u32,
    /// Whether its runs must have the machine for themselves.
    pub(crate) alone: bool,
    /// Number of runs under way, and the most that were at once; each run waits a little until `waits_for` were.
    pub(crate) under_way: Mutex<[usize; 2]>,
    pub(crate) joined: Condvar,
    pub(crate) waits_for: usize,
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
        let (link, _) = run.instrumented_links().next().unwrap();
        for period in 1..=10 {
            let at = Time::from_nanos(period * 100_000_000);
            let sent_bytes = [1250 * u64::from((run.repeat + self.more) % 100), 0, 0, 0];
            let capacity = Bytes::new(125_000);
            recorder.link(&LinkSample {
                at,
                link: link as u32,
                counters: LinkCounters { sent_bytes, capacity, ..LinkCounters::default() },
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

/// The only answered request of the run with this repeat.
pub(crate) fn message(repeat: u32) -> Message {
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

pub(crate) struct Quiet;
impl Progress for Quiet {
    fn share(&self, _: usize, _: f64) {}
    fn ended(&self, _: usize, _: Result<&Outcome, &str>) {}
}

/// A lab of this many runs, one second each.
pub(crate) fn lab(runs: usize) -> Lab {
    let text = format!(
        "format = 1\nname = 'tree'\n[run]\nduration = '1 s'\nwarmup = '0 s'\nrepeats = {runs}\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n[traffic.a]\n"
    );
    Lab::from_str(&text, "tree.toml", Path::new("."), &[]).unwrap()
}

pub(crate) fn run(
    engine: &MadeUp,
    lab: &Lab,
    out: &Path,
    jobs: &Jobs<'_>,
    wanted: impl Fn(&Run) -> bool,
) -> Tally {
    let folder = ResultFolder::open(out, lab.source(), "build").unwrap();
    run_in(&folder, engine, lab, jobs, wanted)
}

/// Runs those repeats again; the new set takes the place of the old one when it is complete.
pub(crate) fn rerun(engine: &MadeUp, lab: &Lab, out: &Path, repeats: &[u32]) -> Tally {
    let only = repeats.iter().map(|repeat| format!("repeat={repeat}")).collect();
    let asked = Asked { engines: vec!["sim".into()], only };
    let ids: Vec<String> = repeats.iter().map(|repeat| format!("sim-r{repeat}")).collect();
    let asked_for = |id: &str| ids.is_empty() || ids.iter().any(|known| known == id);
    let folder = ResultFolder::rerun(out, lab.source(), "build", &asked, asked_for).unwrap();
    let wanted = |run: &Run| repeats.is_empty() || repeats.contains(&run.repeat);
    let tally = run_in(&folder, engine, lab, &Jobs::default(), wanted);
    if !tally.cancelled && tally.failed.is_empty() {
        folder.complete().unwrap();
    }
    tally
}

pub(crate) fn run_in(
    folder: &ResultFolder,
    engine: &MadeUp,
    lab: &Lab,
    jobs: &Jobs<'_>,
    wanted: impl Fn(&Run) -> bool,
) -> Tally {
    let runs: Vec<Arc<Run>> = lab.runs().into_iter().map(Arc::new).collect();
    let cell = |(number, run)| Cell { engine, run, number, wanted: wanted(run) };
    let cells: Vec<_> = runs.iter().enumerate().map(cell).collect();
    run_all(&cells, folder, jobs, &AtomicBool::new(false), &Quiet).unwrap()
}

pub(crate) fn everything(_: &Run) -> bool {
    true
}

/// Utilisation of each run, by its repeat.
pub(crate) fn used(out: &Path) -> Vec<(u32, f64)> {
    let summary = Results::open(out).unwrap().summary(None).unwrap();
    let used = |value| match value {
        Value::Number(number) => number,
        other => panic!("{other:?}"),
    };
    summary.runs.iter().map(|run| (run.repeat, used(run.metrics.get("utilisation_percent")))).collect()
}

pub(crate) fn expected(runs: impl IntoIterator<Item = u32>) -> Vec<(u32, f64)> {
    runs.into_iter().map(|repeat| (repeat, f64::from(repeat % 100))).collect()
}

/// All files below a folder with their bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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
