//! What goes on while a tree of runs is under way: the line of progress, and the report, which grows.

use crate::progress::Line;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_engine::{FinishedRun, Outcome, Progress, Results};
use weir_plan::Lab;
use weir_record::{Records, RunSummary, View};
use weir_report::Growing;

/// How often the index is written anew, at least.
const INTERVAL: Duration = Duration::from_secs(10);
/// The share of the time that goes into it, at most.
const SHARE: u32 = 50;

/// Watches over a tree of runs.
pub(crate) struct Watch<'a> {
    line: Line,
    lab: &'a Lab,
    folder: PathBuf,
    report: Option<Growing>,
    /// Of runs that ended now and whose records were at hand, by id.
    summaries: Mutex<HashMap<String, RunSummary>>,
    /// Ids of runs that were read from disk for the index.
    shown: Mutex<HashSet<String>>,
    /// Whether cells are left as they are, so that earlier sessions may have finished them.
    kept: AtomicBool,
    /// Whether what earlier sessions left in shards is in the index.
    caught_up: AtomicBool,
    next: Mutex<Instant>,
}

impl<'a> Watch<'a> {
    /// A watch over so many cells of a lab, whose results go to a folder.
    pub(crate) fn new(lab: &'a Lab, cells: usize, folder: PathBuf, report: Option<Growing>) -> Watch<'a> {
        Watch {
            line: Line::new(cells),
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

    /// The line goes; what is left is the report as far as it has grown, and the summaries of runs by id.
    pub(crate) fn end(self) -> (Option<Growing>, HashMap<String, RunSummary>) {
        self.line.clear();
        (self.report, self.summaries.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn summaries(&self) -> MutexGuard<'_, HashMap<String, RunSummary>> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, HashSet<String>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the runs that are on disk and are not in the index yet. One that is run again may be read as it was before, so
    /// nothing of this is kept for the end.
    fn catch_up(&self, report: &Growing) {
        // A lab that is kept in shards tells of every run as it ends: what earlier sessions left is all that there is to read.
        let told = !self.summaries().is_empty();
        let older = self.kept.load(Ordering::Relaxed);
        if told && (!older || self.caught_up.swap(true, Ordering::Relaxed)) {
            return;
        }
        // What cannot be read now is told when the report is made at the end.
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
        self.line.share(cell, share);
    }

    fn kept(&self, _cell: usize) {
        self.kept.store(true, Ordering::Relaxed);
        self.line.kept();
    }

    fn ended(&self, cell: usize, outcome: Result<&Outcome, &str>) {
        self.line.ended(cell, outcome.is_ok());
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
        self.line.tick();
        let Some(report) = &self.report else { return };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        if began < *next {
            return;
        }
        self.catch_up(report);
        // An index that cannot be written now is tried again later, and told of at the end.
        let _ = report.refresh();
        *next = Instant::now() + INTERVAL.max(began.elapsed() * SHARE);
    }
}
