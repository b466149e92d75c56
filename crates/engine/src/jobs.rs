//! Runs of a lab side by side: simulated runs on as many threads as asked for, live runs one at a time by default. A run
//! that fails or panics is tried again, then reported; the other runs go on.

use crate::capture::Capture;
use crate::cores::helper;
use crate::error::FolderError;
use crate::folder::ResultFolder;
use crate::location::RunLocation;
use crate::results::FinishedRun;
use crate::run_file::{RunFile, cell_id};
use crate::shards::{Shards, shard_size};
use crate::{Engine, EngineError, Outcome, Watch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_base::Raised;
use weir_plan::Run;
use weir_record::{Gathered, ParquetRecorder, Recorder, Records};

/// A run on an engine.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The run.
    pub run: &'a Arc<Run>,
    /// The run's index in the lab's tree.
    pub number: usize,
    /// Whether this session is to run it; otherwise its results stay as they are.
    pub wanted: bool,
}

/// Settings of a session.
#[derive(Debug, Clone, Copy)]
pub struct Jobs<'a> {
    /// Number of simulated runs side by side.
    pub threads: usize,
    /// Number of live runs side by side: more than one only if their links are so slow that they hardly load the machine.
    pub live: usize,
    /// Capture the packets of the links of these names, each in `<link>.pcap` beside the records.
    pub capture: &'a [String],
    /// How often a failed run is tried again; a run that failed with [`EngineError::Command`] never is.
    pub retries: u32,
    /// Whether the finished runs of an unfinished shard are written each second, so that a killed session keeps them.
    pub saves: bool,
}

impl Default for Jobs<'_> {
    /// One run after the other; a failed run is tried once more, and finished runs are written each second.
    fn default() -> Self {
        Jobs { threads: 1, live: 1, capture: &[], retries: 1, saves: true }
    }
}

/// The outcome of a session.
#[derive(Debug, Default)]
pub struct Tally {
    /// The runs that this session finished, in the order in which they ended.
    pub finished: Vec<FinishedRun>,
    /// Number of runs that the folder held already.
    pub kept: usize,
    /// Number of runs that failed at first and succeeded when they were tried again.
    pub retried: usize,
    /// Runs that failed: id and reason.
    pub failed: Vec<(String, String)>,
    /// The error of a member that a program had added, which ended the session.
    pub raised: Option<Raised>,
    /// Whether the session was cancelled.
    pub cancelled: bool,
}

/// Receives the progress of a session's runs, from several threads. `cell` is an index in the session's list of cells.
pub trait Progress: Sync {
    /// A share in `[0, 1]` of this cell's run is done.
    fn share(&self, cell: usize, share: f64);
    /// This cell's run is in the folder already, or is not wanted.
    fn kept(&self, _cell: usize) {}
    /// This cell's run has ended: its outcome, or the reason of its failure.
    fn ended(&self, cell: usize, outcome: Result<&Outcome, &str>);
    /// A run is finished, and its records are still in memory.
    fn recorded(&self, _run: &FinishedRun, _records: &Records) {}
    /// Called now and then, while no run that must have the machine for itself is under way.
    fn tick(&self) {}
}

/// Period of [`Progress::tick`], and of writing shards that hold unsaved runs.
const TICK: Duration = Duration::from_millis(250);

/// Runs all cells that are wanted and not in the folder yet. Live cells run after the simulated ones, `jobs.live` at a time.
/// The runs of large labs are kept in shards; each run of another lab has a folder of its own.
///
/// # Errors
/// The folder holds runs that must not be mixed with these, or a shard cannot be written.
pub fn run_all(
    cells: &[Cell<'_>],
    folder: &ResultFolder,
    jobs: &Jobs<'_>,
    cancel: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Tally, FolderError> {
    // Captures are files beside a run's records: these runs need folders of their own.
    let size = shard_size(cells).filter(|_| jobs.capture.is_empty());
    run_with(cells, size, folder, jobs, cancel, progress)
}

/// The same for cells that may be a part of the tree, whose shards have this many runs; without a size each run has a folder of its
/// own.
pub(crate) fn run_with(
    cells: &[Cell<'_>],
    size: Option<usize>,
    folder: &ResultFolder,
    jobs: &Jobs<'_>,
    cancel: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Tally, FolderError> {
    let mut tally = Tally::default();
    let mut waiting = vec![];
    for (index, cell) in cells.iter().enumerate() {
        let there = folder.holds(cell.engine.name(), cell.run)?;
        if cell.wanted && !there {
            waiting.push(index);
        } else {
            tally.kept += usize::from(there);
            progress.kept(index);
        }
    }
    let shards = size.map(|size| Shards::new(cells, size, folder, &waiting));
    let (alone, together): (Vec<usize>, Vec<usize>) =
        waiting.into_iter().partition(|&index| cells[index].engine.runs_alone());
    let session = Session {
        cells,
        folder,
        jobs,
        shards,
        cancel,
        progress,
        tally: Mutex::new(tally),
        broken: Mutex::new(None),
    };
    session.run(&together, jobs.threads);
    session.run(&alone, jobs.live);
    if let Some(shards) = &session.shards {
        session.noted(shards.save(true));
    }
    if let Some(error) = session.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut tally = session.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.cancelled = cancel.load(Ordering::Relaxed);
    tally.failed.sort();
    Ok(tally)
}

/// What the threads of a session share.
struct Session<'a> {
    cells: &'a [Cell<'a>],
    folder: &'a ResultFolder,
    jobs: &'a Jobs<'a>,
    shards: Option<Shards>,
    cancel: &'a AtomicBool,
    progress: &'a dyn Progress,
    tally: Mutex<Tally>,
    /// The first error of writing results, which ends the session.
    broken: Mutex<Option<FolderError>>,
}

impl Session<'_> {
    /// Runs the cells at these indices of the list on this many threads.
    fn run(&self, indices: &[usize], threads: usize) {
        let threads = threads.clamp(1, indices.len().max(1));
        let next = AtomicUsize::new(0);
        let watched =
            indices.len() > 1 && !indices.iter().any(|&index| self.cells[index].engine.runs_alone());
        // Whether a separate thread saves shards and reports progress. If the system grants none, the workers do.
        let attended = AtomicBool::new(true);
        let look = || {
            if let Some(shards) = self.shards.as_ref().filter(|_| self.jobs.saves) {
                self.noted(shards.save(false));
            }
            self.progress.tick();
        };
        let work = || {
            let mut records = Records::default();
            while let Some(&index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.cancel.load(Ordering::Relaxed) || self.broken().is_some() {
                    break;
                }
                self.cell(index, &mut records);
                if self.cells[index].engine.runs_alone() && threads == 1 {
                    self.progress.tick();
                } else if watched && !attended.load(Ordering::Relaxed) {
                    look();
                }
            }
        };
        let over = AtomicBool::new(false);
        let keep = || {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                look();
            }
        };
        std::thread::scope(|scope| {
            // The first worker is this thread: a single run costs no thread.
            let keeper = if watched { helper(scope, keep) } else { None };
            attended.store(keeper.is_some(), Ordering::Relaxed);
            let others: Vec<_> = (1..threads).filter_map(|_| helper(scope, work)).collect();
            work();
            for other in others {
                if let Err(panic) = other.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            over.store(true, Ordering::Relaxed);
            if let Some(keeper) = keeper {
                keeper.thread().unpark();
            }
        });
    }

    /// Runs one cell, again if it fails, and reports its end. `room` is the thread's buffer for the records of one run.
    fn cell(&self, index: usize, room: &mut Records) {
        let mut attempt = 0;
        let result = loop {
            match self.attempt(index, room) {
                Err(EngineError::Failed(_)) if attempt < self.jobs.retries && !self.cancelled() => {
                    attempt += 1
                }
                result => break result,
            }
        };
        let cell = &self.cells[index];
        if let (Err(_), Some(shards)) = (&result, &self.shards) {
            self.noted(shards.given_up(index));
        }
        let tally = || self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(run) => {
                self.progress.ended(index, Ok(&run.file.outcome));
                let mut tally = tally();
                tally.retried += usize::from(attempt > 0);
                tally.finished.push(run);
            }
            Err(EngineError::Cancelled) => {}
            Err(EngineError::Raised(raised)) => {
                tally().raised.get_or_insert(raised);
                self.cancel.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                let reason = error.to_string();
                self.progress.ended(index, Err(&reason));
                tally().failed.push((cell_id(cell.engine.name(), &cell.run.id), reason));
            }
        }
    }

    fn attempt(&self, index: usize, room: &mut Records) -> Result<FinishedRun, EngineError> {
        match &self.shards {
            Some(shards) => self.for_shard(index, shards, room),
            None => self.for_folder(index),
        }
    }

    /// Runs a cell whose records go to its shard.
    fn for_shard(
        &self,
        index: usize,
        shards: &Shards,
        room: &mut Records,
    ) -> Result<FinishedRun, EngineError> {
        room.clear();
        let outcome = guarded(|| self.drive(index, room, None, None))?;
        let file = self.describe(index, outcome);
        let finished =
            FinishedRun::new(self.cells[index].number, Arc::clone(&file), shards.location_of(index));
        // Its records are not on disk yet.
        self.progress.recorded(&finished, room);
        shards.finished(index, file, Gathered::from(&*room)).map_err(|error| {
            let reason = error.to_string();
            self.noted(Err(error));
            EngineError::Failed(reason)
        })?;
        Ok(finished)
    }

    /// Runs a cell whose records have a folder of their own.
    fn for_folder(&self, index: usize) -> Result<FinishedRun, EngineError> {
        let Cell { engine, run, number, .. } = self.cells[index];
        let engine = engine.name();
        let path = self.folder.begin(engine, run).map_err(failed)?;
        let mut records = None;
        let outcome = guarded(|| {
            let mut recorder = ParquetRecorder::create(&path).map_err(failed)?;
            let capture = Capture::of_links(run, self.jobs.capture, &path)?;
            let outcome = self.drive(index, &mut recorder, capture.clone(), Some(&path))?;
            records = recorder.finish().map_err(failed)?;
            if let Some(capture) = capture {
                capture.finish().map_err(failed)?;
            }
            Ok(outcome)
        });
        let outcome = outcome.inspect_err(|_| self.folder.abandon(engine, run))?;
        let file = self.describe(index, outcome);
        let path = self.folder.commit(&file).map_err(failed)?;
        let finished = FinishedRun::new(number, file, RunLocation::Folder(path));
        if let Some(records) = records {
            self.progress.recorded(&finished, &records);
        }
        Ok(finished)
    }

    /// The description of a cell's run that has just ended.
    fn describe(&self, index: usize, outcome: Outcome) -> Arc<RunFile> {
        let Cell { engine, run, .. } = self.cells[index];
        Arc::new(self.folder.describe(engine.name(), Arc::clone(run), outcome))
    }

    fn drive(
        &self,
        index: usize,
        recorder: &mut dyn Recorder,
        capture: Option<Capture>,
        folder: Option<&Path>,
    ) -> Result<Outcome, EngineError> {
        let share = |share| self.progress.share(index, share);
        let watch = Watch { cancel: self.cancel, progress: &share, capture, folder };
        let Cell { engine, run, .. } = self.cells[index];
        let mut outcome = engine.run(run, recorder, &watch)?;
        outcome.prototypes = run.prototypes().iter().map(|named| named.prototype.to_string()).collect();
        outcome.warnings.splice(..0, run.warnings());
        Ok(outcome)
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn broken(&self) -> MutexGuard<'_, Option<FolderError>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first error of writing results.
    fn noted(&self, result: Result<(), FolderError>) {
        if let Err(error) = result {
            self.broken().get_or_insert(error);
        }
    }
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}

/// Turns a panic of the engine into a failure of its run, and the error of an added member into that error.
fn guarded(run: impl FnOnce() -> Result<Outcome, EngineError>) -> Result<Outcome, EngineError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let panic = match panic.downcast::<Raised>() {
            Ok(raised) => return Err(EngineError::Raised(*raised)),
            Err(panic) => panic,
        };
        let said =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(EngineError::Failed(format!("weir itself failed: {}", said.unwrap_or("no reason given"))))
    })
}
