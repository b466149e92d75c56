//! A claim held against the tree: levels, labels, groups, links and metrics that it names must be there.

use super::written::{CLASS, OF, Values, codepoint};
use super::{Along, Written};
use crate::cell::Cell;
use crate::diagnostic::{Fault, Origin, nearest, suggest};
use crate::tree::Node;
use crate::vary::Level;
use std::collections::BTreeSet;
use weir_base::CODEPOINTS;

/// Everything that is wrong with a claim.
pub(super) fn faults(claim: &Written, entry: &Node, levels: &[Level], cells: &[Cell]) -> Vec<Fault> {
    let place = |path: &[&str]| entry.as_table().and_then(|table| table.locate(path)).unwrap_or(entry.origin);
    let mut faults = Vec::new();
    for (level, labels) in &claim.cells {
        faults.extend(cell_fault(level, labels.0.iter(), levels, place(&["where", level])));
    }
    for (level, label) in claim.against.iter().filter(|(level, _)| ![OF, CLASS].contains(&level.as_str())) {
        faults.extend(cell_fault(level, [label], levels, place(&["against", level])));
    }
    if let Some(along) = &claim.along {
        faults.extend(along_fault(along, levels, &place));
    }
    if let Some(name) = claim.against.get(CLASS).filter(|name| codepoint(name).is_none()) {
        let help = suggest(name, CODEPOINTS.iter().map(|codepoint| codepoint.name()));
        let message = format!("there is no codepoint `{name}`");
        faults.push(Fault::new(place(&["against", CLASS]), message, help));
    }
    faults.extend(shape_fault(claim, &place));
    if let Some(by) = &claim.by {
        let (key, labels): (_, Vec<&str>) = match (&claim.value, &claim.order) {
            (Some(Values::Of(values)), _) => {
                ("value", values.iter().map(|(label, _)| label.as_str()).collect())
            }
            (_, Some(order)) => ("order", order.labels().collect()),
            _ => ("by", vec![]),
        };
        let place = if levels.iter().any(|level| level.name == *by) { place(&[key]) } else { place(&["by"]) };
        faults.extend(cell_fault(by, labels, levels, place));
    }
    if claim.differs.as_deref().is_some_and(|reason| !names_evidence(reason)) {
        let help = "add the address (https://...) or the file (docs/why.md) where the difference is shown and explained";
        faults.push(Fault::new(place(&["differs"]), "the reason for the difference names no evidence", help));
    }
    let there = claim.against.get(OF).map(std::slice::from_ref);
    for (of, path) in [(Some(claim.of.0.as_slice()), &["of"][..]), (there, &["against", OF])] {
        let Some(of) = of else { continue };
        let by_class = claim.class.is_some();
        faults.extend(metric_of(&claim.metric, of, by_class, cells, [place(path), place(&["metric"])]));
    }
    faults
}

/// What is wrong with a metric and whose it is said to be, shown in the places of the names and of the metric.
pub(crate) fn metric_of(
    metric: &str,
    of: &[String],
    by_class: bool,
    cells: &[Cell],
    [of_origin, metric_origin]: [Origin; 2],
) -> Option<Fault> {
    let taken = taken_of(metric, of, cells).map(|level| match level {
        weir_record::Level::Run | weir_record::Level::Link if by_class => weir_record::Level::Class,
        level => level,
    });
    match taken {
        Ok(level) => metric_fault(metric, level, metric_origin),
        Err(Unknown { name, help }) => {
            Some(Fault::new(of_origin, format!("no group, flow or link is called `{name}`"), help))
        }
    }
}

/// What is wrong with the name of a level.
pub(crate) fn unknown_level(level: &str, levels: &[Level], origin: Origin) -> Option<Fault> {
    if levels.iter().any(|other| other.name == level) {
        return None;
    }
    let help = suggest(level, levels.iter().map(|level| level.name.as_str()));
    Some(Fault::new(origin, format!("the tree has no level `{level}`"), help))
}

/// What is wrong with the level along which a bound is passed.
fn along_fault(along: &Along, levels: &[Level], place: &dyn Fn(&[&str]) -> Origin) -> Option<Fault> {
    let path = ["along", "level"];
    if along.above.is_some() == along.below.is_some() {
        let help = "write along = { level = \"LEVEL\", above = 50 }, or below";
        return Some(Fault::new(place(&path[..1]), "one bound is passed, above it or below", help));
    }
    let Some(level) = levels.iter().find(|level| level.name == along.level) else {
        return unknown_level(&along.level, levels, place(&path));
    };
    let without = level.choices.iter().find(|choice| Along::number(&choice.label).is_none())?;
    let message = format!("the label \"{}\" of that level does not begin with a number", without.label);
    Some(Fault::new(place(&path), message, "name a level of rates, times or counts"))
}

/// What does not go together.
fn shape_fault(claim: &Written, place: &dyn Fn(&[&str]) -> Origin) -> Option<Fault> {
    let bounded = claim.at_least.is_some() || claim.at_most.is_some();
    let stated = [claim.value.is_some(), bounded, claim.order.is_some()];
    let fault = |key: &str, message: &str, help: &str| Some(Fault::new(place(&[key]), message, help));
    match (stated, &claim.by) {
        ([false, false, false], _) => fault(
            "",
            "the claim does not say what is expected",
            "write value and tolerance, or at_least, at_most or order",
        ),
        ([true, false, false], _) if claim.tolerance.is_none() => {
            fault("value", "`tolerance` is missing", "write for example tolerance = \"5 %\"")
        }
        ([true, false, false], None) if matches!(claim.value, Some(Values::Of(_))) => {
            fault("value", "a value for each label needs the level that they are of", "write by = \"LEVEL\"")
        }
        ([false, false, true], None) => {
            fault("order", "an order needs the level whose labels it is of", "write by = \"LEVEL\"")
        }
        ([true, false, false], Some(_)) if matches!(claim.value, Some(Values::One(_))) => fault(
            "by",
            "one value is not along a level",
            "remove `by`, or write a table of labels with values",
        ),
        ([false, true, false], Some(_)) => fault("by", "bounds are not along a level", "remove `by`"),
        ([true, false, false] | [false, true, false] | [false, false, true], by) => {
            if let Some(by) = by.as_ref().filter(|by| claim.cells.contains_key(*by)) {
                let message = format!("`{by}` is the level that `by` goes along already");
                return Some(Fault::new(place(&["where", by]), message, "remove it from one of the two"));
            }
            if claim.relation.is_some() && claim.against.is_empty() {
                return fault(
                    "as",
                    "there is nothing that it is relative to",
                    "write for example against = { LEVEL = \"LABEL\" }",
                );
            }
            None
        }
        _ => fault("", "a claim states one of value, bounds and order", "make several claims of it"),
    }
}

/// Whether a reason has a link in it: an address, or a document of this project.
fn names_evidence(reason: &str) -> bool {
    let word =
        |word: &str| word.contains("://") || word.trim_end_matches(['.', ',', ')', ';']).ends_with(".md");
    reason.split_whitespace().any(word)
}

/// What is wrong with a level and labels of it.
pub(crate) fn cell_fault(
    level: &str,
    named: impl IntoIterator<Item = impl AsRef<str>>,
    levels: &[Level],
    origin: Origin,
) -> Option<Fault> {
    let Some(found) = levels.iter().find(|other| other.name == level) else {
        return unknown_level(level, levels, origin);
    };
    let labels = found.choices.iter().map(|choice| choice.label.as_str());
    let unknown = named.into_iter().find(|label| labels.clone().all(|other| other != label.as_ref()))?;
    let unknown = unknown.as_ref();
    Some(Fault::new(origin, format!("the level `{level}` has no \"{unknown}\""), suggest(unknown, labels)))
}

/// A name that nothing bears.
struct Unknown {
    name: String,
    help: String,
}

/// What a metric is taken of: a group, a link, a flow, two groups or the whole run. What there is, if `of` names none of it.
fn taken_of(metric: &str, of: &[String], cells: &[Cell]) -> Result<weir_record::Level, Unknown> {
    let groups: BTreeSet<&str> =
        cells.iter().flat_map(|cell| &cell.groups).map(|group| group.name.as_str()).collect();
    let of = match of {
        [] => return Ok(weir_record::Level::Run),
        [of] => of.as_str(),
        several => {
            return match several.iter().find(|of| !groups.contains(of.as_str())) {
                Some(unknown) => Err(Unknown { name: unknown.clone(), help: suggest(unknown, groups) }),
                None => Ok(weir_record::Level::Pair),
            };
        }
    };
    let links: BTreeSet<&str> = cells
        .iter()
        .flat_map(|cell| &cell.network.links)
        .filter(|link| link.measured)
        .map(|link| link.name.as_str())
        .collect();
    let number_of = |group: &&str| of.strip_prefix(*group)?.strip_prefix('-')?.parse::<u64>().ok();
    if groups.contains(of) {
        // A group of one flow bears that flow's name, so what is of flows alone can be claimed of it too.
        let of_flows = weir_record::metric(metric).is_some_and(|metric| {
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
        Err(Unknown { name: of.into(), help: suggest(of, groups.union(&links).copied()) })
    }
}

/// What is wrong with the metric, taken of such a thing.
fn metric_fault(name: &str, level: weir_record::Level, origin: Origin) -> Option<Fault> {
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
        weir_record::Level::Pair => "two groups",
        weir_record::Level::Class => "the packets of one codepoint",
        _ => "the whole run",
    };
    let help = "`weir describe` says of a metric what it is taken of; name that with `of`";
    Some(Fault::new(origin, format!("`{name}` is not taken of {of}"), help))
}
