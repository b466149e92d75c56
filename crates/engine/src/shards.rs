//! The shards of a lab of many runs while it runs. Which runs make a shard depends on the tree alone, and a shard holds them
//! in the order of the tree, so that the same lab makes the same files however many runs go side by side. A shard is
//! written when all its runs have ended; until then what it holds is written each second, so that a session that is killed
//! loses a second of finished runs at most, and one that is interrupted none.

use crate::Cell;
use crate::error::FolderError;
use crate::folder::ResultFolder;
use crate::place::{Place, read_shard, replace_shard};
use crate::run_file::{RunFile, cell_id};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use weir_plan::Run;
use weir_record::Gathered;

/// Labs of more runs than this are kept in shards (design, section 6).
pub const MOST_FOLDERS: usize = 200;
/// Most runs of a shard.
const MOST_RUNS: u64 = 64;
/// About so many rows may a shard have in memory: some 50 MB.
const MOST_ROWS: u64 = 400_000;
/// How long a finished run may wait for its shard.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many runs make a shard of these cells; none where each run has a folder of its own: in small labs, in those whose
/// runs are so large that they are better written as they go, and where packets are recorded.
pub(crate) fn size(cells: &[Cell<'_>]) -> Option<usize> {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *runs.entry(cell.engine.name()).or_default() += 1);
    let many = runs.values().any(|&runs| runs > MOST_FOLDERS);
    if !many || cells.iter().any(|cell| cell.run.packets) {
        return None;
    }
    let rows = cells.iter().map(|cell| rows(cell.run)).max().unwrap_or(1);
    let size = (MOST_ROWS / rows.max(1)).min(MOST_RUNS);
    (size > 1).then_some(size as usize)
}

/// About how many rows a run's tables have together: some for each link and each flow in each sample period.
fn rows(run: &Run) -> u64 {
    /// Counters, sojourn times of two classes, and the states of a queue.
    const OF_A_LINK: u64 = 7;
    /// Counters, the transport's state, and the controller's.
    const OF_A_FLOW: u64 = 6;
    let periods = run.duration.as_nanos().div_ceil(run.sample.as_nanos().max(1));
    let links = run.instrumented_links().count() as u64;
    let each = OF_A_LINK * links + OF_A_FLOW * run.flows.len() as u64 + run.groups.len() as u64;
    periods.saturating_mul(each)
}

/// All shards of a session.
pub(crate) struct Shards {
    shards: Vec<Mutex<Shard>>,
    /// For each cell, its shard.
    of: Vec<usize>,
}

struct Shard {
    folder: Arc<Path>,
    /// Runs that are still to end.
    waiting: usize,
    /// The finished runs, by the place of their cells.
    runs: BTreeMap<usize, (Arc<RunFile>, Gathered)>,
    /// What is on disk and was not read yet: the places of its runs' cells, by id.
    before: HashMap<String, usize>,
    /// Since when a finished run waits to be written.
    unsaved: Option<Instant>,
}

impl Shards {
    /// The shards of these cells, of which those at `waiting` are still to be run.
    pub(crate) fn new(cells: &[Cell<'_>], size: usize, folder: &ResultFolder, waiting: &[usize]) -> Shards {
        let mut shards: Vec<Mutex<Shard>> = Vec::new();
        let mut of = Vec::with_capacity(cells.len());
        // For each engine: how many of its cells came before, and the shard that the next one joins.
        let mut engines: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for cell in cells {
            let engine = cell.engine.name();
            let (count, shard) = engines.entry(engine).or_default();
            if count.is_multiple_of(size) {
                *shard = shards.len();
                let name = format!("{engine}-{:04}", *count / size);
                shards.push(Mutex::new(Shard {
                    folder: folder.path().join("runs").join(name).into(),
                    waiting: 0,
                    runs: BTreeMap::new(),
                    before: HashMap::new(),
                    unsaved: None,
                }));
            }
            *count += 1;
            of.push(*shard);
        }
        let new = Shards { shards, of };
        new.count(waiting);
        new.look_back(cells, folder);
        new
    }

    /// How many runs each shard waits for.
    fn count(&self, waiting: &[usize]) {
        for &place in waiting {
            self.shard(place).waiting += 1;
        }
    }

    /// Notes what earlier sessions have left in the shards.
    fn look_back(&self, cells: &[Cell<'_>], folder: &ResultFolder) {
        for (place, cell) in cells.iter().enumerate() {
            let Some(Place::Shard(path)) = folder.place(cell.engine.name(), cell.run) else { continue };
            let mut shard = self.shard(place);
            if **path == *shard.folder {
                shard.before.insert(cell_id(cell.engine.name(), &cell.run.id), place);
            }
        }
    }

    fn shard(&self, place: usize) -> MutexGuard<'_, Shard> {
        self.shards[self.of[place]].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Where the records of a run are that is finished.
    pub(crate) fn place_of(&self, place: usize) -> Place {
        Place::Shard(Arc::clone(&self.shard(place).folder))
    }

    /// A run is finished: its shard takes it, and is written if it was the last.
    pub(crate) fn finished(
        &self,
        place: usize,
        file: Arc<RunFile>,
        records: Gathered,
    ) -> Result<(), FolderError> {
        let mut shard = self.shard(place);
        shard.look_back()?;
        shard.runs.insert(place, (file, records));
        shard.unsaved.get_or_insert_with(Instant::now);
        shard.ended()
    }

    /// A run has failed, or was cancelled.
    pub(crate) fn given_up(&self, place: usize) -> Result<(), FolderError> {
        self.shard(place).ended()
    }

    /// Writes the shards whose runs have waited long enough; all that wait, with `all`.
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
    /// Reads what an earlier session has left of it.
    fn look_back(&mut self) -> Result<(), FolderError> {
        let before = std::mem::take(&mut self.before);
        if before.is_empty() {
            return Ok(());
        }
        for run in read_shard(&self.folder)? {
            if let Some(place) = before.get(&run.file.id) {
                self.runs.entry(*place).or_insert((run.file.into(), run.records));
            }
        }
        Ok(())
    }

    /// One run less to wait for.
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
