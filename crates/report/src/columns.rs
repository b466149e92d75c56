//! Every metric of the registry over all runs, for the comparison: a column for each metric of the run, of each link, class and
//! group, with a value for each run. The pages load them only when one is asked for.

use crate::number::rounded;
use crate::tables::class_name;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use weir_record::{METRICS, Metric, Metrics, RunSummary, Summary, Value};

/// What a column is of: the kind, and its name; none of a run.
type Of = (&'static str, String);

/// `report/metrics.js`: values stand in the order of the summary's runs, which is that of the lab's table.
pub(crate) fn script(summary: &Summary) -> String {
    let mut found: Vec<Of> = vec![];
    for run in &summary.runs {
        for (of, _) in parts(run) {
            if !found.contains(&of) {
                found.push(of);
            }
        }
    }
    let mut script = String::from("weir.metrics([\n");
    for (of, name) in &found {
        let own: Vec<Option<&Metrics>> = summary.runs.iter().map(|run| part(run, of, name)).collect();
        for metric in METRICS {
            if let Some(column) = column(metric, of, name, &own) {
                let _ = writeln!(script, "{column},");
            }
        }
    }
    script + "]);\n"
}

/// What a run has metrics of.
fn parts(run: &RunSummary) -> Vec<(Of, &Metrics)> {
    let mut parts = vec![(("run", String::new()), &run.metrics)];
    for queue in &run.queues {
        parts.push((("link", queue.link.clone()), &queue.metrics));
        for class in &queue.classes {
            let name = format!("{} {}", queue.link, class_name(class.class.name()));
            parts.push((("class", name), &class.metrics));
        }
    }
    parts.extend(run.groups.iter().map(|group| (("group", group.name.clone()), &group.metrics)));
    parts
}

fn part<'a>(run: &'a RunSummary, of: &str, name: &str) -> Option<&'a Metrics> {
    let own = parts(run).into_iter().find(|((kind, own), _)| *kind == of && own == name);
    own.map(|(_, metrics)| metrics)
}

/// A column; none where nothing was measured.
fn column(metric: &Metric, of: &str, name: &str, runs: &[Option<&Metrics>]) -> Option<Json> {
    let value = |run: &Option<&Metrics>| match run.map_or(Value::Undefined, |run| run.get(metric.name)) {
        Value::Undefined => Json::Null,
        Value::Count(count) => json!(count),
        Value::Number(number) => json!(rounded(number, 6)),
        Value::Distribution(d) => {
            json!([d.mean, d.p1, d.p25, d.p50, d.p75, d.p99].map(|value| rounded(value, 6)))
        }
    };
    let values: Vec<Json> = runs.iter().map(value).collect();
    let any = values.iter().any(|value| !value.is_null());
    any.then(|| {
        json!({ "m": metric.name, "title": metric.title, "unit": metric.unit, "of": of, "name": name, "v": values })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::GroupSummary;

    #[test]
    fn a_metric_has_a_value_for_each_run_and_what_nobody_measured_no_column() {
        let run = |goodput: Option<f64>| RunSummary {
            groups: vec![GroupSummary {
                name: "bulk".into(),
                controller: None,
                transport: "tcp".into(),
                flows: 1,
                metrics: goodput.map(|value| ("goodput_mbps", Value::Number(value))).into_iter().collect(),
            }],
            ..RunSummary::default()
        };
        let summary = Summary {
            lab: "lab".into(),
            weir_version: "0".into(),
            planned_runs: 2,
            runs: vec![run(Some(1.5)), run(None)],
        };
        let script = script(&summary);
        assert!(script.contains("\"m\":\"goodput_mbps\"") && script.contains("\"v\":[1.5,null]"), "{script}");
        assert_eq!(script.matches("\"m\":").count(), 1);
    }
}
