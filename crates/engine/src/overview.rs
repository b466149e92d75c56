//! What a result folder says of itself, without its records: for lists of many results. That the files of every run are there in their full
//! length is another step, since it costs more; checksums are compared only when records are read.

use crate::error::{FolderError, at};
use crate::extent::Extent;
use crate::location::{check_files, counts, descriptions};
use crate::rerun::{current, unfinished};
use crate::results::{Count, ResultsError, lab_of, require_results};
use crate::shards::MOST_FOLDERS;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use weir_plan::Lab;
use weir_record::ENGINES;

/// What a result folder says of itself.
#[derive(Debug)]
pub struct Overview {
    /// The lab as it was run.
    pub lab: Lab,
    /// The engines that have finished a run, `sim` before `live`.
    pub engines: Vec<&'static str>,
    /// Number of runs that are there, and of those that the tree plans.
    pub count: Count,
    /// The same for a `--rerun` that is under way or was interrupted.
    pub rerun: Option<Count>,
    /// The ids of the runs whose numbers should not be trusted.
    pub invalid: BTreeSet<String>,
    /// Whether `summary.json` tells of all runs that are there.
    pub is_summarised: bool,
}

/// What is read of `summary.json`.
#[derive(Deserialize)]
struct Told {
    runs: Vec<ToldRun>,
}

#[derive(Deserialize)]
struct ToldRun {
    id: String,
    invalid: Vec<String>,
}

/// What is read of a run's description.
#[derive(Deserialize)]
struct Described {
    id: String,
    outcome: DescribedOutcome,
}

#[derive(Deserialize)]
struct DescribedOutcome {
    invalid: Vec<String>,
}

/// Checks that all files of the runs in a result folder of this extent are there in their full length.
///
/// # Errors
/// A file is missing or has another length, or the folder cannot be read.
pub fn check_lengths(folder: &Path, extent: &Extent) -> Result<(), ResultsError> {
    Ok(check_files(&current(folder, "runs"), extent)?)
}

/// Reads what a result folder says of itself.
///
/// # Errors
/// It is not a result folder, its lab cannot be read, or a shard of its runs cannot.
pub fn overview(folder: &Path) -> Result<Overview, ResultsError> {
    require_results(folder)?;
    let lab = lab_of(folder)?;
    let runs = current(folder, "runs");
    let sharded = lab.run_count() > MOST_FOLDERS;
    let counts_here = counts(&runs, sharded)?;
    let there = counts_here.values().sum();
    let planned = |engines: usize| lab.run_count() * engines.max(1);
    let rerun = match unfinished(folder) {
        Some(staging) => {
            // Runs of a set that is not complete come and go.
            let counts = counts(&staging.join("runs"), sharded).unwrap_or_default();
            Some(Count { there: counts.values().sum(), planned: planned(counts.len()) })
        }
        None => None,
    };
    let told = summary(&current(folder, "summary.json"))?.filter(|told| told.runs.len() == there);
    let is_summarised = told.is_some();
    let invalid = match told {
        Some(told) => told.runs.into_iter().filter(|run| !run.invalid.is_empty()).map(|run| run.id).collect(),
        None => {
            let all: Vec<Described> = descriptions(&runs)?;
            all.into_iter().filter(|run| !run.outcome.invalid.is_empty()).map(|run| run.id).collect()
        }
    };
    let engines: Vec<&str> = ENGINES.into_iter().filter(|engine| counts_here.contains_key(engine)).collect();
    let count = Count { there, planned: planned(engines.len()) };
    Ok(Overview { lab, engines, count, rerun, invalid, is_summarised })
}

/// What `summary.json` says; `None` if there is none.
fn summary(path: &Path) -> Result<Option<Told>, FolderError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs::read(path).map_err(at(path))?;
    let told = serde_json::from_slice(&text);
    told.map(Some).map_err(|error| at(path)(std::io::Error::other(format!("damaged: {error}"))))
}
