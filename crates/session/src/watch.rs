//! Follows a tree of runs while it is under way: what is shown of it, and the growing report.

use crate::completion::Completion;
use crate::show::Show;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_engine::{Cell, FinishedRun, Outcome, Progress, Results};
use weir_plan::Lab;
use weir_record::{Records, RunSummary, View};
use weir_report::Growing;

/// Shortest interval between two writes of the index.
const INTERVAL: Duration = Duration::from_secs(10);
/// The interval is also at least this many times as long as a write takes, so that 2 % of the time goes into it at most.
const SHARE: u32 = 50;

/// Watches over a tree of runs.
pub(crate) struct Watch<'a> {
    runs: Completion,
    show: &'a dyn Show,
    lab: &'a Lab,
    folder: PathBuf,
    report: Option<Growing>,
    /// Summaries of the runs that ended in this session with their records at hand, by id.
    summaries: Mutex<HashMap<String, RunSummary>>,
    /// Ids of runs that were read from disk for the index.
    shown: Mutex<HashSet<String>>,
    /// Whether cells are left as they are, so that earlier sessions may have finished them.
    kept: AtomicBool,
    /// Whether the runs that earlier sessions left in shards are in the index.
    caught_up: AtomicBool,
    next: Mutex<Instant>,
}

impl<'a> Watch<'a> {
    /// A watch over the cells of a lab, whose results go to a folder. `live` is the number of live runs side by side.
    pub(crate) fn new(
        lab: &'a Lab,
        cells: &[Cell<'_>],
        live: usize,
        folder: PathBuf,
        report: Option<Growing>,
        show: &'a dyn Show,
    ) -> Watch<'a> {
        let time = |cell: &Cell<'_>| {
            let time = Duration::from_nanos(cell.run.duration.as_nanos());
            cell.engine.runs_alone().then_some(time / u32::try_from(live).unwrap_or(u32::MAX))
        };
        Watch {
            runs: Completion::new(&cells.iter().map(time).collect::<Vec<_>>()),
            show,
            lab,
            folder,
            report,
            summaries: Mutex::default(),
            shown: Mutex::default(),
            kept: AtomicBool::new(false),
            caught_up: AtomicBool::new(false),
            next: Mutex::new(Instant::now() + INTERVAL),
        }
    }

    /// Ends what is shown. Returns the report as far as it has grown, and the summaries of runs by id.
    pub(crate) fn end(self) -> (Option<Growing>, HashMap<String, RunSummary>) {
        self.show.ended();
        (self.report, self.summaries.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn summaries(&self) -> MutexGuard<'_, HashMap<String, RunSummary>> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, HashSet<String>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the runs that are on disk to the index, if they are not in it yet. A run that is being repeated may be read in its
    /// old state, so these summaries are not kept for the end.
    fn catch_up(&self, report: &Growing) {
        // A lab in shards reports every run as it ends: only the runs of earlier sessions are left to read.
        let told = !self.summaries().is_empty();
        let older = self.kept.load(Ordering::Relaxed);
        if told && (!older || self.caught_up.swap(true, Ordering::Relaxed)) {
            return;
        }
        // Runs that cannot be read now are reported at the end.
        let Ok(results) = Results::of_lab(&self.folder, self.lab.clone()) else { return };
        let known: Vec<bool> = {
            let (summaries, shown) = (self.summaries(), self.shown());
            let known = |id: &String| summaries.contains_key(id) || shown.contains(id);
            results.runs.iter().map(|run| known(&run.file.id)).collect()
        };
        let _ = results.each(
            |run| !known[run],
            |_, run, records| {
                let summary = run.summarise(records, None);
                report.join(run, &summary);
                self.shown().insert(summary.id);
                Ok::<(), weir_engine::ResultsError>(())
            },
        );
    }
}

impl Progress for Watch<'_> {
    fn share(&self, cell: usize, share: f64) {
        self.runs.reach(cell, share);
        self.show.changed(&self.runs);
    }

    fn kept(&self, cell: usize) {
        self.kept.store(true, Ordering::Relaxed);
        self.runs.kept(cell);
    }

    fn ended(&self, cell: usize, outcome: Result<&Outcome, &str>) {
        self.runs.ended(cell, outcome.is_ok());
        self.show.changed(&self.runs);
    }

    fn recorded(&self, run: &FinishedRun, records: &Records) {
        let view = View::after(run.info.warmup, &run.info, records);
        let summary = run.summary(&view, records);
        if let Some(report) = &self.report {
            report.join_with_series(run, &summary, &view, records);
        }
        self.summaries().insert(summary.id.clone(), summary);
    }

    fn tick(&self) {
        self.show.tick(&self.runs);
        let Some(report) = &self.report else { return };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        if began < *next {
            return;
        }
        self.catch_up(report);
        // If the index cannot be written now, this is tried again later, and reported at the end.
        let _ = report.refresh();
        *next = Instant::now() + INTERVAL.max(began.elapsed() * SHARE);
    }
}
