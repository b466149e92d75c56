//! A lab whose runs are done by other processes, part by part. This one holds the result folder: it says which parts are missing, takes
//! in those that come back, and writes summary and report at the end, as a session does. A part brings the summaries and the series of its
//! runs, so that little is left to do when the last one has come.

use crate::digest;
use crate::error::SessionError;
use crate::execute::{self, Caller, Done, Ended, Execution};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_engine::{Cell, Engine, Part, ResultFolder, Tally, cell_id, parts, shard_size};
use weir_plan::{Lab, Run};
use weir_record::RunSummary;
use weir_report::Growing;

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
pub struct Sweep {
    lab: Lab,
    folder: ResultFolder,
    size: Option<usize>,
    parts: Vec<Part>,
    ids: Vec<String>,
    tally: Tally,
    report: Option<Growing>,
    /// Summaries of the runs that were taken in, by id.
    summaries: HashMap<String, RunSummary>,
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
        let ids: Vec<String> = cells.iter().map(|cell| cell_id(engine.name(), &cell.run.id)).collect();
        let kept = ids.len() - parts.iter().map(|part| part.runs.len()).sum::<usize>();
        let tally = Tally { kept, ..Tally::default() };
        let report = plan.report.then(|| Growing::new(folder.path(), &lab, &runs, 1));
        Ok(Sweep { lab, folder, size, parts, ids, tally, report, summaries: HashMap::new() })
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

    /// Names of the lab's traffic groups, in the order of their colours in the report; `None` if no report is written.
    pub fn groups(&self) -> Option<&[String]> {
        self.report.as_ref().map(Growing::groups)
    }

    /// Number of the tree's runs.
    pub fn run_count(&self) -> usize {
        self.ids.len()
    }

    /// Takes in a part from the result folder that it was run into ([`crate::run_part`]), on the same file system; `failed` are its runs
    /// that failed, each with the reason.
    ///
    /// # Errors
    /// That folder holds something else, or cannot be moved.
    pub fn take_in(
        &mut self,
        part: usize,
        from: &Path,
        failed: Vec<(String, String)>,
    ) -> Result<(), SessionError> {
        let ids: BTreeMap<String, usize> =
            self.parts[part].runs.iter().map(|&run| (self.ids[run].clone(), run)).collect();
        let runs = self.folder.adopt(from, &ids)?;
        // What it does not tell is computed from the records at the end.
        let mut told = digest::read(from).unwrap_or_default();
        for run in &runs {
            let Some((summary, script)) = told.remove(&run.file.id) else { continue };
            if let (Some(report), Some(script)) = (&self.report, script) {
                report.join_with_script(run, &summary, script);
            }
            self.summaries.insert(summary.id.clone(), summary);
        }
        self.tally.finished.extend(runs);
        self.tally.failed.extend(failed);
        Ok(())
    }

    /// Writes summary and report of what is there, as a session does.
    ///
    /// # Errors
    /// Writing failed, or results cannot be read. A run that failed is no error: [`Done::tally`] names it.
    pub fn finish(self) -> Result<Done, SessionError> {
        let Sweep { lab, folder, ids, mut tally, report, summaries, .. } = self;
        tally.failed.sort();
        execute::conclude(&lab, folder, Ended { tally, wanted: ids.len(), report, summaries })
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
