//! Checks a claim against the tree: the levels, labels, groups, links and metrics that it names must
//! exist.

use super::written::{CLASS, ENGINE, IN, OF, Values, codepoint};
use super::{Along, Written};
use weir_base::CODEPOINTS;
use weir_plan::{Entry, Fault, Names, Origin, suggest};
use weir_record::ENGINES;

/// All errors in a claim.
pub(super) fn faults(claim: &Written, entry: Entry<'_>, known: &Names<'_>) -> Vec<Fault> {
    let place = |path: &[&str]| entry.place(path);
    let mut faults = Vec::new();
    for (level, labels) in &claim.cells {
        faults.extend(known.labels(level, &labels.0, place(&["where", level])));
    }
    let is_level = |key: &&String| ![OF, CLASS, IN, ENGINE].contains(&key.as_str());
    for (level, label) in claim.against.iter().filter(|(key, _)| is_level(key)) {
        faults.extend(known.labels(level, [label], place(&["against", level])));
    }
    if let Some(along) = &claim.along {
        faults.extend(along_fault(along, known, &place));
    }
    if let Some(name) = claim.against.get(CLASS).filter(|name| codepoint(name).is_none()) {
        let help = suggest(name, CODEPOINTS.iter().map(|codepoint| codepoint.name()));
        let message = format!("there is no codepoint `{name}`");
        faults.push(Fault::new(place(&["against", CLASS]), message, help));
    }
    if let Some(name) = claim.against.get(ENGINE).filter(|name| !ENGINES.contains(&name.as_str())) {
        let message = format!("there is no engine `{name}`");
        faults.push(Fault::new(place(&["against", ENGINE]), message, suggest(name, ENGINES)));
    }
    for (window, path) in [(claim.window.as_ref(), &[IN][..]), (claim.against.get(IN), &["against", IN])] {
        faults.extend(window.and_then(|window| known.window(window, place(path))));
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
        let place = if known.has_level(by) { place(&[key]) } else { place(&["by"]) };
        faults.extend(known.labels(by, labels, place));
    }
    if claim.differs.as_deref().is_some_and(|reason| !names_evidence(reason)) {
        let help = "add the address (https://...) or the file (docs/why.md) that explains the difference";
        faults.push(Fault::new(place(&["differs"]), "the reason for the difference names no evidence", help));
    }
    let there = claim.against.get(OF).map(std::slice::from_ref);
    for (of, path) in [(Some(claim.of.0.as_slice()), &["of"][..]), (there, &["against", OF])] {
        let Some(of) = of else { continue };
        let by_class = claim.class.is_some();
        faults.extend(known.metric(&claim.metric, of, by_class, [place(path), place(&["metric"])]));
    }
    faults
}

/// The error in the level along which a bound is passed, if there is one.
fn along_fault(along: &Along, known: &Names<'_>, place: &dyn Fn(&[&str]) -> Origin) -> Option<Fault> {
    if along.above.is_some() == along.below.is_some() {
        let help = "write along = { level = \"LEVEL\", above = 50 }, or below instead of above";
        return Some(Fault::new(place(&["along"]), "`along` needs one bound, `above` or `below`", help));
    }
    known.numbers(&along.level, place(&["along", "level"]))
}

/// The error in keys that contradict each other or are missing, if there is one.
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
            fault("value", "values for labels need the level of these labels", "write by = \"LEVEL\"")
        }
        ([false, false, true], None) => {
            fault("order", "an order needs the level of its labels", "write by = \"LEVEL\"")
        }
        ([true, false, false], Some(_)) if matches!(claim.value, Some(Values::One(_))) => fault(
            "by",
            "`by` needs a value for each label of its level",
            "remove `by`, or write a table of labels with values",
        ),
        ([false, true, false], Some(_)) => fault("by", "`by` does not apply to bounds", "remove `by`"),
        ([true, false, false] | [false, true, false] | [false, false, true], by) => {
            if let Some(by) = by.as_ref().filter(|by| claim.cells.contains_key(*by)) {
                let message = format!("the level `{by}` is in both `where` and `by`");
                return Some(Fault::new(place(&["where", by]), message, "remove it from one of the two"));
            }
            if claim.relation.is_some() && claim.against.is_empty() {
                return fault(
                    "as",
                    "`as` needs something to compare with",
                    "write for example against = { LEVEL = \"LABEL\" }",
                );
            }
            None
        }
        _ => fault("", "a claim states only one of value, bounds and order", "write a claim for each"),
    }
}

/// Whether a reason contains a link: an address, or a document of this project.
fn names_evidence(reason: &str) -> bool {
    let word =
        |word: &str| word.contains("://") || word.trim_end_matches(['.', ',', ')', ';']).ends_with(".md");
    reason.split_whitespace().any(word)
}
