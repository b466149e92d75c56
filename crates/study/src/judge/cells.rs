//! The cells that a claim is about, and the value of each: its repeats combined and, if the claim says so, taken relative
//! to another cell or group.

use crate::claim::{Against, Along, Claim, Relation, Repeats};
use weir_plan::leading_number;
use weir_record::{Param, RunSummary, ValueSelector};

/// A cell's value.
pub(super) struct CellValue<'a> {
    /// Its labels on each level.
    pub(super) params: &'a [Param],
    /// The value that the claim is about; `None` if it was not measured, or if valid runs have no such value.
    pub(super) value: Option<f64>,
    /// Whether it has a valid run, and so has the cell to which it is relative.
    pub(super) is_measured: bool,
    /// Confidence interval of the median.
    pub(super) interval: Option<(f64, f64)>,
    /// Number of its valid repeats.
    pub(super) repeats: usize,
}

/// The values of all cells, not only of those that the claim is about.
pub(super) struct Table<'a> {
    claim: &'a Claim,
    own: Vec<Repeated<'a>>,
    /// The other values, to which these are relative.
    other: Vec<Repeated<'a>>,
}

/// A cell and the values of its valid repeats.
struct Repeated<'a> {
    params: &'a [Param],
    values: Vec<Option<f64>>,
}

impl<'a> Table<'a> {
    /// From the runs of the engine that is judged, and those of the engine with the values to which these are relative.
    pub(super) fn new(claim: &'a Claim, runs: &[&'a RunSummary], others: &[&'a RunSummary]) -> Table<'a> {
        let other = claim.against.as_ref().map(|against| {
            let of = against.of.as_ref().map_or(claim.of.as_slice(), std::slice::from_ref);
            let window = against.window.as_ref().or(claim.window.as_ref()).map(String::as_str);
            repeated(claim, ValueSelector { of, class: against.class.or(claim.class), window }, others)
        });
        let window = claim.window.as_deref();
        let own = repeated(claim, ValueSelector { of: &claim.of, class: claim.class, window }, runs);
        Table { claim, own, other: other.unwrap_or_default() }
    }

    /// The cells that the claim is about. For a bound that is passed along a level: the cell at which it is passed.
    pub(super) fn cells(&self) -> Vec<CellValue<'a>> {
        match &self.claim.along {
            Some(along) => passing(along, self.points()),
            None => self.points().collect(),
        }
    }

    /// The cells that the claim names, each with its value. A cell that would be relative to itself is left out.
    pub(super) fn points(&self) -> impl Iterator<Item = CellValue<'a>> {
        let named = |cell: &&Repeated<'a>| {
            self.claim.cells.iter().all(|(level, labels)| {
                cell.params.iter().any(|param| param.level == *level && labels.contains(&param.value))
            })
        };
        self.own.iter().filter(named).filter_map(|cell| self.cell(cell))
    }

    fn cell(&self, cell: &Repeated<'a>) -> Option<CellValue<'a>> {
        let joined = join(self.claim.repeats, &cell.values);
        let mut is_measured = !cell.values.is_empty();
        let (value, interval) = match &self.claim.against {
            None if self.claim.repeats == Repeats::Median => (joined, median_interval(&cell.values)),
            None => (joined, None),
            Some(against) => {
                let there = against_of(cell.params, against);
                let Against { of, class, window, engine, .. } = against;
                let here = of.is_none() && class.is_none() && window.is_none() && engine.is_none();
                if there == cell.params && here {
                    return None;
                }
                let other = self.other.iter().find(|other| other.params == there);
                is_measured &= other.is_none_or(|other| !other.values.is_empty());
                let value = other.and_then(|other| {
                    relate(against.relation, joined?, join(self.claim.repeats, &other.values)?)
                });
                (value, None)
            }
        };
        Some(CellValue { params: cell.params, value, is_measured, interval, repeats: cell.values.len() })
    }
}

/// For each set of cells that differ only along the level: the first cell at which the bound is passed, with the number of
/// its label as value. If it is passed at none, the first cell, without a value; it counts as unmeasured if one of the set
/// is, since the bound may be passed there.
fn passing<'a>(along: &Along, cells: impl Iterator<Item = CellValue<'a>>) -> Vec<CellValue<'a>> {
    let mut found: Vec<(Vec<&Param>, CellValue<'a>)> = Vec::new();
    for cell in cells {
        let label = cell.params.iter().find(|param| param.level == along.level);
        let place: Vec<&Param> = cell.params.iter().filter(|param| param.level != along.level).collect();
        let passed = cell.value.is_some_and(|value| along.passes(value));
        let value = label.filter(|_| passed).and_then(|label| leading_number(&label.value));
        match found.iter_mut().find(|(other, _)| *other == place) {
            Some((_, first)) if first.value.is_none() && value.is_some() => {
                *first = CellValue { value, ..cell }
            }
            Some((_, first)) if first.value.is_none() => first.is_measured &= cell.is_measured,
            Some(_) => {}
            None => found.push((place, CellValue { value, ..cell })),
        }
    }
    found.into_iter().map(|(_, cell)| cell).collect()
}

/// Each cell once, in the order of the runs, with the values of its valid repeats.
fn repeated<'a>(claim: &Claim, taken: ValueSelector<'_>, runs: &[&'a RunSummary]) -> Vec<Repeated<'a>> {
    let mut cells: Vec<Repeated<'a>> = Vec::new();
    for run in runs {
        // Repeats of a cell follow each other.
        if cells.last().is_none_or(|cell| *cell.params != run.params) {
            cells.push(Repeated { params: &run.params, values: vec![] });
        }
        if let (Some(cell), true) = (cells.last_mut(), run.invalid.is_empty()) {
            cell.values.push(run.value(&claim.metric, taken, claim.statistic));
        }
    }
    cells
}

/// The labels of the cell to which another one is relative.
fn against_of(params: &[Param], against: &Against) -> Vec<Param> {
    let other = |param: &Param| match against.cells.get(&param.level) {
        Some(label) => Param { value: label.clone(), ..param.clone() },
        None => param.clone(),
    };
    params.iter().map(other).collect()
}

fn relate(relation: Relation, value: f64, other: f64) -> Option<f64> {
    let ratio = (other != 0.0).then(|| value / other);
    match relation {
        Relation::Change => ratio.map(|ratio| 100.0 * (ratio - 1.0)),
        Relation::Ratio => ratio,
        Relation::Difference => Some(value - other),
    }
}

/// Combines repeats; `None` if the result is undefined, or if one of them has no value.
fn join(repeats: Repeats, values: &[Option<f64>]) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = || {
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
    };
    match repeats {
        Repeats::Mean => Some(mean).filter(|_| !values.is_empty()),
        Repeats::Median => {
            let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
            Some((values[low] + values[high]) / 2.0)
        }
        Repeats::Deviation => deviation(),
        Repeats::Variation => deviation().filter(|_| mean != 0.0).map(|deviation| 100.0 * deviation / mean),
    }
}

/// The narrowest pair of order statistics, as many from below as from above, between which the median lies with at least 95
/// % confidence (Conover 1999, Practical Nonparametric Statistics, section 3.2): the number of values below the median is
/// binomial with p = 1/2. `None` for fewer than six values.
fn median_interval(values: &[Option<f64>]) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let (mut below, mut term, mut rank) = (0.0, 0.5f64.powi(count as i32), 0);
    while rank < count / 2 && below + term <= 0.025 {
        below += term;
        rank += 1;
        term *= (count + 1 - rank) as f64 / rank as f64;
    }
    (rank > 0).then(|| (values[rank - 1], values[count - rank]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn repeats_are_joined_as_the_claim_says() {
        let values = some(&[9.0, 2.0, 4.0, 5.0]);
        assert_eq!(join(Repeats::Mean, &values), Some(5.0));
        assert_eq!(join(Repeats::Median, &values), Some(4.5));
        assert_eq!(join(Repeats::Median, &some(&[9.0, 2.0, 4.0])), Some(4.0));
        // Squares 16 + 9 + 1 + 0 = 26, over 3.
        let deviation = join(Repeats::Deviation, &values).unwrap();
        assert!((deviation * deviation - 26.0 / 3.0).abs() < 1e-9);
        assert_eq!(join(Repeats::Variation, &values), Some(100.0 * deviation / 5.0));
        assert_eq!(join(Repeats::Deviation, &some(&[9.0])), None);
        assert_eq!(join(Repeats::Mean, &[Some(1.0), None]), None);
        assert_eq!(join(Repeats::Mean, &[]), None);
        assert_eq!(join(Repeats::Median, &[]), None);
    }

    #[test]
    fn ten_repeats_place_the_median_between_the_second_and_the_ninth() {
        // One or none of ten below the median: 11 in 1024. Two or fewer: 56 in 1024, more than 1 in 40.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(median_interval(&some(&ten)), Some((2.0, 9.0)));
        // All six on one side: 1 in 64 each.
        assert_eq!(median_interval(&some(&ten[..6])), Some((1.0, 6.0)));
        assert_eq!(median_interval(&some(&ten[..5])), None);
    }
}
