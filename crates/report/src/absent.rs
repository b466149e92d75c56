//! Why a run has no value of a metric, in words: pages, plots and tables show it where the value would stand.

use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::{Metric, RunSummary};

/// Why a run has no value of a metric, of this group if the metric is of one.
pub(crate) fn why(metric: &Metric, run: &RunSummary, group: Option<&str>) -> String {
    if metric.absent.is_empty() {
        return "no value".into();
    }
    let seconds = |value: f64| format!("{value}\u{a0}s");
    let flows = run.flows.iter().filter(|flow| group.is_none_or(|name| *flow.group == *name));
    let mut completed = flows.filter(|flow| flow.metrics.number(&COMPLETION_TIME).is_some());
    if metric.absent == COMPLETION_TIME.absent && completed.next().is_some() {
        return format!("completed within the warm-up of {}", seconds(run.warmup_s));
    }
    format!("{} within {}", metric.absent, seconds(run.duration_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::metrics::rate::GOODPUT;
    use weir_record::{FlowSummary, Metrics, Value};

    #[test]
    fn a_flow_that_did_not_complete_is_told_from_one_that_completed_too_early() {
        let flow = |completed: Option<f64>| FlowSummary {
            name: "file".into(),
            group: "file".into(),
            controller: None,
            transport: "tcp".into(),
            metrics: completed
                .map(|took| (COMPLETION_TIME.name, Value::Number(took)))
                .into_iter()
                .collect::<Metrics>(),
        };
        let run = |completed| RunSummary {
            duration_s: 120.0,
            warmup_s: 5.0,
            flows: vec![flow(completed)],
            ..RunSummary::default()
        };
        let said = |completed| why(&COMPLETION_TIME, &run(completed), Some("file")).replace('\u{a0}', " ");
        assert_eq!(said(None), "did not complete within 120 s");
        assert_eq!(said(Some(2.0)), "completed within the warm-up of 5 s");
        assert_eq!(why(&GOODPUT, &run(None), None), "no value");
    }
}
