//! `weir.run`: a session of the simulator.

use crate::attended::Attended;
use crate::error;
use crate::lab::Lab;
use crate::result::RunResult;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_plan::Run;
use weir_record::Recorder;
use weir_session::{Done, Execution, execute};
use weir_sim::Simulator;

/// Runs a lab, as `weir run` does, and returns its result.
///
/// lab: the lab.
/// on: the engine, "sim". The command line runs labs on real Linux.
/// jobs: number of runs side by side; all cores by default.
/// out: the result folder, by default results/NAME. Runs that it holds already are kept, and the others are done.
/// progress: whether the progress is shown on sys.stderr.
/// rerun: whether runs that the folder holds are done again.
/// report: whether the report is written.
///
/// An exception in a controller or a queue that is a Python class ends the runs, and is raised here.
///
/// Other threads of Python run meanwhile. Ctrl-C ends the runs and raises KeyboardInterrupt; finished runs stay in the folder,
/// and the same call goes on with the others. Raises Error if a run fails or the folder cannot be used.
#[pyfunction]
#[pyo3(signature = (lab, on = "sim", jobs = None, out = None, progress = true, rerun = false, report = true))]
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
) -> PyResult<RunResult> {
    check_engine(on)?;
    let jobs = jobs.map(|jobs| {
        NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is a number of at least 1"))
    });
    let jobs = jobs.transpose()?;
    // A class that the lab names may have been replaced since the lab was read.
    let lab = lab.borrow().again()?;
    // A lab whose claims are wrong is not run.
    weir_study::claims(&lab).map_err(error::lab)?;
    let execution = Execution {
        out: out.unwrap_or_else(|| PathBuf::from("results").join(lab.name())),
        jobs,
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        rerun,
        only: &[],
        retries: 1,
        report,
    };
    let done = Attended::new(py)?.run(py, progress, |caller| {
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(Attached(Simulator))];
        execute(&lab, &engines, &execution, caller)
    })?;
    concluded(py, done)
}

/// The result of a session.
///
/// # Errors
/// A run has failed.
pub(crate) fn concluded(py: Python<'_>, done: Done) -> PyResult<RunResult> {
    if let Some((id, reason)) = done.tally.failed.first() {
        let (failed, wanted) = (done.tally.failed.len(), done.wanted);
        let message = format!("{failed} of {wanted} runs failed; the first is {id}: {reason}");
        return Err(error::error(message, "the same call tries them again"));
    }
    RunResult::of(py, done)
}

pub(crate) fn check_engine(on: &str) -> PyResult<()> {
    match on {
        "sim" => Ok(()),
        "live" | "sim,live" => Err(error::error(
            "the Python package runs labs on the simulator only",
            "`weir run LAB --on live` runs the lab on real Linux; weir.open(DIR) reads its results",
        )),
        other => Err(error::error(format!("there is no engine {other:?}"), "write \"sim\"")),
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
