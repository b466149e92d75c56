//! What `runs/` holds: a folder a run, with `run.json` beside its records; or, of labs of many short runs, a folder a shard,
//! with `runs.json` beside the records of its runs. Readers take both.

use crate::cores::cores;
use crate::folder::{FolderError, RunFile, at, read_run};
use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_record::{Gathered, write_shard};

/// The list of a shard's runs: an array of what `run.json` holds, a line a run.
const LIST: &str = "runs.json";

/// Where a finished run's records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a folder of their own.
    Folder(PathBuf),
    /// In a shard's folder, as its run of this number.
    Shard(Arc<Path>, usize),
}

impl Place {
    /// The folder that the records are in, shared or not.
    pub fn folder(&self) -> &Path {
        match self {
            Place::Folder(folder) => folder,
            Place::Shard(folder, _) => folder,
        }
    }
}

/// The finished runs below a folder, by id.
pub(crate) fn find(runs: &Path) -> HashMap<String, (RunFile, Place)> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    // Those of a large tree are some megabytes of JSON: they are read on all cores.
    let share = folders.len().div_ceil(cores()).max(1);
    let read = |folders: &[PathBuf]| folders.iter().flat_map(|folder| runs_in(folder)).collect::<Vec<_>>();
    let found: Vec<(RunFile, Place)> = std::thread::scope(|scope| {
        let (mine, others) = folders.split_at(share.min(folders.len()));
        let others: Vec<_> = others.chunks(share).map(|folders| scope.spawn(move || read(folders))).collect();
        let mut found = read(mine);
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.into_iter().map(|(file, place)| (file.id.clone(), (file, place))).collect()
}

/// The finished runs in a folder: one, those of a shard, or none.
fn runs_in(folder: &Path) -> Vec<(RunFile, Place)> {
    if let Some(file) = read_run(folder) {
        return vec![(file, Place::Folder(folder.into()))];
    }
    let (files, folder): (_, Arc<Path>) = (read_list(folder).unwrap_or_default(), folder.into());
    let numbered = files.into_iter().enumerate();
    numbered.map(|(number, file)| (file, Place::Shard(Arc::clone(&folder), number))).collect()
}

/// What is known of the runs of the shard in this folder; none when it holds no shard.
pub(crate) fn read_list(folder: &Path) -> Option<Vec<RunFile>> {
    serde_json::from_slice(&fs::read(folder.join(LIST)).ok()?).ok()
}

/// Writes a shard in the place of what its folder held before. It is there whole or as it was.
pub(crate) fn replace_shard(folder: &Path, runs: &[(&RunFile, &Gathered)]) -> Result<(), FolderError> {
    let draft = beside(folder, "");
    let _ = fs::remove_dir_all(&draft);
    let records: Vec<&Gathered> = runs.iter().map(|(_, records)| *records).collect();
    let failed = |error: weir_record::RecordError| at(&draft)(io::Error::other(error));
    write_shard(&draft, &records).map_err(failed)?;
    let list = || -> io::Result<()> {
        let mut out = BufWriter::new(fs::File::create(draft.join(LIST))?);
        let mut before = "[\n";
        for (file, _) in runs {
            out.write_all(before.as_bytes())?;
            serde_json::to_writer(&mut out, file)?;
            before = ",\n";
        }
        out.write_all(b"\n]\n")?;
        out.flush()
    };
    list().map_err(at(&draft))?;
    replace(&draft, folder)
}

/// Gives a folder that is complete its name, in the place of an earlier one.
pub(crate) fn replace(draft: &Path, folder: &Path) -> Result<(), FolderError> {
    let old = beside(folder, OLD);
    if folder.exists() {
        fs::rename(folder, &old).map_err(at(folder))?;
    }
    fs::rename(draft, folder).map_err(at(folder))?;
    let _ = fs::remove_dir_all(old);
    Ok(())
}

/// The ending of a folder that is being replaced.
const OLD: &str = ".old";

/// `.name` and an ending, beside `path`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}{ending}"))
}

/// Removes what an interrupted session left, and puts back what it was about to replace.
pub(crate) fn remove_unfinished(runs: &Path) -> io::Result<()> {
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(hidden) = name.strip_prefix('.') else { continue };
        match hidden.strip_suffix(OLD).map(|name| runs.join(name)) {
            Some(folder) if !folder.exists() => fs::rename(entry.path(), folder)?,
            _ => fs::remove_dir_all(entry.path())?,
        }
    }
    Ok(())
}
