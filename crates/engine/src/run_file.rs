//! What `run.json` holds: everything that is known of a run beside its records.

use crate::{ENGINES, Outcome};
use serde::{Deserialize, Serialize};
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

impl RunFile {
    /// Checks one that was read: its names become names of files.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !ENGINES.contains(&self.engine.as_str()) {
            return Err(format!("names an engine {:?}; there are {}", self.engine, ENGINES.join(" and ")));
        }
        self.run.check().map_err(|what| format!("its run {what}"))?;
        let id = cell_id(&self.engine, &self.run.id);
        if self.id != id {
            return Err(format!("is called {:?}, and its run {id}", self.id));
        }
        Ok(())
    }
}

/// The id on an engine of the run that has this id in its lab: name of its folder, and unique in a summary.
pub fn cell_id(engine: &str, run: &str) -> String {
    format!("{engine}-{run}")
}
