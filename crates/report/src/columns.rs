//! Every metric of the registry over all runs, for the comparison: a column for each metric of the run, of each link, class
//! and group, with a value for each run. The pages load this file only when a reader asks for such a metric.

use crate::script::push_json;
use crate::tables::class_name;
use serde_json::json;
use std::borrow::Cow;
use weir_record::{METRICS, Metrics, RunSummary, Summary, Value};

/// The subject of a column: its kind and its name; the name is empty for the run's own columns.
type Of<'a> = (&'static str, Cow<'a, str>);

/// `report/metrics.js`: values are in the order of the summary's runs, which is that of the lab's table.
pub(crate) fn script(summary: &Summary) -> Vec<u8> {
    let mut found: Vec<(Of<'_>, Columns)> = vec![];
    for (run, summary) in summary.runs.iter().enumerate() {
        for (of, metrics) in parts(summary) {
            let known = found.iter().position(|(known, _)| *known == of).unwrap_or_else(|| {
                found.push((of, METRICS.iter().map(|_| Column::default()).collect()));
                found.len() - 1
            });
            add(&mut found[known].1, run, metrics);
        }
    }
    let mut script = b"weir.metrics([\n".to_vec();
    for ((of, name), columns) in found {
        for (metric, mut column) in METRICS.iter().zip(columns).filter(|(_, column)| column.runs > 0) {
            let (title, unit) = (metric.title, metric.unit);
            let head = json!({ "m": metric.name, "title": title, "unit": unit, "of": of, "name": name });
            let head = head.to_string();
            script.extend(head.trim_end_matches('}').bytes());
            column.skip_to(summary.runs.len());
            script.extend(b",\"v\":[");
            script.extend(&column.values[1..]);
            script.extend(b"]},\n");
        }
    }
    script.extend(b"]);\n");
    script
}

/// The subjects for which a run has metrics.
fn parts(run: &RunSummary) -> Vec<(Of<'_>, &Metrics)> {
    let mut parts: Vec<(Of<'_>, &Metrics)> = vec![(("run", "".into()), &run.metrics)];
    for queue in &run.queues {
        parts.push((("link", queue.link.as_str().into()), &queue.metrics));
        for class in &queue.classes {
            let name = format!("{} {}", queue.link, class_name(class.class.name()));
            parts.push((("class", name.into()), &class.metrics));
        }
    }
    parts.extend(run.groups.iter().map(|group| (("group", (*group.name).into()), &group.metrics)));
    parts
}

/// A column for each metric of the registry; the column of a metric without values stays empty.
type Columns = Vec<Column>;

/// The values of a metric, run by run, as JSON with a comma before each.
#[derive(Default)]
struct Column {
    values: Vec<u8>,
    /// Number of runs so far.
    runs: usize,
}

impl Column {
    /// Writes `null` for the runs before this one that have no value yet.
    fn skip_to(&mut self, run: usize) {
        (self.runs..run).for_each(|_| self.values.extend(b",null"));
        self.runs = run;
    }
}

/// Adds the metrics of a subject in this run, with the six digits that they have. They are in the registry's order, so that
/// each is looked up after the one before.
fn add(columns: &mut Columns, run: usize, metrics: &Metrics) {
    let mut next = 0;
    for (name, value) in metrics.iter() {
        let after = (next..METRICS.len()).chain(0..next).find(|place| METRICS[*place].name == name);
        let Some(place) = after.filter(|place| columns[*place].runs <= run) else { continue };
        next = place + 1;
        let column = &mut columns[place];
        if value == Value::Undefined {
            continue;
        }
        column.skip_to(run);
        column.runs += 1;
        column.values.push(b',');
        match value {
            Value::Undefined => {}
            Value::Count(count) => push_json(&count, &mut column.values),
            Value::Number(number) => push_json(&number, &mut column.values),
            Value::Distribution(d) => {
                push_json(&[d.mean, d.p1, d.p25, d.p50, d.p75, d.p99], &mut column.values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::GroupSummary;

    #[test]
    fn a_metric_has_a_value_for_each_run_and_an_unmeasured_metric_has_no_column() {
        let run = |goodput: Option<f64>| RunSummary {
            groups: vec![GroupSummary {
                name: "bulk".into(),
                controller: None,
                transport: "tcp".into(),
                flows: 1,
                completes: false,
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
        let script = String::from_utf8(script(&summary)).unwrap();
        assert!(script.contains("\"m\":\"goodput_mbps\"") && script.contains("\"v\":[1.5,null]"), "{script}");
        assert_eq!(script.matches("\"m\":").count(), 1);
    }
}
