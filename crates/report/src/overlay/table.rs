//! The tables of an overlay on a run's page, from the run's metrics.

use super::PARTS;
use crate::html::{Cell, Table};
use crate::lab::Run;
use weir_record::Metric;
use weir_record::metrics::overlay::{
    DEADLINE_CAPACITY, DEADLINE_CAPACITY_RATIO, IN_TIME, OPTIMUM, OPTIMUM_RATIO, PASSED_LINKS, TRANSIT,
    TRANSIT_WAIT,
};

/// What each part's share is of.
const OF: [&str; 4] = [
    "bytes of data packets",
    "bytes of all packets",
    "bytes of data packets that left for the first time",
    "bytes of data packets that left for the first time",
];

/// How each group came through, and the overhead by parts; empty without an overlay. `name` shows a group's name.
pub(crate) fn tables(run: &Run, name: impl Fn(&str) -> Cell) -> String {
    let metrics = &run.summary.metrics;
    if metrics.number(&PARTS[0].2).is_none() {
        return String::new();
    }
    let head = [
        "group",
        "in time, %",
        "transit mean, ms",
        "transit p99, ms",
        "queueing mean, ms",
        "queueing p99, ms",
        "links passed",
        "capacity by the deadline, Mbit/s",
        "goodput of a receiver over it",
        "optimum of utilities, Mbit/s",
        "goodput over it",
    ];
    let mut groups = Table::new("Traffic over the overlay", &head);
    for group in run.groups().filter(|group| group.number(&TRANSIT).is_some()) {
        let p99 = |metric: &Metric| group.summary.metrics.distribution(metric).map(|times| times.p99);
        groups.row(vec![
            name(&group.summary.name),
            Cell::number(group.number(&IN_TIME)),
            Cell::number(group.number(&TRANSIT)),
            Cell::number(p99(&TRANSIT)),
            Cell::number(group.number(&TRANSIT_WAIT)),
            Cell::number(p99(&TRANSIT_WAIT)),
            Cell::number(group.number(&PASSED_LINKS)),
            Cell::number(group.number(&DEADLINE_CAPACITY)),
            Cell::number(group.number(&DEADLINE_CAPACITY_RATIO)),
            Cell::number(group.number(&OPTIMUM)),
            Cell::number(group.number(&OPTIMUM_RATIO)),
        ]);
    }
    let mut parts = Table::new("Overhead of the overlay, by parts", &["part", "share, %", "of"]);
    for ((_, part, metric), of) in PARTS.iter().zip(OF) {
        if let Some(share) = metrics.number(metric) {
            parts.row(vec![Cell::text(part), Cell::number(Some(share)), Cell::text(of)]);
        }
    }
    groups.render() + &parts.render()
}
