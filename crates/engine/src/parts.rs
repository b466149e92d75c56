//! A tree in parts, which other processes run, on other machines too. A part is a shard, or a few runs that have folders of their own.
//! It is run into a result folder of its own, whose folders of runs are then moved into the whole one. The files are those of a
//! session that does all runs itself: the tree alone decides which runs share a shard.

use crate::error::{FolderError, at};
use crate::folder::ResultFolder;
use crate::jobs::{Cell, Jobs, Progress, Tally, run_with};
use crate::results::FinishedRun;
use crate::run_file::cell_id;
use crate::shards;
use crate::{Engine, RunLocation, location};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_plan::{Lab, Run};
use weir_record::RecordError;

/// Largest number of runs of a part that are no shard.
const MOST_RUNS: usize = 64;

/// Some runs of a tree that one process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The shard's name, or the id of the first run.
    pub name: String,
    /// The numbers of its runs in the tree, in ascending order.
    pub runs: Vec<usize>,
}

/// The parts of a tree that the folder does not hold yet. `cells` is the whole tree on one engine, `size` that of its shards. A shard of
/// which a run is missing is a part as a whole. Parts of runs with folders of their own have `most` runs, 1 to 64.
///
/// # Errors
/// The folder holds runs that must not be mixed with these.
pub fn parts(
    cells: &[Cell<'_>],
    size: Option<usize>,
    most: usize,
    folder: &ResultFolder,
) -> Result<Vec<Part>, FolderError> {
    let mut missing = vec![];
    for cell in cells {
        if !folder.holds(cell.engine.name(), cell.run)? {
            missing.push(cell);
        }
    }
    let id = |cell: &Cell<'_>| cell_id(cell.engine.name(), &cell.run.id);
    let Some(size) = size else {
        let part = |cells: &[&Cell<'_>]| Part {
            name: id(cells[0]),
            runs: cells.iter().map(|cell| cell.number).collect(),
        };
        return Ok(missing.chunks(most.clamp(1, MOST_RUNS)).map(part).collect());
    };
    let mut shards: BTreeMap<usize, String> = BTreeMap::new();
    for cell in missing {
        let name = || shards::name(cell.engine.name(), size, cell.number);
        shards.entry(cell.number / size).or_insert_with(name);
    }
    let runs = |shard: usize| (shard * size..cells.len().min((shard + 1) * size)).collect();
    Ok(shards.into_iter().map(|(shard, name)| Part { name, runs: runs(shard) }).collect())
}

/// Runs a part, one run after the other, into the result folder `out`, which is new. `runs` are the numbers of its runs in the lab's
/// tree; `progress` counts them from 0. A run that fails is tried again once; the tally names it then.
///
/// # Errors
/// The folder cannot be written, or there is not enough space.
pub fn run_part(
    lab: &Lab,
    runs: &[usize],
    size: Option<usize>,
    engine: &dyn Engine,
    build: &str,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Tally, FolderError> {
    let folder = ResultFolder::open(out, lab.source(), build)?;
    let wanted: BTreeSet<usize> = runs.iter().copied().collect();
    let made: Vec<Arc<Run>> =
        lab.runs_where(|number| wanted.contains(&number)).into_iter().map(Arc::new).collect();
    let cells: Vec<Cell<'_>> =
        made.iter().zip(&wanted).map(|(run, &number)| Cell { engine, run, number, wanted: true }).collect();
    // An unfinished part counts for nothing.
    let jobs = Jobs { saves: false, ..Jobs::default() };
    run_with(&cells, size, &folder, &jobs, &AtomicBool::new(false), progress)
}

impl ResultFolder {
    /// Moves the folders of runs of another result folder on the same file system into this one; `ids` are those that it may hold,
    /// each with its number in the tree. Returns these runs.
    ///
    /// # Errors
    /// The other folder holds runs of another build or with other ids, or runs that cannot be read, or moving failed.
    pub fn adopt(
        &mut self,
        from: &Path,
        ids: &BTreeMap<String, usize>,
    ) -> Result<Vec<FinishedRun>, FolderError> {
        let runs = from.join("runs");
        let mut found = location::find(&runs).map_err(at(&runs))?;
        if !found.faults.is_empty() {
            return Err(found.faults.swap_remove(0).1.into());
        }
        let strange = |what: String| FolderError::from(RecordError::Corrupt { path: runs.clone(), what });
        // Where each folder of the part goes.
        let mut places: BTreeMap<&Path, RunLocation> = BTreeMap::new();
        let mut runs = vec![];
        for (file, location) in found.runs.values() {
            let Some(&number) = ids.get(&file.id) else {
                return Err(strange(format!("it holds the run {}, which is none of its part", file.id)));
            };
            if file.build != self.build() {
                return Err(strange(format!("it holds runs by another build of weir ({})", file.build)));
            }
            let folder = location.folder();
            let place = || {
                let place = self.path().join("runs").join(folder.file_name().unwrap_or_default());
                match location {
                    RunLocation::Folder(_) => RunLocation::Folder(place),
                    RunLocation::Shard(_) => RunLocation::Shard(place.into()),
                }
            };
            let place = places.entry(folder).or_insert_with(place).clone();
            runs.push(FinishedRun::new(number, Arc::clone(file), place));
        }
        // A shard that is replaced takes the part's older runs with it.
        self.forget(|id| ids.contains_key(id));
        for (folder, place) in places {
            location::replace(folder, place.folder())?;
        }
        Ok(runs)
    }
}
