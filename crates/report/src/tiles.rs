//! The tiles at the top of a run's page: the most important numbers of each link that carries data.

use crate::html::{escape, figures};
use crate::lab::{Link, Run};
use crate::naming::spelled;
use crate::number::{number, number_with, rough_with};
use std::fmt::Write;
use weir_record::metrics::queue::{
    ARRIVED, DROP_PROBABILITY, DROPPED, LINK_CAPACITY, LINK_LOST, MARK_PROBABILITY, MARKED, QUEUE_DELAY,
    UTILISATION,
};
use weir_record::metrics::rate::JAIN;
use weir_record::{Metric, Metrics};

/// Largest number of links with tiles; the page's table has all links.
const TILED_LINKS: usize = 4;

/// The tiles of each link that carries data, with L4S packets separate if there are any; then the fairness of the flows.
pub(crate) fn tiles(run: &Run) -> String {
    let mut html = String::new();
    for link in run.data_links().into_iter().take(TILED_LINKS) {
        let rate = link.number(&LINK_CAPACITY).or(link.plan.rate_mbps);
        let rate = rate.map_or(String::new(), |rate| format!(", {}", rough_with(rate, "Mbit/s")));
        let target = link.plan.target_ms.map(|target| format!(", target {}", rough_with(target, "ms")));
        let _ = writeln!(
            html,
            "<h2 class=\"of\">Link {} <span class=\"quiet\">{}{rate}{}</span></h2>\n{}",
            escape(link.name()),
            escape(&spelled(&link.queue.queue)),
            target.unwrap_or_default(),
            figures(&link_figures(&link))
        );
    }
    if let Some(jain) = run.summary.metrics.number(&JAIN).filter(|_| run.summary.flows.len() > 1) {
        let at = run.bottleneck().map_or(String::new(), |link| format!(" that cross link {}", link.name()));
        html += &figures(&[("Jain’s index", Some(number(jain)), format!("over the flows{at}; 1 is even"))]);
    }
    html
}

/// The tiles of a link: utilisation, queue delay, drops and marks, separate for L4S and classic packets if both are there.
fn link_figures(link: &Link<'_>) -> Vec<(&'static str, Option<String>, String)> {
    let with = |of: &Metrics, metric: &Metric| of.number(metric).map(|value| number_with(value, metric.unit));
    let packets =
        |of: &Metrics, metric| format!("{} packets", crate::number::count(of.count(metric).unwrap_or(0)));
    let p99 = |of: &Metrics| {
        let delay = of.distribution(&QUEUE_DELAY);
        delay.map_or(String::new(), |delay| format!("p99 {}", number_with(delay.p99, "ms")))
    };
    let all = &link.queue.metrics;
    let ended = link.plan.ended_s.map(|end| format!("; its traffic ended at {}", rough_with(end, "s")));
    let about = format!("of its capacity{}", ended.unwrap_or_default());
    let mut figures = vec![("Used", with(all, &UTILISATION), about)];
    match link.l4s_and_classic() {
        Some((l4s, classic)) => {
            figures.push(("Queue delay, L4S", with(l4s, &QUEUE_DELAY), p99(l4s)));
            figures.push(("Queue delay, classic", with(classic, &QUEUE_DELAY), p99(classic)));
            figures.push(("Marked, L4S", with(l4s, &MARK_PROBABILITY), packets(l4s, &MARKED)));
            figures.push(("Dropped, classic", with(classic, &DROP_PROBABILITY), packets(classic, &DROPPED)));
        }
        None => {
            figures.push(("Queue delay", with(all, &QUEUE_DELAY), p99(all)));
            figures.push(("Dropped", with(all, &DROP_PROBABILITY), packets(all, &DROPPED)));
            let marked = with(all, &MARK_PROBABILITY).filter(|_| all.count(&MARKED) > Some(0));
            figures.push(("Marked", marked, packets(all, &MARKED)));
        }
    }
    if let Some(lost) = all.count(&LINK_LOST).filter(|lost| *lost > 0) {
        let arrived = all.count(&ARRIVED).filter(|arrived| *arrived > 0);
        let share = arrived.map(|arrived| number_with(100.0 * lost as f64 / arrived as f64, "%"));
        figures.push(("Lost by the link", share, packets(all, &LINK_LOST)));
    }
    figures
}
