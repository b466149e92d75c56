//! `weir.run`: a session of the simulator, of real Linux, or of both.

use crate::attended::{Attended, line};
use crate::error;
use crate::lab::Lab;
use crate::live;
use crate::result::RunResult;
use crate::session::{Name, Wanted, concluded, execution};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_engine::Engine;
use weir_session::execute;

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
