//! The tables of a run's page.

use super::*;
use crate::lab::Group;
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::flowshare::{NORMALISED, VARIATION};
use weir_record::metrics::queue::{DROP_PROBABILITY, MARK_PROBABILITY, QUEUE_DELAY, UTILISATION};
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::tcp::{CWND, RETRANSMISSION_PERCENT, RETRANSMISSIONS, RTT, RTT_MEAN};
use weir_record::{Metric, Metrics};

impl Pages<'_> {
    pub(super) fn groups_table(&self, run: &Run) -> String {
        let mut table = Table::new(
            "Traffic",
            &[
                "group",
                "controller",
                "flows",
                "goodput, Mbit/s",
                "of its link, %",
                "link",
                "RTT mean, ms",
                "RTT p99, ms",
                "window, segments",
                "retransmitted, %",
                "retransmissions, segments",
                "completion, s",
                "limited by, shares of the time",
            ],
        )
        .sorted_by_click();
        for group in run.groups() {
            let (of, metrics) = (group.summary, &group.summary.metrics);
            table.row(vec![
                Cell::html(swatch(self.colour(&of.name), &of.name)),
                Cell::text(
                    &of.controller.as_deref().map(spelled).unwrap_or_else(|| of.transport.to_string()),
                ),
                Cell::count(Some(of.flows as u64)),
                Cell::number(group.number(&GOODPUT)),
                Cell::number(group.share_percent),
                Cell::text(group.link.unwrap_or_default()),
                Cell::number(group.number(&RTT)),
                Cell::number(p99(metrics, &RTT)),
                Cell::number(group.number(&CWND)),
                Cell::number(group.number(&RETRANSMISSION_PERCENT)),
                Cell::count(metrics.count(&RETRANSMISSIONS)),
                Cell::number(group.number(&COMPLETION_TIME)),
                Cell::long(&crate::limited::words(metrics)),
            ]);
        }
        table.render()
    }

    /// The shares of the path of coordinated flows and their competitors; empty if there are none.
    pub(super) fn shares_table(&self, run: &Run) -> String {
        let mut table = Table::new(
            "Shares of the path",
            &["group", "flows", "normalised flowshare", "variation of throughput"],
        );
        for group in run.groups().filter(|group| group.number(&NORMALISED).is_some()) {
            let of = group.summary;
            table.row(vec![
                Cell::html(swatch(self.colour(&of.name), &of.name)),
                Cell::count(Some(of.flows as u64)),
                Cell::number(group.number(&NORMALISED)),
                Cell::number(group.number(&VARIATION)),
            ]);
        }
        table.render()
    }

    pub(super) fn flows_table(&self, run: &Run) -> String {
        if run.summary.flows.len() <= run.summary.groups.len() {
            return String::new();
        }
        let mut table = Table::new(
            "Numbers of each flow",
            &[
                "flow",
                "group",
                "goodput, Mbit/s",
                "RTT mean, ms",
                "retransmissions, segments",
                "completion, s",
                "limited by, shares of the time",
            ],
        )
        .sorted_by_click();
        for flow in &run.summary.flows {
            table.row(vec![
                Cell::text(&flow.name),
                Cell::html(swatch(self.colour(&flow.group), &flow.group)),
                Cell::number(flow.metrics.number(&GOODPUT)),
                Cell::number(flow.metrics.number(&RTT_MEAN)),
                Cell::count(flow.metrics.count(&RETRANSMISSIONS)),
                Cell::number(flow.metrics.number(&COMPLETION_TIME)),
                Cell::text(&crate::limited::words(&flow.metrics)),
            ]);
        }
        table.render()
    }

    pub(super) fn side_by_side(&self, first: &Run, second: &Run) -> String {
        let (a, b) = (engine_name(first.engine()), engine_name(second.engine()));
        let mut table = Table::new("Both engines, this repeat", &["", a, b, "difference"]);
        let mut row = |name: Cell, first: Option<f64>, second: Option<f64>| {
            if first.is_some() || second.is_some() {
                let difference = first.zip(second).map(|(first, second)| second - first);
                table.row(vec![
                    name,
                    Cell::number(first),
                    Cell::number(second),
                    Cell::figure(difference.map(signed).unwrap_or_default()),
                ]);
            }
        };
        for link in first.data_links() {
            let one = &link.queue.metrics;
            let none = Metrics::default();
            let two = second.links().find(|other| other.name() == link.name());
            let two = two.map_or(&none, |two| &two.queue.metrics);
            let name = |what: &str| Cell::text(&format!("link {} {what}", link.name()));
            let mut both =
                |what: &str, metric: &Metric| row(name(what), one.number(metric), two.number(metric));
            both("used, %", &UTILISATION);
            both("queue delay, mean, ms", &QUEUE_DELAY);
            row(name("queue delay, p99, ms"), p99(one, &QUEUE_DELAY), p99(two, &QUEUE_DELAY));
            let mut both =
                |what: &str, metric: &Metric| row(name(what), one.number(metric), two.number(metric));
            both("dropped, %", &DROP_PROBABILITY);
            both("marked, %", &MARK_PROBABILITY);
        }
        for group in first.groups() {
            let own = &group.summary.name;
            let other = second.groups().find(|other| other.summary.name == *own);
            let name = |what: &str| Cell::html(format!("{} {what}", swatch(self.colour(own), own)));
            let mut both = |what: &str, metric: &Metric| {
                row(
                    name(what),
                    group.number(metric),
                    other.and_then(|other: Group<'_>| other.number(metric)),
                );
            };
            both("goodput, Mbit/s", &GOODPUT);
            both("flowshare", &NORMALISED);
            both("RTT mean, ms", &RTT);
            both("retransmitted, %", &RETRANSMISSION_PERCENT);
        }
        table.render()
    }
}

/// The 99th percentile of a metric that is a distribution.
fn p99(of: &Metrics, metric: &Metric) -> Option<f64> {
    of.distribution(metric).map(|times| times.p99)
}
