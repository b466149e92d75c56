//! A finished run: its description, and its records.

use super::ResultsError;
use crate::location::{self, RunLocation};
use crate::run_file::RunFile;
use std::sync::Arc;
use weir_base::Span;
use weir_record::{RecordError, Records, RunInfo, RunSummary, View};

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Its index in the lab's tree of runs; both engines' runs of one cell and repeat have the same.
    pub number: usize,
    /// Where its records are.
    pub location: RunLocation,
    /// Its description, from `run.json`.
    pub file: Arc<RunFile>,
    /// The run, described for metrics.
    pub info: RunInfo,
}

impl FinishedRun {
    pub(crate) fn new(number: usize, file: Arc<RunFile>, location: RunLocation) -> FinishedRun {
        let mut info = crate::run_info(&file.engine, &file.run);
        file.yardsticks.apply(&mut info);
        FinishedRun { number, location, file, info }
    }

    pub(super) fn unread(&self, error: RecordError) -> ResultsError {
        ResultsError::Records { id: self.file.id.clone(), error }
    }

    /// Reads the run's records. For many runs use [`Results::each`], which reads each shard once.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn records(&self) -> Result<Records, ResultsError> {
        let read = match &self.location {
            RunLocation::Folder(folder) => Records::read(folder),
            RunLocation::Shard(folder) => location::read_shard(folder).and_then(|runs| {
                let missing = || RecordError::Missing { path: folder.to_path_buf() };
                let own = runs.iter().find(|run| run.file.id == self.file.id);
                own.map(|run| run.records.records()).ok_or_else(missing)
            }),
        };
        read.map_err(|error| self.unread(error))
    }

    /// The run's metrics, from its records, after this warm-up; `None` means the run's own.
    pub fn summarise(&self, records: &Records, warmup: Option<Span>) -> RunSummary {
        self.summary(&View::after(warmup.unwrap_or(self.info.warmup), &self.info, records), records)
    }

    /// The run's metrics, from an existing view of its records.
    pub fn summary(&self, view: &View<'_>, records: &Records) -> RunSummary {
        let mut summary = RunSummary::of(view, records);
        summary.prototypes.clone_from(&self.file.outcome.prototypes);
        summary.warnings.clone_from(&self.file.outcome.warnings);
        summary.invalid.extend_from_slice(&self.file.outcome.invalid);
        summary
    }
}
