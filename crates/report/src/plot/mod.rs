//! Plots as files, for papers and slides: `weir plot` draws them without a browser, as SVG or PNG.
//!
//! The library plotters draws them: it writes both formats from one description, in pure Rust, and has the axes that are
//! needed. The pages use uPlot, which zooms, but needs a browser.

mod data;
mod draw;

use weir_engine::{Results, ResultsError};

/// The kind of a plot.
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

/// A request for a plot.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The kind of the plot.
    pub kind: Kind,
    /// The metric, by its name in the registry.
    pub metric: String,
    /// The metric's link or group; `None` is the run, or the only link or group that has the metric.
    pub of: Option<String>,
    /// The level whose labels have a colour, or a row, each; `None` is the first level that varies.
    pub by: Option<String>,
    /// The level along the horizontal axis, or whose labels have a column each; `None` is the next level that varies.
    pub along: Option<String>,
    /// Labels that are kept, each with its level; levels are named in full or by their last part.
    pub only: Vec<(String, String)>,
    /// Whether the axis of values is logarithmic (only for `Cdf`).
    pub log: bool,
}

/// Why a plot could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The request names something that the results do not have.
    #[error("{message}")]
    Asked {
        /// What is wrong.
        message: String,
        /// What a request may name.
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
    /// A bar for each name.
    Bars(Vec<(String, Mean)>),
    /// A table of values, by row and column; `None` is an empty field.
    Heat { rows: Vec<String>, columns: Vec<String>, values: Vec<Vec<Option<f64>>> },
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    /// Half the length of each point's 95 % interval; empty if the curve has none.
    intervals: Vec<Option<f64>>,
}

/// A mean, and half the length of its 95 % interval if it is the mean of several values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mean {
    mean: f64,
    half: Option<f64>,
}

impl Figure {
    /// The plot of a result.
    ///
    /// # Errors
    /// The results do not have what the request names, or records cannot be read.
    pub fn of(results: &Results, wanted: &Wanted) -> Result<Figure, PlotError> {
        data::figure(results, wanted)
    }

    /// A value that is constant from each of these points, whose x rise, to the next one, and after the last one up to `end`.
    pub fn steps(title: &str, [x, y]: [&str; 2], name: &str, steps: &[(f64, f64)], end: f64) -> Figure {
        let ends = steps.iter().skip(1).map(|(x, _)| *x).chain([end]);
        let points = steps.iter().zip(ends).flat_map(|(&(from, value), to)| [(from, value), (to, value)]);
        let curve = Curve { name: name.into(), points: points.collect(), intervals: vec![] };
        let content = Content::Lines(vec![curve]);
        Figure { title: title.into(), x: x.into(), y: y.into(), log: false, content }
    }

    /// The plot as SVG.
    ///
    /// # Errors
    /// The drawing failed.
    pub fn svg(&self) -> Result<String, PlotError> {
        draw::svg(self)
    }

    /// The plot as PNG.
    ///
    /// # Errors
    /// The drawing failed.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        draw::png(self)
    }
}
