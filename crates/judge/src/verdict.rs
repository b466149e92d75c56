//! Whether the engines agree in a measure, by the difference of their means, live minus simulated.
//!
//! The interval is Student's with the variance pooled over both engines. Where an F-test at 5 % says that the variances differ,
//! it is Welch's (Welch 1947), whose degrees of freedom are rounded down. Cells with drawn traffic are judged by pairs: both engines draw
//! the same flows from the same seed, and these differ more between seeds than anything else. *Agree* needs the whole 95 % interval within the
//! bound, *differs* the whole 99 % interval outside, since a cell is looked at after each live run.

use crate::measure::{Key, Limits, MEASURES, gathered};
use serde::{Deserialize, Serialize};
use weir_record::RunSummary;
use weir_record::compare::{f_tail, quantile};

/// Confidence of the interval that has to lie within the bound.
const WITHIN: f64 = 0.95;
/// Confidence of the interval that has to lie outside.
const OUTSIDE: f64 = 0.99;
/// Level of the test of equal variances.
const EQUAL: f64 = 0.05;
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

/// Mean and variance of some values.
#[derive(Debug, Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Moments {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Moments { count, mean, variance: if count > 1.0 { squares / (count - 1.0) } else { 0.0 } }
    }
}

/// The difference of two means: its standard error and the degrees of freedom of its distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Difference {
    mean: f64,
    error: f64,
    degrees: u32,
}

impl Difference {
    /// `None` for fewer than two values on a side.
    fn of(live: &[f64], sim: &[f64]) -> Option<Difference> {
        if live.len() < 2 || sim.len() < 2 {
            return None;
        }
        let (a, b) = (Moments::of(live), Moments::of(sim));
        let mean = a.mean - b.mean;
        if variances_differ(a, b) {
            let (x, y) = (a.variance / a.count, b.variance / b.count);
            let degrees = (x + y).powi(2) / (x * x / (a.count - 1.0) + y * y / (b.count - 1.0));
            return Some(Difference { mean, error: (x + y).sqrt(), degrees: (degrees as u32).max(1) });
        }
        let degrees = a.count + b.count - 2.0;
        let pooled = ((a.count - 1.0) * a.variance + (b.count - 1.0) * b.variance) / degrees;
        let error = (pooled * (1.0 / a.count + 1.0 / b.count)).sqrt();
        Some(Difference { mean, error, degrees: degrees as u32 })
    }

    /// The mean of differences within pairs.
    fn of_pairs(live: &[f64], sim: &[f64]) -> Option<Difference> {
        if live.len() < 2 || live.len() != sim.len() {
            return None;
        }
        let within: Vec<f64> = live.iter().zip(sim).map(|(live, sim)| live - sim).collect();
        let Moments { count, mean, variance } = Moments::of(&within);
        Some(Difference { mean, error: (variance / count).sqrt(), degrees: live.len() as u32 - 1 })
    }

    fn interval(&self, confidence: f64) -> (f64, f64) {
        let half =
            if self.error == 0.0 { 0.0 } else { self.error * quantile(0.5 + confidence / 2.0, self.degrees) };
        (self.mean - half, self.mean + half)
    }
}

/// The two-sided F-test.
fn variances_differ(a: Moments, b: Moments) -> bool {
    let (large, small) = if a.variance >= b.variance { (a, b) } else { (b, a) };
    if large.variance == 0.0 {
        return false;
    }
    small.variance == 0.0
        || 2.0 * f_tail(large.variance / small.variance, large.count - 1.0, small.count - 1.0) < EQUAL
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

/// All measures that both engines know, judged. With `by_pairs` each live run is held against the simulated run of its seed.
pub fn rows(live: &[RunSummary], sim: &[RunSummary], packet_ms: f64, by_pairs: bool) -> Vec<Row> {
    let twin = |live: &RunSummary| sim.iter().find(|sim| sim.seed == live.seed).cloned();
    let twins: Option<Vec<RunSummary>> = if by_pairs { live.iter().map(twin).collect() } else { None };
    let by_pairs = twins.is_some();
    let (live, sim) = (gathered(live), gathered(twins.as_deref().unwrap_or(sim)));
    live.iter()
        .filter_map(|(key, live)| {
            // A metric that one of the builds does not have yet is not compared.
            let sim = sim.get(key)?;
            row(key, live, sim, packet_ms, by_pairs)
        })
        .collect()
}

/// The values of those pairs in which both engines have one.
fn pairs(live: &[Option<f64>], sim: &[Option<f64>]) -> (Vec<f64>, Vec<f64>) {
    live.iter().zip(sim).filter_map(|(live, sim)| Some(((*live)?, (*sim)?))).unzip()
}

/// `None` if the measure is undefined in all runs of both engines, or in more than half of each: then it is about a rare event, such
/// as the end of a long transfer.
fn row(key: &Key, live: &[Option<f64>], sim: &[Option<f64>], packet_ms: f64, by_pairs: bool) -> Option<Row> {
    let measure = &MEASURES[key.0];
    let known = |values: &[Option<f64>]| values.iter().copied().flatten().collect::<Vec<f64>>();
    let (some_live, some_sim) = (known(live), known(sim));
    let mean = |values: &[f64]| (!values.is_empty()).then(|| Moments::of(values).mean);
    let (live_mean, sim_mean) = (mean(&some_live), mean(&some_sim));
    let rare = |some: &[f64], all: &[Option<f64>]| some.is_empty() || 2 * some.len() < all.len();
    if rare(&some_live, live) && rare(&some_sim, sim) {
        return None;
    }
    let limits = measure.limits(live_mean.unwrap_or(0.0), packet_ms);
    let whole = some_live.len() == live.len() || some_sim.len() == sim.len();
    let (interval, verdict) = match (some_live.len(), some_sim.len()) {
        // One engine never has a value, for example since no flow completes there, and the other always has one.
        (0, _) | (_, 0) if whole && live.len() >= FEWEST_TO_DIFFER => (None, Verdict::Differs),
        _ if by_pairs => {
            let (live, sim) = pairs(live, sim);
            judge(Difference::of_pairs(&live, &sim), live.len(), limits)
        }
        _ => judge(Difference::of(&some_live, &some_sim), some_live.len(), limits),
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
        judge(Difference::of(live, sim), live.len(), limits).1
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-3
    }

    #[test]
    fn equal_variances_are_pooled() {
        // Variances 2 and 2.5, pooled (1*2 + 4*2.5)/5 = 2.4; error sqrt(2.4 * (1/2 + 1/5)) = 1.2961; t(0.975, 5) = 2.571.
        let (live, sim) = ([99.0, 101.0], [97.0, 98.0, 99.0, 100.0, 101.0]);
        let difference = Difference::of(&live, &sim).unwrap();
        assert_eq!(difference.degrees, 5);
        assert!(close(difference.mean, 1.0) && close(difference.error, 1.2961), "{difference:?}");
        let (low, high) = difference.interval(0.95);
        assert!(close(low, 1.0 - 3.332) && close(high, 1.0 + 3.332), "{low} {high}");
    }

    #[test]
    fn unequal_variances_are_welchs() {
        // Variances 166.67 (4 values) and 0.025 (5 values): F = 6667 is far above the 97.5 % quantile 9.98 of F(3, 4).
        let (live, sim) = ([80.0, 90.0, 100.0, 110.0], [10.0, 10.2, 10.1, 10.3, 9.9]);
        let difference = Difference::of(&live, &sim).unwrap();
        // x = 41.667, y = 0.005: degrees (x+y)^2 / (x^2/3 + y^2/4) = 3.0007.
        assert_eq!(difference.degrees, 3);
        assert!(close(difference.error, 6.4554), "{difference:?}");
    }

    #[test]
    fn pairs_agree_where_what_is_drawn_scatters_more_than_the_engines_differ() {
        // Differences -0.1, 0.1 and 0.3: mean 0.1, variance 0.04, error sqrt(0.04 / 3) = 0.1155, t(0.975, 2) = 4.303.
        let (live, sim) = ([10.0, 20.1, 30.3], [10.1, 20.0, 30.0]);
        let difference = Difference::of_pairs(&live, &sim).unwrap();
        assert!(close(difference.mean, 0.1) && close(difference.error, 0.1155), "{difference:?}");
        assert_eq!((difference.degrees, judge(Some(difference), 3, BOUND).1), (2, Verdict::Agree));
        assert_eq!(of(&live, &sim, BOUND), Verdict::CannotTell);
        assert_eq!(
            pairs(&[Some(1.0), None, Some(3.0)], &[Some(2.0), Some(5.0), None]),
            (vec![1.0], vec![2.0])
        );
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
        let found = |live: &[Option<f64>]| row(&key, live, &[None; 20], 0.1, false).unwrap().verdict;
        assert_eq!(found(&[Some(3.0); 4]), Verdict::Differs);
        assert_eq!(found(&[Some(3.0); 3]), Verdict::CannotTell);
        assert!(row(&key, &[None; 4], &[None; 20], 0.1, false).is_none());
        // One transfer of ten ends before the run does.
        let rare = [[Some(14.0)].as_slice(), &[None; 9]].concat();
        assert!(row(&key, &rare, &[rare.clone(), rare.clone()].concat(), 0.1, false).is_none());
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
