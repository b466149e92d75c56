//! `--rerun`: a new set of results grows in a staging folder within the result folder, and replaces the older set when it is
//! complete.
//!
//! The new set is a result folder in itself: `.weir-rerun/` with `lab.toml`, `runs/` and, at the end, the report. After an
//! interruption the same command continues it. Runs that a rerun does not ask for (another part of the tree, another engine)
//! are carried over from the older set as hard links. A set is complete when `complete.json` appears: from then on readers
//! take each part from where it is, and the next writer puts the remaining parts in place ([`settle`]). Only files that weir
//! wrote are removed with the older set; all others are moved to the same path in the new one.

use crate::atomic_write::{DRAFT, OURS, atomic_write, remove_all, remove_if_there, sync, sync_folder};
use crate::error::{FolderError, at};
use crate::location::{self, RunLocation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The staging folder: the new set, until it is in place.
pub(crate) const STAGING: &str = ".weir-rerun";
/// File in the staging folder with the request: what the rerun is to run.
const ASKED: &str = "asked.json";
/// File in the staging folder that lists the parts of a complete set.
const COMPLETE: &str = "complete.json";
/// Folder in the staging folder for the older set.
const BEFORE: &str = "before";
/// File that says what the added members of registries are that take part (see [`crate::prototypes`]).
pub(crate) const PROTOTYPES: &str = "prototypes.json";
/// The parts of a set of results, in the order in which they are put in place.
const SET: [&str; 7] = ["runs", "traces", PROTOTYPES, "lab.toml", "summary.json", "report", "index.html"];

/// What a rerun is to run. A rerun continues an interrupted one only if both ask for the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Names of the engines.
    pub engines: Vec<String>,
    /// The parts of the tree to run, as `LEVEL=LABEL`; the whole tree if empty.
    pub only: Vec<String>,
}

/// The contents of `asked.json`: the build of weir, and what it is to run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) build: String,
    pub(crate) asked: Asked,
}

/// Path of a part of the current results: in its place, or still in the staging folder of a complete rerun.
pub(crate) fn current(folder: &Path, part: &str) -> PathBuf {
    let staging = folder.join(STAGING);
    let staged = staging.join(part);
    let counts = staging.join(COMPLETE).is_file() && staged.exists();
    if counts { staged } else { folder.join(part) }
}

/// The staging folder of an interrupted rerun. `None` if there is no such rerun, or if it is complete.
pub(crate) fn unfinished(folder: &Path) -> Option<PathBuf> {
    let staging = folder.join(STAGING);
    (staging.join(ASKED).is_file() && !staging.join(COMPLETE).exists()).then_some(staging)
}

/// The staging folder for a rerun of this lab, as an earlier session of the same command left it, or without runs; and
/// whether runs of another command were removed for it.
pub(crate) fn stage(folder: &Path, lab: &str, request: &Request) -> io::Result<(PathBuf, bool)> {
    let staging = folder.join(STAGING);
    let read = |name: &str| fs::read(staging.join(name)).ok();
    let same = read(ASKED).and_then(|text| serde_json::from_slice::<Request>(&text).ok());
    let goes_on =
        same.is_some_and(|before| before == *request) && read("lab.toml").as_deref() == Some(lab.as_bytes());
    let dropped = !goes_on && fs::read_dir(staging.join("runs")).is_ok_and(|mut runs| runs.next().is_some());
    if !goes_on {
        remove_all(&staging)?;
        fs::create_dir_all(staging.join("runs"))?;
        atomic_write(&staging, "lab.toml", lab.as_bytes())?;
        // The request is written last: a staging folder without one is begun anew.
        atomic_write(&staging, ASKED, &serde_json::to_vec(request)?)?;
    }
    Ok((staging, dropped))
}

/// Brings kept runs of the older set into `runs`, the staged one; runs and shards that are there already stay as they are.
/// `ids` tells which runs to keep from a shard of which some are run again.
pub(crate) fn carry_over(
    kept: Vec<RunLocation>,
    ids: &dyn Fn(&str) -> bool,
    runs: &Path,
) -> Result<(), FolderError> {
    let mut shards: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for location in kept {
        match location {
            RunLocation::Folder(from) => link(&from, runs)?,
            RunLocation::Shard(from) => *shards.entry(from.to_path_buf()).or_default() += 1,
        }
    }
    for (from, count) in shards {
        let to = in_folder(runs, &from);
        if to.exists() {
            continue;
        }
        let all = location::read_shard(&from)?;
        if all.len() == count {
            link(&from, runs)?;
            continue;
        }
        let kept: Vec<_> = all.iter().filter(|run| ids(&run.file.id)).collect();
        location::replace_shard(&to, &kept.iter().map(|run| (&run.file, &run.records)).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Path in `runs` of a folder with the name of `from`.
fn in_folder(runs: &Path, from: &Path) -> PathBuf {
    runs.join(from.file_name().unwrap_or_default())
}

/// Links the files that weir wrote into a run's folder into a folder of the same name in `runs`; copies them if the file
/// system allows no hard links.
fn link(from: &Path, runs: &Path) -> Result<(), FolderError> {
    let to = in_folder(runs, from);
    if to.exists() {
        return Ok(());
    }
    let draft = location::draft(&to);
    let linked = || -> io::Result<()> {
        remove_all(&draft)?;
        fs::create_dir(&draft)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type()?.is_file() && is_of_a_run(&name.to_string_lossy()) {
                let place = draft.join(&name);
                fs::hard_link(entry.path(), &place).or_else(|_| fs::copy(entry.path(), &place).map(drop))?;
            }
        }
        fs::rename(&draft, &to)
    };
    linked().map_err(at(from))
}

/// Marks the staged set as complete, and replaces the older set with it.
pub(crate) fn publish(folder: &Path) -> io::Result<()> {
    let staging = folder.join(STAGING);
    // The new set must be on disk before the older one is removed, in case the machine fails.
    sync(&staging)?;
    let parts: Vec<&str> = SET.into_iter().filter(|part| there(&staging.join(part))).collect();
    let draft = staging.join(format!("{DRAFT}{COMPLETE}"));
    fs::write(&draft, serde_json::to_vec(&parts)?)?;
    File::open(&draft)?.sync_all()?;
    fs::rename(&draft, staging.join(COMPLETE))?;
    sync_folder(&staging);
    settle(folder).map(drop)
}

/// Puts the parts of a complete rerun that are still in the staging folder in place, if there are any. May be interrupted at
/// any time and called again. Returns that rerun's request.
pub(crate) fn settle(folder: &Path) -> io::Result<Option<Request>> {
    let staging = folder.join(STAGING);
    let Ok(text) = fs::read(staging.join(COMPLETE)) else {
        // A staging folder without a request was not filled yet, or is almost removed.
        let is_rerun = staging.join(ASKED).exists();
        return if is_rerun { Ok(None) } else { remove_all(&staging).map(|()| None) };
    };
    let parts: Vec<String> = serde_json::from_slice(&text)?;
    let before = staging.join(BEFORE);
    for part in SET {
        let (new, place) = (staging.join(part), folder.join(part));
        let has = parts.iter().any(|known| known == part);
        let arrived = has && !there(&new);
        if there(&place) && !arrived {
            fs::create_dir_all(&before)?;
            fs::rename(&place, before.join(part))?;
        }
        if has && !arrived {
            fs::rename(&new, &place)?;
        }
    }
    sync_folder(&staging);
    sync_folder(folder);
    if before.is_dir() {
        retire(&before, folder, "")?;
    }
    let request = fs::read(staging.join(ASKED)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    // Only weir's own files are left. The request goes first: without it no command continues this rerun.
    remove_if_there(&staging.join(ASKED))?;
    remove_all(&staging)?;
    Ok(request)
}

/// Whether a file, folder or link of this name exists; a broken link counts.
fn there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Removes weir's own files of an older set, and moves all others back into the result folder. `name` is the path of `old`
/// in its set.
fn retire(old: &Path, folder: &Path, name: &str) -> io::Result<()> {
    for entry in fs::read_dir(old)? {
        let entry = entry?;
        let (path, own) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        match (entry.file_type()?.is_dir(), is_ours(&name)) {
            (true, Owner::Weir) => remove_all(&path)?,
            (true, Owner::Mixed) => {
                retire(&path, folder, &name)?;
                fs::remove_dir(&path)?;
            }
            (false, Owner::Weir) => fs::remove_file(&path)?,
            _ => give_back(&path, &folder.join(&name))?,
        }
    }
    Ok(())
}

/// Moves a file that a user put into a result folder to its place; if the name is taken, with `.before` appended.
fn give_back(path: &Path, place: &Path) -> io::Result<()> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut free = place.to_owned();
    while there(&free) {
        let mut name = free.into_os_string();
        name.push(".before");
        free = name.into();
    }
    fs::rename(path, free)
}

/// Owner of a file or folder in a result folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Weir wrote it, with all that is in it.
    Weir,
    /// Weir made the folder; others may have put files into it.
    Mixed,
    /// Somebody else put it there.
    Other,
}

/// The owner of a part of a set, by its path.
fn is_ours(name: &str) -> Owner {
    let parts: Vec<&str> = name.split('/').collect();
    let ours = |yes: bool| if yes { Owner::Weir } else { Owner::Other };
    let page = |file: &str| file.ends_with(".html") || file.ends_with(".js");
    let digest = |name: &str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match parts[..] {
        [.., last] if last.starts_with(OURS) => Owner::Weir,
        ["lab.toml" | PROTOTYPES | "summary.json" | "index.html"] => Owner::Weir,
        ["runs" | "traces" | "report"] | ["runs", _] => Owner::Mixed,
        ["runs", _, file] => ours(is_of_a_run(file)),
        ["traces", folder] if digest(folder) => Owner::Mixed,
        ["traces", folder, _] => ours(digest(folder)),
        ["report", "assets" | "sim" | "live" | "both" | "pages" | "series"] => Owner::Mixed,
        ["report", "lab.js" | "metrics.js" | "compare.html" | "run.html"] => Owner::Weir,
        ["report", "assets", file] => ours(page(file) || file.ends_with(".css") || file == "uplot-LICENSE"),
        ["report", "sim" | "live" | "both" | "pages" | "series", file] => ours(page(file)),
        _ => Owner::Other,
    }
}

/// Whether weir writes files of this name into a run's folder: records, their descriptions, captures, the output of
/// commands.
fn is_of_a_run(file: &str) -> bool {
    let described = ["run.json", "runs.json", "records.json"].contains(&file);
    let command = file.starts_with("command-") && file.ends_with(".txt");
    described || command || file.ends_with(".parquet") || file.ends_with(".pcap")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn files_of_weir_are_distinguished_from_files_of_others() {
        for ours in [
            "lab.toml",
            "runs/sim-r1/run.json",
            "runs/sim-r1/flows.parquet",
            "runs/sim-r1/down.pcap",
            "runs/live-r1/command-a-errors.txt",
            "runs/.weir-draft.sim-r1",
            "traces/0123456789abcdef/cell.csv",
            "report/assets/weir.css",
            "report/sim/pie_r1.html",
        ] {
            assert_eq!(is_ours(ours), Owner::Weir, "{ours}");
        }
        for other in [
            "notes.txt",
            "export",
            "runs/notes.txt/x/y",
            "runs/sim-r1/notes.md",
            "runs/sim-r1/deeper",
            "traces/mine.csv",
            "traces/mine/a.csv",
            "report/mine",
            "report/sim/notes.txt",
        ] {
            assert_eq!(is_ours(other), Owner::Other, "{other}");
        }
    }

    /// A folder with an older set of two runs, notes in several places, and a staged set of one run.
    fn folder() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| atomic_write(place.path(), name, text.as_bytes()).unwrap();
        for (name, text) in [
            ("lab.toml", "old"),
            ("index.html", "old"),
            ("runs/sim-r1/run.json", "old"),
            ("runs/sim-r1/notes.txt", "mine"),
            ("runs/sim-r2/run.json", "old"),
            ("runs/sim-r2/notes.txt", "mine"),
            ("runs/notes/a.txt", "mine"),
            ("report/sim/r2.html", "old"),
            ("notes.txt", "mine"),
            (".weir-rerun/asked.json", "{}"),
            (".weir-rerun/lab.toml", "new"),
            (".weir-rerun/runs/sim-r1/run.json", "new"),
        ] {
            write(name, text);
        }
        place
    }

    /// All files below a folder, with their text.
    fn files(folder: &Path, name: &str) -> Vec<String> {
        let mut found = vec![];
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, own) = (entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()));
            match path.is_dir() {
                true => found.extend(files(&path, &own)),
                false => found.push(format!("{own}: {}", fs::read_to_string(path).unwrap())),
            }
        }
        found.sort();
        found
    }

    const SETTLED: [&str; 6] = [
        "/lab.toml: new",
        "/notes.txt: mine",
        "/runs/notes/a.txt: mine",
        "/runs/sim-r1/notes.txt: mine",
        "/runs/sim-r1/run.json: new",
        "/runs/sim-r2/notes.txt: mine",
    ];

    #[test]
    fn a_complete_set_replaces_the_older_one_and_files_of_others_stay() {
        let place = folder();
        publish(place.path()).unwrap();
        assert_eq!(files(place.path(), ""), SETTLED);
    }

    #[test]
    fn an_interrupted_publication_resumes_wherever_it_stopped() {
        // The steps of a publication are renames. Wherever a writer is killed between them, the next one gets the same result.
        let steps: [(&str, &str); 4] = [
            ("runs", ".weir-rerun/before/runs"),
            (".weir-rerun/runs", "runs"),
            ("lab.toml", ".weir-rerun/before/lab.toml"),
            (".weir-rerun/lab.toml", "lab.toml"),
        ];
        for done in 0..=steps.len() {
            let place = folder();
            let at = |name: &str| place.path().join(name);
            fs::write(at(".weir-rerun/complete.json"), "[\"runs\", \"lab.toml\"]").unwrap();
            fs::create_dir(at(".weir-rerun/before")).unwrap();
            for (from, to) in &steps[..done] {
                fs::rename(at(from), at(to)).unwrap();
            }
            // A reader sees the whole new set, wherever its parts are.
            assert_eq!(fs::read(current(place.path(), "lab.toml")).unwrap(), b"new", "after {done} steps");
            assert!(!current(place.path(), "runs").join("sim-r2/run.json").exists(), "after {done} steps");
            settle(place.path()).unwrap();
            assert_eq!(files(place.path(), ""), SETTLED, "after {done} steps");
        }
    }

    #[test]
    fn only_the_same_command_resumes_a_rerun() {
        let place = tempfile::tempdir().unwrap();
        let stage = |lab: &str, build: &str, only: &[&str]| {
            let only = only.iter().map(|only| only.to_string()).collect();
            let asked = Asked { engines: vec!["sim".into()], only };
            let request = Request { build: build.into(), asked };
            let (staging, dropped) = stage(place.path(), lab, &request).unwrap();
            let went_on = staging.join("runs/sim-r1").is_dir();
            assert!(!(went_on && dropped));
            fs::create_dir_all(staging.join("runs/sim-r1")).unwrap();
            went_on
        };
        assert!(!stage("lab", "build", &[]));
        assert!(stage("lab", "build", &[]));
        assert!(!stage("another lab", "build", &[]));
        assert!(!stage("another lab", "another build", &[]));
        assert!(!stage("another lab", "another build", &["queue=pie"]));
        assert!(stage("another lab", "another build", &["queue=pie"]));
    }
}
