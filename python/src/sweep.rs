//! What `weir.sweep` needs of the engine: the parts of a lab, one part run in a worker, and the result folder that takes them in.
//! `weir/_sweep.py` brings the parts to workers and back.

use crate::attended::{Attended, build};
use crate::error;
use crate::lab::Lab;
use crate::result::RunResult;
use crate::session::{Name, concluded};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use weir_session::{Plan, Sweep, run_part};
use weir_sim::Simulator;

/// Adds what the sweep needs to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Parts>()?;
    module.add_function(wrap_pyfunction!(part, module)?)?;
    module.add_function(wrap_pyfunction!(own_build, module)?)
}

/// The build of this package: its version, and a hash of what the linker made.
#[pyfunction(name = "_build")]
fn own_build(py: Python<'_>) -> PyResult<&'static str> {
    build(py)
}

/// Runs some runs of a lab, by their numbers in its tree, into a new result folder, with what `_Parts.take_in` needs of them. Other threads
/// of Python run meanwhile. Returns the runs that failed: id and reason.
#[pyfunction(name = "_part")]
fn part(
    py: Python<'_>,
    lab: PyRef<'_, Lab>,
    runs: Vec<usize>,
    size: Option<usize>,
    out: PathBuf,
    groups: Option<Vec<String>>,
) -> PyResult<Vec<(String, String)>> {
    let build = build(py)?;
    let lab = lab.plan();
    if runs.iter().any(|&run| run >= lab.run_count()) || size == Some(0) {
        return Err(PyValueError::new_err("the lab has no such runs"));
    }
    py.detach(|| run_part(lab, &runs, size, &Simulator, build, &out, groups.as_deref()))
        .map_err(error::folder)
}

/// The parts of a lab that a result folder does not hold yet, and the folder, which no other process writes into meanwhile.
#[pyclass(module = "weir", name = "_Parts")]
struct Parts(Option<Sweep>);

impl Parts {
    fn open(&self) -> PyResult<&Sweep> {
        self.0.as_ref().ok_or_else(closed)
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the sweep has ended")
}

#[pymethods]
impl Parts {
    #[new]
    fn new(
        py: Python<'_>,
        lab: &Lab,
        on: &str,
        out: Option<PathBuf>,
        rerun: bool,
        report: bool,
        most: usize,
    ) -> PyResult<Parts> {
        if Name::all(on)?.contains(&Name::Live) {
            return Err(error::error(
                "a cluster runs labs on the simulator only",
                "weir.run(lab, on=\"live\") runs the lab on real Linux, on this machine",
            ));
        }
        let lab = lab.again()?;
        weir_study::claims(&lab).map_err(error::lab)?;
        let out = out.unwrap_or_else(|| PathBuf::from("results").join(lab.name()));
        let plan = Plan { out, rerun, report, most };
        let sweep =
            Attended::new(py)?.run(py, None, |caller| Sweep::open(lab, plan, Box::new(Simulator), caller))?;
        Ok(Parts(Some(sweep)))
    }

    /// The folder that the results go to.
    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.open()?.path().to_owned())
    }

    /// The name of each missing part, and the numbers of its runs.
    #[getter]
    fn missing(&self) -> PyResult<Vec<(String, Vec<usize>)>> {
        Ok(self.open()?.parts().iter().map(|part| (part.name.clone(), part.runs.clone())).collect())
    }

    /// Number of runs in a shard; None if each run has a folder of its own.
    #[getter]
    fn size(&self) -> PyResult<Option<usize>> {
        Ok(self.open()?.size())
    }

    /// Names of the lab's traffic groups, which the tasks' share of the report depends on; None if there is no report.
    #[getter]
    fn groups(&self) -> PyResult<Option<Vec<String>>> {
        Ok(self.open()?.groups().map(<[String]>::to_vec))
    }

    /// Number of the lab's runs.
    #[getter]
    fn run_count(&self) -> PyResult<usize> {
        Ok(self.open()?.run_count())
    }

    /// Takes in a part from the folder that it was run into.
    fn take_in(
        &mut self,
        py: Python<'_>,
        part: usize,
        from: PathBuf,
        failed: Vec<(String, String)>,
    ) -> PyResult<()> {
        let sweep = self.0.as_mut().ok_or_else(closed)?;
        if part >= sweep.parts().len() {
            return Err(PyValueError::new_err("there is no such part"));
        }
        py.detach(|| sweep.take_in(part, &from, failed)).map_err(error::session)
    }

    /// Writes summary and report, and returns the result.
    fn finish(&mut self, py: Python<'_>) -> PyResult<RunResult> {
        let sweep = self.0.take().ok_or_else(closed)?;
        let done = Attended::new(py)?.run(py, None, |_| sweep.finish())?;
        concluded(py, done)
    }

    /// Gives the folder free.
    fn close(&mut self) {
        self.0 = None;
    }
}
