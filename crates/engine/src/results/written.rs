//! `summary.json`, as [`super::Results`] wrote it.

use crate::cores::map_on_all_cores;
use serde::Deserialize;
use serde_json::value::RawValue;
use weir_record::{RunSummary, Summary};

/// A summary whose runs are not parsed yet.
#[derive(Deserialize)]
struct Unparsed<'a> {
    lab: String,
    weir_version: String,
    planned_runs: usize,
    #[serde(borrow)]
    runs: Vec<&'a RawValue>,
}

/// Parses a summary. That of a large tree is tens of megabytes, so all cores parse runs.
pub(super) fn parsed(text: &[u8]) -> serde_json::Result<Summary> {
    let Unparsed { lab, weir_version, planned_runs, runs } = serde_json::from_slice(text)?;
    let runs = map_on_all_cores(&runs, |run| serde_json::from_str::<RunSummary>(run.get()));
    Ok(Summary { lab, weir_version, planned_runs, runs: runs.into_iter().collect::<Result<_, _>>()? })
}
