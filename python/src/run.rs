//! `weir.run`: a session of the simulator, of real Linux, or of both.

use crate::attended::{Attended, line};
use crate::error;
use crate::lab::Lab;
use crate::live;
use crate::result::RunResult;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_live::Live;
use weir_plan::Run;
use weir_record::Recorder;
use weir_session::{Done, Execution, execute};
use weir_sim::Simulator;

/// Runs a lab, as `weir run` does, and returns its result.
///
/// lab: the lab.
/// on: the engine: "sim", the simulator; "live", real Linux with its own TCP in network namespaces; or "sim,live", both.
/// jobs: number of simulated runs side by side; all cores by default. Live runs take turns.
/// out: the result folder, by default results/NAME. Runs that it holds already are kept, and the others are done.
/// progress: whether the progress is shown on sys.stderr.
/// rerun: whether runs that the folder holds are done again.
/// report: whether the report is written.
/// allow_commands: whether the lab's commands may run on this machine, as the user who runs Python. Without it, a lab that has some is
/// refused on real Linux, and the exception shows them.
///
/// An exception in a controller or a queue that is a Python class ends the runs, and is raised here.
///
/// Other threads of Python run meanwhile. Ctrl-C ends the runs and raises KeyboardInterrupt; finished runs stay in the folder,
/// and the same call goes on with the others. Live runs need root, or user namespaces (`weir doctor`); they are done by a process of their
/// own, which ends with Python, however that ends. Raises Error if a run fails, if this machine cannot do it or the folder cannot be used.
#[pyfunction]
#[pyo3(signature = (lab, on = "sim", jobs = None, out = None, progress = true, rerun = false, report = true, allow_commands = false))]
#[expect(clippy::too_many_arguments, reason = "in Python they are named")]
pub(crate) fn run(
    py: Python<'_>,
    lab: &Bound<'_, Lab>,
    on: &str,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: bool,
    rerun: bool,
    report: bool,
    allow_commands: bool,
) -> PyResult<RunResult> {
    let names = Name::all(on)?;
    let jobs = jobs.map(|jobs| {
        NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is a number of at least 1"))
    });
    let jobs = jobs.transpose()?;
    // A class that the lab names may have been replaced since the lab was read.
    let lab = lab.borrow().again()?;
    // A lab whose claims are wrong is not run.
    weir_study::claims(&lab).map_err(error::lab)?;
    let out = out.unwrap_or_else(|| PathBuf::from("results").join(lab.name()));
    let wanted = Wanted { out, jobs, rerun, report };
    let line = progress.then(|| line(py)).transpose()?;
    if names.contains(&Name::Live) {
        return live::run(py, &lab, on, &wanted, line, allow_commands);
    }
    let done = Attended::new(py)?.run(py, line, |caller| {
        let engines: Vec<Box<dyn Engine>> = names.iter().map(|name| name.engine()).collect();
        execute(&lab, &engines, &execution(&wanted), caller)
    })?;
    concluded(py, done)
}

/// What a session is to do, beside the lab and the engines.
pub(crate) struct Wanted {
    pub(crate) out: PathBuf,
    pub(crate) jobs: Option<NonZeroUsize>,
    pub(crate) rerun: bool,
    pub(crate) report: bool,
}

/// The execution that does it.
pub(crate) fn execution(wanted: &Wanted) -> Execution<'static> {
    Execution {
        out: wanted.out.clone(),
        jobs: wanted.jobs,
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        rerun: wanted.rerun,
        only: &[],
        retries: 1,
        report: wanted.report,
    }
}

/// The result of a session.
///
/// # Errors
/// A run has failed.
pub(crate) fn concluded(py: Python<'_>, done: Done) -> PyResult<RunResult> {
    refuse_failed(&done)?;
    RunResult::of(py, done)
}

/// Refuses a session of which a run has failed.
pub(crate) fn refuse_failed(done: &Done) -> PyResult<()> {
    let Some((id, reason)) = done.tally.failed.first() else { return Ok(()) };
    let (failed, wanted) = (done.tally.failed.len(), done.wanted);
    let message = format!("{failed} of {wanted} runs failed; the first is {id}: {reason}");
    Err(error::error(message, "the same call tries them again"))
}

/// An engine by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Sim,
    Live,
}

impl Name {
    /// The engines that a text names, each once: "sim", "live" or both with a comma between.
    pub(crate) fn all(on: &str) -> PyResult<Vec<Name>> {
        let named = |name: &str| match name.trim() {
            "sim" => Ok(Name::Sim),
            "live" => Ok(Name::Live),
            other => Err(error::error(
                format!("there is no engine {other:?}"),
                "write \"sim\", \"live\" or \"sim,live\"",
            )),
        };
        let mut names = vec![];
        for name in on.split(',') {
            let name = named(name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(crate) fn engine(self) -> Box<dyn Engine> {
        match self {
            Name::Sim => Box::new(Attached(Simulator)),
            Name::Live => Box::new(Live),
        }
    }
}

/// The simulator. Runs with controllers or queues that are Python classes hold the interpreter's lock, which their hooks need for each
/// packet. They release it now and then, and Python does while it runs hooks.
struct Attached(Simulator);

impl Engine for Attached {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn runs_alone(&self) -> bool {
        self.0.runs_alone()
    }

    fn check(&self, run: &Run) -> Result<(), EngineError> {
        self.0.check(run)
    }

    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        if run.prototypes().is_empty() {
            return self.0.run(run, recorder, watch);
        }
        let progress = |share| Python::attach(|py| py.detach(|| (watch.progress)(share)));
        let Watch { cancel, capture, folder, .. } = watch;
        let watch = Watch { cancel, progress: &progress, capture: capture.clone(), folder: *folder };
        Python::attach(|_| self.0.run(run, recorder, &watch))
    }
}
