//! The tiles at the top of a run's page: the most important numbers of each link that carries data.

use crate::html::{escape, figures};
use crate::model::{LinkNumbers, RunNumbers};
use crate::number::{number, number_with, rough_with};
use crate::sentence::spelled;
use std::fmt::Write;
use weir_record::Distribution;

/// Largest number of links with tiles; the page's table has all links.
const TILED_LINKS: usize = 4;

/// The tiles of each link that carries data, with L4S packets separate if there are any; then the fairness of the flows.
pub(crate) fn tiles(run: &RunNumbers) -> String {
    let mut html = String::new();
    for link in run.data_links().into_iter().take(TILED_LINKS) {
        let rate = link.capacity_mbps.or(link.rate_mbps);
        let rate = rate.map_or(String::new(), |rate| format!(", {}", rough_with(rate, "Mbit/s")));
        let target = link.target_ms.map(|target| format!(", target {}", rough_with(target, "ms")));
        let _ = writeln!(
            html,
            "<h2 class=\"of\">Link {} <span class=\"quiet\">{}{rate}{}</span></h2>\n{}",
            escape(&link.name),
            escape(&spelled(&link.queue)),
            target.unwrap_or_default(),
            figures(&link_figures(link))
        );
    }
    if let Some(jain) = run.jain.filter(|_| run.flows.len() > 1) {
        let at = run.bottleneck().map_or(String::new(), |link| format!(" that cross link {}", link.name));
        html += &figures(&[("Jain’s index", Some(number(jain)), format!("over the flows{at}; 1 is even"))]);
    }
    html
}

/// The tiles of a link: utilisation, queue delay, drops and marks, separate for L4S and classic packets if both are there.
fn link_figures(link: &LinkNumbers) -> Vec<(&'static str, Option<String>, String)> {
    let with = |value: Option<f64>, unit: &str| value.map(|value| number_with(value, unit));
    let packets = |count: u64| format!("{} packets", crate::number::count(count));
    let mean = |delay: Option<Distribution>| with(delay.map(|delay| delay.mean), "ms");
    let p99 = |delay: Option<Distribution>| {
        delay.map_or(String::new(), |delay| format!("p99 {}", number_with(delay.p99, "ms")))
    };
    let all = &link.packets;
    let mut figures = vec![("Used", with(all.utilisation_percent, "%"), "of its capacity".into())];
    match link.l4s_and_classic() {
        Some((l4s, classic)) => {
            figures.push(("Queue delay, L4S", mean(l4s.delay_ms), p99(l4s.delay_ms)));
            figures.push(("Queue delay, classic", mean(classic.delay_ms), p99(classic.delay_ms)));
            figures.push(("Marked, L4S", with(l4s.marked_percent, "%"), packets(l4s.marked)));
            let dropped = classic.dropped_percent;
            figures.push(("Dropped, classic", with(dropped, "%"), packets(classic.dropped)));
        }
        None => {
            figures.push(("Queue delay", mean(all.delay_ms), p99(all.delay_ms)));
            figures.push(("Dropped", with(all.dropped_percent, "%"), packets(all.dropped)));
            let marked = with(all.marked_percent.filter(|_| all.marked > 0), "%");
            figures.push(("Marked", marked, packets(all.marked)));
        }
    }
    if link.lost > 0 {
        let lost = (all.arrived > 0).then(|| 100.0 * link.lost as f64 / all.arrived as f64);
        figures.push(("Lost by the link", with(lost, "%"), packets(link.lost)));
    }
    figures
}
