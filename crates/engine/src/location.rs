//! The folders in `runs/`: one for each run, with `run.json` beside its records; or, in labs of many short runs, one for each
//! shard, with `runs.json` beside the records of its runs. Readers take both, and refuse folders that they cannot read: a
//! run that is silently left out would make a mean wrong. Folders without any of these files are not weir's and are ignored.

use crate::atomic_write::{DRAFT, OURS, remove_all, sync};
use crate::cores::map_on_all_cores;
use crate::error::{FolderError, at};
use crate::extent::Extent;
use crate::run_file::RunFile;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_record::{
    ENGINES, Gathered, RecordError, Records, Sealed, check_lengths, read_sealed, read_shard_sealed,
    run_count, seal, write_shard,
};

/// The description of the run in a folder.
pub(crate) const DESCRIPTION: &str = "run.json";
/// The list of a shard's runs: an array of their descriptions, one run on each line.
const LIST: &str = "runs.json";
/// Prefix of the name of a folder that is being replaced by a newer one.
const OLD: &str = ".weir-old.";

/// Where a finished run's records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunLocation {
    /// In a folder of their own.
    Folder(PathBuf),
    /// In a shard's folder.
    Shard(Arc<Path>),
}

impl RunLocation {
    /// The folder that the records are in, shared or not.
    pub fn folder(&self) -> &Path {
        match self {
            RunLocation::Folder(folder) => folder,
            RunLocation::Shard(folder) => folder,
        }
    }
}

/// The contents of a folder of runs.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The finished runs, by id.
    pub(crate) runs: HashMap<String, (Arc<RunFile>, RunLocation)>,
    /// The folders that cannot be read: name and reason.
    pub(crate) faults: Vec<(String, RecordError)>,
    /// Number of runs whose descriptions have no checksum: an older weir wrote them.
    pub(crate) unchecked: usize,
}

/// Finds the runs in a folder of runs; a folder that does not exist holds none.
pub(crate) fn find(runs: &Path) -> io::Result<Found> {
    let folders = folders(runs)?;
    // The descriptions of a large tree are some megabytes of JSON: all cores read them.
    let all = map_on_all_cores(&folders, |(name, path)| (name.clone(), runs_in(name, path)));
    let mut found = Found::default();
    for (name, runs) in all {
        match runs {
            Ok((runs, checked)) => {
                found.unchecked += if checked { 0 } else { runs.len() };
                for (file, location) in runs {
                    let path = location.folder().to_owned();
                    if let Some((other, _)) = found.runs.insert(file.id.clone(), (file.into(), location)) {
                        let what = format!("the run {} is in another folder too", other.id);
                        found.faults.push((name.clone(), RecordError::Corrupt { path, what }));
                    }
                }
            }
            Err(error) => found.faults.push((name, error)),
        }
    }
    Ok(found)
}

/// A part of the descriptions of the runs in a folder of runs, which costs less to read than the whole.
///
/// # Errors
/// The description of a run cannot be read.
pub(crate) fn descriptions<T: DeserializeOwned>(runs: &Path) -> Result<Vec<T>, FolderError> {
    let mut all = vec![];
    for (_, folder) in folders(runs).map_err(at(runs))? {
        let there = |file: &str| folder.join(file).symlink_metadata().is_ok();
        if there(LIST) {
            all.extend(parsed::<Vec<T>>(&folder.join(LIST), &read_sealed(&folder, LIST)?.bytes)?);
        } else if there(DESCRIPTION) || Records::are_in(&folder) {
            all.push(parsed(&folder.join(DESCRIPTION), &read_sealed(&folder, DESCRIPTION)?.bytes)?);
        }
    }
    Ok(all)
}

/// Only the ids of the runs in a folder of runs. `None` if one cannot be read.
pub(crate) fn ids(runs: &Path) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let all: Vec<Id> = descriptions(runs).ok()?;
    Some(all.into_iter().map(|one| one.id).collect())
}

/// Number of finished runs of each engine in a folder of runs, by the names of their folders; `sharded` if several may share one.
///
/// # Errors
/// The folder cannot be read, or holds a shard without records.
pub(crate) fn counts(runs: &Path, sharded: bool) -> Result<BTreeMap<&'static str, usize>, FolderError> {
    let mut counts = BTreeMap::new();
    for (name, folder) in folders(runs).map_err(at(runs))? {
        let Some(engine) = engine_of(&name) else { continue };
        *counts.entry(engine).or_default() += if sharded { run_count(&folder)? } else { 1 };
    }
    Ok(counts)
}

/// Checks that the files of all runs in a folder of runs are there in their full length, as the extent of the result folder tells.
///
/// # Errors
/// A file of a run is missing or has another length, or the folder cannot be read.
pub(crate) fn check_files(runs: &Path, extent: &Extent) -> Result<(), FolderError> {
    for (name, folder) in folders(runs).map_err(at(runs))? {
        if engine_of(&name).is_some() {
            check_lengths(&folder, |file| extent.length(&folder, file))?;
        }
    }
    Ok(())
}

/// The engine that begins the name of a run's or shard's folder; `None` for a folder that is not weir's.
fn engine_of(name: &str) -> Option<&'static str> {
    ENGINES.into_iter().find(|engine| name.strip_prefix(engine).is_some_and(|rest| rest.starts_with('-')))
}

/// The folders that may hold runs, sorted by name. Drafts are left out. A folder that was being replaced when its session
/// was killed counts, under its first name, if the newer one did not appear.
fn folders(runs: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let names: HashSet<String> = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    let mut folders: Vec<(String, PathBuf)> = vec![];
    for name in &names {
        match name.strip_prefix(OLD) {
            Some(shown) if !names.contains(shown) => folders.push((shown.into(), runs.join(name))),
            None if !name.starts_with('.') => folders.push((name.clone(), runs.join(name))),
            _ => {}
        }
    }
    folders.sort();
    Ok(folders)
}

/// The finished runs in a folder of this name: one, those of a shard, or none; and whether a checksum covers their
/// descriptions.
fn runs_in(name: &str, folder: &Path) -> Result<(Vec<(RunFile, RunLocation)>, bool), RecordError> {
    let there = |file: &str| folder.join(file).symlink_metadata().is_ok();
    if there(LIST) {
        let list = read_sealed(folder, LIST)?;
        let (files, shard): (_, Arc<Path>) = (listed(folder, &list)?, folder.into());
        let runs = files.into_iter().map(|file| (file, RunLocation::Shard(Arc::clone(&shard)))).collect();
        return Ok((runs, list.checked));
    }
    if !there(DESCRIPTION) && !Records::are_in(folder) {
        return Ok((vec![], true));
    }
    let description = read_sealed(folder, DESCRIPTION)?;
    let file: RunFile = parsed(&folder.join(DESCRIPTION), &description.bytes)?;
    let wrong = |what: String| RecordError::Corrupt { path: folder.join(DESCRIPTION), what };
    file.check().map_err(wrong)?;
    if file.id != name {
        return Err(wrong(format!("it describes the run {}, which is not the name of its folder", file.id)));
    }
    Ok((vec![(file, RunLocation::Folder(folder.into()))], description.checked))
}

/// The runs of a shard, from its list.
fn listed(folder: &Path, list: &Sealed) -> Result<Vec<RunFile>, RecordError> {
    let path = folder.join(LIST);
    let files: Vec<RunFile> = parsed(&path, &list.bytes)?;
    let wrong = |what: String| RecordError::Corrupt { path: path.clone(), what };
    if list.runs != Some(files.len()) {
        let records = list.runs.map_or("records of one run".into(), |runs| format!("records of {runs} runs"));
        return Err(wrong(format!("it lists {} runs, but the folder has {records}", files.len())));
    }
    files.iter().try_for_each(RunFile::check).map_err(wrong)?;
    Ok(files)
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, RecordError> {
    let wrong = |error: serde_json::Error| {
        let what = if text.is_empty() { "it is empty".into() } else { error.to_string() };
        RecordError::Corrupt { path: path.into(), what }
    };
    serde_json::from_slice(text).map_err(wrong)
}

/// A run of a shard.
pub(crate) struct ShardRun {
    pub(crate) file: RunFile,
    pub(crate) records: Gathered,
}

/// How often a shard that was replaced while it was read is read again, and the pause before each attempt.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the runs of a shard, with all files from the same writing: a running session replaces its shards as their runs end,
/// so the shard is read again if it was replaced meanwhile.
pub(crate) fn read_shard(folder: &Path) -> Result<Vec<ShardRun>, RecordError> {
    let mut tries = 0;
    loop {
        let before = written(folder);
        let read =
            read_shard_sealed(folder, LIST).and_then(|(list, records)| Ok((listed(folder, &list)?, records)));
        match read {
            Ok((files, records)) => {
                let runs = files.into_iter().zip(records);
                return Ok(runs.map(|(file, records)| ShardRun { file, records }).collect());
            }
            Err(error) => {
                let replaced = before.is_none() || before != written(folder);
                if !replaced || tries == TRIES {
                    return Err(error);
                }
                tries += 1;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// When a file or folder was last changed. `None` if it does not exist.
pub(crate) fn written(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).ok()
}

/// Fails unless a folder still holds the description of this run that was read before.
pub(crate) fn still_describes(folder: &Path, file: &RunFile) -> Result<(), RecordError> {
    let path = folder.join(DESCRIPTION);
    match parsed::<RunFile>(&path, &read_sealed(folder, DESCRIPTION)?.bytes)? == *file {
        true => Ok(()),
        false => {
            Err(RecordError::Corrupt { path, what: "it was replaced while its records were read".into() })
        }
    }
}

/// Writes a shard, replacing the earlier contents of its folder. A reader sees the old contents or the new ones, never a part.
pub(crate) fn replace_shard(folder: &Path, runs: &[(&RunFile, &Gathered)]) -> Result<(), FolderError> {
    let draft = draft(folder);
    remove_all(&draft).map_err(at(&draft))?;
    let records: Vec<&Gathered> = runs.iter().map(|(_, records)| *records).collect();
    write_shard(&draft, &records)?;
    let list = || -> serde_json::Result<Vec<u8>> {
        let mut text = vec![];
        for (number, (file, _)) in runs.iter().enumerate() {
            text.extend(if number == 0 { b"[\n" } else { b",\n" });
            serde_json::to_writer(&mut text, file)?;
        }
        text.extend(b"\n]\n");
        Ok(text)
    };
    seal(&draft, LIST, &list().map_err(io::Error::other).map_err(at(&draft))?)?;
    replace(&draft, folder)
}

/// Gives a complete folder its name, replacing an earlier one, which is removed when the new one is on disk. (A run without
/// an earlier one is not synced: if the machine fails, the run is run again.)
pub(crate) fn replace(draft: &Path, folder: &Path) -> Result<(), FolderError> {
    let old = beside(folder, OLD);
    if folder.exists() {
        sync(draft).map_err(at(draft))?;
        fs::rename(folder, &old).map_err(at(folder))?;
    }
    fs::rename(draft, folder).map_err(at(folder))?;
    let _ = fs::remove_dir_all(old);
    Ok(())
}

/// Path at which a folder is written until it is complete.
pub(crate) fn draft(folder: &Path) -> PathBuf {
    beside(folder, DRAFT)
}

/// The path beside `path` whose name has this prefix.
fn beside(path: &Path, beginning: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!("{beginning}{name}"))
}

/// Removes the temporary folders of an interrupted session, and puts back those that it was about to replace.
pub(crate) fn remove_unfinished(runs: &Path) -> io::Result<()> {
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix(OLD).map(|name| runs.join(name)) {
            Some(folder) if !folder.exists() => fs::rename(entry.path(), folder)?,
            _ if name.starts_with(OURS) => remove_all(&entry.path())?,
            _ => {}
        }
    }
    Ok(())
}
