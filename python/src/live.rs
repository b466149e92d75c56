//! Labs on real Linux. The engine works in a process of its own (`weir/_live.py`), which this module starts, and is called by.
//!
//! An ordinary user makes network namespaces in a user namespace, which a process with several threads cannot enter. The engine also locks
//! the memory of its process, and its threads have real-time priorities. A program in Python is to have none of this.

use crate::attended::{Attended, warn};
use crate::error;
use crate::lab::Lab;
use crate::result::{RunResult, open};
use crate::session::{Name, Wanted, execution, refuse_failed};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;
use weir_engine::Engine;
use weir_live::doctor::{Check, Status, namespaces};
use weir_plan::Run;
use weir_session::{NOT_PERMITTED, PERMIT, commands_of, execute};

/// Runs a lab in a process of its own.
///
/// # Errors
/// The lab has commands that were not permitted, or classes of Python; or as for a session here.
pub(crate) fn run(
    py: Python<'_>,
    lab: &weir_plan::Lab,
    on: &str,
    wanted: &Wanted,
    line: Option<Bound<'_, PyAny>>,
    allow_commands: bool,
) -> PyResult<RunResult> {
    check(lab, allow_commands)?;
    let Wanted { out, jobs, rerun, report } = wanted;
    let attachments = lab.attachments().map(|(path, bytes)| (path, Cow::Borrowed(bytes)));
    let attachments: Vec<(String, Cow<'_, [u8]>)> = attachments.collect();
    let asked = (lab.source(), attachments, on, out, jobs.map(NonZeroUsize::get), *rerun, *report);
    let answer = py.import("weir._live")?.getattr("run")?.call1((asked, line))?;
    let (path, notes): (PathBuf, Vec<String>) = answer.extract()?;
    warn(py, notes)?;
    open(py, path)
}

/// Refuses a lab that is not to run here.
fn check(lab: &weir_plan::Lab, allow_commands: bool) -> PyResult<()> {
    let runs = lab.runs();
    if let Some(named) = runs.iter().flat_map(Run::prototypes).next() {
        let message = format!(
            "the {} {:?} is a Python class, which runs on the simulator only",
            named.prototype.what, named.prototype.name
        );
        return Err(error::error(message, "write on=\"sim\""));
    }
    if runs.iter().flat_map(|run| &run.groups).any(|group| group.overlay.is_some()) {
        check_program()?;
    }
    let commands = commands_of(lab);
    if commands.is_empty() || allow_commands {
        return Ok(());
    }
    Err(error::error(format!("{commands}{NOT_PERMITTED}"), PERMIT))
}

/// The nodes of an overlay are daemons of the program `weir`: refuses to go on without one, or with one of another build.
fn check_program() -> PyResult<()> {
    let own = format!("weir {} ({})", env!("CARGO_PKG_VERSION"), env!("WEIR_COMMIT"));
    let asked = Command::new("weir").arg("--version").output();
    let found = asked.as_ref().map(|output| String::from_utf8_lossy(&output.stdout));
    let found = match &found {
        Ok(found) if found.trim() == own => return Ok(()),
        Ok(found) => format!("is {:?}", found.trim()),
        Err(_) => "is not there".into(),
    };
    let message = format!(
        "the overlay needs the program `weir` for its daemons, and that in PATH {found}; this package is {own}"
    );
    Err(error::error(message, "put the program of the same commit first in PATH, or write on=\"sim\""))
}

/// Prepares this process for live runs: it ends with the thread of process `parent` that has started it. It must have a single thread.
///
/// Raises Error if it cannot make network namespaces.
#[pyfunction(name = "_enter")]
pub(crate) fn enter(parent: u32) -> PyResult<()> {
    let privilege = weir_linux::enter();
    let ends = weir_linux::process::end_with(parent);
    if !ends.map_err(|error| error::failed(format!("this process cannot be tied to Python's: {error}")))? {
        std::process::exit(1);
    }
    let Check { name, finding, status, advice } = namespaces(privilege);
    match status {
        Status::Bad => Err(error::error(format!("{name}: {finding}"), &advice)),
        Status::Ok | Status::Warn => Ok(()),
    }
}

/// Runs a lab in this process, which is prepared for it. `line` shows the progress. Returns the result folder.
#[pyfunction(name = "_run_here")]
#[expect(clippy::too_many_arguments, reason = "they are those of weir.run")]
pub(crate) fn run_here(
    py: Python<'_>,
    lab: PyRef<'_, Lab>,
    on: &str,
    out: PathBuf,
    jobs: Option<NonZeroUsize>,
    rerun: bool,
    report: bool,
    line: Bound<'_, PyAny>,
) -> PyResult<PathBuf> {
    let names = Name::all(on)?;
    let lab = lab.plan();
    let wanted = Wanted { out, jobs, rerun, report };
    let done = Attended::new(py)?.run(py, Some(line), |caller| {
        let engines: Vec<Box<dyn Engine>> = names.iter().map(|name| name.engine()).collect();
        execute(lab, &engines, &execution(&wanted), caller)
    })?;
    refuse_failed(&done)?;
    Ok(done.path().to_owned())
}
