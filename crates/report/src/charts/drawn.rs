//! The plots of a page as data, ready to be written: lines on one grid of times, and distributions.

use crate::overlay::Overlay;
use weir_record::Values;

/// The series of one run, all on one grid of times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSeries {
    /// The time between two points; point `i` ends at `(i + 1) * period_s`.
    pub period_s: f64,
    /// Number of points.
    pub count: usize,
    /// The plots, in the order of the page.
    pub charts: Vec<Chart>,
    /// The shares, in `[0, 1]`, at which distributions have a value.
    pub shares: Vec<f64>,
    /// The plots of single flows, on a grid of their own.
    pub flows: Option<FlowSeries>,
    /// The overlay, if the run has one.
    pub overlay: Option<Overlay>,
    /// Changes within the run, sorted by time.
    pub events: Vec<Event>,
}

/// The series of single flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSeries {
    /// The time between two points.
    pub period_s: f64,
    /// Number of points.
    pub count: usize,
    /// A plot for each metric, with a line for each flow.
    pub charts: Vec<Chart>,
}

/// A change within a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Its time, in seconds from the start of the run.
    pub at_s: f64,
    /// Its description, in a few words.
    pub what: String,
}

/// A plot over time, and the distribution of its values if there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// The key by which the plots of two engines are matched.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// A note for the reader: how values were averaged.
    pub note: Option<String>,
    /// Whether its lines are drawn on top of each other, the first on top.
    pub stacked: bool,
    /// Its lines; empty if the plot is only a distribution.
    pub lines: Vec<Line>,
    /// The distributions after the warm-up.
    pub spreads: Vec<Spread>,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// Number of values in it.
    pub count: u64,
    /// For each of [`RunSeries::shares`], the value at or below which that share lies.
    pub values: Vec<f64>,
    /// A deadline that the values should not exceed.
    pub limit: Option<f64>,
}

/// A line in a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// Whether it is a thinner companion of another line: a percentile, one flow of a group.
    pub thin: bool,
    /// Whether it is switched off at first.
    pub hidden: bool,
    /// Whether it is a bound of other lines, as a link's capacity, and no measurement: drawn dotted.
    pub bound: bool,
    /// Its values, one for each point of the grid; `None` at points without a measurement.
    pub values: Values,
}

/// What a line's colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// A traffic group, by its index in the run's groups: it has the same colour on all pages.
    Group(usize),
    /// An ECN codepoint, by its bits.
    Class(usize),
    /// Anything else: a colour that no group has.
    Plain(usize),
}
