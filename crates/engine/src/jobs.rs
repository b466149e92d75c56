//! Runs of a lab side by side: as many at once as there are jobs, live ones alone. A run that fails or panics is reported
//! and harms no other.

use crate::capture::Capture;
use crate::folder::{FolderError, ResultFolder, cell_id};
use crate::{Engine, EngineError, Outcome, Watch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_plan::Run;
use weir_record::ParquetRecorder;

/// A run on an engine.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// Who runs it.
    pub engine: &'a dyn Engine,
    /// What is run.
    pub run: &'a Run,
}

/// What has come of a tree of runs.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs done now.
    pub done: usize,
    /// Runs that were there already.
    pub kept: usize,
    /// Runs that failed: id and reason.
    pub failed: Vec<(String, String)>,
    /// Whether it was told to stop.
    pub cancelled: bool,
}

/// Told about the runs as they go; called from several threads.
pub trait Progress: Sync {
    /// A share in `[0, 1]` of the run of this place in the list is done.
    fn share(&self, cell: usize, share: f64);
    /// The run of this place has ended, well or not.
    fn ended(&self, cell: usize, outcome: Result<&Outcome, &str>);
}

/// Runs all cells that are not in the folder yet. Live cells run one at a time; simulated ones on `jobs` threads. With
/// `capture`, the packets of the link of that name are captured in `<link>.pcap` beside the records.
///
/// # Errors
/// The folder holds runs that must not be mixed with these.
pub fn run_all(
    cells: &[Cell<'_>],
    folder: &ResultFolder,
    jobs: usize,
    capture: Option<&str>,
    cancel: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Tally, FolderError> {
    let mut tally = Tally::default();
    let mut waiting = vec![];
    for (place, cell) in cells.iter().enumerate() {
        if folder.holds(cell.engine.name(), cell.run)? {
            tally.kept += 1;
            progress.share(place, 1.0);
        } else {
            waiting.push(place);
        }
    }
    let (alone, together): (Vec<usize>, Vec<usize>) =
        waiting.into_iter().partition(|&place| cells[place].engine.runs_alone());
    let tally = Mutex::new(tally);
    for (places, threads) in [(together, jobs), (alone, 1)] {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                if cancel.load(Ordering::Relaxed) {
                    break;
                }
                let result = run_cell(&cells[place], place, folder, capture, cancel, progress);
                let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                match &result {
                    Ok(_) => tally.done += 1,
                    Err(EngineError::Cancelled) => continue,
                    Err(error) => {
                        let id = cell_id(cells[place].engine.name(), cells[place].run);
                        tally.failed.push((id, error.to_string()));
                    }
                }
                drop(tally);
                match result {
                    Ok(outcome) => progress.ended(place, Ok(&outcome)),
                    Err(error) => progress.ended(place, Err(&error.to_string())),
                }
            }
        };
        let threads = threads.clamp(1, places.len().max(1));
        std::thread::scope(|scope| {
            // The first worker is this thread: a single run costs no thread.
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }
    let mut tally = tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    tally.cancelled = cancel.load(Ordering::Relaxed);
    tally.failed.sort();
    Ok(tally)
}

fn run_cell(
    cell: &Cell<'_>,
    place: usize,
    folder: &ResultFolder,
    capture: Option<&str>,
    cancel: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Outcome, EngineError> {
    let failed = |error: &dyn std::fmt::Display| EngineError::Failed(error.to_string());
    let engine = cell.engine.name();
    let path = folder.begin(engine, cell.run).map_err(|e| failed(&e))?;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut recorder = ParquetRecorder::create(&path).map_err(|e| failed(&e))?;
        let capture = capture.map(|link| start_capture(cell.run, link, &path)).transpose()?;
        let share = |share| progress.share(place, share);
        let watch = Watch { cancel, progress: &share, capture: capture.clone() };
        let outcome = cell.engine.run(cell.run, &mut recorder, &watch)?;
        recorder.finish().map_err(|e| failed(&e))?;
        if let Some(capture) = capture {
            capture.finish().map_err(|e| failed(&e))?;
        }
        Ok(outcome)
    }));
    let outcome = result.unwrap_or_else(|panic| {
        let said =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(EngineError::Failed(format!("weir itself failed: {}", said.unwrap_or("no reason given"))))
    });
    match outcome {
        Ok(outcome) => {
            folder.commit(engine, cell.run, outcome.clone()).map(|_| outcome).map_err(|e| failed(&e))
        }
        Err(error) => {
            folder.abandon(engine, cell.run);
            Err(error)
        }
    }
}

fn start_capture(run: &Run, link: &str, folder: &Path) -> Result<Capture, EngineError> {
    let Some((index, _)) = run.measured_links().find(|(_, measured)| measured.name == link) else {
        let names: Vec<_> = run.measured_links().map(|(_, measured)| measured.name.as_str()).collect();
        return Err(EngineError::Unable {
            what: format!("there is no link `{link}` to capture"),
            help: format!("the links of this run are {}", names.join(", ")),
        });
    };
    Capture::create(index, &folder.join(format!("{link}.pcap")))
        .map_err(|e| EngineError::Failed(e.to_string()))
}
