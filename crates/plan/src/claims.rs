//! `[expect]`: what is expected of a lab's results, with a tolerance and a source. Here claims are read and checked against
//! the tree; judging them is `weir reproduce`'s.

use crate::cell::Cell;
use crate::diagnostic::{Fault, Origin, nearest, suggest};
use crate::tree::{Item, Node, Table};
use crate::vary::Level;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is expected of a metric, and who says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The metric, with its unit, as `weir list metrics` names it (`utilisation_percent`).
    pub metric: String,
    /// Whose: a traffic group, a flow or a link; the run's own if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Which statistic of a metric that is a distribution; by default its mean.
    #[serde(default)]
    pub statistic: Statistic,
    /// Which cells of the tree: a label for each level named; all cells if none.
    #[serde(default, rename = "where")]
    pub cells: BTreeMap<String, String>,
    /// The value, in the metric's unit.
    pub value: f64,
    /// How far the measured value may be from it: a number in the metric's unit, or a share such as "5 %".
    pub tolerance: Tolerance,
    /// Where the value comes from: a paper's section, figure or table, a standard, an issue.
    pub source: String,
    /// Why a difference is known and accepted, with a link to the evidence: an address, or a file such as "docs/why.md".
    /// Such claims are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean.
    #[default]
    Mean,
    /// The 1st percentile.
    P1,
    /// The 25th percentile.
    P25,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 99th percentile.
    P99,
}

/// How far a measured value may be from the expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// In the metric's unit.
    Absolute(f64),
    /// As a share of the expected value, 0.05 for 5 %.
    Share(f64),
}

impl Serialize for Tolerance {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tolerance::Absolute(value) => serializer.serialize_f64(*value),
            Tolerance::Share(share) => serializer.collect_str(&format_args!("{} %", share * 100.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tolerance, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Tolerance;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in the metric's unit, or a share such as \"5 %\"")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Tolerance, E> {
                if value < 0.0 {
                    Err(E::custom("a tolerance cannot be negative"))
                } else {
                    Ok(Tolerance::Absolute(value))
                }
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Tolerance, E> {
                let share =
                    text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                match share {
                    Some(share) if share.is_finite() && share >= 0.0 => Ok(Tolerance::Share(share / 100.0)),
                    _ => Err(E::custom(format!(
                        "\"{text}\" is not a tolerance; write a number, or a share such as \"5 %\""
                    ))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Tolerance {
    fn schema_name() -> Cow<'static, str> {
        "Tolerance".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["number", "string"], "examples": [2.0, "5 %"] })
    }
}

/// `[expect]`, checked against the tree.
pub(crate) fn read(root: &Table, levels: &[Level], cells: &[Cell]) -> Result<Vec<Claim>, Vec<Fault>> {
    let Some(expect) = root.get("expect") else { return Ok(Vec::new()) };
    let help = "write [[expect]], and under it metric, value, tolerance and source";
    let Item::Array(entries) = &expect.item else {
        let message = format!("`expect` is {}, not a list of claims", expect.what());
        return Err(vec![Fault::new(expect.origin, message, help)]);
    };
    let (mut claims, mut faults) = (Vec::new(), Vec::new());
    for entry in entries {
        match crate::read::read::<Claim>(entry) {
            Ok(claim) => {
                faults.extend(claim_faults(&claim, entry, levels, cells));
                claims.push(claim);
            }
            Err(mut fault) => {
                fault.help.get_or_insert(help.into());
                faults.push(fault.at(entry.origin));
            }
        }
    }
    if faults.is_empty() { Ok(claims) } else { Err(faults) }
}

fn claim_faults(claim: &Claim, entry: &Node, levels: &[Level], cells: &[Cell]) -> Vec<Fault> {
    let place = |path: &[&str]| entry.as_table().and_then(|table| table.locate(path)).unwrap_or(entry.origin);
    let mut faults = Vec::new();
    for (level, label) in &claim.cells {
        faults.extend(cell_fault(level, label, levels, place(&["where", level])));
    }
    if claim.differs.as_deref().is_some_and(|reason| !names_evidence(reason)) {
        let help = "add the address (https://...) or the file (docs/why.md) where the difference is shown and explained";
        faults.push(Fault::new(place(&["differs"]), "the reason for the difference names no evidence", help));
    }
    match taken_of(claim, cells) {
        Ok(level) => faults.extend(metric_fault(claim, level, place(&["metric"]))),
        Err(help) => {
            let message = format!("no group, flow or link is called `{}`", claim.of.as_deref().unwrap_or(""));
            faults.push(Fault::new(place(&["of"]), message, help));
        }
    }
    faults
}

/// Whether a reason has a link in it: an address, or a document of this project.
fn names_evidence(reason: &str) -> bool {
    let word =
        |word: &str| word.contains("://") || word.trim_end_matches(['.', ',', ')', ';']).ends_with(".md");
    reason.split_whitespace().any(word)
}

/// What is wrong with one line of `where`.
fn cell_fault(level: &str, label: &str, levels: &[Level], origin: Origin) -> Option<Fault> {
    let Some(found) = levels.iter().find(|other| other.name == level) else {
        let help = suggest(level, levels.iter().map(|level| level.name.as_str()));
        return Some(Fault::new(origin, format!("the tree has no level `{level}`"), help));
    };
    let labels = found.choices.iter().map(|choice| choice.label.as_str());
    if labels.clone().any(|other| other == label) {
        return None;
    }
    Some(Fault::new(origin, format!("the level `{level}` has no \"{label}\""), suggest(label, labels)))
}

/// What a claim's metric is taken of: a group, a link, a flow or the whole run. What there is, if `of` names none of it.
fn taken_of(claim: &Claim, cells: &[Cell]) -> Result<weir_record::Level, String> {
    let Some(of) = claim.of.as_deref() else { return Ok(weir_record::Level::Run) };
    let groups: BTreeSet<&str> =
        cells.iter().flat_map(|cell| &cell.groups).map(|group| group.name.as_str()).collect();
    let links: BTreeSet<&str> = cells
        .iter()
        .flat_map(|cell| &cell.network.links)
        .filter(|link| link.measured)
        .map(|link| link.name.as_str())
        .collect();
    let number_of = |group: &&str| of.strip_prefix(*group)?.strip_prefix('-')?.parse::<u64>().ok();
    if groups.contains(of) {
        // A group of one flow bears that flow's name, so what is of flows alone can be claimed of it too.
        let of_flows = weir_record::metric(&claim.metric).is_some_and(|metric| {
            metric.of.contains(&weir_record::Level::Flow) && !metric.of.contains(&weir_record::Level::Group)
        });
        let alone = |cell: &Cell| {
            cell.groups.iter().zip(&cell.flows).all(|(group, (count, ..))| group.name != of || *count == 1)
        };
        let flow = of_flows && cells.iter().all(alone);
        Ok(if flow { weir_record::Level::Flow } else { weir_record::Level::Group })
    } else if links.contains(of) {
        Ok(weir_record::Level::Link)
    } else if groups.iter().any(|group| number_of(group).is_some()) {
        Ok(weir_record::Level::Flow)
    } else {
        Err(suggest(of, groups.union(&links).copied()))
    }
}

/// What is wrong with the metric, taken of such a thing.
fn metric_fault(claim: &Claim, level: weir_record::Level, origin: Origin) -> Option<Fault> {
    let name = claim.metric.as_str();
    let Some(metric) = weir_record::metric(name) else {
        let help = match nearest(name, weir_record::METRICS.iter().map(|metric| metric.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`weir list metrics` shows them all".into(),
        };
        return Some(Fault::new(origin, format!("there is no metric `{name}`"), help));
    };
    if metric.of.contains(&level) {
        return None;
    }
    let of = match level {
        weir_record::Level::Group => "a traffic group",
        weir_record::Level::Link => "a link",
        weir_record::Level::Flow => "a flow",
        _ => "the whole run",
    };
    let help = "`weir describe` says of a metric what it is taken of; name that with `of`";
    Some(Fault::new(origin, format!("`{name}` is not taken of {of}"), help))
}
