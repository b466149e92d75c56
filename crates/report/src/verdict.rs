//! A row of a comparison as text, for the pages and for the terminal's table of verdicts.

use crate::number::{number, rough, rough_with};
use std::collections::HashMap;
use weir_record::compare::{Bound, Compared, Comparison};
use weir_record::metric;

/// A row of a comparison as text.
pub(crate) struct Said {
    /// The cell, or `over all cells`.
    pub cell: String,
    /// The metric with its group and window, and its unit.
    pub measure: String,
    /// Mean of the reference.
    pub reference: String,
    /// Mean of the other.
    pub other: String,
    /// Other minus reference: in percent with a relative bound, else in the metric's unit.
    pub difference: String,
    /// Its 95 % interval.
    pub interval: String,
    /// The bound.
    pub bound: String,
    /// The verdict.
    pub verdict: &'static str,
}

/// The rows of a comparison, sorted by cell in the order of the tree; rows over all cells come last.
pub(crate) fn by_cell(compared: &Compared) -> Vec<&Comparison> {
    let mut cells: HashMap<Vec<&str>, usize> = HashMap::new();
    for row in &compared.rows {
        if let Some(cell) = values(row) {
            let next = cells.len();
            cells.entry(cell).or_insert(next);
        }
    }
    let place = |row: &&Comparison| values(row).map_or(usize::MAX, |cell| cells[&cell]);
    let mut rows: Vec<&Comparison> = compared.rows.iter().collect();
    rows.sort_by_key(place);
    rows
}

/// The labels of a row's cell; `None` for a row over all cells.
fn values(row: &Comparison) -> Option<Vec<&str>> {
    row.cell.as_ref().map(|cell| cell.iter().map(|param| param.value.as_str()).collect())
}

/// The metric's name in a sentence, with its group and window.
pub(crate) fn measure(row: &Comparison) -> String {
    let title = metric(&row.metric).map_or(row.metric.as_str(), |metric| metric.title);
    let mut letters = title.chars();
    let title: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    let of = row.group.as_ref().map_or(String::new(), |group| format!(" of {group}"));
    let window = row.window.as_ref().map_or(String::new(), |window| format!(" in {window}"));
    title + &of + &window
}

/// A mean with its metric's unit, for a sentence.
pub(crate) fn mean(row: &Comparison, value: Option<f64>) -> String {
    let unit = metric(&row.metric).map_or("", |metric| metric.unit);
    value.map_or_else(|| "nothing".into(), |value| rough_with(value, unit).trim_end().into())
}

/// The mean difference of a row relative to its bound: 1 is at the bound.
pub(crate) fn excess(row: &Comparison) -> f64 {
    let (Bound::Absolute(bound) | Bound::Relative(bound)) = row.bound;
    row.difference.map_or(0.0, |difference| difference.mean.abs() / bound)
}

impl Said {
    /// Writes a row as text.
    pub(crate) fn of(row: &Comparison) -> Said {
        let unit = metric(&row.metric).map_or("", |metric| metric.unit);
        // A relative difference is written in percent. An absolute difference of percentages is written in points.
        let (bound, scale, ending) = match row.bound {
            Bound::Relative(bound) => (bound, 100.0, "\u{a0}%".to_string()),
            Bound::Absolute(bound) if unit == "%" => (bound, 1.0, "\u{a0}points".to_string()),
            Bound::Absolute(bound) if unit.is_empty() => (bound, 1.0, String::new()),
            Bound::Absolute(bound) => (bound, 1.0, format!("\u{a0}{unit}")),
        };
        let share = if matches!(row.bound, Bound::Relative(_)) { ending.as_str() } else { "" };
        let written = |value: Option<f64>| value.map_or_else(|| "–".into(), number);
        let interval = row.difference.and_then(|difference| difference.interval);
        Said {
            cell: match &row.cell {
                None => "over all cells".into(),
                Some(params) => {
                    params.iter().map(|param| param.value.as_str()).collect::<Vec<_>>().join(" · ")
                }
            },
            measure: if unit.is_empty() { measure(row) } else { format!("{}, {unit}", measure(row)) },
            reference: written(row.reference),
            other: written(row.other),
            difference: row.difference.map_or_else(
                || "–".into(),
                |difference| format!("{}{share}", signed(scale * difference.mean)),
            ),
            interval: interval.map_or_else(
                || "too few repeats".into(),
                |(low, high)| format!("{} to {}{share}", signed(scale * low), signed(scale * high)),
            ),
            bound: format!("±{}{ending}", crate::compact::compact(Some(scale * bound))),
            verdict: row.verdict.name(),
        }
    }
}

/// A difference with its sign, rounded as in a sentence; the minus is U+2212, no hyphen.
pub(crate) fn signed(value: f64) -> String {
    let text = rough(value.abs());
    match value {
        _ if text == "0" => text,
        value if value > 0.0 => format!("+{text}"),
        value if value < 0.0 => format!("\u{2212}{text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::compare::{Estimate, Verdict};

    #[test]
    fn a_relative_difference_is_a_share_and_an_absolute_one_of_percentages_is_points() {
        let row = |metric: &str, bound, mean| Comparison {
            cell: None,
            metric: metric.into(),
            group: None,
            window: None,
            reference: Some(15.0),
            other: Some(16.5),
            difference: Some(Estimate { count: 3, mean, interval: Some((-mean, 2.0 * mean)) }),
            bound,
            verdict: Verdict::Agree,
        };
        let said = Said::of(&row("queue_delay_ms", Bound::Relative(0.15), 0.1));
        let texts = [said.measure, said.difference, said.interval, said.bound]
            .map(|text| text.replace('\u{a0}', " "));
        assert_eq!(texts, ["queue delay, ms", "+10 %", "\u{2212}10 to +20 %", "±15 %"]);
        let said = Said::of(&row("utilisation_percent", Bound::Absolute(2.0), -0.5));
        assert_eq!(said.difference, "\u{2212}0.50");
        assert_eq!(said.bound.replace('\u{a0}', " "), "±2 points");
    }
}
