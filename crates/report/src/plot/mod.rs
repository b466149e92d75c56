//! Plots as files, for papers and slides: `weir plot` draws them without a browser, as SVG or PNG.
//!
//! A plot averages nothing that its request does not name, and leaves nothing out unseen: a level that is neither an axis nor
//! fixed is refused, and a cell without a value stands in the plot with the reason.
//!
//! The library plotters draws them: it writes both formats from one description, in pure Rust, and has the axes that are
//! needed. The pages use uPlot, which zooms, but needs a browser.

mod draw;
mod means;
mod place;
mod plane;
mod traces;
mod tree;

use std::ops::RangeInclusive;
use weir_engine::{Results, ResultsError};
use weir_record::{METRICS, Metric, metric, metrics::rate::THROUGHPUT};

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
    /// A delay over the throughput, an ellipse for each cell.
    DelayThroughput,
}

/// Least and greatest width or height of a plot in pixels.
pub const PIXELS: RangeInclusive<u32> = 200..=8000;

/// A request for a plot.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The kind of the plot.
    pub kind: Kind,
    /// The metric, by its name in the registry; `None` is the usual delay of `DelayThroughput`.
    pub metric: Option<String>,
    /// The metric's link or group; `None` is the run, or the only link or group that has the metric.
    pub of: Option<String>,
    /// The level whose labels have a colour, or a row, each; `None` is the first level that varies.
    pub by: Option<String>,
    /// The level along the horizontal axis, or whose labels have a column each; `None` is the next level that varies.
    pub along: Option<String>,
    /// Labels that are kept, each with its level; levels are named in full or by their last parts.
    pub only: Vec<(String, String)>,
    /// Levels over whose labels the mean is taken.
    pub mean_over: Vec<String>,
    /// Whether the axis of values (of `Cdf`) or of the level (of `Lines`) is logarithmic.
    pub log: bool,
    /// The title, if it is not the usual one.
    pub title: Option<String>,
    /// Width and height in pixels, if they are not the usual ones.
    pub size: Option<(u32, u32)>,
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

fn asked(message: impl Into<String>, help: impl Into<String>) -> PlotError {
    PlotError::Asked { message: message.into(), help: help.into() }
}

/// The names of a list, for a sentence.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// A plot, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    title: String,
    /// What is fixed and what is averaged, below the title; empty if nothing is.
    about: String,
    x: String,
    y: String,
    /// Whether the horizontal axis is logarithmic.
    log: bool,
    content: Content,
    /// What the plot cannot show of its cells, below it.
    notes: Vec<String>,
    /// Width and height in pixels, if they are not the usual ones.
    size: Option<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    /// Lines through points; a gap where a value is not finite. `ticks` are the places of labels on the horizontal axis; without
    /// any, it has round ones.
    Lines { curves: Vec<Curve>, ticks: Vec<f64> },
    /// A bar for each name.
    Bars(Vec<(String, Mean)>),
    /// A table of values, by row and column; `value` is the name of the metric with its unit.
    Heat { rows: Vec<String>, columns: Vec<String>, values: Vec<Vec<Mean>>, value: String },
    /// For each name a point for each run.
    Plane(Vec<(String, Vec<(f64, f64)>)>),
}

impl Default for Content {
    fn default() -> Content {
        Content::Bars(vec![])
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Default)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    /// For each point the mean that it shows; empty if the points are no means.
    means: Vec<Mean>,
    /// The places on the horizontal axis that have no value.
    gaps: Vec<f64>,
}

/// A mean over repeats.
#[derive(Debug, Clone, PartialEq, Default)]
struct Mean {
    /// `None` if there is no value.
    mean: Option<f64>,
    /// Half the length of its 95 % interval, if it is the mean of several repeats.
    half: Option<f64>,
    /// The values of the repeats.
    each: Vec<f64>,
    /// Why repeats have no value; empty if all have one.
    why: String,
}

impl Mean {
    /// What a plot shows in the place of a missing value, or adds to a value that is not the mean of all repeats.
    fn note(&self, name: &str) -> Option<String> {
        (!self.why.is_empty()).then(|| format!("{name}: {}", self.why))
    }
}

impl Figure {
    /// The plot of a result.
    ///
    /// # Errors
    /// The results do not have what the request names, or records cannot be read.
    pub fn of(results: &Results, wanted: &Wanted) -> Result<Figure, PlotError> {
        let tree = tree::Tree::new(results, &wanted.only)?;
        if wanted.log && !matches!(wanted.kind, Kind::Cdf | Kind::Lines) {
            return Err(asked(
                "this kind of plot has no logarithmic axis",
                "leave --log out: --kind cdf has it for values, --kind lines along a level",
            ));
        }
        let mut figure = match wanted.kind {
            Kind::Time | Kind::Cdf => traces::figure(results, wanted, known(wanted)?, &tree)?,
            Kind::Bars | Kind::Lines | Kind::Heat => means::figure(results, wanted, known(wanted)?, &tree)?,
            Kind::DelayThroughput => plane::figure(results, wanted, &THROUGHPUT, &tree)?,
        };
        figure.size = wanted.size;
        if let Some(title) = &wanted.title {
            figure.title.clone_from(title);
        }
        Ok(figure)
    }

    /// A value that is constant from each of these points, whose x rise, to the next one, and after the last one up to `end`.
    pub fn steps(title: &str, [x, y]: [&str; 2], name: &str, steps: &[(f64, f64)], end: f64) -> Figure {
        let ends = steps.iter().skip(1).map(|(x, _)| *x).chain([end]);
        let points = steps.iter().zip(ends).flat_map(|(&(from, value), to)| [(from, value), (to, value)]);
        let curve = Curve { name: name.into(), points: points.collect(), ..Curve::default() };
        let content = Content::Lines { curves: vec![curve], ticks: vec![] };
        Figure { title: title.into(), x: x.into(), y: y.into(), content, ..Figure::default() }
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

/// The metric of this name.
fn named(name: &str) -> Result<&'static Metric, PlotError> {
    metric(name).ok_or_else(|| {
        let near = METRICS.iter().filter(|known| known.name.contains(name.trim_matches('_')));
        let near = listed(near.map(|metric| metric.name).take(6));
        let all = "`weir list metrics` prints all";
        let help = if near.is_empty() { all.into() } else { format!("similar names: {near}; {all}") };
        asked(format!("no metric is called `{name}`"), help)
    })
}

/// The metric of a request that must name one.
fn known(wanted: &Wanted) -> Result<&'static Metric, PlotError> {
    let missing =
        || asked("this kind of plot needs a metric", "give --metric; `weir list metrics` prints all");
    named(wanted.metric.as_deref().ok_or_else(missing)?)
}

/// A metric's title with its unit, as an axis has it.
fn axis(metric: &Metric) -> String {
    let mut letters = metric.title.chars();
    let title: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    if metric.unit.is_empty() { title } else { format!("{title}, {}", metric.unit) }
}
