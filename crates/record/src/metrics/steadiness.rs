//! How steady goodput is within a named window, and since when: the checks of the GNAT study's regression script (its experiments, 1.4),
//! over sample periods.

use super::value::{Value, mbps, ratio};
use super::{Flows, Level, Metric, Reduction};
use std::collections::BTreeMap;
use weir_base::Time;

/// A sample further than so many standard deviations from the mean of all later ones is an outlier.
const DEVIATIONS: f64 = 3.0;
/// The search for outliers, from the window's end backward, stops at this one.
const OUTLIERS: usize = 10;

impl Flows<'_> {
    /// Goodput of each sample period of a named window, in Mbit/s. Empty in other windows, without an overlay, or if it is unknown how much
    /// was read.
    fn goodput_by_period(&self) -> Vec<f64> {
        let (view, mut bytes) = (self.view, BTreeMap::<Time, u64>::new());
        let is_carried = self.transits().next().is_some();
        if !view.is_part || !is_carried || !self.read() || view.info.sample.is_zero() {
            return vec![];
        }
        for (_, end, read) in self.each().flat_map(|flow| flow.periods.iter().copied()) {
            *bytes.entry(end).or_default() += read;
        }
        let ends = std::iter::successors(Some(view.window.from + view.info.sample), |end| {
            Some(*end + view.info.sample)
        });
        let ends = ends.take_while(|end| *end <= view.window.to);
        ends.filter_map(|end| mbps(bytes.get(&end).copied().unwrap_or(0), view.info.sample)).collect()
    }
}

/// Mean and population standard deviation; `None` without values.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = ratio(values.iter().sum(), count)?;
    let squares = ratio(values.iter().map(|value| (value - mean) * (value - mean)).sum(), count)?;
    Some((mean, squares.sqrt()))
}

/// The index from which on values have converged: behind the run of outliers in which the tenth one lies, from the end backward.
fn converged(values: &[f64]) -> usize {
    let (mut outliers, mut behind) = (0, None);
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (index, value) in values.iter().enumerate().rev() {
        let mean = if count > 0.0 { sum / count } else { *value };
        let deviation = if count > 0.0 { (squares / count - mean * mean).max(0.0).sqrt() } else { f64::MAX };
        if (value - mean).abs() > DEVIATIONS * deviation {
            outliers += 1;
            let run = *behind.get_or_insert(index + 1);
            if outliers == OUTLIERS {
                return run;
            }
        } else {
            behind = None;
        }
        (count, sum, squares) = (count + 1.0, sum + value, squares + value * value);
    }
    0
}

const OF: &[Level] = &[Level::Group, Level::Flow];
const SOURCE: &str = "GNAT regression script (experiments, 1.4)";

family! {
    GOODPUT_DEVIATION {
        name: "goodput_deviation",
        title: "Goodput, deviation over mean",
        unit: "",
        of: OF,
        definition: "Standard deviation of the goodput of sample periods over its mean, in a named window of flows over the overlay; 0.2 or less is steady.",
        source: SOURCE,
        reduction: Reduction::Transits(|f| {
            let (mean, deviation) = spread(&f.goodput_by_period()).unwrap_or_default();
            Value::from(ratio(deviation, mean))
        }),
    }

    CONVERGENCE {
        name: "convergence_time_s",
        title: "Convergence time",
        unit: "s",
        of: OF,
        definition: "Time from the begin of a named window until the goodput of sample periods has converged. Seen from the window's end, a period is an outlier if its goodput is further than three standard deviations from the mean of all later ones; goodput has converged behind the run of outliers in which the tenth one lies.",
        source: SOURCE,
        reduction: Reduction::Transits(|f| {
            let goodput = f.goodput_by_period();
            let time = converged(&goodput) as f64 * f.view.info.sample.as_secs_f64();
            Value::from((!goodput.is_empty()).then_some(time))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_steps_once_converges_at_the_step() {
        let values: Vec<f64> =
            (0..400).map(|n| if n < 30 { 9.0 } else { 4.0 + f64::from(n % 2) * 0.1 }).collect();
        assert_eq!(converged(&values), 30);
    }

    #[test]
    fn fewer_than_ten_outliers_do_not_count() {
        let values: Vec<f64> =
            (0..100).map(|n| if n < 5 { 9.0 } else { 4.0 + f64::from(n % 2) * 0.1 }).collect();
        assert_eq!(converged(&values), 0);
        assert_eq!(converged(&[]), 0);
    }

    #[test]
    fn the_spread_is_that_of_the_whole_population() {
        let (mean, deviation) = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((mean - 5.0).abs() < 1e-9 && (deviation - 2.0).abs() < 1e-9);
        assert_eq!(spread(&[]), None);
    }
}
