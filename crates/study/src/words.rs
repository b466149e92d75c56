//! A claim in words and digits, as the terminal, the page and the document show it.

use crate::claim::{Claim, Expected, Over, Relation, Repeats, Tolerance};
use crate::judge::{Judged, Standing};
use std::fmt::Write;
use weir_record::{Statistic, metric};
use weir_report::class_name;
use weir_report::number::{exact, rough_with};

/// A claim in words and digits.
pub(crate) struct Said {
    pub(crate) what: String,
    pub(crate) published: String,
    pub(crate) measured: String,
    pub(crate) cell: String,
    /// The measured order of the cells, if an order is claimed; otherwise empty.
    pub(crate) standing: String,
}

impl Said {
    pub(crate) fn of(judged: &Judged) -> Said {
        let claim = &judged.claim;
        let farthest: Vec<String> =
            judged.cell.iter().map(|param| chosen(&param.level, &param.value)).collect();
        let cell = match (judged.cells, judged.unmeasured, claim.over, &judged.standing) {
            (0, ..) => asked(claim),
            (_, _, _, Some(_)) | (1, 0, ..) => farthest.join(" · "),
            (many, 0, Over::Mean, _) => format!("mean of {many} cells"),
            // There is no mean if a cell is missing.
            (_, _, Over::Mean, _) => asked(claim),
            (many, 0, ..) => format!("farthest of {many} cells: {}", farthest.join(" · ")),
            (many, open, ..) => {
                format!("farthest of {many} measured cells of {}: {}", many + open, farthest.join(" · "))
            }
        };
        let measured = match &judged.standing {
            Some(Standing { pairs, wrong, unmeasured, .. }) => {
                let right = pairs - wrong.len();
                match unmeasured {
                    0 => format!("{right} of {pairs} pairs"),
                    open => format!("{right} of {pairs} pairs, {open} not measured"),
                }
            }
            None => judged.measured.map_or_else(|| "–".into(), exact),
        };
        let standing = judged.standing.as_ref().map(standing_text).unwrap_or_default();
        Said { what: what(claim), published: expected_text(&claim.expected), measured, cell, standing }
    }
}

/// A level and a cell's label on it.
fn chosen(level: &str, value: &str) -> String {
    format!("{} {value}", level_name(level))
}

/// The last two parts of a level's name: the key, and the object to which it belongs.
pub(crate) fn level_name(level: &str) -> &str {
    level.rmatch_indices('.').nth(1).map_or(level, |(dot, _)| &level[dot + 1..])
}

/// The cells that a claim names; of more than four labels of a level, only the first and the last.
pub(crate) fn asked(claim: &Claim) -> String {
    let told = |(level, labels): (&String, &Vec<String>)| match labels.as_slice() {
        [first, .., last] if labels.len() > 4 => chosen(level, &format!("{first} to {last}")),
        few => chosen(level, &few.join(", ")),
    };
    claim.cells.iter().map(told).collect::<Vec<_>>().join(" · ")
}

/// The metric that a claim is about, in words.
pub(crate) fn what(claim: &Claim) -> String {
    let unit = metric(&claim.metric).map_or("", |metric| metric.unit);
    let title = metric(&claim.metric).map_or(claim.metric.as_str(), |metric| metric.title);
    let mut what = title.to_owned();
    if claim.statistic != Statistic::Mean {
        let _ = write!(what, ", {}", claim.statistic.name());
    }
    if !claim.of.is_empty() {
        let _ = write!(what, " of {}", claim.of.join(" to "));
    }
    if let Some(class) = claim.class {
        let _ = write!(what, " of {}", class_name(class.name()));
    }
    if let Some(window) = &claim.window {
        let _ = write!(what, " in {window}");
    }
    let unit = match (claim.repeats, claim.against.as_ref().map(|against| against.relation)) {
        (_, Some(Relation::Change)) => "%",
        (_, Some(Relation::Ratio)) => "",
        (Repeats::Variation, _) => "%",
        _ => unit,
    };
    if let Some(against) = &claim.against {
        let relation = ["change against", "over that of", "less that of"][against.relation as usize];
        let class = against.class.map(|class| class_name(class.name()));
        let names =
            against.of.iter().chain(against.cells.values()).chain(&against.window).chain(&against.engine);
        let whose: Vec<&str> = names.map(String::as_str).chain(class).collect();
        let _ = write!(what, ", {relation} {}", whose.join(" · "));
    }
    if let Some(along) = &claim.along {
        let (side, bound) = along.above.map_or(("below", along.below), |above| ("above", Some(above)));
        let level = along.level.rsplit('.').next().unwrap_or_default();
        let bound = format!("{} {unit}", short(bound.unwrap_or_default()));
        return format!("first {level} with {what} {side} {}", bound.trim_end());
    }
    match claim.repeats {
        Repeats::Mean => {}
        Repeats::Median => what += ", median",
        Repeats::Deviation => what += ", deviation over repeats",
        Repeats::Variation => what += ", variation over repeats",
    }
    if !unit.is_empty() {
        let _ = write!(what, ", {unit}");
    }
    what
}

/// The expected value, bounds or order.
fn expected_text(expected: &Expected) -> String {
    match expected {
        Expected::Near { value, tolerance } => {
            let within = match tolerance {
                Tolerance::Absolute(tolerance) => short(*tolerance),
                Tolerance::Share(share) => rough_with(100.0 * share, "%"),
            };
            format!("{} ± {within}", short(*value))
        }
        Expected::Within { at_least: Some(least), at_most: Some(most) } => {
            format!("{} to {}", short(*least), short(*most))
        }
        Expected::Within { at_least: Some(least), .. } => format!("≥ {}", short(*least)),
        Expected::Within { at_most, .. } => format!("≤ {}", at_most.map_or_else(|| "–".into(), short)),
        Expected::Order { order, .. } => order.to_string(),
    }
}

/// The measured values in the claimed order, and the pairs that are not in that order.
fn standing_text(standing: &Standing) -> String {
    let value = |value: &Option<f64>| value.map_or_else(|| "–".into(), exact);
    let values: Vec<String> =
        standing.values.iter().map(|(label, measured)| format!("{label} {}", value(measured))).collect();
    let wrong: Vec<String> = standing.wrong.iter().map(|(less, more)| format!("{less} ≥ {more}")).collect();
    let but = if wrong.is_empty() { String::new() } else { format!("; but {}", wrong.join(", ")) };
    values.join(", ") + &but
}

/// A claim with the name of its row in front.
pub(crate) fn named(judged: &Judged, what: &str) -> String {
    judged.claim.row.as_ref().map_or_else(|| what.into(), |row| format!("{row} {what}"))
}

/// A number as it was written in the claim.
fn short(value: f64) -> String {
    format!("{value}")
}
