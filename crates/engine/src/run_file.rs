//! The contents of `run.json`: the description of a run, without its records.

use crate::Outcome;
use crate::yardsticks::Yardsticks;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_plan::Run;
use weir_record::ENGINES;

/// The contents of `run.json`: the description of a run, without its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// Name of its folder, and its id in `summary.json`.
    pub id: String,
    /// Name of the engine that ran it.
    pub engine: String,
    /// The build of weir that ran it.
    pub build: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// What its numbers are held against.
    #[serde(default, skip_serializing_if = "Yardsticks::is_empty")]
    pub yardsticks: Yardsticks,
    /// The run.
    pub run: Arc<Run>,
}

impl RunFile {
    /// Checks a description that was read from a file: its names become names of files.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !ENGINES.contains(&self.engine.as_str()) {
            return Err(format!(
                "names an unknown engine {:?}; the engines are {}",
                self.engine,
                ENGINES.join(" and ")
            ));
        }
        self.run.check().map_err(|what| format!("its run {what}"))?;
        let id = cell_id(&self.engine, &self.run.id);
        if self.id != id {
            return Err(format!("has the id {:?}, but its run is {id}", self.id));
        }
        Ok(())
    }
}

/// The id of a run on an engine, from the run's id in its lab. It names the run's folder and is unique in a summary.
pub fn cell_id(engine: &str, run: &str) -> String {
    format!("{engine}-{run}")
}
