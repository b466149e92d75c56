//! The report: a self-contained folder of HTML that opens from disk, and the tables that `weir run` and `weir compare`
//! end with. Every number comes from [`model::Lab`] and [`model::RunSeries`], which are computed from records and
//! metrics only; every page opens with a sentence made from the numbers ([`sentence`]).

mod charts;
mod environment;
mod folder;
mod html;
pub mod model;
mod number;
mod pages;
mod script;
pub mod sentence;
mod source;
mod table;
mod tables;
mod verdict;

pub use table::{compare_table, table};

use folder::Folder;
use model::{Lab, RunNumbers, RunSeries};
use pages::{Pages, both_file, run_file};
use std::path::{Path, PathBuf};
use weir_base::Span;
use weir_engine::{FinishedRun, Results};
use weir_record::Summary;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A run's records could not be read.
    #[error("the records of run {run} ({engine}) cannot be read: {why}")]
    Records {
        /// The run.
        run: String,
        /// Its engine.
        engine: String,
        /// What went wrong.
        why: String,
    },
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

/// What stands in `report/assets/` of every report.
const ASSETS: [(&str, &str); 7] = [
    ("weir.css", include_str!("../assets/weir.css")),
    ("weir.js", include_str!("../assets/weir.js")),
    ("index.js", include_str!("../assets/index.js")),
    ("compare.js", include_str!("../assets/compare.js")),
    ("run.js", include_str!("../assets/run.js")),
    ("uplot.js", include_str!("../assets/uplot.js")),
    ("uplot.css", include_str!("../assets/uplot.css")),
];

/// Licence of the plot library, written beside it.
const UPLOT_LICENSE: &str = include_str!("../assets/uplot-LICENSE");

/// Writes the report of a result folder into it: pages from the summary's metrics, series from the records. `warmup` is the
/// one that the summary was computed with, where it is not the runs' own; plots show the whole run and shade it.
///
/// # Errors
/// A file that cannot be written, or records that cannot be read.
pub fn write(results: &Results, summary: &Summary, warmup: Option<Span>) -> Result<(), ReportError> {
    let mut lab = source::lab(summary, &results.runs);
    if let Some(warmup) = warmup {
        lab.runs.iter_mut().for_each(|run| run.warmup_s = warmup.as_secs_f64());
    }
    let runs = lab.runs.len();
    let mut found = results.runs.iter();
    let series = |run: &RunNumbers| {
        let fail =
            |why: String| ReportError::Records { run: run.id.clone(), engine: run.engine.clone(), why };
        let finished: &FinishedRun =
            found.next().ok_or_else(|| fail("the summary has more runs than the folder".into()))?;
        let records = finished.records().map_err(|error| fail(error.to_string()))?;
        Ok(charts::charts(&finished.info, &records, runs))
    };
    write_pages(&results.path, &lab, series)
}

/// Writes the pages of a lab into its result folder: `index.html`, and all else below `report/`. Series are asked for one
/// run at a time, so that a lab of thousands of runs needs no more memory than one.
///
/// # Errors
/// A file that cannot be written, or what `series` answered.
pub fn write_pages(
    folder: &Path,
    lab: &Lab,
    mut series: impl FnMut(&RunNumbers) -> Result<RunSeries, ReportError>,
) -> Result<(), ReportError> {
    let mut out = Folder::new(folder);
    let pages = Pages::new(lab);
    for (name, content) in ASSETS {
        out.write(&format!("report/assets/{name}"), content.as_bytes())?;
    }
    out.write("report/assets/uplot-LICENSE", UPLOT_LICENSE.as_bytes())?;
    for (place, run) in lab.runs.iter().enumerate() {
        let script = script::series(run, &series(run)?, &pages.colours);
        out.write(&run_file(run, "js"), script.as_bytes())?;
        out.write(&run_file(run, "html"), pages.run(place).as_bytes())?;
    }
    for run in lab.runs.iter().filter(|run| run.engine == "sim") {
        if let Some(twin) = pages.twin(run) {
            out.write(&both_file(&run.id), pages.both(run, twin).as_bytes())?;
        }
    }
    out.write("report/lab.js", script::lab(lab).as_bytes())?;
    out.write("report/compare.html", pages.comparison().as_bytes())?;
    out.write("index.html", pages.index().as_bytes())?;
    out.sweep()
}
