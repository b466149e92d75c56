//! Plots as files, for papers and slides: what `weir plot` draws without a browser, as SVG or PNG.
//!
//! The drawing is done by plotters: it writes both formats from one description, in pure Rust, and has the axes that are
//! needed. The pages keep uPlot, which zooms in a browser, and cannot be had without one.

mod data;
mod draw;

use weir_engine::{Results, ResultsError};

/// What a plot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A metric over time, a line for each cell.
    Time,
    /// The share of values at or below each value, a line for each cell.
    Cdf,
    /// A bar for each label of a level, with its 95 % interval.
    Bars,
    /// Means along a level, a line for each label of another.
    Lines,
    /// Means over two levels.
    Heat,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What the plot shows.
    pub kind: Kind,
    /// The metric, by its name in the registry.
    pub metric: String,
    /// The link or group that it is taken of; none is the run, or the only one that has it.
    pub of: Option<String>,
    /// The level whose labels have a colour, or a row, each; the first level that varies if none.
    pub by: Option<String>,
    /// The level along which lines go, or that has a column each; the next level that varies if none.
    pub along: Option<String>,
    /// Labels that are kept, by level; levels are named in full or by their last part.
    pub only: Vec<(String, String)>,
    /// Whether the axis of values is logarithmic (of `Cdf` alone).
    pub log: bool,
}

/// Why there is no plot.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// It was asked for what is not there.
    #[error("{message}")]
    Asked {
        /// What is wrong.
        message: String,
        /// What could be asked for.
        help: String,
    },
    /// Records could not be read.
    #[error(transparent)]
    Records(#[from] ResultsError),
    /// The drawing failed.
    #[error("the plot could not be drawn: {0}")]
    Drawing(String),
}

/// A plot, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    title: String,
    x: String,
    y: String,
    log: bool,
    content: Content,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    /// Lines through points; a gap where a value is not finite.
    Lines(Vec<Curve>),
    /// A bar for each.
    Bars(Vec<(String, Mean)>),
    /// Rows of columns.
    Heat { rows: Vec<String>, columns: Vec<String>, values: Vec<Vec<Option<f64>>> },
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    /// Half the length of each point's 95 % interval; empty where there is none.
    intervals: Vec<Option<f64>>,
}

/// A mean, and half the length of its 95 % interval where it is one of several values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mean {
    mean: f64,
    half: Option<f64>,
}

impl Figure {
    /// The plot of a result.
    ///
    /// # Errors
    /// What is asked for is not there, or records cannot be read.
    pub fn of(results: &Results, wanted: &Wanted) -> Result<Figure, PlotError> {
        data::figure(results, wanted)
    }

    /// As SVG.
    ///
    /// # Errors
    /// The drawing failed.
    pub fn svg(&self) -> Result<String, PlotError> {
        draw::svg(self)
    }

    /// As PNG.
    ///
    /// # Errors
    /// The drawing failed.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        draw::png(self)
    }
}
