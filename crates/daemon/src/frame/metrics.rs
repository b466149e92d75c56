//! A daemon's status in Prometheus' text format (version 0.0.4).

use super::status::{Status, word};
use std::fmt::Write as _;

/// A label: backslashes, quotes and ends of lines of its value are escaped.
fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

/// The status as a text: all samples of a metric stand together. Their names begin with `prefix`.
pub(super) fn text(prefix: &str, status: &Status) -> String {
    let Status { kind, labels, up_s, counters, parts, .. } = status;
    let own: Vec<String> = labels.iter().map(|(name, value)| label(name, value)).collect();
    let own = own.join(",");
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {prefix}_up_seconds Time since the {kind} was started.");
    let _ = writeln!(text, "# TYPE {prefix}_up_seconds gauge\n{prefix}_up_seconds{{{own}}} {up_s}");
    let counted = format!("{prefix}_{}_total", counters.name);
    if !counters.values.is_empty() {
        let _ = writeln!(text, "# HELP {counted} {}\n# TYPE {counted} counter", counters.meaning);
    }
    for (name, count) in &counters.values {
        let _ = writeln!(text, "{counted}{{{own},what=\"{name}\"}} {count}");
    }
    let mut names: Vec<&str> = vec![];
    for (name, _) in parts.iter().flat_map(|part| &part.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let metric = format!("{prefix}_{}_{name}", status.part);
        let _ = writeln!(text, "# TYPE {metric} gauge");
        for part in parts {
            let mut all = own.clone();
            part.labels.iter().for_each(|(name, value)| {
                all += &format!(",{}", label(&labelled(status, name), &word(value)))
            });
            for (_, value) in part.values.iter().filter(|(own, _)| own == name) {
                let _ = writeln!(text, "{metric}{{{all}}} {value}");
            }
        }
    }
    text
}

/// The name of a part's label: its `name` is called as the part is.
fn labelled(status: &Status, name: &str) -> String {
    if name == "name" { status.part.clone() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::status::{Counters, Part};
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_of_a_metric_follow_each_other_and_labels_are_escaped() {
        let application = |id: u8, name: &str, rtt| Part {
            labels: vec![("id".into(), json!(id)), ("name".into(), json!(name))],
            values: vec![("flows".into(), 2.0), ("rtt_ms".into(), rtt)],
        };
        let status = Status {
            labels: vec![("local".into(), "a".into()), ("path".into(), "b".into())],
            up_s: 1.5,
            counters: Counters {
                name: "packets".into(),
                values: vec![("passed".into(), 3)],
                ..Counters::default()
            },
            part: "application".into(),
            parts: vec![application(1, "one", 20.5), application(2, "t\"wo", 0.25)],
            ..Status::default()
        };
        let text = text("weir_ap", &status);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            samples,
            [
                "# TYPE weir_ap_up_seconds gauge",
                "weir_ap_up_seconds{local=\"a\",path=\"b\"} 1.5",
                "# TYPE weir_ap_packets_total counter",
                "weir_ap_packets_total{local=\"a\",path=\"b\",what=\"passed\"} 3",
                "# TYPE weir_ap_application_flows gauge",
                "weir_ap_application_flows{local=\"a\",path=\"b\",id=\"1\",application=\"one\"} 2",
                "weir_ap_application_flows{local=\"a\",path=\"b\",id=\"2\",application=\"t\\\"wo\"} 2",
                "# TYPE weir_ap_application_rtt_ms gauge",
                "weir_ap_application_rtt_ms{local=\"a\",path=\"b\",id=\"1\",application=\"one\"} 20.5",
                "weir_ap_application_rtt_ms{local=\"a\",path=\"b\",id=\"2\",application=\"t\\\"wo\"} 0.25",
            ]
        );
    }
}
