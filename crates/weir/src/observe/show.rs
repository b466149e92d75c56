//! An observation as text.

use super::Document;
use std::fmt::Write;
use weir_observe::{Compared, QueuePeriod, Times};
use weir_report::number::{count, number};

/// Codepoints in the order in which reports have them.
const CODEPOINTS: [&str; 4] = ["Not-ECT", "ECT(1)", "ECT(0)", "CE"];
/// The columns of a line of a second, and their width.
const LIVE: [&str; 7] = ["time s", "Mbit/s", "mean ms", "max ms", "waiting", "drops", "marks"];
const WIDTH: usize = 9;

/// The sentence that an observation begins with.
pub(super) fn sentence(document: &Document) -> String {
    let Document { device, discipline, handle, queue, .. } = document;
    let time = queue.sojourn_ms.as_ref().map_or_else(
        || String::from("no packet waited"),
        |times| {
            format!(
                "packets were in it for {} ms, 99 % of them up to {}",
                number(times.mean),
                number(times.p99)
            )
        },
    );
    let drops = queue.drops();
    let share = drops as f64 * 100.0 / queue.came.max(1) as f64;
    format!(
        "{device} ({discipline} {handle}) in {} s: {time}; {} of {} packets were dropped ({} %)",
        number(queue.duration_s),
        count(drops),
        count(queue.came),
        number(share)
    )
}

/// What is to be known beside the numbers.
pub(super) fn notes(document: &Document) -> Vec<String> {
    let mut notes = vec![];
    if let Some(why) = &document.invalid {
        notes.push(format!("the observation is invalid: {why}"));
    }
    if let Some(why) = &document.ended_early {
        notes.push(format!("it ended early: {why}"));
    }
    notes
}

/// Names and values.
pub(super) fn rows(document: &Document) -> Vec<(String, String)> {
    let queue = &document.queue;
    let mut rows = vec![
        ("packets that came".to_owned(), count(queue.came)),
        ("that left after waiting".into(), count(queue.left)),
        ("that passed an empty queue".into(), count(queue.passed)),
    ];
    let mut told = |name: &str, value: String| rows.push((name.to_owned(), value));
    told("rate, Mbit/s", queue.rate_mbps.map(number).unwrap_or_default());
    let times = |times: &Times| {
        format!(
            "{} / {} / {} / {}",
            number(times.mean),
            number(times.p50),
            number(times.p99),
            number(times.max)
        )
    };
    if let Some(of) = &queue.sojourn_ms {
        told("time in the queue, ms (mean / median / p99 / longest)", times(of));
    }
    told("most packets waiting", count(queue.most_waiting));
    told("most bytes waiting", count(queue.most_waiting_bytes));
    for (reason, drops) in &document.drops {
        told(&format!("drops: {reason}"), count(*drops));
    }
    if let Some(of) = &queue.dropped_after_ms {
        told("time from arrival to the drop, ms (mean / median / p99 / longest)", times(of));
    }
    for (codepoint, name) in CODEPOINTS.into_iter().enumerate() {
        let (came, dropped, marked) = (
            queue.came_by_codepoint[codepoint],
            queue.dropped_by_codepoint[codepoint],
            queue.marked_by_codepoint[codepoint],
        );
        if came > 0 {
            let line = format!("{} / {} / {}", count(came), count(dropped), count(marked));
            told(&format!("{name}: came / dropped / marked"), line);
        }
    }
    told("still waiting at the end", count(queue.waiting));
    if let Some(Compared { counted, seen }) = queue.compared {
        let of = |of: weir_observe::Counted| format!("{} / {}", count(of.sent), count(of.drops));
        told("counted by the queue: sent / dropped", of(counted));
        told("seen meanwhile", of(seen));
    }
    told("lost events / packets seen only once", {
        format!("{} / {}", count(document.lost_events), count(queue.unmatched + queue.forgotten))
    });
    rows
}

/// The whole observation.
pub(super) fn text(document: &Document) -> String {
    let mut text = sentence(document) + "\n";
    for note in notes(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {note}");
    }
    text += "\n";
    let rows = rows(document);
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        let _ = writeln!(text, "{name:width$}  {value}");
    }
    text
}

fn line(cells: [String; LIVE.len()]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>WIDTH$}")).collect();
    cells.join(" ") + "\n"
}

/// The names of the columns of [`live`].
pub(super) fn live_head() -> String {
    line(LIVE.map(str::to_owned))
}

/// What happened in a second.
pub(super) fn live(second: &QueuePeriod) -> String {
    let or_none = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), number);
    line([
        number(second.from_s),
        number(second.left_bytes as f64 * 8e-6),
        or_none(second.sojourn_mean_ms),
        or_none(second.sojourn_max_ms),
        count(second.waiting),
        count(second.dropped),
        count(second.marked),
    ])
}
