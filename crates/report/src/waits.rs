//! Waiting times of applications: until short flows complete, requests and echoes are answered, frames and ensembles are
//! whole. Only a group with such traffic has a row in the table, a clause in the sentence and a plot.

use crate::html::{Cell, Table};
use crate::model::{GroupNumbers, RunNumbers, WaitNumbers};
use crate::number::rough_with;
use weir_record::{Distribution, GroupSummary, Metrics, Value};

/// The waiting times of a group. `flows` tells whether completion times count: for transfers and flows with random arrivals.
pub(crate) fn of(group: &GroupSummary, flows: bool) -> Vec<WaitNumbers> {
    let metrics = &group.metrics;
    let times = |name: &str| metrics.get(name).distribution().copied();
    let row = |what: &str, unit: &str, times: Option<Distribution>| {
        let (what, unit) = (what.into(), unit.into());
        WaitNumbers { what, unit, times, per_second: None, on_time_percent: None, lost_percent: None }
    };
    let mut waits = Vec::new();
    if let Some(times) = times("completion_time_s").filter(|_| flows) {
        waits.push(row("flows", "s", Some(times)));
    }
    if let Some(times) = times("request_time_ms") {
        let per_second = single(metrics, "requests_per_s");
        waits.push(WaitNumbers { per_second, ..row("requests", "ms", Some(times)) });
    }
    if let Some(on_time) = single(metrics, "frames_on_time_percent") {
        waits.push(WaitNumbers {
            on_time_percent: Some(on_time),
            lost_percent: single(metrics, "frames_lost_percent"),
            ..row("frames", "ms", times("frame_delay_ms"))
        });
    }
    if let Some(lost) = single(metrics, "echoes_lost_percent") {
        waits.push(WaitNumbers { lost_percent: Some(lost), ..row("echoes", "ms", times("echo_time_ms")) });
    }
    if let Some(delay) = times("ensemble_delay_ms") {
        let per_second = single(metrics, "ensembles_per_s");
        waits.push(WaitNumbers { per_second, ..row("ensembles’ frames", "ms", Some(delay)) });
    }
    for (what, metric) in [("asynchrony", "completion_asynchrony_ms"), ("stalls", "stall_time_ms")] {
        waits.extend(times(metric).map(|times| row(what, "ms", Some(times))));
    }
    waits
}

fn single(metrics: &Metrics, name: &str) -> Option<f64> {
    match metrics.get(name) {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// The table of a run's waiting times; empty if there are none.
pub(crate) fn table(run: &RunNumbers, name: impl Fn(&GroupNumbers) -> Cell) -> String {
    if run.groups.iter().all(|group| group.waits.is_empty()) {
        return String::new();
    }
    let head = [
        "group",
        "of its",
        "number",
        "unit",
        "mean",
        "p25",
        "p50",
        "p75",
        "p99",
        "a second",
        "on time, %",
        "lost, %",
    ];
    let mut table = Table::new("Waiting times of applications", &head);
    for group in &run.groups {
        for wait in &group.waits {
            let time = |pick: fn(&Distribution) -> f64| Cell::number(wait.times.as_ref().map(pick));
            table.row(vec![
                name(group),
                Cell::text(&wait.what),
                Cell::count(Some(wait.times.map_or(0, |times| times.count))),
                Cell::text(&wait.unit),
                time(|d| d.mean),
                time(|d| d.p25),
                time(|d| d.p50),
                time(|d| d.p75),
                time(|d| d.p99),
                Cell::number(wait.per_second),
                Cell::number(wait.on_time_percent),
                Cell::number(wait.lost_percent),
            ]);
        }
    }
    table.render()
}

/// The clauses about waiting times in a run's sentence.
pub(crate) fn clauses(groups: &[GroupNumbers]) -> Vec<String> {
    let clause = |group: &GroupNumbers, wait: &WaitNumbers| {
        let what = &wait.what;
        let name = format!("{}{}", group.name, if group.name.ends_with('s') { "’" } else { "’s" });
        // Asynchrony and stalls of ensembles are only in the table.
        if ["asynchrony", "stalls"].contains(&what.as_str()) {
            return None;
        }
        if let Some(on_time) = wait.on_time_percent {
            return Some(format!("{} of {name} {what} were on time", rough_with(on_time, "%")));
        }
        let times = wait.times?;
        let (median, p99) = (rough_with(times.p50, &wait.unit), rough_with(times.p99, &wait.unit));
        Some(match times.count {
            1 => format!("one of {name} {what} took {median}"),
            _ => format!("half of {name} {what} took {median} or less, one in a hundred {p99} or more"),
        })
    };
    groups.iter().flat_map(|group| group.waits.iter().filter_map(move |wait| clause(group, wait))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Distribution {
        Distribution { count: 200, mean: 0.4, p1: 0.1, p25: 0.2, p50: 0.3, p75: 0.5, p99: 2.0 }
    }

    fn group(metrics: Metrics) -> GroupSummary {
        let (name, transport) = ("web".into(), "tcp".into());
        GroupSummary { name, controller: None, transport, flows: 200, metrics }
    }

    #[test]
    fn only_waits_that_occurred_are_reported() {
        let completion: Metrics = [("completion_time_s", Value::Distribution(times()))].into_iter().collect();
        assert_eq!(of(&group(completion.clone()), false), []);
        let waits = of(&group(completion), true);
        let numbers = GroupNumbers { name: "web".into(), waits, ..GroupNumbers::default() };
        assert_eq!(
            clauses(std::slice::from_ref(&numbers))[0].replace('\u{a0}', " "),
            "half of web’s flows took 0.30 s or less, one in a hundred 2 s or more"
        );
        let several = GroupNumbers { name: "pages".into(), ..numbers };
        assert!(clauses(&[several])[0].starts_with("half of pages’ flows took"));
        let frames: Metrics = [("frames_on_time_percent", Value::Number(97.0))].into_iter().collect();
        let waits = of(&group(frames), true);
        assert_eq!((waits.len(), waits[0].on_time_percent, waits[0].times), (1, Some(97.0), None));
        assert_eq!(table(&RunNumbers::default(), |group| Cell::text(&group.name)), "");
    }
}
