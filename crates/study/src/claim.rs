//! `[[expect]]`: what is expected of a lab's results, with a tolerance and a source. Here claims are read and checked against
//! the tree; `judge` holds them against results.
//!
//! As it is written (`written`), a claim may stand for several, one for each label of a level; it is spelled out as a [`Claim`] for
//! each of them.

mod check;
mod only;
mod written;

use written::Written;
pub use written::schema;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_base::Ecn;
use weir_plan::{Diagnostics, Fault, Lab};
use weir_record::Statistic;

/// The section of a lab file that holds claims.
const SECTION: &str = "expect";

/// The claims of a lab, checked against its tree, without those about cells that `[only]` leaves out.
///
/// # Errors
/// Everything found wrong, each with its place and a suggestion.
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

/// Cells by what they chose on some levels: on each of these, one of the labels.
pub type Cells = BTreeMap<String, Vec<String>>;

/// What is expected of a metric, and who says so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The row of the study's table that it is a part of; claims of one row hold together or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// The metric's name.
    pub metric: String,
    /// Whose: a traffic group, a flow or a link, or two groups; the run's own if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Of which packets of a link: those that arrived with this codepoint; of all if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Ecn>,
    /// In which of the run's windows; in the whole run if none.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Which statistic of a metric that is a distribution.
    pub statistic: Statistic,
    /// Which cells of the tree; all if it names none.
    #[serde(rename = "where")]
    pub cells: Cells,
    /// How a cell's repeats are joined.
    pub repeats: Repeats,
    /// What a cell's value is taken relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Where the value is not the metric's but tells where along a level the metric passes a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along: Option<Along>,
    /// How several cells are.
    pub over: Over,
    /// What is expected.
    pub expected: Expected,
    /// Where that comes from.
    pub source: String,
    /// Why a difference is known and accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

/// What the repeats of a cell come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Repeats {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    Median,
    /// Their standard deviation, of a sample.
    Deviation,
    /// The coefficient of variation: the deviation over the mean, in percent.
    Variation,
}

/// What several cells come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// The claim is about each of them; the one that is farthest off speaks.
    #[default]
    Each,
    /// It is about their mean.
    Mean,
}

/// What a value is taken relative to: the same metric in another cell or window, of another group, or several of these.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// What the other cell chose on some levels; on the others it chose the same.
    pub cells: BTreeMap<String, String>,
    /// Whose metric it is there; the same if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Of which packets; as here if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Ecn>,
    /// In which of the run's windows; as here if none.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// What is made of the two.
    pub relation: Relation,
}

/// Where along a level a metric passes a bound: the number with which the first label begins at which it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Along {
    /// The level, whose labels begin with numbers (`"130 Mbit/s"`); they are gone through in the order of the tree.
    pub level: String,
    /// It has passed where the metric is above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// It has passed where the metric is below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

impl Along {
    /// Whether a value is past the bound.
    pub fn passes(&self, value: f64) -> bool {
        self.above.is_some_and(|bound| value > bound) || self.below.is_some_and(|bound| value < bound)
    }
}

/// What is made of a value and another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// How much larger it is, in percent of the other.
    #[default]
    Change,
    /// It over the other.
    Ratio,
    /// It less the other.
    Difference,
}

/// What is expected of a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// To be near one.
    Near {
        /// The value.
        value: f64,
        /// How near.
        tolerance: Tolerance,
    },
    /// To lie between bounds, one of which may be missing.
    Within {
        /// The lower one.
        at_least: Option<f64>,
        /// The upper one.
        at_most: Option<f64>,
    },
    /// Of cells along a level, to stand in this order.
    Order {
        /// The level.
        by: String,
        /// The order.
        order: Order,
    },
}

/// An order of labels, some of which are not told apart: `a ~ b < c` says that both a and b are less than c.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Labels in this order, those that are not told apart together.
    pub places: Vec<Vec<String>>,
    /// Whether values fall along it; if not they rise.
    pub falling: bool,
}

impl Order {
    /// All labels, in the order in which they stand.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.places.iter().flatten().map(String::as_str)
    }

    /// Every pair that is told apart, the smaller first.
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
    /// In the metric's unit, or that of what is made of it.
    Absolute(f64),
    /// As a share of the expected value, 0.05 for 5 %.
    Share(f64),
}

impl Tolerance {
    /// How far that is from this value.
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
