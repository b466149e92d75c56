//! The named windows of a run: values of links and groups in each of them, and in the whole run.

use crate::compact::compact;
use crate::html::{Cell, Table, escape};
use crate::lab::Run;
use weir_record::metrics::{message, queue, rate, second, tcp};
use weir_record::{Metric, Metrics, Part};

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

/// A window: its name, its begin and end in seconds, and its rows, each with its name as HTML.
type Window<'a> = (&'a str, [f64; 2], Vec<(String, &'a Metrics)>);

/// A table of the groups and one of the links, with a row for each in each window, the whole run first; `swatch` shows a group's
/// name in its colour. Empty if the run has no windows.
pub(crate) fn tables(run: &Run, swatch: impl Fn(&str) -> String) -> String {
    let run = &run.summary;
    if run.windows.is_empty() {
        return String::new();
    }
    let whole = run.part(None).map(|part| ("whole run", [run.warmup_s, run.duration_s], part));
    let windows = run.windows.iter().filter_map(|window| {
        let span = [window.from_s, window.to_s];
        Some((window.name.as_str(), span, run.part(Some(&window.name))?))
    });
    let windows: Vec<(&str, [f64; 2], Part<'_>)> = whole.into_iter().chain(windows).collect();
    let carries = |metrics: &Metrics| metrics.number(&queue::ARRIVED).is_some_and(|count| count > 0.0);
    let groups = windows.iter().map(|(name, span, part)| {
        (*name, *span, part.groups.iter().map(|group| (swatch(&group.name), &group.metrics)).collect())
    });
    let links = windows.iter().map(|(name, span, part)| {
        let links = part.queues.iter().filter(|queue| carries(&queue.metrics));
        (*name, *span, links.map(|queue| (escape(&queue.link), &queue.metrics)).collect())
    });
    table("Traffic by window", "group", &OF_GROUPS, &groups.collect::<Vec<_>>())
        + &table("Links by window", "link", &OF_LINKS, &links.collect::<Vec<_>>())
}

fn table(caption: &str, what: &str, metrics: &[Metric], windows: &[Window<'_>]) -> String {
    // Columns without any value are left out.
    let measured = |metric: &&Metric| {
        let mut all = windows.iter().flat_map(|(.., rows)| rows);
        all.any(|(_, of)| of.number(metric).is_some())
    };
    let columns: Vec<&Metric> = metrics.iter().filter(measured).collect();
    let heads: Vec<String> = columns.iter().map(|metric| head(metric)).collect();
    let head = ["window", "seconds", what].into_iter().chain(heads.iter().map(String::as_str));
    let mut table = Table::new(caption, &head.collect::<Vec<_>>());
    for (name, span, rows) in windows {
        let [from, to] = span.map(|seconds| compact(Some(seconds)));
        for (place, (row, of)) in rows.iter().enumerate() {
            let first = |text: &str| Cell::text(if place == 0 { text } else { "" });
            let mut cells = vec![first(name), first(&format!("{from} to {to}")), Cell::html(row.clone())];
            cells.extend(columns.iter().map(|metric| Cell::number(of.number(metric))));
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
