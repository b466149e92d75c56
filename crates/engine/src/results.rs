//! A result folder read back: its lab, its runs in the order of the tree, and the summary computed from their records.

mod finished;
mod written;

pub use finished::FinishedRun;
use written::parsed;

use crate::atomic_write::{atomic_write_with, create_folder};
use crate::cores::on_all_cores;
use crate::error::{FolderError, at};
use crate::folder::{ResultFolder, enter, is_results, only_staged};
use crate::location::{self, Found, RunLocation, ShardRun};
use crate::lock::Lock;
use crate::prototypes;
use crate::rerun::{current, unfinished};
use crate::run_file::cell_id;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use weir_base::Span;
use weir_plan::{Diagnostics, Lab};
use weir_record::{
    ENGINES, Frame, Gathered, RecordError, Records, RunSummary, Summary, Table, check_lengths, write_json,
};

/// The version of weir that computes summaries.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Size in bytes of the buffer through which `summary.json` is written: the kernel takes what is still in a core's cache.
const BUFFER: usize = 128 << 10;

/// A folder that holds results.
#[derive(Debug)]
pub struct Results {
    /// The folder.
    pub path: PathBuf,
    /// The lab as it was run.
    pub lab: Lab,
    /// The finished runs, in the order of the tree, the engines of a run side by side.
    pub runs: Vec<FinishedRun>,
    /// Number of runs whose descriptions have no checksum: an older weir wrote them.
    pub unchecked: usize,
}

/// Number of a tree's runs that are finished, and of all that it plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of finished runs.
    pub there: usize,
    /// Number of the tree's runs, for each engine that has finished any.
    pub planned: usize,
}

impl Count {
    /// Whether none is missing.
    pub fn is_complete(self) -> bool {
        self.there == self.planned
    }
}

impl fmt::Display for Count {
    /// `4 runs`, or `22 of 60 runs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { there, planned } = self;
        match self.is_complete() {
            true => write!(f, "{there} run{}", if *there == 1 { "" } else { "s" }),
            false => write!(f, "{there} of {planned} runs"),
        }
    }
}

/// Why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The folder holds no results of weir's.
    #[error("{0} holds no results: a result folder contains lab.toml and runs/")]
    NoResults(String),
    /// A rerun was interrupted before the folder held anything else.
    #[error(
        "{folder} holds only an interrupted --rerun; its finished runs are in the result folder {staging}"
    )]
    Staged {
        /// The folder.
        folder: String,
        /// The rerun's staging folder.
        staging: String,
    },
    /// It holds a run that its lab does not have.
    #[error("{folder}: the run {id} does not belong to the lab in lab.toml")]
    Stranger {
        /// The folder of the run.
        folder: String,
        /// The run.
        id: String,
    },
    /// Its lab cannot be read.
    #[error("the lab of these results cannot be read:\n{0}")]
    Lab(Diagnostics),
    /// Records of a run cannot be read.
    #[error("run {id}: {error}")]
    Records {
        /// The run.
        id: String,
        /// The error of reading.
        error: RecordError,
    },
    /// Writing failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl ResultsError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            ResultsError::NoResults(_) => "give a folder that `weir run` has written",
            ResultsError::Staged { .. } => "repeat the command with --rerun to complete it",
            ResultsError::Stranger { .. } => {
                "restore the lab.toml of these runs, or move that folder out of runs/"
            }
            ResultsError::Lab(_) => "it was written by another version of weir: run the lab again",
            ResultsError::Records { .. } => {
                "restore the file from a copy, or remove that run's folder and run the lab again: this repeats the missing run"
            }
            ResultsError::Folder(error) => error.help(),
        }
    }
}

impl Results {
    /// Reads a folder: the lab, and which of its runs are finished. Records are read later, run by run.
    ///
    /// # Errors
    /// It is not a result folder, or the description of a run cannot be read.
    pub fn open(path: &Path) -> Result<Results, ResultsError> {
        require_results(path)?;
        Results::of_lab(path, lab_of(path)?)
    }

    /// Takes the lock of a result folder, after finishing what an interrupted session left half done.
    ///
    /// # Errors
    /// It is not a result folder, another process writes into it, or it cannot be written.
    pub fn lock(path: &Path) -> Result<Lock, ResultsError> {
        require_results(path)?;
        Ok(enter(path)?.0)
    }

    /// Reads a folder as [`Results::open`] does, with a lab that the caller has read already.
    ///
    /// # Errors
    /// It is not a result folder, or the description of a run cannot be read.
    pub fn of_lab(path: &Path, lab: Lab) -> Result<Results, ResultsError> {
        require_results(path)?;
        let runs = current(path, "runs");
        let mut found = location::find(&runs).map_err(at(&runs))?;
        if !found.faults.is_empty() {
            return Err(FolderError::from(found.faults.swap_remove(0).1).into());
        }
        Results::of_runs(path, lab, &found, vec![])
    }

    /// The results of a session of this lab: the runs that it has finished, and those that were in the folder before. No file
    /// is read.
    ///
    /// # Errors
    /// The folder held a run that the lab does not have.
    pub fn of_session(
        folder: &ResultFolder,
        lab: Lab,
        finished: Vec<FinishedRun>,
    ) -> Result<Results, ResultsError> {
        Results::of_runs(folder.path(), lab, folder.found(), finished)
    }

    /// Merges the runs that were found in a folder with those that were finished since, in the order of the tree.
    fn of_runs(
        path: &Path,
        lab: Lab,
        found: &Found,
        finished: Vec<FinishedRun>,
    ) -> Result<Results, ResultsError> {
        let mut left: HashMap<&str, _> = found.runs.iter().map(|(id, run)| (id.as_str(), run)).collect();
        let mut finished: HashMap<String, FinishedRun> =
            finished.into_iter().map(|run| (run.file.id.clone(), run)).collect();
        let mut runs = vec![];
        for (number, id) in lab.ids().enumerate() {
            for engine in ENGINES {
                let id = cell_id(engine, &id);
                let before = left.remove(id.as_str());
                let before = before
                    .map(|(file, location)| FinishedRun::new(number, Arc::clone(file), location.clone()));
                runs.extend(finished.remove(&id).or(before));
            }
        }
        if let Some((id, (_, location))) = left.into_iter().min_by_key(|(id, _)| *id) {
            let folder = location.folder().display().to_string();
            return Err(ResultsError::Stranger { folder, id: id.into() });
        }
        Ok(Results { path: path.to_owned(), lab, runs, unchecked: found.unchecked })
    }

    /// Number of the tree's runs that are finished, and of all that it plans.
    pub fn count(&self) -> Count {
        let engines = ENGINES.iter().filter(|engine| self.runs.iter().any(|run| run.file.engine == **engine));
        let planned = self.lab.run_count() * engines.count().max(1);
        Count { there: self.runs.len(), planned }
    }

    /// The staging folder of an interrupted rerun, if there is one; its results do not count yet.
    pub fn unfinished_rerun(&self) -> Option<PathBuf> {
        unfinished(&self.path)
    }

    /// Puts the levels of the tree in another order: the named ones first, then the others in their old order. The runs and
    /// their parameters are sorted accordingly.
    ///
    /// # Errors
    /// The name that is no level, or that was given twice.
    pub fn reorder(&mut self, order: &[String]) -> Result<(), String> {
        let levels = self.lab.tree().levels;
        let mut places: Vec<usize> = Vec::new();
        for name in order {
            let named = weir_plan::level_named(levels.iter().map(|(level, _)| level.as_str()), name);
            match levels.iter().position(|(level, _)| Some(level.as_str()) == named) {
                Some(place) if !places.contains(&place) => places.push(place),
                _ => return Err(name.clone()),
            }
        }
        let rest: Vec<usize> = (0..levels.len()).filter(|place| !places.contains(place)).collect();
        places.extend(rest);
        let value = |run: &FinishedRun, level: usize| {
            let chosen = run.info.params.get(level).map(|param| param.value.as_str());
            levels[level].1.iter().position(|label| Some(label.as_str()) == chosen)
        };
        // A stable sort: repeats and engines stay as they were.
        let key = |run: &FinishedRun| places.iter().map(|&level| value(run, level)).collect::<Vec<_>>();
        self.runs.sort_by_cached_key(key);
        for run in &mut self.runs {
            let params = &run.info.params;
            run.info.params = places.iter().filter_map(|&level| params.get(level).cloned()).collect();
        }
        Ok(())
    }

    /// Computes the summary of all runs from their records, after this warm-up; `None` means each run's own.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn summary(&self, warmup: Option<Span>) -> Result<Summary, ResultsError> {
        let summarise = |_: usize, run: &FinishedRun, records: &Records| {
            Ok::<_, ResultsError>(run.summarise(records, warmup))
        };
        Ok(self.gather(self.each(|_| true, summarise)?))
    }

    /// The summary of all runs after their own warm-up that `summary.json` holds; `None` if this version of weir has not written it, if a file
    /// of a run is newer, or if one is missing or has another length.
    pub fn written_summary(&self) -> Option<Summary> {
        let path = current(&self.path, "summary.json");
        let written = location::written(&path)?;
        let folders: BTreeSet<&Path> = self.runs.iter().map(|run| run.location.folder()).collect();
        for folder in folders {
            let as_written = |file: &str| {
                let about = folder.join(file).metadata().ok()?;
                about.modified().is_ok_and(|at| at <= written).then_some(about.len())
            };
            if location::written(folder)? > written || check_lengths(folder, as_written).is_err() {
                return None;
            }
        }
        let summary = parsed(&fs::read(path).ok()?).ok()?;
        let ids = self.runs.iter().map(|run| &run.file.id);
        let is_current = summary.weir_version == VERSION && summary.runs.iter().map(|run| &run.id).eq(ids);
        is_current.then_some(summary)
    }

    /// The summary of all runs after their own warm-up. `known` holds the summaries, by id, that were computed when runs ended.
    ///
    /// # Errors
    /// As [`Results::summary`].
    pub fn summary_with(&self, mut known: HashMap<String, RunSummary>) -> Result<Summary, ResultsError> {
        let missing: Vec<bool> = self.runs.iter().map(|run| !known.contains_key(&run.file.id)).collect();
        let summarise = |_: usize, run: &FinishedRun, records: &Records| {
            Ok::<_, ResultsError>(run.summarise(records, None))
        };
        let read = self.each(|run| missing[run], summarise)?;
        known.extend(read.into_iter().map(|summary| (summary.id.clone(), summary)));
        Ok(self.gather(self.runs.iter().filter_map(|run| known.remove(&run.file.id)).collect()))
    }

    fn gather(&self, mut runs: Vec<RunSummary>) -> Summary {
        weir_record::add_harm(&mut runs);
        let (lab, weir_version) = (self.lab.name().into(), VERSION.into());
        Summary { lab, weir_version, planned_runs: self.count().planned, runs }
    }

    /// Reads the records of all `wanted` runs, each shard once, on all cores, and returns the results of `each` in the order of
    /// the runs. Both closures get a run's index in [`Results::runs`].
    ///
    /// # Errors
    /// The error of the first run, in order, whose records cannot be read or for which `each` failed.
    pub fn each<T: Send, E: From<ResultsError> + Send>(
        &self,
        wanted: impl Fn(usize) -> bool,
        each: impl Fn(usize, &FinishedRun, &Records) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        self.each_unit(wanted, |run, shard| match shard {
            Some(records) => each(run, &self.runs[run], &records.records()),
            None => {
                let finished = &self.runs[run];
                let folder = finished.location.folder();
                let read = Records::read(folder)
                    .and_then(|records| location::still_describes(folder, &finished.file).map(|()| records));
                each(run, finished, &read.map_err(|error| finished.unread(error))?)
            }
        })
    }

    /// Writes the tables of all runs as CSV and JSON, those of each run into a folder below `to` with the run's id.
    ///
    /// # Errors
    /// Records that cannot be read, files that cannot be written.
    pub fn export(&self, to: &Path) -> Result<(), ResultsError> {
        self.each_unit(
            |_| true,
            |run, shard| {
                let finished = &self.runs[run];
                let folder = create_folder(to, &finished.file.id).map_err(at(to))?;
                let exported = match shard {
                    Some(records) => weir_record::export_gathered(records, &folder),
                    None => weir_record::export(finished.location.folder(), &folder),
                };
                exported.map(drop).map_err(|error| finished.unread(error))
            },
        )
        .map(|_: Vec<()>| ())
    }

    /// The rows of a table in the records of all `wanted` runs, in the order of the runs; the closure gets a run's index in
    /// [`Results::runs`].
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn frames(
        &self,
        table: Table,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<(&FinishedRun, Frame)>, ResultsError> {
        self.each_unit(wanted, |run, shard| {
            let finished = &self.runs[run];
            let frame = match shard {
                Some(records) => Frame::of_gathered(records, table),
                None => Frame::of_run(finished.location.folder(), table),
            };
            Ok((finished, frame.map_err(|error| finished.unread(error))?))
        })
    }

    /// Calls `each` for every wanted run, with its records if they are in a shard, or with `None`.
    fn each_unit<T: Send, E: From<ResultsError> + Send>(
        &self,
        wanted: impl Fn(usize) -> bool,
        each: impl Fn(usize, Option<&Gathered>) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let units = self.units(wanted);
        let made: Vec<Mutex<Option<Result<T, E>>>> = self.runs.iter().map(|_| Mutex::new(None)).collect();
        let put = |run: usize, result| {
            *made[run].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result)
        };
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                match unit {
                    Unit::Folder(run) => put(*run, each(*run, None)),
                    Unit::Shard(folder, runs) => match location::read_shard(folder) {
                        Ok(read) => {
                            let read: HashMap<&str, _> =
                                read.iter().map(|run| (run.file.id.as_str(), run)).collect();
                            for &run in runs {
                                let found = read.get(self.runs[run].file.id.as_str()).copied();
                                put(run, self.of_shard(run, found, &each));
                            }
                        }
                        Err(error) => {
                            let Some(&run) = runs.first() else { continue };
                            put(run, Err(self.runs[run].unread(error).into()));
                        }
                    },
                }
            }
        };
        on_all_cores(units.len(), &work);
        // A run without a result is in a shard that could not be read; an earlier run of that shard has the error.
        made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(|p| p.into_inner())).collect()
    }

    fn of_shard<T, E: From<ResultsError>>(
        &self,
        run: usize,
        read: Option<&ShardRun>,
        each: &impl Fn(usize, Option<&Gathered>) -> Result<T, E>,
    ) -> Result<T, E> {
        let finished = &self.runs[run];
        let path = finished.location.folder().to_owned();
        match read {
            Some(read) if read.file == *finished.file => each(run, Some(&read.records)),
            Some(_) => {
                let what = format!("the run {} was replaced while it was read", finished.file.id);
                Err(finished.unread(RecordError::Corrupt { path, what }).into())
            }
            None => Err(finished.unread(RecordError::Missing { path }).into()),
        }
    }

    /// The wanted runs, grouped by what is read at once.
    fn units(&self, wanted: impl Fn(usize) -> bool) -> Vec<Unit<'_>> {
        let mut units = vec![];
        let mut shards: BTreeMap<&Path, usize> = BTreeMap::new();
        for (index, run) in self.runs.iter().enumerate().filter(|(index, _)| wanted(*index)) {
            match &run.location {
                RunLocation::Folder(_) => units.push(Unit::Folder(index)),
                RunLocation::Shard(folder) => {
                    let unit = *shards.entry(folder).or_insert_with(|| {
                        units.push(Unit::Shard(folder, vec![]));
                        units.len() - 1
                    });
                    if let Unit::Shard(_, runs) = &mut units[unit] {
                        runs.push(index);
                    }
                }
            }
        }
        units
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), ResultsError> {
        let path = self.path.join("summary.json");
        let write = |file: &mut File| {
            let mut buffer = BufWriter::with_capacity(BUFFER, file);
            write_json(summary, &mut buffer)?;
            buffer.flush()
        };
        Ok(atomic_write_with(&self.path, "summary.json", write).map_err(at(&path))?)
    }
}

/// The lab of a result folder.
pub(crate) fn lab_of(path: &Path) -> Result<Lab, ResultsError> {
    prototypes::know(path)?;
    Lab::load(&current(path, "lab.toml"), &[]).map_err(ResultsError::Lab)
}

/// Refuses a folder without results. The error names the staging folder if an interrupted rerun is all that there is.
pub(crate) fn require_results(path: &Path) -> Result<(), ResultsError> {
    let folder = || path.display().to_string();
    match (is_results(path), only_staged(path)) {
        (true, _) => Ok(()),
        (false, None) => Err(ResultsError::NoResults(folder())),
        (false, Some(staging)) => {
            Err(ResultsError::Staged { folder: folder(), staging: staging.display().to_string() })
        }
    }
}

/// What is read at once.
enum Unit<'a> {
    /// A run that has a folder of its own.
    Folder(usize),
    /// A shard: its folder, and the indices of its runs in [`Results::runs`].
    Shard(&'a Path, Vec<usize>),
}
