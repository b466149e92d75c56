//! The report: a self-contained folder of HTML that opens from disk, and the tables that `weir run` and `weir compare`
//! end with. Every number comes from [`lab::Lab`] and [`charts::RunSeries`], which are computed from records and
//! metrics only; every page opens with a sentence made from the numbers ([`sentence`]).
//!
//! In goes a result folder's lab; out come pages, plots and tables. `lab.rs` is the file to open first.

mod absent;
mod answer;
pub mod charts;
mod columns;
mod compact;
mod comparison;
mod environment;
mod events;
pub mod fit;
mod folder;
mod growing;
pub mod html;
pub mod lab;
mod limited;
pub mod naming;
mod network;
pub mod number;
pub mod overlay;
mod pages;
pub mod plot;
mod repeats;
mod scatter;
mod script;
mod scripting;
pub mod sentence;
mod table;
mod tables;
mod ticks;
mod tiles;
mod trajectories;
mod verdict;
mod waits;
mod warnings;
mod windows;

pub use comparison::{Side, write_comparison};
pub use folder::Folder;
pub use growing::{Growing, write_assets};
pub use lab::Judged;
pub use scripting::Scripting;
pub use table::{Columns, compare_table, table, table_of};
pub use tables::class_name;
pub use trajectories::{Chosen, Trajectories};

use charts::RunSeries;
use growing::Series;
use lab::{Lab, Run};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use weir_base::Span;
use weir_engine::{Results, ResultsError};
use weir_record::Summary;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A run's records could not be read.
    #[error(transparent)]
    Records(#[from] ResultsError),
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: std::io::Error,
}

/// The files in `report/assets/` of every report: names and contents.
pub const ASSETS: [(&str, &str); 18] = [
    ("weir.css", include_str!("../assets/weir.css")),
    ("weir.js", include_str!("../assets/weir.js")),
    ("index.js", include_str!("../assets/index.js")),
    ("views.js", include_str!("../assets/views.js")),
    ("overlay.js", include_str!("../assets/overlay.js")),
    ("tree.js", include_str!("../assets/tree.js")),
    ("compare.js", include_str!("../assets/compare.js")),
    ("trajectories.js", include_str!("../assets/trajectories.js")),
    ("pictures.js", include_str!("../assets/pictures.js")),
    ("save.js", include_str!("../assets/save.js")),
    ("plot.js", include_str!("../assets/plot.js")),
    ("flows.js", include_str!("../assets/flows.js")),
    ("topology.js", include_str!("../assets/topology.js")),
    ("admission.js", include_str!("../assets/admission.js")),
    ("run.js", include_str!("../assets/run.js")),
    ("piece.js", include_str!("../assets/piece.js")),
    ("uplot.js", include_str!("../assets/uplot.js")),
    ("uplot.css", include_str!("../assets/uplot.css")),
];

/// Licence of the plot library, written beside it.
const UPLOT_LICENSE: &str = include_str!("../assets/uplot-LICENSE");

/// Writes the report of a result folder into it: pages from the summary's metrics, series from the records. `warmup` is that
/// of the summary if it is not the runs' own; plots show the whole run with the warm-up shaded.
///
/// # Errors
/// A file that cannot be written, or records that cannot be read.
pub fn write(results: &Results, summary: &Summary, warmup: Option<Span>) -> Result<(), ReportError> {
    let engines: HashSet<&str> = results.runs.iter().map(|run| run.file.engine.as_str()).collect();
    Growing::new(&results.path, &results.lab, &results.lab.runs(), engines.len())
        .finish(results, summary, warmup)
}

/// Writes the pages of a lab into its result folder: `index.html`, and all other files below `report/`. `series` is called
/// for one run at a time.
///
/// # Errors
/// A file that cannot be written, or an error of `series`.
pub fn write_pages(
    folder: &Path,
    lab: &Lab,
    mut series: impl FnMut(&Run) -> Result<RunSeries, ReportError>,
) -> Result<(), ReportError> {
    let (out, scripts) = (Folder::new(folder), Series::of(lab, lab.engines().len()));
    let colours = lab.group_names().into_iter().map(String::from).zip(0..).collect();
    for run in &lab.runs {
        scripts.add(&out, run, script::series(run, &series(run)?, &colours))?;
    }
    growing::write_pages(&out, lab, &scripts)
}
