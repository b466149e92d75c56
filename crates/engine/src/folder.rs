//! The result folder: `lab.toml` as run, `runs/<id>/` with `run.json` and Parquet, then `summary.json` and the report.
//!
//! Labs of many short runs have a folder a shard instead (see [`Place`]).
//!
//! A run's folder appears whole or not at all: it is written under another name and renamed when it is done. Finished runs
//! of the same lab by the same build are kept, which is how an interrupted tree resumes; anything else in the way is refused
//! with the way out, and `--rerun` sets the old results aside until the new ones are complete.

use crate::Outcome;
use crate::place::{self, Place, remove_unfinished};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use weir_plan::Run;

/// What `run.json` holds: everything that is known of a run beside its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// Name of its folder, and its id in `summary.json`.
    pub id: String,
    /// Which engine ran it.
    pub engine: String,
    /// Which build of weir ran it.
    pub build: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What was run.
    pub run: Run,
}

/// The id of a run on an engine: name of its folder, and unique in a summary.
pub fn cell_id(engine: &str, run: &Run) -> String {
    format!("{engine}-{}", run.id)
}

/// Why a result folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds something that must not be mixed with what is to be run.
    #[error("{folder} {what}")]
    InTheWay {
        /// The folder.
        folder: String,
        /// What stands in the way.
        what: String,
    },
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        error: io::Error,
    },
}

impl FolderError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            FolderError::InTheWay { .. } => {
                "--rerun replaces what is there once the new results are complete; --out DIR writes elsewhere"
            }
            FolderError::Io { .. } => {
                "check that the folder exists, is yours and has room; --out DIR writes elsewhere"
            }
        }
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError + '_ {
    move |error| FolderError::Io { path: path.display().to_string(), error }
}

/// A folder that takes results.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    build: String,
    /// Results that were set aside by `--rerun`, to be removed when the new ones are complete.
    aside: Option<PathBuf>,
    /// The runs that were there when it was opened, by id.
    found: HashMap<String, (RunFile, Place)>,
}

impl ResultFolder {
    /// Opens the folder for a lab's runs, making it if need be.
    ///
    /// # Errors
    /// It holds results of another lab or build, or something else entirely; or it cannot be written.
    pub fn open(path: &Path, lab: &str, build: &str, rerun: bool) -> Result<ResultFolder, FolderError> {
        let (to, build) = (path.to_owned(), build.to_owned());
        let mut folder = ResultFolder { path: to, build, aside: None, found: HashMap::new() };
        let foreign =
            |what: &str| FolderError::InTheWay { folder: path.display().to_string(), what: what.into() };
        let occupied = path.is_dir() && fs::read_dir(path).map_err(at(path))?.next().is_some();
        if path.exists() && !path.is_dir() {
            return Err(foreign("is a file"));
        }
        if occupied {
            let before = fs::read_to_string(path.join("lab.toml"));
            let (Ok(before), true) = (before, is_results(path)) else {
                return Err(foreign("holds files that are not weir's"));
            };
            if rerun {
                let aside = sibling(path, "before");
                let _ = fs::remove_dir_all(&aside);
                fs::rename(path, &aside).map_err(at(path))?;
                folder.aside = Some(aside);
            } else if before != lab {
                return Err(foreign("holds results of another lab, or of this lab before it was changed"));
            }
        }
        let runs = path.join("runs");
        fs::create_dir_all(&runs).map_err(at(&runs))?;
        remove_unfinished(&runs).map_err(at(&runs))?;
        folder.found = place::find(&runs);
        write_atomically(&path.join("lab.toml"), lab.as_bytes()).map_err(at(path))?;
        Ok(folder)
    }

    /// Keeps the files that the lab names beside it: each place relative to the folder, and what it holds.
    ///
    /// # Errors
    /// Writing failed.
    pub fn keep<'a>(&self, files: impl Iterator<Item = (String, &'a [u8])>) -> Result<(), FolderError> {
        for (place, bytes) in files {
            let path = self.path.join(place);
            let whole = fs::metadata(&path).is_ok_and(|there| there.len() == bytes.len() as u64);
            if !whole {
                fs::create_dir_all(path.parent().unwrap_or(&self.path)).map_err(at(&path))?;
                write_atomically(&path, bytes).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this run is here already, done by this build.
    ///
    /// # Errors
    /// Its folder holds another run, or one by another build.
    pub fn holds(&self, engine: &str, run: &Run) -> Result<bool, FolderError> {
        let id = cell_id(engine, run);
        let Some((file, _)) = self.found.get(&id) else { return Ok(false) };
        let foreign =
            |what: String| Err(FolderError::InTheWay { folder: self.path.display().to_string(), what });
        if file.build != self.build {
            return foreign(format!("holds runs by another build of weir ({})", file.build));
        }
        if file.run != *run {
            return foreign(format!("holds another run under the name {id}"));
        }
        Ok(true)
    }

    /// Where the records of a run are that was here when the folder was opened.
    pub(crate) fn place(&self, engine: &str, run: &Run) -> Option<&Place> {
        self.found.get(&cell_id(engine, run)).map(|(_, place)| place)
    }

    /// What is known of a run that has just ended.
    pub(crate) fn describe(&self, engine: &str, run: &Run, outcome: Outcome) -> RunFile {
        let (id, build) = (cell_id(engine, run), self.build.clone());
        RunFile { id, engine: engine.into(), build, outcome, run: run.clone() }
    }

    /// Makes an empty folder for a run's records; it becomes visible with [`ResultFolder::commit`].
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn begin(&self, engine: &str, run: &Run) -> Result<PathBuf, FolderError> {
        let path = self.path.join("runs").join(format!(".{}", cell_id(engine, run)));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).map_err(at(&path))?;
        Ok(path)
    }

    /// Completes a run: writes `run.json` and gives the folder its name.
    ///
    /// # Errors
    /// Writing or renaming failed.
    pub fn commit(&self, engine: &str, run: &Run, outcome: Outcome) -> Result<PathBuf, FolderError> {
        let id = cell_id(engine, run);
        let (draft, path) = (self.path.join("runs").join(format!(".{id}")), self.path.join("runs").join(&id));
        let file = self.describe(engine, run, outcome);
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other).map_err(at(&draft))?;
        fs::write(draft.join("run.json"), text + "\n").map_err(at(&draft))?;
        place::replace(&draft, &path)?;
        Ok(path)
    }

    /// Throws an unfinished run away.
    pub fn abandon(&self, engine: &str, run: &Run) {
        let _ = fs::remove_dir_all(self.path.join("runs").join(format!(".{}", cell_id(engine, run))));
    }

    /// All runs are done: what `--rerun` had set aside is removed, but for what a person has put there, which comes back.
    pub fn complete(&mut self) {
        let Some(aside) = self.aside.take() else { return };
        for entry in fs::read_dir(&aside).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let back = self.path.join(&name);
            if !OURS.iter().any(|ours| name == *ours) && !back.exists() {
                let _ = fs::rename(path, back);
            }
        }
        let _ = fs::remove_dir_all(aside);
    }
}

/// What weir itself writes into a result folder.
const OURS: [&str; 7] = ["export", "index.html", "lab.toml", "report", "runs", "summary.json", "traces"];

/// Whether a folder looks like results that weir wrote.
pub(crate) fn is_results(path: &Path) -> bool {
    path.join("lab.toml").is_file() && path.join("runs").is_dir()
}

/// What is known of the run in this folder; none when it holds no finished run.
pub fn read_run(folder: &Path) -> Option<RunFile> {
    let text = fs::read_to_string(folder.join("run.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// Writing or renaming failed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = sibling(path, "part");
    let mut file = fs::File::create(&draft)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(&draft, path)
}

/// `.name.suffix` beside `path`.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map_or_else(|| "results".into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{suffix}"))
}
