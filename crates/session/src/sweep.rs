//! A lab whose runs are done by other processes, part by part. This one holds the result folder: it says which parts are missing, takes
//! in those that come back, and writes summary and report at the end, as a session does.

use crate::error::SessionError;
use crate::execute::{self, Caller, Done, Elsewhere, Execution};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_engine::{Cell, Engine, Part, ResultFolder, cell_id, parts, shard_size};
use weir_plan::{Lab, Run};

/// Where a sweep's results go, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The result folder.
    pub out: PathBuf,
    /// Whether to run again what is there.
    pub rerun: bool,
    /// Whether a report is written.
    pub report: bool,
    /// Number of runs of a part, if runs have folders of their own: 1 to 64.
    pub most: usize,
}

/// A lab whose runs come from elsewhere, and the lock of its result folder.
#[derive(Debug)]
pub struct Sweep {
    lab: Lab,
    plan: Plan,
    folder: ResultFolder,
    size: Option<usize>,
    parts: Vec<Part>,
    ids: Vec<String>,
    done: usize,
    failed: Vec<(String, String)>,
}

impl Sweep {
    /// Opens the folder for the runs of a lab on this engine, and finds the parts that it does not hold yet.
    ///
    /// # Errors
    /// The runs cannot be done by this engine in other processes, or the folder cannot take their results.
    pub fn open(
        lab: Lab,
        plan: Plan,
        engine: Box<dyn Engine>,
        caller: &Caller<'_>,
    ) -> Result<Sweep, SessionError> {
        let runs: Vec<Arc<Run>> = lab.runs().into_iter().map(Arc::new).collect();
        let engines = [engine];
        execute::check(&engines, &runs, &[])?;
        if let Some(prototype) = execute::prototypes(&runs)?.first() {
            let message = format!("{} `{}` was added by this program alone", prototype.what, prototype.name);
            return Err(SessionError::asked(message, "run the lab on this machine: others do not know it"));
        }
        let engine = engines[0].as_ref();
        let cell = |(number, run)| Cell { engine, run, number, wanted: true };
        let cells: Vec<_> = runs.iter().enumerate().map(cell).collect();
        let folder = execute::open(&lab, &cells, &engines, &execution(&plan), caller.build)?;
        folder.keep(lab.attachments())?;
        execute::tell(&folder, &runs, caller.show);
        let size = shard_size(&cells);
        let parts = parts(&cells, size, plan.most, &folder)?;
        let ids = cells.iter().map(|cell| cell_id(engine.name(), &cell.run.id)).collect();
        Ok(Sweep { lab, plan, folder, size, parts, ids, done: 0, failed: vec![] })
    }

    /// The folder that the results go to: for a rerun, its staging folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The parts that were missing when the folder was opened.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Number of runs in a shard; `None` if each run has a folder of its own.
    pub fn size(&self) -> Option<usize> {
        self.size
    }

    /// Number of the tree's runs.
    pub fn run_count(&self) -> usize {
        self.ids.len()
    }

    /// Takes in a part from the result folder that it was run into, on the same file system; `failed` are its runs that failed, each with
    /// the reason.
    ///
    /// # Errors
    /// That folder holds something else, or cannot be moved.
    pub fn take_in(
        &mut self,
        part: usize,
        from: &Path,
        failed: Vec<(String, String)>,
    ) -> Result<(), SessionError> {
        let ids: BTreeSet<String> = self.parts[part].runs.iter().map(|&run| self.ids[run].clone()).collect();
        self.done += self.folder.adopt(from, &ids)?;
        self.failed.extend(failed);
        Ok(())
    }

    /// Writes summary and report of what is there, as a session does.
    ///
    /// # Errors
    /// Writing failed, results cannot be read, or the caller cancelled it. A run that failed is no error: [`Done::tally`] names it.
    pub fn finish(self, engine: Box<dyn Engine>, caller: &Caller<'_>) -> Result<Done, SessionError> {
        let Sweep { lab, plan, folder, done, mut failed, .. } = self;
        failed.sort();
        // The session takes the lock again.
        drop(folder);
        execute::session(&lab, &[engine], &execution(&plan), caller, Some(Elsewhere { done, failed }))
    }
}

/// The execution that writes the same folder.
fn execution(plan: &Plan) -> Execution<'static> {
    Execution {
        out: plan.out.clone(),
        jobs: None,
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        rerun: plan.rerun,
        only: &[],
        retries: 0,
        report: plan.report,
    }
}
