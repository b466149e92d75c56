//! The shards of a lab of many runs while it runs. The tree alone determines the runs of a shard, and a shard holds them in
//! the order of the tree: the same lab makes the same files, however many runs go side by side. A shard is written when all
//! its runs have ended. Until then its finished runs are written each second: a killed session loses at most a second of
//! finished runs, and an interrupted one none.

use crate::Cell;
use crate::error::FolderError;
use crate::folder::ResultFolder;
use crate::location::{RunLocation, read_shard, replace_shard};
use crate::run_file::{RunFile, cell_id};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use weir_plan::Run;
use weir_record::Gathered;

/// Labs of more runs than this are kept in shards (design, section 6).
pub const MOST_FOLDERS: usize = 200;
/// Largest number of runs of a shard.
const MOST_RUNS: u64 = 64;
/// Approximate limit of a shard's rows in memory (about 50 MB).
const MOST_ROWS: u64 = 400_000;
/// How long a finished run may wait to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// Number of runs in a shard of all cells of a tree. `None` if each run has a folder of its own: if the lab is small, if its runs
/// are so large that they are better written as they go, if packets are recorded, or if commands leave files beside the records.
pub fn shard_size(cells: &[Cell<'_>]) -> Option<usize> {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *runs.entry(cell.engine.name()).or_default() += 1);
    let many = runs.values().any(|&runs| runs > MOST_FOLDERS);
    let commands = |cell: &Cell<'_>| cell.run.groups.iter().any(|group| group.workload.command().is_some());
    if !many || cells.iter().any(|cell| cell.run.packets || commands(cell)) {
        return None;
    }
    let rows = cells.iter().map(|cell| rows(cell.run)).max().unwrap_or(1);
    let size = (MOST_ROWS / rows.max(1)).min(MOST_RUNS);
    (size > 1).then_some(size as usize)
}

/// Approximate number of rows in all of a run's tables: a few for each link and each flow in each sample period.
fn rows(run: &Run) -> u64 {
    /// Rows of a link: counters, sojourn times of two classes, and the states of a queue.
    const OF_A_LINK: u64 = 7;
    /// Rows of a flow: counters, the transport's state, and the controller's.
    const OF_A_FLOW: u64 = 6;
    let periods = run.duration.as_nanos().div_ceil(run.sample.as_nanos().max(1));
    let links = run.instrumented_links().count() as u64;
    let each = OF_A_LINK * links + OF_A_FLOW * run.flows.len() as u64 + run.groups.len() as u64;
    periods.saturating_mul(each)
}

/// The name of the shard that holds the run of this number in the tree, if shards have this many runs.
pub(crate) fn name(engine: &str, size: usize, number: usize) -> String {
    format!("{engine}-{:04}", number / size)
}

/// All shards of a session.
pub(crate) struct Shards {
    shards: Vec<Mutex<Shard>>,
    /// For each cell, the index of its shard.
    of: Vec<usize>,
}

struct Shard {
    folder: Arc<Path>,
    /// Number of runs that have not ended yet.
    waiting: usize,
    /// The finished runs, by the indices of their cells.
    runs: BTreeMap<usize, (Arc<RunFile>, Gathered)>,
    /// The runs of earlier sessions that are on disk and were not read yet: the indices of their cells, by id.
    before: HashMap<String, usize>,
    /// Since when a finished run has waited to be written; `None` if all are written.
    unsaved: Option<Instant>,
}

impl Shards {
    /// The shards of these cells, which may be a part of the tree; `waiting` holds the indices of the cells that are still to be run.
    pub(crate) fn new(cells: &[Cell<'_>], size: usize, folder: &ResultFolder, waiting: &[usize]) -> Shards {
        let mut shards: Vec<Mutex<Shard>> = Vec::new();
        let mut of = Vec::with_capacity(cells.len());
        let mut known: HashMap<String, usize> = HashMap::new();
        for cell in cells {
            let name = name(cell.engine.name(), size, cell.number);
            let path = folder.path().join("runs").join(&name);
            let shard = *known.entry(name).or_insert(shards.len());
            if shard == shards.len() {
                shards.push(Mutex::new(Shard {
                    folder: path.into(),
                    waiting: 0,
                    runs: BTreeMap::new(),
                    before: HashMap::new(),
                    unsaved: None,
                }));
            }
            of.push(shard);
        }
        let new = Shards { shards, of };
        new.count(waiting);
        new.look_back(cells, folder);
        new
    }

    /// Counts the runs that each shard waits for.
    fn count(&self, waiting: &[usize]) {
        for &index in waiting {
            self.shard(index).waiting += 1;
        }
    }

    /// Notes the runs of earlier sessions in the shards.
    fn look_back(&self, cells: &[Cell<'_>], folder: &ResultFolder) {
        for (index, cell) in cells.iter().enumerate() {
            let Some(RunLocation::Shard(path)) = folder.location(cell.engine.name(), cell.run) else {
                continue;
            };
            let mut shard = self.shard(index);
            if **path == *shard.folder {
                shard.before.insert(cell_id(cell.engine.name(), &cell.run.id), index);
            }
        }
    }

    fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[self.of[index]].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Where the records of a finished run are.
    pub(crate) fn location_of(&self, index: usize) -> RunLocation {
        RunLocation::Shard(Arc::clone(&self.shard(index).folder))
    }

    /// Adds a finished run to its shard, which is written if the run was its last.
    pub(crate) fn finished(
        &self,
        index: usize,
        file: Arc<RunFile>,
        records: Gathered,
    ) -> Result<(), FolderError> {
        let mut shard = self.shard(index);
        shard.look_back()?;
        shard.runs.insert(index, (file, records));
        shard.unsaved.get_or_insert_with(Instant::now);
        shard.ended()
    }

    /// Notes that a run has failed or was cancelled.
    pub(crate) fn given_up(&self, index: usize) -> Result<(), FolderError> {
        self.shard(index).ended()
    }

    /// Writes the shards whose finished runs have waited for [`PATIENCE`], or all that hold unwritten runs if `all` is set.
    pub(crate) fn save(&self, all: bool) -> Result<(), FolderError> {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if shard.unsaved.is_some_and(|since| all || since.elapsed() >= PATIENCE) {
                shard.write()?;
            }
        }
        Ok(())
    }
}

impl Shard {
    /// Reads the runs of earlier sessions.
    fn look_back(&mut self) -> Result<(), FolderError> {
        let before = std::mem::take(&mut self.before);
        if before.is_empty() {
            return Ok(());
        }
        for run in read_shard(&self.folder)? {
            if let Some(index) = before.get(&run.file.id) {
                self.runs.entry(*index).or_insert((run.file.into(), run.records));
            }
        }
        Ok(())
    }

    /// Counts one run as ended; writes the shard after the last.
    fn ended(&mut self) -> Result<(), FolderError> {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting > 0 {
            return Ok(());
        }
        if self.unsaved.is_some() {
            self.write()?;
        }
        self.runs.clear();
        Ok(())
    }

    fn write(&mut self) -> Result<(), FolderError> {
        let runs: Vec<_> = self.runs.values().map(|(file, records)| (&**file, records)).collect();
        replace_shard(&self.folder, &runs)?;
        self.unsaved = None;
        Ok(())
    }
}
