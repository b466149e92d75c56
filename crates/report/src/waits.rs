//! Waiting times of applications: until short flows complete, requests and echoes are answered, frames and ensembles are
//! whole. Only a group with such traffic has a row in the table, a clause in the sentence and a plot.

use crate::html::{Cell, Table};
use crate::lab::{Group, Run};
use crate::number::rough_with;
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::ensemble::{ASYNCHRONY, DELAY, PER_SECOND, STALL};
use weir_record::metrics::message::{
    ECHO_TIME, ECHOES_LOST, FRAME_DELAY, FRAMES_LOST, FRAMES_ON_TIME, REQUEST_TIME, REQUESTS_PER_SECOND,
};
use weir_record::{Distribution, Metric};

/// What applications wait for, and the metrics that tell of it.
struct Kind {
    what: &'static str,
    times: Metric,
    per_second: Option<Metric>,
    on_time: Option<Metric>,
    lost: Option<Metric>,
    /// Whether sentences tell of it.
    is_told: bool,
}

impl Kind {
    const fn new(what: &'static str, times: Metric, is_told: bool) -> Kind {
        Kind { what, times, per_second: None, on_time: None, lost: None, is_told }
    }
}

const KINDS: &[Kind] = &[
    Kind::new("flows", COMPLETION_TIME, true),
    Kind { per_second: Some(REQUESTS_PER_SECOND), ..Kind::new("requests", REQUEST_TIME, true) },
    Kind { on_time: Some(FRAMES_ON_TIME), lost: Some(FRAMES_LOST), ..Kind::new("frames", FRAME_DELAY, true) },
    Kind { lost: Some(ECHOES_LOST), ..Kind::new("echoes", ECHO_TIME, true) },
    Kind { per_second: Some(PER_SECOND), ..Kind::new("ensembles’ frames", DELAY, true) },
    Kind::new("asynchrony", ASYNCHRONY, false),
    Kind::new("stalls", STALL, false),
];

/// Waiting times of a group for one kind of thing.
pub(crate) struct Wait {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    /// How long those took that ended; `None` if none did.
    pub(crate) times: Option<Distribution>,
    pub(crate) per_second: Option<f64>,
    /// Share of frames on time.
    pub(crate) on_time_percent: Option<f64>,
    /// Share of frames that never were whole, or of echoes without an answer.
    pub(crate) lost_percent: Option<f64>,
    is_told: bool,
}

/// The waiting times of a group; empty if it had none.
pub(crate) fn of(group: &Group<'_>) -> Vec<Wait> {
    let number = |metric: &Option<Metric>| group.number(metric.as_ref()?);
    let wait = |kind: &Kind| Wait {
        what: kind.what,
        unit: kind.times.unit,
        times: group.summary.metrics.distribution(&kind.times),
        per_second: number(&kind.per_second),
        on_time_percent: number(&kind.on_time),
        lost_percent: number(&kind.lost),
        is_told: kind.is_told,
    };
    let kinds = KINDS.iter().filter(|kind| kind.times != COMPLETION_TIME || group.summary.completes);
    let has =
        |wait: &Wait| wait.times.is_some() || wait.on_time_percent.is_some() || wait.lost_percent.is_some();
    kinds.map(wait).filter(has).collect()
}

/// The table of a run's waiting times; empty if there are none.
pub(crate) fn table(run: &Run, name: impl Fn(&str) -> Cell) -> String {
    if run.groups().all(|group| of(&group).is_empty()) {
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
    for group in run.groups() {
        for wait in of(&group) {
            let time = |pick: fn(&Distribution) -> f64| Cell::number(wait.times.as_ref().map(pick));
            table.row(vec![
                name(&group.summary.name),
                Cell::text(wait.what),
                Cell::count(Some(wait.times.map_or(0, |times| times.count))),
                Cell::text(wait.unit),
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

/// The clauses about waiting times in a run's sentence; asynchrony and stalls of ensembles are only in the table.
pub(crate) fn clauses(run: &Run) -> Vec<String> {
    let clause = |name: &str, wait: Wait| {
        let what = wait.what;
        let name = format!("{name}{}", if name.ends_with('s') { "’" } else { "’s" });
        if let Some(on_time) = wait.on_time_percent {
            return Some(format!("{} of {name} {what} were on time", rough_with(on_time, "%")));
        }
        let times = wait.times?;
        let (median, p99) = (rough_with(times.p50, wait.unit), rough_with(times.p99, wait.unit));
        Some(match times.count {
            1 => format!("one of {name} {what} took {median}"),
            _ => format!("half of {name} {what} took {median} or less, one in a hundred {p99} or more"),
        })
    };
    let told = run.groups().flat_map(|group| {
        let waits = of(&group).into_iter().filter(|wait| wait.is_told);
        waits.filter_map(move |wait| clause(&group.summary.name, wait))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_record::{GroupSummary, Metrics, RunSummary, Value};

    fn times() -> Distribution {
        Distribution { count: 200, mean: 0.4, p1: 0.1, p25: 0.2, p50: 0.3, p75: 0.5, p99: 2.0 }
    }

    /// A run with one group, whose completion times may matter.
    fn run(name: &str, completes: bool, metric: Metric, value: Value) -> Run {
        let metrics: Metrics = [(metric.name, value)].into_iter().collect();
        let (name, transport) = (name.into(), "tcp".into());
        let group = GroupSummary { name, controller: None, transport, flows: 200, completes, metrics };
        let summary = RunSummary { groups: vec![group], ..RunSummary::default() };
        Run { summary: Arc::new(summary), ..Run::default() }
    }

    #[test]
    fn only_waits_that_occurred_are_reported() {
        let completion = Value::Distribution(times());
        assert_eq!(clauses(&run("web", false, COMPLETION_TIME, completion)), [""; 0]);
        let web = run("web", true, COMPLETION_TIME, completion);
        assert_eq!(
            clauses(&web)[0].replace('\u{a0}', " "),
            "half of web’s flows took 0.30 s or less, one in a hundred 2 s or more"
        );
        let several = run("pages", true, COMPLETION_TIME, completion);
        assert!(clauses(&several)[0].starts_with("half of pages’ flows took"));
        let frames = run("call", true, FRAMES_ON_TIME, Value::Number(97.0));
        let waits: Vec<Wait> = frames.groups().flat_map(|group| of(&group)).collect();
        assert_eq!((waits.len(), waits[0].on_time_percent, waits[0].times), (1, Some(97.0), None));
        assert_eq!(table(&Run::default(), Cell::text), "");
    }
}
