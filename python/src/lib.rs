//! The Python package `weir`: labs, runs and results, by the crates that the command line calls. A mistake of the caller, a lab
//! that is wrong and a folder that cannot be used are Python exceptions. `run.rs` is the file to open first.

mod attended;
mod compare;
mod describe;
mod error;
mod lab;
mod live;
mod progress;
mod prototype;
mod result;
mod run;
mod session;
mod sweep;
mod table;
mod value;

use pyo3::prelude::*;

/// Labs, runs and results of weir.
#[pymodule]
fn _weir(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("_COMMIT", env!("WEIR_COMMIT"))?;
    module.add("Error", py.get_type::<error::Error>())?;
    module.add("LabError", py.get_type::<error::LabError>())?;
    module.add_class::<lab::Lab>()?;
    module.add_class::<result::RunResult>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<compare::Comparison>()?;
    prototype::register(module)?;
    sweep::register(module)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(live::enter, module)?)?;
    module.add_function(wrap_pyfunction!(live::run_here, module)?)?;
    module.add_function(wrap_pyfunction!(describe::tables, module)?)?;
    module.add_function(wrap_pyfunction!(describe::setting, module)?)?;
    module.add_function(wrap_pyfunction!(describe::members, module)?)?;
    module.add_function(wrap_pyfunction!(result::open, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)
}
