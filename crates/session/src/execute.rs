//! Runs what a result folder does not hold yet, then writes its summary and its report.

use crate::build::with_prototypes;
use crate::error::SessionError;
use crate::only::Only;
use crate::show::Show;
use crate::watch::Watch;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_base::Prototype;
use weir_engine::{
    Asked, Capture, Cell, Count, Engine, EngineError, Jobs, ResultFolder, Results, Tally, both, cell_id,
    cores, run_all,
};
use weir_plan::{Lab, Run};
use weir_record::{RunSummary, Summary};
use weir_report::Growing;

/// How a lab is run.
pub struct Execution<'a> {
    /// Where the results go.
    pub out: PathBuf,
    /// Simulated runs in parallel; all cores by default.
    pub jobs: Option<NonZeroUsize>,
    /// Live runs in parallel.
    pub live_jobs: NonZeroUsize,
    /// The links to capture.
    pub pcap: &'a [String],
    /// Whether to run again what is there.
    pub rerun: bool,
    /// The cells to run, as `LEVEL=LABEL`; all if empty.
    pub only: &'a [String],
    /// How often a run that fails is tried again.
    pub retries: u32,
    /// Whether a report is written.
    pub report: bool,
}

/// The program that runs a lab.
pub struct Caller<'a> {
    /// Its build: runs of different builds are never mixed in one result folder.
    pub build: &'a str,
    /// Set when the session is to end early.
    pub cancel: &'a AtomicBool,
    /// Shows how the session goes.
    pub show: &'a dyn Show,
}

/// The outcome of an execution.
pub struct Done {
    path: PathBuf,
    /// The metrics of all runs in the folder.
    pub summary: Summary,
    /// How the runs of this session ended.
    pub tally: Tally,
    /// Number of runs that were done now.
    pub done: usize,
    /// How many of the tree's runs are there.
    pub count: Count,
    /// Number of runs that were asked for.
    pub wanted: usize,
}

impl Done {
    /// The folder of the results.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Runs what is not there yet, then writes summary and report. The caller has the user's permission for the commands that
/// live runs of the lab execute.
///
/// # Errors
/// The runs cannot be done, the folder cannot take their results, or the session was cancelled. A run that fails is no error:
/// [`Done::tally`] names it.
pub fn execute(
    lab: &Lab,
    engines: &[Box<dyn Engine>],
    execution: &Execution<'_>,
    caller: &Caller<'_>,
) -> Result<Done, SessionError> {
    let runs: Vec<Arc<Run>> = lab.runs().into_iter().map(Arc::new).collect();
    check(engines, &runs, execution.pcap)?;
    let prototypes = prototypes(&runs)?;
    let build = with_prototypes(caller.build, &prototypes);
    let only = Only::read(execution.only, lab)?;
    let cells: Vec<_> = runs
        .iter()
        .enumerate()
        .flat_map(|(number, run)| {
            let wanted = only.holds(run);
            engines.iter().map(move |engine| Cell { engine: engine.as_ref(), run, number, wanted })
        })
        .collect();
    let folder = open(lab, &cells, engines, execution, &build)?;
    folder.keep(lab.attachments())?;
    if !prototypes.is_empty() {
        // Runs with other prototypes are refused before these are written.
        cells.iter().try_for_each(|cell| folder.holds(cell.engine.name(), cell.run).map(drop))?;
        folder.keep_prototypes(&prototypes)?;
    }
    let wanted = cells.iter().filter(|cell| cell.wanted).count();
    tell(&folder, &runs, caller.show);
    let report = execution.report.then(|| Growing::new(folder.path(), lab, &runs, engines.len()));
    let live = execution.live_jobs.get();
    let watch = Watch::new(lab, &cells, live, folder.path().to_owned(), report, caller.show);
    let threads = execution.jobs.map_or_else(cores, |jobs| jobs.get());
    let (capture, retries) = (execution.pcap, execution.retries);
    let jobs = Jobs { threads, live, capture, retries, ..Jobs::default() };
    let tally = run_all(&cells, &folder, &jobs, caller.cancel, &watch)?;
    let (report, summaries) = watch.end();
    if let Some(raised) = tally.raised {
        return Err(EngineError::Raised(raised).into());
    }
    if tally.cancelled {
        let (done, all) = (tally.finished.len() + tally.kept, cells.len());
        let folder = folder.path().display().to_string();
        return Err(SessionError::Interrupted { done, all, folder });
    }
    conclude(lab, folder, Ended { tally, wanted, report, summaries })
}

/// How the runs of a session have ended.
pub(crate) struct Ended {
    pub(crate) tally: Tally,
    /// Number of runs that were asked for.
    pub(crate) wanted: usize,
    /// The report as far as it has grown; `None` if none is written.
    pub(crate) report: Option<Growing>,
    /// Summaries of the runs that ended with their records at hand, by id.
    pub(crate) summaries: HashMap<String, RunSummary>,
}

/// Writes summary and report. The results take their place if no run has failed.
pub(crate) fn conclude(lab: &Lab, folder: ResultFolder, ended: Ended) -> Result<Done, SessionError> {
    let Ended { mut tally, wanted, report, summaries } = ended;
    let done = tally.finished.len();
    let found = Results::of_session(&folder, lab.clone(), std::mem::take(&mut tally.finished))?;
    let summary = found.summary_with(summaries)?;
    // For a large tree each of the two takes a while on one core.
    let (written, reported) = both(
        || found.write_summary(&summary),
        || report.map_or(Ok(()), |report| report.finish(&found, &summary, None)),
    );
    written?;
    reported?;
    let count = found.count();
    let path = match tally.failed.is_empty() {
        true => folder.complete()?,
        false => folder.path().to_owned(),
    };
    Ok(Done { path, summary, tally, done, count, wanted })
}

/// Refuses runs that cannot be done, before anything is written.
pub(crate) fn check(
    engines: &[Box<dyn Engine>],
    runs: &[Arc<Run>],
    pcap: &[String],
) -> Result<(), SessionError> {
    for run in runs {
        engines.iter().try_for_each(|engine| engine.check(run))?;
        for link in pcap {
            Capture::find_link(run, link)?;
        }
    }
    Ok(())
}

/// The members of registries that take part in these runs and that a program has added.
///
/// # Errors
/// One of them is known from results only, so that it cannot be made here.
pub(crate) fn prototypes(runs: &[Arc<Run>]) -> Result<Vec<Arc<Prototype>>, SessionError> {
    let mut all: Vec<Arc<Prototype>> = vec![];
    for named in runs.iter().flat_map(|run| run.prototypes()) {
        let Prototype { what, name, .. } = &*named.prototype;
        if !named.can_be_made {
            let message = format!("{what} `{name}` is known from results only, so that it cannot run here");
            return Err(SessionError::asked(
                message,
                "add it to the program that runs the lab, under this name",
            ));
        }
        if !all.iter().any(|known| (&known.what, &known.name) == (what, name)) {
            all.push(named.prototype);
        }
    }
    all.sort_by(|a, b| (&a.what, &a.name).cmp(&(&b.what, &b.name)));
    Ok(all)
}

/// The folder that takes the results of these cells.
pub(crate) fn open(
    lab: &Lab,
    cells: &[Cell<'_>],
    engines: &[Box<dyn Engine>],
    execution: &Execution<'_>,
    build: &str,
) -> Result<ResultFolder, SessionError> {
    let (out, source) = (&execution.out, lab.source());
    if !execution.rerun {
        return Ok(ResultFolder::open(out, source, build)?);
    }
    let wanted = cells.iter().filter(|cell| cell.wanted);
    let wanted: HashSet<String> = wanted.map(|cell| cell_id(cell.engine.name(), &cell.run.id)).collect();
    let names = engines.iter().map(|engine| engine.name().to_owned()).collect();
    let asked = Asked { engines: names, only: execution.only.to_vec() };
    Ok(ResultFolder::rerun(out, source, build, &asked, |id| wanted.contains(id))?)
}

/// Most warnings that are shown before the runs; each run's page has its own.
const MOST_WARNINGS: usize = 5;

/// Tells the notes about the folder and the warnings of the plan.
pub(crate) fn tell(folder: &ResultFolder, runs: &[Arc<Run>], show: &dyn Show) {
    folder.notes().iter().for_each(|note| show.tell(&format!("weir: {note}")));
    let all: BTreeSet<String> = runs.iter().flat_map(|run| run.warnings()).collect();
    all.iter().take(MOST_WARNINGS).for_each(|warning| show.tell(&format!("warning: {warning}")));
    if all.len() > MOST_WARNINGS {
        show.tell(&format!("warning: {} more warnings are not shown", all.len() - MOST_WARNINGS));
    }
}
