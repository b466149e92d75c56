//! `[[expect]]`: the expected results of a lab, with a tolerance and a source. Claims are read here and checked against the tree;
//! `judge` compares them with results.
//!
//! A claim in a lab file (`written`) may state several values, one for each label of a level; it becomes one [`Claim`] for each of
//! them.

mod check;
mod only;
mod written;

use written::Written;
pub use written::{describe_setting, schema};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_base::Ecn;
use weir_plan::{Diagnostics, Fault, Lab};
use weir_record::Statistic;

/// The section of a lab file that holds claims.
const SECTION: &str = "expect";

/// The claims of a lab, checked against its tree, without claims about cells that `[only]` leaves out.
///
/// # Errors
/// All errors found, each with its place and a suggestion.
pub fn claims(lab: &Lab) -> Result<Vec<Claim>, Diagnostics> {
    let help = "write [[expect]], and under it metric, value, tolerance and source";
    let entries = lab.entries(SECTION, help)?;
    if entries.is_empty() {
        // The names of a large tree take time to gather.
        return Ok(Vec::new());
    }
    let names = lab.names();
    let (mut claims, mut faults): (Vec<Claim>, Vec<Fault>) = Default::default();
    for entry in entries {
        match entry.read::<Written>() {
            Ok(written) => {
                let found = check::faults(&written, entry, &names);
                if found.is_empty() {
                    claims.extend(written.claims());
                }
                faults.extend(found);
            }
            Err(fault) => faults.push(fault.or_help(help)),
        }
    }
    if faults.is_empty() { Ok(only::kept(claims, lab, &names)) } else { Err(lab.refuse(faults)) }
}

/// Cells by their labels on some levels: on each of these levels, one of the listed labels.
pub type Cells = BTreeMap<String, Vec<String>>;

/// A claim: the expected value of a metric, and the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The row of the study's table to which it belongs; a row holds only if all its claims hold. `None` for a row by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// The metric's name.
    pub metric: String,
    /// Whose metric: a traffic group, a flow or a link, or two groups. Empty for a metric of the whole run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Which packets of a link: those that arrived with this codepoint; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Ecn>,
    /// The window of the run; `None` for the whole run.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The statistic, if the metric is a distribution.
    pub statistic: Statistic,
    /// The cells of the tree; all cells if it is empty.
    #[serde(rename = "where")]
    pub cells: Cells,
    /// How a cell's repeats are combined.
    pub repeats: Repeats,
    /// The other value to which a cell's value is relative; `None` if the claim is about the value itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// The level and the bound, if the value is not the metric's but the point along a level at which the metric passes the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along: Option<Along>,
    /// Whether it is about each of several cells or about their mean.
    pub over: Over,
    /// The expected value, bounds or order.
    pub expected: Expected,
    /// The source of the expectation.
    pub source: String,
    /// Why a difference is known and accepted; `None` if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

impl Claim {
    /// Whether runs of these engines can be judged by it: one against an engine needs that and another one.
    pub fn can_be_judged(&self, engines: &[&str]) -> bool {
        let other = self.against.as_ref().and_then(|against| against.engine.as_deref());
        other.is_none_or(|other| engines.len() > 1 && engines.contains(&other))
    }
}

/// How the repeats of a cell are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Repeats {
    /// The mean.
    #[default]
    Mean,
    /// The median.
    Median,
    /// The sample standard deviation.
    Deviation,
    /// The coefficient of variation: the deviation over the mean, in percent.
    Variation,
}

/// How a claim about several cells is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// The claim is about each cell; the cell that is farthest off decides.
    #[default]
    Each,
    /// The claim is about the mean of the cells.
    Mean,
}

/// The value to which another one is relative: the same metric in another cell or window, of another group, on another engine, or several
/// of these.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The labels of the other cell on some levels; on all other levels it has the same labels.
    pub cells: BTreeMap<String, String>,
    /// Whose metric the other value is; `None` for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Which packets the other value counts; `None` for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Ecn>,
    /// The other value's window; `None` for the same.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The engine that measured the other value; `None` for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// How the two values are combined.
    pub relation: Relation,
}

/// The point along a level at which a metric passes a bound: the number at the start of the first label at which it has passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Along {
    /// The level. Its labels begin with numbers (`"130 Mbit/s"`) and are searched in the order of the tree.
    #[schemars(example = &"rate")]
    pub level: String,
    /// The metric has passed if it is above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The metric has passed if it is below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

impl Along {
    /// Whether a value is past the bound.
    pub fn passes(&self, value: f64) -> bool {
        self.above.is_some_and(|bound| value > bound) || self.below.is_some_and(|bound| value < bound)
    }
}

/// How a value and the one to which it is relative are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// The change against the other value, in percent of the other.
    #[default]
    Change,
    /// The value divided by the other.
    Ratio,
    /// The value minus the other.
    Difference,
}

/// An expected value, bounds, or order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The value is near an expected one.
    Near {
        /// The expected value.
        value: f64,
        /// How far the measured value may be from it.
        tolerance: Tolerance,
    },
    /// The value lies between bounds, one of which may be missing.
    Within {
        /// The lower bound.
        at_least: Option<f64>,
        /// The upper bound.
        at_most: Option<f64>,
    },
    /// The values of cells along a level have this order.
    Order {
        /// The level.
        by: String,
        /// The order.
        order: Order,
    },
}

/// An order of labels, some of which have equal rank: `a ~ b < c` means that both a and b are less than c.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Labels in this order; labels of equal rank are in one list.
    pub places: Vec<Vec<String>>,
    /// Whether values fall along it; otherwise they rise.
    pub falling: bool,
}

impl Order {
    /// All labels, in this order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.places.iter().flatten().map(String::as_str)
    }

    /// Every pair of labels of different rank, the smaller first.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let places = self.places.iter().enumerate();
        places.flat_map(move |(at, earlier)| {
            let later = self.places[at + 1..].iter().flatten();
            later.flat_map(move |later| {
                earlier.iter().map(move |earlier| match self.falling {
                    true => (later.as_str(), earlier.as_str()),
                    false => (earlier.as_str(), later.as_str()),
                })
            })
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.places.iter().map(|labels| labels.join(" ~ ")).collect();
        f.write_str(&places.join(if self.falling { " > " } else { " < " }))
    }
}

impl Serialize for Order {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How far a measured value may be from the expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// In the metric's unit, or the unit of the combined value.
    Absolute(f64),
    /// As a share of the expected value, 0.05 for 5 %.
    Share(f64),
}

impl Tolerance {
    /// The tolerance for this value, in the value's unit.
    pub fn of(self, value: f64) -> f64 {
        match self {
            Tolerance::Absolute(tolerance) => tolerance,
            Tolerance::Share(share) => share * value.abs(),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tolerance::Absolute(value) => serializer.serialize_f64(*value),
            Tolerance::Share(share) => serializer.collect_str(&format_args!("{} %", share * 100.0)),
        }
    }
}
