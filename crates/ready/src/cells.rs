//! The cells of a test's summary, and numbers of them: means over the repeats.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_record::{Metric, RunSummary, Statistic, Summary};
use weir_report::naming::{engine_name, spelled};
use weir_report::number::rough_with;

/// Largest number of cells whose numbers a sentence lists; of more it tells the least and the greatest.
const LISTED: usize = 4;

/// The repeats of a cell on one engine.
#[derive(Debug)]
pub struct Cell<'a> {
    /// Its labels, in a row.
    pub name: String,
    runs: Vec<&'a RunSummary>,
}

/// Numbers of a cell by their names, each `None` if it could not be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Numbers {
    /// The cell's labels.
    pub cell: String,
    /// The numbers; a name ends with its unit.
    pub numbers: BTreeMap<&'static str, Option<f64>>,
}

/// The cells of a summary, in the order of the tree; several engines are cells of their own.
pub(crate) fn of(summary: &Summary) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = vec![];
    let engines = |runs: &[RunSummary]| runs.iter().any(|run| run.engine != runs[0].engine);
    let several = engines(&summary.runs);
    for run in &summary.runs {
        let alike =
            |cell: &&mut Cell<'_>| cell.runs[0].engine == run.engine && cell.runs[0].params == run.params;
        match cells.iter_mut().find(alike) {
            Some(cell) => cell.runs.push(run),
            None => cells.push(Cell { name: name(run, several), runs: vec![run] }),
        }
    }
    for cell in &mut cells {
        if cell.runs.iter().any(|run| run.invalid.is_empty()) {
            cell.runs.retain(|run| run.invalid.is_empty());
        }
    }
    cells
}

/// The labels of a run's levels. One that begins with a number stands behind its level's name.
fn name(run: &RunSummary, with_engine: bool) -> String {
    let label = |param: &weir_record::Param| {
        if param.value.starts_with(|c: char| c.is_ascii_digit()) {
            let level =
                ["traffic.", "dumbbell."].iter().find_map(|section| param.level.strip_prefix(section));
            return format!("{} {}", level.unwrap_or(&param.level), param.value);
        }
        spelled(&param.value)
    };
    let labels = run.params.iter().map(label);
    let engine = with_engine.then(|| engine_name(&run.engine).to_owned());
    labels.chain(engine).collect::<Vec<_>>().join(", ")
}

impl<'a> Cell<'a> {
    /// The mean of a value over the repeats that have it.
    pub(crate) fn mean(&self, of: impl Fn(&'a RunSummary) -> Option<f64>) -> Option<f64> {
        average(self.runs.iter().filter_map(|run| of(run)))
    }

    /// A group's metric in a window, or in the whole run.
    pub(crate) fn group(
        &self,
        window: Option<&str>,
        group: &str,
        metric: &Metric,
        statistic: Statistic,
    ) -> Option<f64> {
        self.mean(|run| {
            let part = run.part(window)?;
            let group = part.groups.iter().find(|known| *known.name == *group)?;
            statistic.of(group.metrics.value(metric))
        })
    }

    /// The sum of a metric over some groups.
    pub(crate) fn sum(&self, window: Option<&str>, groups: &[&str], metric: &Metric) -> Option<f64> {
        let each = groups.iter().map(|group| self.group(window, group, metric, Statistic::Mean));
        each.sum::<Option<f64>>()
    }

    /// A link's metric in a window, or in the whole run.
    pub(crate) fn link(
        &self,
        window: Option<&str>,
        link: &str,
        metric: &Metric,
        statistic: Statistic,
    ) -> Option<f64> {
        self.mean(|run| {
            let part = run.part(window)?;
            let link = part.queues.iter().find(|known| known.link == link)?;
            statistic.of(link.metrics.value(metric))
        })
    }

    /// A metric of one group relative to another, in the whole run.
    pub(crate) fn pair(&self, group: &str, to: &str, metric: &Metric) -> Option<f64> {
        self.mean(|run| {
            let pair = run.pairs.iter().find(|pair| *pair.group == *group && *pair.to == *to)?;
            pair.metrics.number(metric)
        })
    }

    /// A metric of each flow of a group, in each repeat.
    pub(crate) fn flows(&self, group: &str, metric: &Metric) -> Vec<f64> {
        let flows = self.runs.iter().flat_map(|run| &run.flows).filter(|flow| *flow.group == *group);
        flows.filter_map(|flow| flow.metrics.number(metric)).collect()
    }

    /// The cell with these numbers.
    pub(crate) fn numbers(&self, numbers: impl IntoIterator<Item = (&'static str, Option<f64>)>) -> Numbers {
        Numbers { cell: self.name.clone(), numbers: numbers.into_iter().collect() }
    }
}

/// The mean; `None` of no values.
pub(crate) fn average(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.into_iter().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

impl Numbers {
    /// A number by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied().flatten()
    }

    /// ` with` and the cell's labels; nothing if it has none.
    pub(crate) fn with(&self) -> String {
        if self.cell.is_empty() { String::new() } else { format!(" with {}", self.cell) }
    }
}

/// A number of each cell in words, with what `also` adds to it: one if all cells have the same, of a few cells all, of more the least
/// and the greatest.
pub(crate) fn each(cells: &[Numbers], name: &str, unit: &str, also: impl Fn(&Numbers) -> String) -> String {
    let alone = |cell: &Numbers| {
        let value = cell.get(name).map_or_else(|| "nothing measured".into(), |value| rough_with(value, unit));
        format!("{}{}", value.trim_end(), also(cell))
    };
    let text = |cell: &Numbers| alone(cell) + &cell.with();
    if let Some((first, rest)) = cells.split_first()
        && rest.iter().all(|cell| alone(cell) == alone(first))
    {
        return alone(first);
    }
    if cells.len() <= LISTED {
        return cells.iter().map(text).collect::<Vec<_>>().join(", ");
    }
    let known = || cells.iter().filter_map(|cell| Some((cell, cell.get(name)?)));
    let least = known().min_by(|a, b| a.1.total_cmp(&b.1));
    let greatest = known().max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, greatest) {
        (Some((least, _)), Some((greatest, _))) => format!("from {} to {}", text(least), text(greatest)),
        _ => "nothing measured".into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Numbers of a cell, for the tests of sentences.
    pub(crate) fn cell(name: &str, numbers: &[(&'static str, f64)]) -> Numbers {
        Numbers {
            cell: name.into(),
            numbers: numbers.iter().map(|(name, value)| (*name, Some(*value))).collect(),
        }
    }

    #[test]
    fn a_few_cells_are_listed_and_of_more_the_ends_are_told() {
        let cells: Vec<Numbers> =
            (1..=5).map(|n| cell(&format!("q{n}"), &[("delay_ms", f64::from(n * 10))])).collect();
        let told =
            |cells: &[Numbers]| each(cells, "delay_ms", "ms", |_| String::new()).replace('\u{a0}', " ");
        assert_eq!(told(&cells[..2]), "10 ms with q1, 20 ms with q2");
        assert_eq!(told(&cells), "from 10 ms with q1 to 50 ms with q5");
        assert_eq!(told(&[cell("", &[("delay_ms", 3.0)])]), "3 ms");
        assert_eq!(
            told(&[cell("a", &[("delay_ms", 3.0)]), cell("b", &[("delay_ms", 3.01)])]),
            "3 ms",
            "the same in all"
        );
        assert_eq!(
            told(&[cell("a", &[]), cell("b", &[("delay_ms", 3.0)])]),
            "nothing measured with a, 3 ms with b"
        );
    }
}
