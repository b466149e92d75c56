//! Published against measured: each claim of a lab is compared with the results of its runs. A claim about several cells holds
//! only if it holds in each of them; the cell that is farthest off is shown.

mod cells;
#[cfg(test)]
mod tests;

use crate::claim::{Claim, Expected, Order, Over};
use cells::{CellValue, Table};
use serde::Serialize;
use weir_record::{Param, RunSummary, Summary};

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The measured value is as expected, in every cell that was measured.
    Holds,
    /// No valid run measured the claim's value; counted separately.
    NotMeasured,
    /// The value is not as expected, for a reason that the claim gives; counted separately.
    Differs,
    /// The value is not as expected, or valid runs have no such value.
    Fails,
}

impl ClaimVerdict {
    /// The verdict in words.
    pub fn name(self) -> &'static str {
        ["holds", "not measured", "differs", "fails"][self as usize]
    }

    /// The verdict on a row of several claims: the worst of them. A claim that fails outweighs one that was not measured.
    pub fn all(verdicts: impl IntoIterator<Item = ClaimVerdict>) -> ClaimVerdict {
        verdicts.into_iter().max().unwrap_or(ClaimVerdict::Holds)
    }
}

/// A claim, with the measured value and the verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The engine that measured.
    pub engine: String,
    /// The value of the cell that is farthest off, over its valid repeats, or the mean of all cells, as the claim says. `None`
    /// if nothing was measured, and for an order.
    pub measured: Option<f64>,
    /// Confidence interval of the repeats' median, at least 95 %, from their order only. `None` unless the claim is about a
    /// median of at least six repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The order of the cells, if an order is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The labels of the cell that is shown, on each level.
    pub cell: Vec<Param>,
    /// All measured cells that the claim is about, in the order of the tree. For a bound that is passed along a level: all
    /// cells along it, each with the metric's own value.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// How many measured cells the claim is about.
    pub cells: usize,
    /// How many further cells it is about that no valid run measured.
    pub unmeasured: usize,
    /// Number of valid repeats of the cell that is shown; if several cells count, of the cell with the fewest.
    pub repeats: usize,
    /// The verdict.
    pub verdict: ClaimVerdict,
}

/// A cell and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Its labels on each level.
    pub cell: Vec<Param>,
    /// Its value; `None` if valid runs have none.
    pub value: Option<f64>,
}

/// The measured order of cells along a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Labels in the claimed order, with the measured values.
    pub values: Vec<(String, Option<f64>)>,
    /// Number of measured pairs that the claim orders.
    pub pairs: usize,
    /// The measured pairs that are not in the claimed order, the label that should be smaller first.
    pub wrong: Vec<(String, String)>,
    /// Number of further pairs with a cell that no valid run measured.
    pub unmeasured: usize,
}

impl Standing {
    fn new(
        order: &Order,
        value: impl Fn(&str) -> Option<f64>,
        is_measured: impl Fn(&str) -> bool,
    ) -> Standing {
        let (measured, open): (Vec<_>, Vec<_>) =
            order.pairs().partition(|(less, more)| is_measured(less) && is_measured(more));
        let right = |(less, more): &(&str, &str)| value(less).zip(value(more)).is_some_and(|(a, b)| a < b);
        let wrong = measured.iter().filter(|pair| !right(pair)).map(|(a, b)| ((*a).into(), (*b).into()));
        let values = order.labels().map(|label| (label.to_owned(), value(label))).collect();
        Standing { values, pairs: measured.len(), wrong: wrong.collect(), unmeasured: open.len() }
    }

    fn verdict(&self) -> ClaimVerdict {
        match (self.wrong.len(), self.unmeasured) {
            (0, 0) => ClaimVerdict::Holds,
            (0, _) => ClaimVerdict::NotMeasured,
            _ => ClaimVerdict::Fails,
        }
    }
}

/// Judges all claims on each engine that has runs, in the order of the lab. Invalid runs are ignored: values that only they
/// measured count as not measured. A claim against an engine is judged on the other ones, and on none if that one has no runs.
pub fn judge(claims: &[Claim], summary: &Summary) -> Vec<Judged> {
    let mut engines: Vec<&str> = Vec::new();
    for run in &summary.runs {
        if !engines.contains(&run.engine.as_str()) {
            engines.push(&run.engine);
        }
    }
    let runs = |engine: &str| -> Vec<&RunSummary> {
        summary.runs.iter().filter(|run| run.engine == engine).collect()
    };
    let runs: Vec<(&str, Vec<&RunSummary>)> = engines.iter().map(|engine| (*engine, runs(engine))).collect();
    let judge_on = |claim: &Claim, (engine, own): &(&str, Vec<&RunSummary>)| {
        let other = match claim.against.as_ref().and_then(|against| against.engine.as_deref()) {
            Some(other) if other == *engine => return None,
            Some(other) => &runs.iter().find(|(engine, _)| *engine == other)?.1,
            None => own,
        };
        Some(judge_one(claim, engine, &Table::new(claim, own, other)))
    };
    claims.iter().flat_map(|claim| runs.iter().filter_map(|on| judge_on(claim, on))).collect()
}

fn judge_one(claim: &Claim, engine: &str, table: &Table<'_>) -> Judged {
    let (cells, unmeasured): (Vec<_>, Vec<_>) = table.cells().into_iter().partition(|cell| cell.is_measured);
    let points = table.points().filter(|cell| cell.is_measured);
    let mut judged = Judged {
        claim: claim.clone(),
        engine: engine.into(),
        measured: None,
        interval: None,
        standing: None,
        cell: vec![],
        points: points.map(|cell| Point { cell: cell.params.to_vec(), value: cell.value }).collect(),
        cells: cells.len(),
        unmeasured: unmeasured.len(),
        repeats: cells.iter().map(|cell| cell.repeats).min().unwrap_or(0),
        verdict: ClaimVerdict::NotMeasured,
    };
    let verdict = match &claim.expected {
        Expected::Order { by, order } => judge_order(&mut judged, by, order, &cells),
        // A mean needs all its cells; single cells are judged if they were measured.
        _ if judged.unmeasured > 0 && (cells.is_empty() || claim.over == Over::Mean) => return judged,
        _ => judge_value(&mut judged, &cells),
    };
    judged.verdict = match (verdict, &claim.differs) {
        (ClaimVerdict::Fails, Some(_)) => ClaimVerdict::Differs,
        (verdict, _) => verdict,
    };
    judged
}

/// How far a value is outside the expected range; negative inside.
fn off(expected: &Expected, value: f64) -> f64 {
    match expected {
        Expected::Near { value: expected, tolerance } => (value - expected).abs() - tolerance.of(*expected),
        Expected::Within { at_least, at_most } => {
            let below = at_least.map_or(f64::NEG_INFINITY, |least| least - value);
            below.max(at_most.map_or(f64::NEG_INFINITY, |most| value - most))
        }
        Expected::Order { .. } => 0.0,
    }
}

fn judge_value(judged: &mut Judged, cells: &[CellValue<'_>]) -> ClaimVerdict {
    // A cell without a value is farther off than any other.
    let off = |value: Option<f64>| value.map_or(f64::INFINITY, |value| off(&judged.claim.expected, value));
    let measured = match judged.claim.over {
        Over::Mean => mean(cells.iter().map(|cell| cell.value)),
        Over::Each => {
            let farthest = cells.iter().max_by(|a, b| off(a.value).total_cmp(&off(b.value)));
            judged.cell = farthest.map(|cell| cell.params.to_vec()).unwrap_or_default();
            judged.interval = farthest.and_then(|cell| cell.interval);
            judged.repeats = farthest.map_or(0, |cell| cell.repeats);
            farthest.and_then(|cell| cell.value)
        }
    };
    judged.measured = measured;
    if off(measured) <= 0.0 { ClaimVerdict::Holds } else { ClaimVerdict::Fails }
}

fn judge_order(judged: &mut Judged, by: &str, order: &Order, cells: &[CellValue<'_>]) -> ClaimVerdict {
    let at = |cell: &CellValue<'_>, label: &str| {
        cell.params.iter().any(|param| param.level == by && param.value == label)
    };
    let elsewhere = |cell: &CellValue<'_>| -> Vec<Param> {
        cell.params.iter().filter(|param| param.level != by).cloned().collect()
    };
    let places = match judged.claim.over {
        Over::Mean => vec![(vec![], cells.iter().collect::<Vec<_>>())],
        Over::Each => {
            let mut places: Vec<(Vec<Param>, Vec<&CellValue<'_>>)> = vec![];
            for cell in cells {
                let place = elsewhere(cell);
                match places.iter_mut().find(|(other, _)| *other == place) {
                    Some((_, there)) => there.push(cell),
                    None => places.push((place, vec![cell])),
                }
            }
            places
        }
    };
    let standings = places.into_iter().map(|(place, there)| {
        let value = |label: &str| mean(there.iter().filter(|cell| at(cell, label)).map(|cell| cell.value));
        let is_measured = |label: &str| there.iter().any(|cell| at(cell, label));
        (place, Standing::new(order, value, is_measured))
    });
    let worst = standings.max_by_key(|(_, standing)| (standing.wrong.len(), standing.unmeasured));
    let Some((place, standing)) = worst else { return ClaimVerdict::NotMeasured };
    let verdict = standing.verdict();
    (judged.cell, judged.standing) = (place, Some(standing));
    verdict
}

/// The mean of values; `None` if there are none, or if one of them is missing.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
}
