//! The result folder: `lab.toml` as run, `runs/<id>/` with `run.json` and Parquet, then `summary.json` and the report.
//!
//! Labs of many short runs have one folder for each shard of runs instead (see [`RunLocation`]).
//!
//! A run's folder appears whole or not at all: it is written under another name and renamed when it is complete. Finished
//! runs of the same lab by the same build are kept, so that an interrupted tree resumes. A folder with any other contents is
//! refused, with advice. `--rerun` writes a new set beside the old one (see [`crate::rerun`]). One process at a time writes
//! (see [`Lock`]); readers need no lock.

use crate::Outcome;
use crate::atomic_write::{OURS, atomic_write, remove_all};
use crate::error::{FolderError, at};
use crate::location::{self, DESCRIPTION, Found, RunLocation, remove_unfinished};
use crate::lock::Lock;
use crate::prototypes;
use crate::rerun::{self, Asked, Request, STAGING};
use crate::run_file::{RunFile, cell_id};
use crate::yardsticks::{Answers, Yardsticks};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_base::Prototype;
use weir_plan::Run;
use weir_record::{seal, to_json};

/// A folder for results, and the lock that permits to write into it.
#[derive(Debug)]
pub struct ResultFolder {
    /// The folder that was asked for.
    home: PathBuf,
    /// The folder of the set that is written: `home` itself, or the staging folder of a rerun.
    path: PathBuf,
    build: String,
    /// The runs that were there when the folder was opened.
    found: Found,
    /// Notes for the user about the folder.
    notes: Vec<String>,
    /// Optima that the runs of this session are held against.
    answers: Answers,
    _lock: Lock,
}

impl ResultFolder {
    /// Opens the folder for a lab's runs, making it if need be. Finished runs are kept.
    ///
    /// # Errors
    /// It holds results of another lab or build, something else entirely, or runs that cannot be read; another process
    /// writes into it; or it cannot be written.
    pub fn open(path: &Path, lab: &str, build: &str) -> Result<ResultFolder, FolderError> {
        let (lock, _) = enter(path)?;
        if let Some(before) = older_lab(path).filter(|before| before != lab) {
            match weir_plan::changes(&before, lab) {
                // Only comments or the order of keys differ. `holds` compares each run with the requested one.
                Some(changes) if changes.is_empty() => {}
                changes => return Err(in_the_way(path, &changed(&changes.unwrap_or_default()))),
            }
        }
        let mut folder = ResultFolder::at(path, path.into(), lab, build, lock)?;
        if let Some(staging) = rerun::unfinished(path) {
            folder.notes.push(format!(
                "an interrupted --rerun is kept in {}: repeat its command to resume it",
                staging.display()
            ));
        }
        Ok(folder)
    }

    /// Opens the folder for a rerun: a new set of results, which replaces the older set when it is complete
    /// ([`ResultFolder::complete`]). Runs that an earlier session of the same rerun finished are kept, and so are runs of an
    /// older set of the same lab and build that are not `asked_for`.
    ///
    /// # Errors
    /// As [`ResultFolder::open`]; a rerun of a part of the tree refuses an older set of another lab or build.
    pub fn rerun(
        path: &Path,
        lab: &str,
        build: &str,
        asked: &Asked,
        asked_for: impl Fn(&str) -> bool,
    ) -> Result<ResultFolder, FolderError> {
        let (lock, settled) = enter(path)?;
        let older = older_lab(path);
        let request = Request { build: build.into(), asked: asked.clone() };
        if settled.is_some_and(|settled| settled == request) && older.as_deref() == Some(lab) {
            // An earlier session of this command was killed while it put its results in place; `enter` has finished that.
            return ResultFolder::at(path, path.into(), lab, build, lock);
        }
        let kept = match &older {
            Some(before) if before == lab => kept(path, build, asked, &asked_for)?,
            Some(_) if !asked.only.is_empty() => {
                return Err(in_the_way(
                    path,
                    "holds results of another lab, to which --only cannot add runs",
                ));
            }
            _ => vec![],
        };
        let (staging, dropped) = rerun::stage(path, lab, &request).map_err(at(path))?;
        rerun::carry_over(kept, &|id| !asked_for(id), &staging.join("runs"))?;
        let mut folder = ResultFolder::at(path, staging, lab, build, lock)?;
        if dropped {
            folder
                .notes
                .push("the runs of an interrupted --rerun with different options are discarded".into());
        }
        Ok(folder)
    }

    /// The folder with the runs that are in it.
    fn at(
        home: &Path,
        path: PathBuf,
        lab: &str,
        build: &str,
        lock: Lock,
    ) -> Result<ResultFolder, FolderError> {
        let runs = path.join("runs");
        fs::create_dir_all(&runs).map_err(at(&runs))?;
        remove_unfinished(&runs).map_err(at(&runs))?;
        let mut found = location::find(&runs).map_err(at(&runs))?;
        if !found.faults.is_empty() {
            return Err(found.faults.swap_remove(0).1.into());
        }
        atomic_write(&path, "lab.toml", lab.as_bytes()).map_err(at(&path))?;
        let (home, build) = (home.to_owned(), build.to_owned());
        Ok(ResultFolder { home, path, build, found, notes: vec![], answers: Answers::default(), _lock: lock })
    }

    /// Writes copies of the files that the lab names: each with its path relative to the folder, and its bytes.
    ///
    /// # Errors
    /// Writing failed.
    pub fn keep<'a>(&self, files: impl Iterator<Item = (String, &'a [u8])>) -> Result<(), FolderError> {
        for (name, bytes) in files {
            let path = self.path.join(&name);
            let whole = fs::metadata(&path).is_ok_and(|there| there.len() == bytes.len() as u64);
            if !whole {
                atomic_write(&self.path, &name, bytes).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// Writes what the members of registries are that a program has added and that take part in its runs.
    ///
    /// # Errors
    /// Writing failed.
    pub fn keep_prototypes(&self, all: &[Arc<Prototype>]) -> Result<(), FolderError> {
        prototypes::write(&self.path, all)
    }

    /// Where its results are: the folder itself, or its staging folder until a rerun is complete.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build of weir whose runs it holds.
    pub(crate) fn build(&self) -> &str {
        &self.build
    }

    /// Notes for the user about the folder.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether this run is here already, done by this build.
    ///
    /// # Errors
    /// Its folder holds another run, or one by another build.
    pub fn holds(&self, engine: &str, run: &Run) -> Result<bool, FolderError> {
        let id = cell_id(engine, &run.id);
        let Some((file, _)) = self.found.runs.get(&id) else { return Ok(false) };
        if file.build != self.build {
            return Err(in_the_way(&self.home, &another_build(&file.build)));
        }
        if *file.run != *run {
            return Err(in_the_way(&self.home, &format!("holds another run under the name {id}")));
        }
        Ok(true)
    }

    /// Where the records of a run are. `None` if the run was not in the folder when it was opened.
    pub(crate) fn location(&self, engine: &str, run: &Run) -> Option<&RunLocation> {
        self.found.runs.get(&cell_id(engine, &run.id)).map(|(_, location)| location)
    }

    /// The runs that were there when the folder was opened.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// Forgets those of them with such ids, because others take their place.
    pub(crate) fn forget(&mut self, replaced: impl Fn(&str) -> bool) {
        self.found.runs.retain(|id, _| !replaced(id));
    }

    /// The description of a run that has just ended, for `run.json`.
    pub fn describe(&self, engine: &str, run: Arc<Run>, outcome: Outcome) -> RunFile {
        let (id, build) = (cell_id(engine, &run.id), self.build.clone());
        let yardsticks = Yardsticks::of(&run, &self.answers);
        RunFile { id, engine: engine.into(), build, outcome, yardsticks, run }
    }

    fn folder_of(&self, engine: &str, run: &Run) -> PathBuf {
        self.path.join("runs").join(cell_id(engine, &run.id))
    }

    /// Makes an empty folder for a run's records; it becomes visible with [`ResultFolder::commit`].
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn begin(&self, engine: &str, run: &Run) -> Result<PathBuf, FolderError> {
        let draft = location::draft(&self.folder_of(engine, run));
        remove_all(&draft).and_then(|()| fs::create_dir(&draft)).map_err(at(&draft))?;
        Ok(draft)
    }

    /// Completes a run whose records are finished: writes `run.json` with a checksum, and gives the folder its name.
    ///
    /// # Errors
    /// Writing or renaming failed.
    pub fn commit(&self, file: &RunFile) -> Result<PathBuf, FolderError> {
        let path = self.folder_of(&file.engine, &file.run);
        let draft = location::draft(&path);
        let text = to_json(file).map_err(io::Error::other).map_err(at(&draft))?;
        seal(&draft, DESCRIPTION, &text)?;
        location::replace(&draft, &path)?;
        Ok(path)
    }

    /// Removes the folder of an unfinished run.
    pub fn abandon(&self, engine: &str, run: &Run) {
        let _ = fs::remove_dir_all(location::draft(&self.folder_of(engine, run)));
    }

    /// Ends the session when all its runs are finished: the new set of a rerun replaces the older one. Returns the folder
    /// that was asked for, where the results now are.
    ///
    /// # Errors
    /// Moving or removing failed. Readers take the new set nevertheless, and the next command that writes goes on.
    pub fn complete(self) -> Result<PathBuf, FolderError> {
        if self.path != self.home {
            rerun::publish(&self.home).map_err(at(&self.home))?;
        }
        Ok(self.home)
    }
}

/// Takes the lock of a result folder, which is made if it does not exist, and finishes what an interrupted session left
/// half done. If that was the publication of a rerun, its request is returned too.
///
/// # Errors
/// It is no result folder, another process writes into it, or it cannot be written.
pub(crate) fn enter(path: &Path) -> Result<(Lock, Option<Request>), FolderError> {
    if path.is_symlink() && !path.exists() {
        return Err(in_the_way(path, "is a symbolic link to a missing folder"));
    }
    if path.exists() && !path.is_dir() {
        return Err(in_the_way(path, "is a file"));
    }
    if path.is_dir() && !is_results(path) && is_occupied(path).map_err(at(path))? {
        return Err(in_the_way(path, "holds files that weir did not write"));
    }
    fs::create_dir_all(path).map_err(at(path))?;
    let lock = Lock::take(path)?;
    let settled = rerun::settle(path).map_err(at(path))?;
    prototypes::know(path)?;
    let runs = path.join("runs");
    if runs.is_dir() {
        remove_unfinished(&runs).map_err(at(&runs))?;
    }
    Ok((lock, settled))
}

/// The locations of the runs that a rerun keeps from an older set of the same lab, one for each run.
fn kept(
    path: &Path,
    build: &str,
    asked: &Asked,
    asked_for: &dyn Fn(&str) -> bool,
) -> Result<Vec<RunLocation>, FolderError> {
    let runs = path.join("runs");
    let part = !asked.only.is_empty();
    // If all older runs are run again, none is kept: their ids tell that, without their records.
    if !part && location::ids(&runs).is_some_and(|ids| ids.iter().all(|id| asked_for(id))) {
        return Ok(vec![]);
    }
    let found = location::find(&runs).map_err(at(&runs))?;
    // Runs that are run again need not be readable. A rerun of the whole tree ignores all faults: it repairs a damaged set.
    if let (true, Some((_, error))) = (part, found.faults.into_iter().find(|(name, _)| !asked_for(name))) {
        return Err(error.into());
    }
    let kept = found.runs.into_values().filter(|(file, _)| !asked_for(&file.id));
    let (same, other): (Vec<_>, Vec<_>) = kept.partition(|(file, _)| file.build == build);
    match other.first() {
        Some((file, _)) if part => Err(in_the_way(path, &another_build(&file.build))),
        _ => Ok(same.into_iter().map(|(_, location)| location).collect()),
    }
}

/// The refusal of a folder whose results are of a lab with other keys; `changes` lists the differences.
fn changed(changes: &[String]) -> String {
    const MOST_TOLD: usize = 12;
    let mut what = "holds results of another lab, or of an older version of this lab".to_owned();
    for (index, change) in changes.iter().take(MOST_TOLD).enumerate() {
        what += if index == 0 { ":\n    " } else { "\n    " };
        what += change;
    }
    if changes.len() > MOST_TOLD {
        what += &format!("\n    and {} more", changes.len() - MOST_TOLD);
    }
    what
}

fn another_build(build: &str) -> String {
    format!("holds runs by another build of weir ({build})")
}

fn in_the_way(folder: &Path, what: &str) -> FolderError {
    FolderError::InTheWay { folder: folder.display().to_string(), what: what.into() }
}

/// Text of the lab of the results in a folder. `None` if the folder holds no results.
fn older_lab(path: &Path) -> Option<String> {
    is_results(path).then(|| fs::read_to_string(path.join("lab.toml")).unwrap_or_default())
}

/// Whether a folder looks like results that weir wrote.
pub(crate) fn is_results(path: &Path) -> bool {
    rerun::current(path, "lab.toml").is_file() && rerun::current(path, "runs").is_dir()
}

/// Whether a folder holds results, or an interrupted `--rerun` before there were any.
pub fn holds_results(path: &Path) -> bool {
    is_results(path) || only_staged(path).is_some()
}

/// Whether a folder holds anything but what weir leaves when it is killed before its first run: temporary files of its own,
/// and an empty `runs`.
fn is_occupied(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let empty = || fs::read_dir(entry.path()).is_ok_and(|mut below| below.next().is_none());
        if !(name.starts_with(OURS) || name == "runs" && empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The staging folder of an interrupted rerun. `None` if there is none, or if the folder holds older results too.
pub(crate) fn only_staged(path: &Path) -> Option<PathBuf> {
    (!is_results(path)).then(|| path.join(STAGING)).filter(|staging| is_results(staging))
}
