//! `weir.run`: a session in a thread of its own, while the calling thread looks for signals and shows the progress.

use crate::error;
use crate::lab::Lab;
use crate::progress::Shown;
use crate::result::RunResult;
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::ffi::CString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use weir_base::Raised;
use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_plan::Run;
use weir_record::Recorder;
use weir_session::{Caller, Done, Execution, SessionError, build_of, execute};
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
    let session = Session {
        lab: &lab,
        execution,
        build: build(py)?,
        cancel: AtomicBool::new(false),
        shown: Shown::new(),
        over: Mutex::new(false),
        changed: Condvar::new(),
    };
    let (interrupt, outcome) = session.run(py, progress)?;
    for note in session.shown.take_notes() {
        let note = CString::new(note.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1)?;
    }
    let done = match (interrupt, outcome) {
        (None, Err(SessionError::Engine(EngineError::Raised(Raised(raised))))) => {
            return Err(raised
                .downcast::<PyErr>()
                .map_or_else(|other| error::failed(other.to_string()), |raised| *raised));
        }
        (None, outcome) => outcome.map_err(error::session)?,
        (Some(interrupt), Err(kept @ SessionError::Interrupted { .. }))
            if interrupt.is_instance_of::<PyKeyboardInterrupt>(py) =>
        {
            return Err(PyKeyboardInterrupt::new_err(format!("{kept}; the same call resumes the run")));
        }
        (Some(interrupt), _) => return Err(interrupt),
    };
    if let Some((id, reason)) = done.tally.failed.first() {
        let (failed, wanted) = (done.tally.failed.len(), done.wanted);
        let message = format!("{failed} of {wanted} runs failed; the first is {id}: {reason}");
        return Err(error::error(message, "the same call tries them again"));
    }
    RunResult::of(py, done)
}

fn check_engine(on: &str) -> PyResult<()> {
    match on {
        "sim" => Ok(()),
        "live" | "sim,live" => Err(error::error(
            "the Python package runs labs on the simulator only",
            "`weir run LAB --on live` runs the lab on real Linux; weir.open(DIR) reads its results",
        )),
        other => Err(error::error(format!("there is no engine {other:?}"), "write \"sim\"")),
    }
}

/// The build of this package: runs of different builds are never mixed in one result folder.
fn build(py: Python<'_>) -> PyResult<&'static str> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(build);
    }
    let file: PathBuf = py.import("weir._weir")?.getattr("__file__")?.extract()?;
    Ok(BUILD.get_or_init(|| build_of(&file)))
}

/// A session and how it goes.
struct Session<'a> {
    lab: &'a weir_plan::Lab,
    execution: Execution<'a>,
    build: &'a str,
    cancel: AtomicBool,
    shown: Shown,
    over: Mutex<bool>,
    changed: Condvar,
}

/// Interval at which the calling thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// The exception of a signal handler, and how the session ended.
type Ended = (Option<PyErr>, Result<Done, SessionError>);

impl Session<'_> {
    /// Runs it to its end, or until a signal handler raises an exception.
    fn run(&self, py: Python<'_>, progress: bool) -> PyResult<Ended> {
        let line = progress.then(|| py.import("weir._progress")?.getattr("Line")?.call0()).transpose()?;
        thread::scope(|scope| {
            let work = thread::Builder::new().name("weir".into()).spawn_scoped(scope, || self.work());
            let work = work.map_err(|error| error::failed(format!("no thread for the runs: {error}")))?;
            let mut interrupt = None;
            while !py.detach(|| self.wait()) {
                if let Err(raised) = py.check_signals() {
                    self.cancel.store(true, Ordering::Relaxed);
                    interrupt.get_or_insert(raised);
                }
                if let (Some(line), Some(text)) = (&line, self.shown.take_text()) {
                    // What cannot be shown does not end the runs.
                    let _ = line.call_method1("show", (text,));
                }
            }
            if let Some(line) = &line {
                let _ = line.call_method0("clear");
            }
            let outcome = work.join().map_err(|_| error::failed("the session ended unexpectedly"))?;
            Ok((interrupt, outcome))
        })
    }

    fn work(&self) -> Result<Done, SessionError> {
        let _over = Over(self);
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(Attached(Simulator))];
        let caller = Caller { build: self.build, cancel: &self.cancel, show: &self.shown };
        execute(self.lab, &engines, &self.execution, &caller)
    }

    /// Waits a while, at most until the session is over; returns whether it is.
    fn wait(&self) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if *over {
            return true;
        }
        let waited = self.changed.wait_timeout(over, LOOK).unwrap_or_else(PoisonError::into_inner);
        *waited.0
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

/// Reports the end of a session when it is dropped, also if the session panics.
struct Over<'a>(&'a Session<'a>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        *self.0.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
