//! What the repeats of a cell do not settle, in words: a mean whose 95 % interval is wider than the mean itself, and repeats in two
//! clusters, of which the mean describes neither.

use crate::answer;
use crate::number::rough;
use weir_base::math::sqrt;
use weir_record::compare::{Estimate, quantile};
use weir_record::metrics::queue::QUEUE_DELAY;
use weir_record::metrics::rate::GOODPUT;
use weir_record::{GroupSummary, Metric, RunSummary, Statistic};

/// Enough repeats bring half the interval to this share of the mean.
const ENOUGH: f64 = 0.25;
/// Largest number of repeats that is recommended.
const MOST: u32 = 500;
/// 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.96;
/// Fewest repeats in which clusters are looked for, and fewest in a cluster.
const FEWEST: usize = 5;
const IN_A_CLUSTER: usize = 2;
/// Clusters are apart by at least this many times the range of the wider one, and by this share of the mean.
const APART: f64 = 3.0;
const FAR: f64 = 0.25;

/// What is wrong with the mean of these repeats; `None` if nothing is.
pub(crate) fn doubt(values: &[f64]) -> Option<String> {
    let Estimate { mean, interval, .. } = Estimate::of(values)?;
    let (low, high) = interval?;
    let advice = || match enough(values, mean) {
        Some(repeats) => format!("about {repeats} repeats would do"),
        None => format!("not even {MOST} repeats would do"),
    };
    if let Some((a, b)) = clusters(values, mean) {
        let one = |cluster: &[f64]| {
            format!("{} near {}", cluster.len(), rough(cluster.iter().sum::<f64>() / cluster.len() as f64))
        };
        return Some(format!(
            "the repeats fall into two clusters ({}, {}), and the mean describes neither; {}",
            one(a.as_slice()),
            one(b.as_slice()),
            advice()
        ));
    }
    (high - low > mean.abs() && mean != 0.0).then(|| {
        format!(
            "its 95 % interval (± {}) is wider than the value ({}); {}",
            rough((high - low) / 2.0),
            rough(mean),
            advice()
        )
    })
}

/// The number of repeats after which half the interval is a quarter of the mean, if they scatter as these do.
fn enough(values: &[f64], mean: f64) -> Option<u32> {
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = sqrt(squares / (values.len() as f64 - 1.0));
    let half = |repeats: u32| deviation * quantile(0.975, repeats - 1) / sqrt(f64::from(repeats));
    // Student's quantile is above the normal one, so that no fewer repeats suffice.
    let least = (NORMAL * deviation / (ENOUGH * mean.abs())).powi(2);
    let first = (least.min(f64::from(MOST) + 1.0) as u32).max(values.len() as u32 + 1);
    (first..=MOST).find(|repeats| half(*repeats) <= ENOUGH * mean.abs())
}

/// The two clusters of some values, if there are two.
fn clusters(values: &[f64], mean: f64) -> Option<(Vec<f64>, Vec<f64>)> {
    if values.len() < FEWEST {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |place: &usize| sorted[*place] - sorted[*place - 1];
    let split = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = sorted.split_at(split);
    let range = |part: &[f64]| part[part.len() - 1] - part[0];
    let is_apart = gap(&split) >= APART * range(low).max(range(high)) && gap(&split) >= FAR * mean.abs();
    (is_apart && low.len().min(high.len()) >= IN_A_CLUSTER).then(|| (low.to_vec(), high.to_vec()))
}

/// The doubts about a cell's repeats: of what each group is judged by, and of the delay of each link that carries data.
pub(crate) fn doubts(runs: &[&RunSummary]) -> Vec<String> {
    let mut found = vec![];
    let Some(first) = runs.first().filter(|_| runs.len() > 1) else { return found };
    for group in &first.groups {
        let own = runs.iter().filter_map(|run| run.groups.iter().find(|other| other.name == group.name));
        let all: Vec<&GroupSummary> = own.collect();
        let (metric, statistic) = answer::of(all.iter().copied())
            .map_or((GOODPUT, Statistic::Mean), |answer| (answer.metric, answer.statistic));
        let values: Vec<f64> =
            all.iter().filter_map(|group| statistic.of(group.metrics.value(&metric))).collect();
        found.extend(doubt(&values).map(|why| about(&metric, &group.name, &why)));
    }
    for queue in first.queues.iter().filter(|queue| !queue.carries.is_empty()) {
        let own = |run: &&RunSummary| {
            run.queues.iter().find(|other| other.link == queue.link)?.metrics.number(&QUEUE_DELAY)
        };
        let values: Vec<f64> = runs.iter().filter_map(own).collect();
        found.extend(doubt(&values).map(|why| about(&QUEUE_DELAY, &queue.link, &why)));
    }
    found
}

fn about(metric: &Metric, of: &str, why: &str) -> String {
    let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
    format!("{} of {of}{unit}: {why}.", metric.title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_wider_than_the_value_is_said_with_the_repeats_that_would_do() {
        // Mean 4, deviation 3.46: the interval of three is ± 8.6; that of 49 is ± 0.995.
        assert_eq!(
            doubt(&[2.0, 2.0, 8.0]).unwrap(),
            "its 95 % interval (± 8.6) is wider than the value (4); about 49 repeats would do"
        );
        assert_eq!(doubt(&[4.0, 4.2, 4.1]), None);
        assert_eq!(doubt(&[4.0]), None, "a single run has no interval");
        assert_eq!(doubt(&[0.0, 0.0]), None);
    }

    #[test]
    fn repeats_in_two_clusters_are_told_apart() {
        let text = doubt(&[1.0, 9.8, 1.1, 9.9, 9.7]).unwrap();
        assert!(text.starts_with("the repeats fall into two clusters (2 near 1.1, 3 near 9.8)"), "{text}");
        // One odd repeat is no cluster, and values that are close together are none either.
        assert_eq!(clusters(&[9.0, 9.1, 9.2, 9.1, 1.0], 7.5), None);
        assert_eq!(clusters(&[9.0, 9.0, 9.0, 9.1, 9.1], 9.04), None);
    }
}
