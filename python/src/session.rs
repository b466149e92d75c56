//! What `weir.run` and `weir.sweep` share with the process of live runs: the engines by their names, what a session is to do, and its
//! result.

use crate::error;
use crate::result::RunResult;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_live::Live;
use weir_plan::Run;
use weir_record::Recorder;
use weir_session::{Done, Execution};
use weir_sim::Simulator;

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
