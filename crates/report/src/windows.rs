//! The named windows of a run: values of links and groups in each of them, and in the whole run.

use crate::compact::compact;
use crate::html::{Cell, Table, escape};
use crate::model::{RunNumbers, WindowNumbers, WindowOf};
use weir_record::metrics::{message, queue, rate, second, tcp};
use weir_record::{Metric, Metrics, Part, RunSummary};

/// The metrics in the table of links.
const OF_LINKS: [Metric; 6] = [
    queue::UTILISATION,
    queue::QUEUE_DELAY,
    second::QUEUE_DELAY_WORST,
    second::QUEUE_DELAY_SETTLING,
    queue::DROP_PROBABILITY,
    queue::MARK_PROBABILITY,
];
/// The metrics in the table of traffic.
const OF_GROUPS: [Metric; 9] = [
    rate::GOODPUT,
    second::GOODPUT_WORST,
    second::SETTLING,
    tcp::RTT,
    second::RTT_WORST,
    tcp::RETRANSMISSION_PERCENT,
    message::FRAMES_ON_TIME,
    second::FRAMES_WORST,
    message::REQUEST_TIME,
];

/// Numbers of the whole run and of its windows; empty if the run has no windows.
pub(crate) fn numbers(run: &RunSummary) -> Vec<WindowNumbers> {
    if run.windows.is_empty() {
        return vec![];
    }
    let whole = run.part(None).map(|part| numbers_of(None, [run.warmup_s, run.duration_s], part));
    let windows = run.windows.iter().filter_map(|window| {
        let name = Some(window.name.as_str());
        Some(numbers_of(name, [window.from_s, window.to_s], run.part(name)?))
    });
    whole.into_iter().chain(windows).collect()
}

fn numbers_of(name: Option<&str>, span_s: [f64; 2], part: Part<'_>) -> WindowNumbers {
    let of = |name: &str, metrics: &Metrics, shown: &[Metric]| WindowOf {
        name: name.into(),
        values: shown.iter().map(|metric| metrics.value(metric).scalar()).collect(),
    };
    let carries =
        |metrics: &Metrics| metrics.value(&queue::ARRIVED).scalar().is_some_and(|count| count > 0.0);
    let links = part.queues.iter().filter(|queue| carries(&queue.metrics));
    WindowNumbers {
        name: name.map(String::from),
        span_s,
        links: links.map(|queue| of(&queue.link, &queue.metrics, &OF_LINKS)).collect(),
        groups: part.groups.iter().map(|group| of(&group.name, &group.metrics, &OF_GROUPS)).collect(),
    }
}

/// A table of the groups and one of the links, with a row for each in each window; `swatch` shows a group's name in its
/// colour.
pub(crate) fn tables(run: &RunNumbers, swatch: impl Fn(&str) -> String) -> String {
    if run.windows.is_empty() {
        return String::new();
    }
    table("Traffic by window", "group", &OF_GROUPS, run, |window| &window.groups, swatch)
        + &table("Links by window", "link", &OF_LINKS, run, |window| &window.links, escape)
}

fn table(
    caption: &str,
    what: &str,
    metrics: &[Metric],
    run: &RunNumbers,
    rows: impl Fn(&WindowNumbers) -> &[WindowOf],
    name: impl Fn(&str) -> String,
) -> String {
    // Columns without any value are left out.
    let measured = |column: &usize| {
        run.windows.iter().flat_map(&rows).any(|row| row.values.get(*column).is_some_and(Option::is_some))
    };
    let columns: Vec<usize> = (0..metrics.len()).filter(measured).collect();
    let heads: Vec<String> = columns.iter().map(|&column| head(&metrics[column])).collect();
    let head = ["window", "seconds", what].into_iter().chain(heads.iter().map(String::as_str));
    let mut table = Table::new(caption, &head.collect::<Vec<_>>());
    for window in &run.windows {
        let [from, to] = window.span_s.map(|seconds| compact(Some(seconds)));
        for (place, row) in rows(window).iter().enumerate() {
            let first = |text: String| Cell::text(if place == 0 { &text } else { "" });
            let mut cells = vec![
                first(window.name.clone().unwrap_or_else(|| "whole run".into())),
                first(format!("{from} to {to}")),
                Cell::html(name(&row.name)),
            ];
            cells.extend(
                columns.iter().map(|&column| Cell::number(row.values.get(column).copied().flatten())),
            );
            table.row(cells);
        }
    }
    table.render()
}

/// A metric's title with its unit; for a distribution the value is the mean.
fn head(metric: &Metric) -> String {
    if metric.unit.is_empty() {
        return metric.title.to_lowercase();
    }
    let mut letters = metric.title.chars();
    let title: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    format!("{title}, {}", metric.unit)
}
