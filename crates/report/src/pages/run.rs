//! The tables of a run's page.

use super::*;
use crate::model::PacketNumbers;

impl Pages<'_> {
    pub(super) fn groups_table(&self, run: &RunNumbers) -> String {
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
            ],
        )
        .sorted_by_click();
        for group in &run.groups {
            table.row(vec![
                Cell::html(swatch(self.colour(&group.name), &group.name)),
                Cell::text(
                    &group.controller.as_deref().map(spelled).unwrap_or_else(|| group.transport.to_string()),
                ),
                Cell::count(Some(group.flows as u64)),
                Cell::number(group.goodput_mbps),
                Cell::number(group.share_percent),
                Cell::text(group.link.as_deref().unwrap_or_default()),
                Cell::number(group.rtt_ms.map(|rtt| rtt.mean)),
                Cell::number(group.rtt_ms.map(|rtt| rtt.p99)),
                Cell::number(group.window_segments),
                Cell::number(group.retransmitted_percent),
                Cell::count(group.retransmissions),
                Cell::number(group.completion_s),
            ]);
        }
        table.render()
    }

    /// The shares of the path of coordinated flows and their competitors; empty if there are none.
    pub(super) fn shares_table(&self, run: &RunNumbers) -> String {
        let mut table = Table::new(
            "Shares of the path",
            &["group", "flows", "normalised flowshare", "variation of throughput"],
        );
        for group in run.groups.iter().filter(|group| group.flowshare.is_some()) {
            table.row(vec![
                Cell::html(swatch(self.colour(&group.name), &group.name)),
                Cell::count(Some(group.flows as u64)),
                Cell::number(group.flowshare),
                Cell::number(group.variation),
            ]);
        }
        table.render()
    }

    pub(super) fn flows_table(&self, run: &RunNumbers) -> String {
        if run.flows.len() <= run.groups.len() {
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
            ],
        )
        .sorted_by_click();
        for flow in &run.flows {
            table.row(vec![
                Cell::text(&flow.name),
                Cell::html(swatch(self.colour(&flow.group), &flow.group)),
                Cell::number(flow.goodput_mbps),
                Cell::number(flow.rtt_mean_ms),
                Cell::count(flow.retransmissions),
                Cell::number(flow.completion_s),
            ]);
        }
        table.render()
    }

    pub(super) fn side_by_side(&self, first: &RunNumbers, second: &RunNumbers) -> String {
        let (a, b) = (engine_name(&first.engine), engine_name(&second.engine));
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
            let none = LinkNumbers::default();
            let two = second.links.iter().find(|other| other.name == link.name).unwrap_or(&none);
            let name = |what: &str| Cell::text(&format!("link {} {what}", link.name));
            let (one, two) = (&link.packets, &two.packets);
            let delay =
                |packets: &PacketNumbers, pick: fn(&Distribution) -> f64| packets.delay_ms.as_ref().map(pick);
            row(name("used, %"), one.utilisation_percent, two.utilisation_percent);
            row(name("queue delay, mean, ms"), delay(one, |d| d.mean), delay(two, |d| d.mean));
            row(name("queue delay, p99, ms"), delay(one, |d| d.p99), delay(two, |d| d.p99));
            row(name("dropped, %"), one.dropped_percent, two.dropped_percent);
            row(name("marked, %"), one.marked_percent, two.marked_percent);
        }
        for group in &first.groups {
            let other = second.groups.iter().find(|other| other.name == group.name);
            let name =
                |what: &str| Cell::html(format!("{} {what}", swatch(self.colour(&group.name), &group.name)));
            row(name("goodput, Mbit/s"), group.goodput_mbps, other.and_then(|g| g.goodput_mbps));
            row(name("flowshare"), group.flowshare, other.and_then(|g| g.flowshare));
            row(
                name("RTT mean, ms"),
                group.rtt_ms.map(|d| d.mean),
                other.and_then(|g| g.rtt_ms).map(|d| d.mean),
            );
            row(
                name("retransmitted, %"),
                group.retransmitted_percent,
                other.and_then(|g| g.retransmitted_percent),
            );
        }
        table.render()
    }
}
