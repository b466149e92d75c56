//! The difference of two means, live minus simulated, and its interval.
//!
//! A live run and the simulated run of its seed are twins: both have the same start times, random losses and drawn flows, so their values
//! often go together. Where that is certain, the line through the pairs estimates the live mean at the mean of all simulated runs, which
//! leaves out what the seeds of the live runs have in common with their twins (control variates by regression: Lavenberg and Welch 1981).
//! Cells with drawn traffic are judged by pairs until then. All others have Student's interval with the variance pooled over both engines.
//! Where an F-test at 5 % says that the variances differ, it is Welch's (Welch 1947), whose degrees of freedom are rounded down.

use weir_record::compare::{f_tail, quantile};

/// Level of the test of equal variances.
const EQUAL: f64 = 0.05;
/// Level of the one-sided test of a correlation.
const CORRELATED: f64 = 0.01;
/// Fewest pairs of a line.
const FEWEST_OF_LINE: usize = 4;

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
pub(crate) struct Difference {
    mean: f64,
    error: f64,
    degrees: u32,
}

impl Difference {
    /// The difference of the means of these runs; `pairs` are the values of live runs and their twins, and `drawn` says whether the
    /// seed draws the traffic. `None` for too few values.
    pub(crate) fn between(
        live: &[f64],
        sim: &[f64],
        pairs: &[(f64, f64)],
        drawn: bool,
    ) -> Option<Difference> {
        if pairs.len() == live.len() {
            if let Some(line) = Line::through(pairs).filter(Line::is_certain) {
                return Some(Difference::by_line(&line, sim));
            }
            if drawn {
                return Difference::of_pairs(pairs);
            }
        }
        Difference::of(live, sim)
    }

    /// The difference of independent means. `None` for fewer than two values on a side.
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
    fn of_pairs(pairs: &[(f64, f64)]) -> Option<Difference> {
        if pairs.len() < 2 {
            return None;
        }
        let within: Vec<f64> = pairs.iter().map(|(live, sim)| live - sim).collect();
        let Moments { count, mean, variance } = Moments::of(&within);
        Some(Difference { mean, error: (variance / count).sqrt(), degrees: pairs.len() as u32 - 1 })
    }

    /// The live mean that the line through the pairs gives at the mean of all simulated runs, minus that mean.
    fn by_line(line: &Line, sim: &[f64]) -> Difference {
        let all = Moments::of(sim);
        let away = all.mean - line.sim.mean;
        let mean = line.live.mean + line.slope * away - all.mean;
        let of_line = line.residual * (1.0 / line.live.count + away * away / line.squares);
        let of_sim = (1.0 - line.slope).powi(2) * all.variance / all.count;
        Difference { mean, error: (of_line + of_sim).sqrt(), degrees: line.degrees }
    }

    /// The interval that holds the difference with this confidence.
    pub(crate) fn interval(&self, confidence: f64) -> (f64, f64) {
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

/// The least-squares line of live values over those of their twins.
#[derive(Debug)]
struct Line {
    live: Moments,
    sim: Moments,
    /// Sum of squared deviations of the twins.
    squares: f64,
    slope: f64,
    /// Variance around the line.
    residual: f64,
    /// Degrees of freedom of that variance.
    degrees: u32,
}

impl Line {
    /// `None` for fewer than four pairs, or if the values of an engine are all equal.
    fn through(pairs: &[(f64, f64)]) -> Option<Line> {
        let (live, sim): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (live, sim) = (Moments::of(&live), Moments::of(&sim));
        if pairs.len() < FEWEST_OF_LINE || live.variance == 0.0 || sim.variance == 0.0 {
            return None;
        }
        let products: f64 = pairs.iter().map(|(l, s)| (l - live.mean) * (s - sim.mean)).sum();
        let (squares, degrees) = (sim.variance * (sim.count - 1.0), pairs.len() as u32 - 2);
        let slope = products / squares;
        let left = (live.variance * (live.count - 1.0) - slope * products).max(0.0);
        Some(Line { live, sim, squares, slope, residual: left / f64::from(degrees), degrees })
    }

    /// Whether the slope is above zero at the level [`CORRELATED`].
    fn is_certain(&self) -> bool {
        let error = (self.residual / self.squares).sqrt();
        self.slope > error * quantile(1.0 - CORRELATED, self.degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let pairs: Vec<(f64, f64)> = live.into_iter().zip(sim).collect();
        let difference = Difference::between(&live, &sim, &pairs, true).unwrap();
        assert!(close(difference.mean, 0.1) && close(difference.error, 0.1155), "{difference:?}");
        assert_eq!(difference.degrees, 2);
        assert_eq!(Difference::between(&live, &sim, &pairs, false), Difference::of(&live, &sim));
    }

    #[test]
    fn a_certain_line_through_twins_gives_the_live_mean_at_the_mean_of_all_simulated_runs() {
        // Twins 1 to 5 have about 2 s + 1 live; the mean of all simulated runs is 6.
        let pairs = [(2.9, 1.0), (5.1, 2.0), (7.1, 3.0), (8.9, 4.0), (11.0, 5.0)];
        let live = pairs.map(|(live, _)| live);
        let sim = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        let line = Line::through(&pairs).unwrap();
        // Products about the means (7, 3): 8.2 + 1.9 + 0 + 1.9 + 8.0 = 20.0, squares 10.
        assert!(close(line.slope, 2.0) && line.is_certain());
        // Live squares 16.81 + 3.61 + 0.01 + 3.61 + 16.0 = 40.04, less 2 * 20: 0.04 over 3 degrees.
        assert!(close(line.residual, 0.0133) && line.degrees == 3);
        let difference = Difference::between(&live, &sim, &pairs, false).unwrap();
        // 7 + 2 * (6 - 3) - 6 = 7; error sqrt(0.0133 * (1/5 + 9/10) + 1 * 12.222 / 10) = 1.1122.
        assert!(close(difference.mean, 7.0) && close(difference.error, 1.1122), "{difference:?}");
    }

    #[test]
    fn twins_that_do_not_go_together_are_independent_runs() {
        let pairs = [(1.0, 2.0), (2.0, 1.0), (1.5, 2.5), (2.5, 1.5), (2.0, 2.0)];
        let (live, sim): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        assert_eq!(Difference::between(&live, &sim, &pairs, false), Difference::of(&live, &sim));
        assert!(Line::through(&pairs[..3]).is_none() && Line::through(&[(1.0, 2.0); 5]).is_none());
    }
}
