//! Exceptions: what is wrong, and what to do about it.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use weir_engine::{EngineError, FolderError, ResultsError};
use weir_plan::{Diagnostics, Problem};
use weir_report::plot::PlotError;
use weir_session::SessionError;

create_exception!(
    weir,
    Error,
    PyException,
    "Something that weir cannot do; `suggestion` says what would help, or is None."
);
create_exception!(
    weir,
    LabError,
    Error,
    "A lab that is wrong. `file`, `line` and `column` (from 1) are the place of the first problem, `suggestion` what to write \
     there; each is None if there is none. `problems` has all of them: (message, suggestion, file, line, column)."
);

/// An exception with a suggestion, in which options of the command line are arguments of Python.
pub(crate) fn error(message: impl Into<String>, help: &str) -> PyErr {
    let (message, help) = (message.into(), in_python(help));
    with(Error::new_err(format!("{message}\n  help: {help}")), |value| value.setattr("suggestion", help))
}

/// An exception for which there is no suggestion.
pub(crate) fn failed(message: impl Into<String>) -> PyErr {
    with(Error::new_err(message.into()), |value| value.setattr("suggestion", None::<String>))
}

/// Gives an exception its attributes.
fn with(error: PyErr, give: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| match give(error.value(py).as_any()) {
        Ok(()) => error,
        Err(other) => other,
    })
}

/// A suggestion of the command line in the words of Python: `--rerun` becomes `rerun=True`, `--out DIR` becomes `out=DIR`, and `--on sim`
/// becomes `on="sim"`.
fn in_python(help: &str) -> String {
    let help = help.replace("`--on sim`", "on=\"sim\"");
    let mut words = help.split(' ');
    let mut text: Vec<String> = vec![];
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").map(|name| name.replace('-', "_"));
        text.push(match option {
            Some(name) if matches!(name.as_str(), "rerun" | "log" | "allow_commands") => {
                format!("{name}=True")
            }
            Some(name) if name.ends_with([';', ',', ':']) => name,
            Some(name) => format!("{name}={}", words.next().unwrap_or_default()),
            None => word.into(),
        });
    }
    text.join(" ")
}

/// A lab that is wrong.
pub(crate) fn lab(diagnostics: Diagnostics) -> PyErr {
    let problems = diagnostics.problems();
    with(LabError::new_err(diagnostics.to_string()), |value| {
        let first = problems.first();
        let place = first.and_then(Problem::location);
        value.setattr("suggestion", first.and_then(Problem::suggestion))?;
        value.setattr("file", place.map(|place| place.0))?;
        value.setattr("line", place.map(|place| place.1))?;
        value.setattr("column", place.map(|place| place.2))?;
        let told = |problem: &Problem| {
            let place = problem.location();
            let (message, suggestion) =
                (problem.message().to_owned(), problem.suggestion().map(str::to_owned));
            (message, suggestion, place.map(|p| p.0.to_owned()), place.map(|p| p.1), place.map(|p| p.2))
        };
        value.setattr("problems", problems.iter().map(told).collect::<Vec<_>>())
    })
}

/// Results that cannot be read.
pub(crate) fn results(cause: ResultsError) -> PyErr {
    error(cause.to_string(), cause.help())
}

pub(crate) fn folder(cause: FolderError) -> PyErr {
    error(cause.to_string(), cause.help())
}

/// A plot that cannot be drawn.
pub(crate) fn plot(cause: PlotError) -> PyErr {
    match cause {
        PlotError::Asked { message, help } => error(message, &help),
        PlotError::Records(cause) => results(cause),
        PlotError::Drawing(_) => failed(cause.to_string()),
    }
}

/// A session that failed.
pub(crate) fn session(cause: SessionError) -> PyErr {
    match cause {
        SessionError::Asked { message, help } => error(message, &help),
        SessionError::Engine(EngineError::Unable { what, help }) => error(what, &help),
        SessionError::Folder(cause) => folder(cause),
        SessionError::Results(cause) => results(cause),
        SessionError::Engine(_) | SessionError::Report(_) | SessionError::Interrupted { .. } => {
            failed(cause.to_string())
        }
    }
}
