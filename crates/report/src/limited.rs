//! What limited a flow or a group, in words.

use crate::lab::Run;
use crate::number::rough_with;
use weir_record::metrics::limited::{ALL, BY_PACING, BY_RECEIVE_WINDOW, BY_SEND_BUFFER};
use weir_record::{Metric, Metrics};

/// A share below this, in percent, is not told.
const TOLD: f64 = 1.0;
/// A share above this, in percent, is what limited a group.
const MOST: f64 = 50.0;

/// What a metric's title says after `Limited by `.
fn what(metric: &Metric) -> &'static str {
    metric.title.strip_prefix("Limited by ").unwrap_or(metric.title)
}

/// What limited a flow or a group, with its shares of the time, the largest first; empty if the transport does not tell.
pub(crate) fn words(of: &Metrics) -> String {
    let mut shares: Vec<(f64, &Metric)> = ALL
        .iter()
        .filter_map(|metric| Some((of.number(metric).filter(|share| *share >= TOLD)?, metric)))
        .collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said =
        shares.into_iter().map(|(share, metric)| format!("{} {}", what(metric), rough_with(share, "%")));
    said.collect::<Vec<_>>().join(", ")
}

/// The clauses about groups that something other than the network limited for most of their time.
pub(crate) fn clauses(run: &Run) -> Vec<String> {
    let causes = [BY_RECEIVE_WINDOW, BY_SEND_BUFFER, BY_PACING];
    let clause = |name: &str, of: &Metrics, cause: &Metric| {
        let share = of.number(cause).filter(|share| *share > MOST)?;
        Some(format!("{name} was limited by {} for {} of its time", what(cause), rough_with(share, "%")))
    };
    let of_group = |group: crate::lab::Group<'_>| {
        let summary = group.summary;
        causes.iter().find_map(|cause| clause(&summary.name, &summary.metrics, cause))
    };
    run.groups().filter_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::Value;
    use weir_record::metrics::limited::{BY_APPLICATION, BY_PATH};

    #[test]
    fn the_largest_share_is_told_first_and_small_ones_are_not() {
        let shares = [(BY_PATH, 6.0), (BY_RECEIVE_WINDOW, 93.5), (BY_APPLICATION, 0.5)];
        let metrics: Metrics =
            shares.into_iter().map(|(metric, share)| (metric.name, Value::Number(share))).collect();
        assert_eq!(words(&metrics).replace('\u{a0}', " "), "the receive window 94 %, the path 6 %");
        assert_eq!(words(&Metrics::default()), "");
    }
}
