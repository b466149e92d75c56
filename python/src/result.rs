//! Results: folders that weir.run() or the command line wrote.

use crate::error;
use crate::lab::Lab;
use crate::table::Table;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use weir_engine::Results;
use weir_record::{Cells, Frame, FrameColumn, Gathered, Records, Summary, Tidy};
use weir_report::plot::{Figure, Kind, PIXELS, Wanted};
use weir_session::Done;

/// A batch of records has at least so many rows, if there are so many: what takes a table looks at each column of each batch.
const BATCH: usize = 1 << 16;

/// Opens a result folder, which weir.run() or `weir run` has written. Its records are read when they are first needed.
///
/// Raises Error if the folder holds no results or cannot be read.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, folder: PathBuf) -> PyResult<RunResult> {
    let results = py.detach(|| Results::open(&folder)).map_err(error::results)?;
    Ok(RunResult { results, summary: OnceLock::new() })
}

/// The result of a lab: its tidy tables, its records and plots of its metrics.
#[pyclass(module = "weir", name = "Result", frozen)]
pub(crate) struct RunResult {
    results: Results,
    /// The metrics, once they were asked for.
    summary: OnceLock<Summary>,
}

impl RunResult {
    /// The result of a session.
    pub(crate) fn of(py: Python<'_>, done: Done) -> PyResult<RunResult> {
        let results = py.detach(|| Results::open(done.path())).map_err(error::results)?;
        Ok(RunResult { results, summary: OnceLock::from(done.summary) })
    }

    /// The metrics of all runs.
    pub(crate) fn summary(&self, py: Python<'_>) -> PyResult<&Summary> {
        if let Some(summary) = self.summary.get() {
            return Ok(summary);
        }
        let found = py.detach(|| match self.results.written_summary() {
            Some(written) => Ok(written),
            None => self.results.summary(None),
        });
        let found = found.map_err(error::results)?;
        Ok(self.summary.get_or_init(|| found))
    }

    fn tidy(&self, py: Python<'_>, tidy: Tidy) -> PyResult<Table> {
        let summary = self.summary(py)?;
        Table::new(vec![py.detach(|| Frame::tidy(tidy, summary))])
    }
}

#[pymethods]
impl RunResult {
    /// The result folder.
    #[getter]
    fn path(&self) -> &Path {
        &self.results.path
    }

    /// The lab as it was run.
    #[getter]
    fn lab(&self) -> Lab {
        Lab::of(&self.results.lab, &self.results.path)
    }

    /// Whether no run of the lab's tree is missing.
    #[getter]
    fn is_complete(&self) -> bool {
        self.results.count().is_complete()
    }

    /// A row for each run, and one for each of its named windows: the chosen label on each level, and the run's metrics.
    #[getter]
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        self.tidy(py, Tidy::Runs)
    }

    /// A row for each flow without random arrivals, with the flow's metrics.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        self.tidy(py, Tidy::Flows)
    }

    /// A row for each traffic group, with the group's metrics.
    #[getter]
    fn groups(&self, py: Python<'_>) -> PyResult<Table> {
        self.tidy(py, Tidy::Groups)
    }

    /// A row for each link and one for each class of its packets, with the link's metrics.
    #[getter]
    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        self.tidy(py, Tidy::Links)
    }

    /// The records of all runs, or of the run with this id: links, delays, flows, rtts, transits, transport, states, events,
    /// decisions, messages or packets. The first column is the run's id; times are in nanoseconds from the run's start.
    ///
    /// Raises Error if there is no such table or run, or if records cannot be read.
    #[pyo3(signature = (table, run = None))]
    fn records(&self, py: Python<'_>, table: &str, run: Option<&str>) -> PyResult<Table> {
        let all = weir_record::Table::ALL;
        let named = all.into_iter().find(|known| known.name() == table);
        let named = named.ok_or_else(|| {
            let names = all.iter().map(|known| known.name());
            error::error(format!("there is no table {table:?} of records"), &weir_plan::suggest(table, names))
        })?;
        let runs = &self.results.runs;
        let ids = runs.iter().map(|run| run.file.id.as_str());
        if let Some(run) = run.filter(|run| !ids.clone().any(|id| id == *run)) {
            return Err(error::error(format!("there is no run {run:?}"), &weir_plan::suggest(run, ids)));
        }
        let wanted = |place: usize| run.is_none_or(|run| runs[place].file.id == run);
        let read = py.detach(|| self.results.frames(named, wanted)).map_err(error::results)?;
        let mut frames: Vec<Frame> = vec![];
        for (run, frame) in read {
            let frame = of_run(frame, &run.file.id);
            let separate = match frames.last_mut() {
                Some(last) if last.rows < BATCH => last.append(frame).err(),
                _ => Some(frame),
            };
            frames.extend(separate);
        }
        if frames.is_empty() {
            let none = Frame::of_gathered(&Gathered::from(&Records::default()), named);
            frames.push(of_run(none.map_err(|error| error::failed(error.to_string()))?, ""));
        }
        Table::new(frames)
    }

    /// A plot as SVG, as `weir plot` draws it.
    ///
    /// metric: the metric, such as "queue_delay_ms"; `weir list metrics` prints all.
    /// kind: "time", "cdf", "bars", "lines", "heat" or "delay-throughput".
    /// of: the metric's link or group, if there are several.
    /// by: the level whose labels have a colour each. along: the level along the horizontal axis.
    /// only: a dict of labels that are kept, by level. mean_over: levels over whose labels the mean is taken.
    /// log: whether the axis of values ("cdf") or of the level ("lines") is logarithmic.
    /// title: a title other than the metric's. size: width and height in pixels.
    ///
    /// Raises Error if the result does not have what the plot asks for.
    #[pyo3(signature = (metric = None, kind = "bars", *, of = None, by = None, along = None, only = None, mean_over = vec![],
        log = false, title = None, size = None))]
    #[expect(clippy::too_many_arguments, reason = "in Python they are named")]
    fn plot(
        &self,
        py: Python<'_>,
        metric: Option<String>,
        kind: &str,
        of: Option<String>,
        by: Option<String>,
        along: Option<String>,
        only: Option<BTreeMap<String, String>>,
        mean_over: Vec<String>,
        log: bool,
        title: Option<String>,
        size: Option<(u32, u32)>,
    ) -> PyResult<String> {
        if size.is_some_and(|(width, height)| !PIXELS.contains(&width) || !PIXELS.contains(&height)) {
            let (least, most) = (PIXELS.start(), PIXELS.end());
            return Err(PyValueError::new_err(format!("a plot is {least} to {most} pixels wide and high")));
        }
        let only = only.unwrap_or_default().into_iter().collect();
        let wanted =
            Wanted { kind: kind_of(kind)?, metric, of, by, along, only, mean_over, log, title, size };
        py.detach(|| Figure::of(&self.results, &wanted)?.svg()).map_err(error::plot)
    }

    fn __repr__(&self) -> String {
        format!("<weir.Result {:?}, {}>", self.results.path.display().to_string(), self.results.count())
    }
}

const KINDS: [(&str, Kind); 6] = [
    ("time", Kind::Time),
    ("cdf", Kind::Cdf),
    ("bars", Kind::Bars),
    ("lines", Kind::Lines),
    ("heat", Kind::Heat),
    ("delay-throughput", Kind::DelayThroughput),
];

fn kind_of(name: &str) -> PyResult<Kind> {
    let known = KINDS.iter().find(|(known, _)| *known == name);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        let help = weir_plan::suggest(name, KINDS.iter().map(|(known, _)| *known));
        error::error(format!("there is no kind {name:?} of plots"), &help)
    })
}

/// The rows of a run, with its id in the first column.
fn of_run(mut frame: Frame, id: &str) -> Frame {
    let cells = Cells::Names(vec![0; frame.rows], vec![Arc::from(id)]);
    frame.columns.insert(0, FrameColumn { name: "run".into(), cells });
    frame
}
