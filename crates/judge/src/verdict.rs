//! Whether the engines agree in a measure, by the difference of their means, live minus simulated (`difference.rs`).
//!
//! *Agree* needs the whole 95 % interval within the bound, *differs* the whole 99 % interval outside, since a cell is looked at after
//! each live run.

use crate::difference::Difference;
use crate::measure::{Key, Limits, MEASURES, Measured, Scale, gathered};
use serde::{Deserialize, Serialize};

/// Confidence of the interval that has to lie within the bound.
const WITHIN: f64 = 0.95;
/// Confidence of the interval that has to lie outside.
const OUTSIDE: f64 = 0.99;
/// Fewest live runs of *agree*.
pub const FEWEST: usize = 2;
/// Fewest live runs of *differs*.
pub const FEWEST_TO_DIFFER: usize = 4;

/// The verdict on a measure, or on a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The difference lies within the bound.
    Agree,
    /// The difference lies outside.
    Differs,
    /// The runs do not tell.
    CannotTell,
}

/// A measure of a cell, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The measure.
    pub measure: String,
    /// The link or group; empty for the whole run.
    pub of: String,
    /// Mean of the live runs; `None` if it is undefined in all.
    pub live: Option<f64>,
    /// Mean of the simulated runs; `None` if it is undefined in all.
    pub sim: Option<f64>,
    /// The 95 % interval of live minus simulated; `None` if there is none.
    pub interval: Option<(f64, f64)>,
    /// The differences within which the engines agree.
    pub bound: (f64, f64),
    /// The verdict.
    pub verdict: Verdict,
}

impl Row {
    /// Name of measure and subject.
    pub fn name(&self) -> String {
        if self.of.is_empty() { self.measure.clone() } else { format!("{} of {}", self.measure, self.of) }
    }

    /// The difference of the means in multiples of the bound; infinite where one engine has no value.
    pub fn excess(&self) -> f64 {
        let (Some(live), Some(sim)) = (self.live, self.sim) else { return f64::INFINITY };
        let difference = live - sim;
        let bound = if difference < 0.0 { self.bound.0 } else { self.bound.1 };
        if difference == 0.0 { 0.0 } else { difference / bound }
    }
}

/// Judges one measure by the difference of the means of `runs` live runs and the bound.
fn judge(difference: Option<Difference>, runs: usize, limits: Limits) -> (Option<(f64, f64)>, Verdict) {
    let Some(difference) = difference else { return (None, Verdict::CannotTell) };
    let within = difference.interval(WITHIN);
    let outside = difference.interval(OUTSIDE);
    let verdict = if limits.low <= within.0 && within.1 <= limits.high {
        Verdict::Agree
    } else if runs >= FEWEST_TO_DIFFER && (outside.1 < limits.low || limits.high < outside.0) {
        Verdict::Differs
    } else {
        Verdict::CannotTell
    };
    (Some(within), verdict)
}

/// All measures that both engines know, judged. `drawn` says whether the seed draws the traffic.
pub fn rows(live: &[Measured], sim: &[Measured], scale: Scale, drawn: bool) -> Vec<Row> {
    let twin = |live: &Measured| sim.iter().position(|sim| sim.seed == live.seed);
    let twins: Vec<Option<usize>> = live.iter().map(twin).collect();
    let (live, sim) = (gathered(live), gathered(sim));
    live.iter()
        .filter_map(|(key, live)| {
            // A metric that one of the builds does not have yet is not compared.
            let sim = sim.get(key)?;
            row(key, live, sim, Setting { twins: &twins, scale, drawn })
        })
        .collect()
}

/// What the measures of a cell have in common.
#[derive(Debug, Clone, Copy)]
struct Setting<'a> {
    /// For each live run the place of the simulated run with its seed; `None` if there is none.
    twins: &'a [Option<usize>],
    scale: Scale,
    drawn: bool,
}

/// The values of live runs and of their twins, where both have one.
fn pairs(live: &[Option<f64>], sim: &[Option<f64>], twins: &[Option<usize>]) -> Vec<(f64, f64)> {
    let twin = |twin: &Option<usize>| twin.and_then(|twin| *sim.get(twin)?);
    live.iter().zip(twins).filter_map(|(live, place)| Some(((*live)?, twin(place)?))).collect()
}

/// `None` if the measure is undefined in all runs of both engines, or in more than half of each: then it is about a rare event, such
/// as the end of a long transfer.
fn row(key: &Key, live: &[Option<f64>], sim: &[Option<f64>], setting: Setting<'_>) -> Option<Row> {
    let measure = &MEASURES[key.0];
    let known = |values: &[Option<f64>]| values.iter().copied().flatten().collect::<Vec<f64>>();
    let (some_live, some_sim) = (known(live), known(sim));
    let mean =
        |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let (live_mean, sim_mean) = (mean(&some_live), mean(&some_sim));
    let rare = |some: &[f64], all: &[Option<f64>]| some.is_empty() || 2 * some.len() < all.len();
    if rare(&some_live, live) && rare(&some_sim, sim) {
        return None;
    }
    let limits = measure.limits(live_mean.unwrap_or(0.0), setting.scale);
    let whole = some_live.len() == live.len() || some_sim.len() == sim.len();
    let (interval, verdict) = match (some_live.len(), some_sim.len()) {
        // One engine never has a value, for example since no flow completes there, and the other always has one.
        (0, _) | (_, 0) if whole && live.len() >= FEWEST_TO_DIFFER => (None, Verdict::Differs),
        _ => {
            let pairs = pairs(live, sim, setting.twins);
            let difference = Difference::between(&some_live, &some_sim, &pairs, setting.drawn);
            judge(difference, some_live.len(), limits)
        }
    };
    Some(Row {
        measure: measure.name.into(),
        of: key.1.clone(),
        live: live_mean,
        sim: sim_mean,
        interval,
        bound: (limits.low, limits.high),
        verdict,
    })
}

/// The verdict on a cell: it agrees if all measures do, and differs if one does.
pub fn of_cell(rows: &[Row]) -> Verdict {
    let any = |verdict| rows.iter().any(|row| row.verdict == verdict);
    if any(Verdict::Differs) {
        Verdict::Differs
    } else if any(Verdict::CannotTell) || rows.is_empty() {
        Verdict::CannotTell
    } else {
        Verdict::Agree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Limits = Limits { low: -3.0, high: 3.0 };

    /// The verdict on values that are not paired.
    fn of(live: &[f64], sim: &[f64], limits: Limits) -> Verdict {
        judge(Difference::between(live, sim, &[], false), live.len(), limits).1
    }

    #[test]
    fn an_interval_within_the_bound_agrees_after_two_live_runs() {
        let sim: Vec<f64> = (0..20).map(|n| 95.0 + 0.1 * f64::from(n % 3)).collect();
        assert_eq!(of(&[95.0, 95.2], &sim, BOUND), Verdict::Agree);
        assert_eq!(of(&[95.0], &sim, BOUND), Verdict::CannotTell);
    }

    #[test]
    fn an_interval_outside_differs_only_after_four_live_runs() {
        let sim: Vec<f64> = (0..20).map(|n| 45.0 + 0.1 * f64::from(n % 3)).collect();
        let live = [98.5, 98.4, 98.6, 98.5];
        assert_eq!(of(&live[..3], &sim, BOUND), Verdict::CannotTell);
        assert_eq!(of(&live, &sim, BOUND), Verdict::Differs);
    }

    #[test]
    fn an_interval_across_the_bound_cannot_tell() {
        let sim: Vec<f64> = (0..20).map(|n| 90.0 + f64::from(n % 5)).collect();
        assert_eq!(of(&[94.0, 95.5, 96.0, 94.5], &sim, BOUND), Verdict::CannotTell);
    }

    #[test]
    fn equal_constants_agree_even_with_a_bound_of_zero() {
        let none = Limits { low: 0.0, high: 0.0 };
        assert_eq!(of(&[0.0; 2], &[0.0; 20], none), Verdict::Agree);
        assert_eq!(of(&[1.0; 4], &[0.0; 20], none), Verdict::Differs);
    }

    #[test]
    fn a_value_that_only_one_engine_ever_has_differs() {
        let key = (MEASURES.iter().position(|it| it.name == "completion time").unwrap(), "a".to_owned());
        let scale = Scale { packet_ms: 0.1, late: 0.0 };
        let setting = Setting { twins: &[None; 10], scale, drawn: false };
        let found = |live: &[Option<f64>]| row(&key, live, &[None; 20], setting).unwrap().verdict;
        assert_eq!(found(&[Some(3.0); 4]), Verdict::Differs);
        assert_eq!(found(&[Some(3.0); 3]), Verdict::CannotTell);
        assert!(row(&key, &[None; 4], &[None; 20], setting).is_none());
        // One transfer of ten ends before the run does.
        let rare = [[Some(14.0)].as_slice(), &[None; 9]].concat();
        assert!(row(&key, &rare, &[rare.clone(), rare.clone()].concat(), setting).is_none());
    }

    #[test]
    fn a_cell_differs_by_one_measure_and_agrees_by_all() {
        let row = |verdict| Row {
            measure: "drops".into(),
            of: "down".into(),
            live: Some(2.0),
            sim: Some(1.0),
            interval: None,
            bound: (-0.5, 0.5),
            verdict,
        };
        use Verdict::{Agree, CannotTell, Differs};
        let cell =
            |verdicts: &[Verdict]| of_cell(&verdicts.iter().map(|verdict| row(*verdict)).collect::<Vec<_>>());
        assert_eq!(cell(&[Agree, Agree]), Agree);
        assert_eq!(cell(&[Agree, CannotTell]), CannotTell);
        assert_eq!(cell(&[CannotTell, Differs, Agree]), Differs);
        assert_eq!(row(Differs).excess(), 2.0);
    }
}
