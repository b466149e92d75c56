//! Work in a thread of its own, while the calling thread looks for signals and shows the progress.

use crate::error;
use crate::progress::Shown;
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use weir_base::Raised;
use weir_engine::EngineError;
use weir_session::{Caller, SessionError, build_of};

/// Interval at which the calling thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// How the work goes.
pub(crate) struct Attended {
    build: &'static str,
    cancel: AtomicBool,
    shown: Shown,
    over: Mutex<bool>,
    changed: Condvar,
}

impl Attended {
    /// Work that has not begun.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Attended> {
        Ok(Attended {
            build: build(py)?,
            cancel: AtomicBool::new(false),
            shown: Shown::new(),
            over: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Does the work to its end, or until a signal handler raises an exception. `line` shows the progress. Notes become warnings of Python.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        line: Option<Bound<'_, PyAny>>,
        work: impl FnOnce(&Caller<'_>) -> Result<T, SessionError> + Send,
    ) -> PyResult<T> {
        let ended = thread::scope(|scope| {
            let work = || {
                let _over = Over(self);
                work(&Caller { build: self.build, cancel: &self.cancel, show: &self.shown })
            };
            let work = thread::Builder::new().name("weir".into()).spawn_scoped(scope, work);
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
            Ok::<_, PyErr>((interrupt, outcome))
        });
        let (interrupt, outcome) = ended?;
        warn(py, self.shown.take_notes())?;
        match (interrupt, outcome) {
            (None, Err(SessionError::Engine(EngineError::Raised(Raised(raised))))) => Err(raised
                .downcast::<PyErr>()
                .map_or_else(|other| error::failed(other.to_string()), |raised| *raised)),
            (None, outcome) => outcome.map_err(error::session),
            (Some(interrupt), Err(kept @ SessionError::Interrupted { .. }))
                if interrupt.is_instance_of::<PyKeyboardInterrupt>(py) =>
            {
                Err(PyKeyboardInterrupt::new_err(format!("{kept}; the same call resumes the run")))
            }
            (Some(interrupt), _) => Err(interrupt),
        }
    }

    /// Waits a while, at most until the work is over; returns whether it is.
    fn wait(&self) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if *over {
            return true;
        }
        let waited = self.changed.wait_timeout(over, LOOK).unwrap_or_else(PoisonError::into_inner);
        *waited.0
    }
}

/// Reports the end of the work when it is dropped, also if the work panics.
struct Over<'a>(&'a Attended);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        *self.0.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// The line on sys.stderr that shows how far a session is.
pub(crate) fn line(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("weir._progress")?.getattr("Line")?.call0()
}

/// Makes notes warnings of Python.
pub(crate) fn warn(py: Python<'_>, notes: Vec<String>) -> PyResult<()> {
    for note in notes {
        let note = CString::new(note.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1)?;
    }
    Ok(())
}

/// The build of this package: runs of different builds are never mixed in one result folder.
pub(crate) fn build(py: Python<'_>) -> PyResult<&'static str> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(build);
    }
    let file: PathBuf = py.import("weir._weir")?.getattr("__file__")?.extract()?;
    Ok(BUILD.get_or_init(|| build_of(&file)))
}
