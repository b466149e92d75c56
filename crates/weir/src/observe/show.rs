//! What was observed, as text.

use super::Document;
use crate::live::Moment;
use std::fmt::Write;
use weir_base::Span;
use weir_observe::{QueuePeriod, QueueReport};
use weir_report::number::{count, number};

/// The columns of the table by codepoint.
pub(super) const BY_CODEPOINT: [&str; 4] = ["codepoint at arrival", "packets", "marked", "dropped"];
/// The columns of the table of drops.
pub(super) const DROPS: [&str; 3] = ["reason", "at arrival", "after waiting"];

/// The sentence that a result begins with.
pub(super) fn sentence(document: &Document) -> String {
    let report = &document.report;
    format!(
        "{}: {} packets left the queue {} {} in {} s, {} Mbit/s; {} were dropped, {} marked",
        document.device,
        count(report.packets),
        document.queue,
        document.handle,
        number(report.duration_s),
        number(report.rate_mbps),
        count(report.drops),
        count(report.marks),
    )
}

/// How it ended, and what it includes.
pub(super) fn notes(document: &Document) -> Vec<String> {
    let QueueReport { passed, checks, .. } = &document.report;
    let mut notes: Vec<String> =
        document.ended.iter().map(|why| format!("{why}; the result ends there")).collect();
    let mut told = |number: u64, what: &str| {
        if number > 0 {
            notes.push(format!("{} packets {what}", count(number)));
        }
    };
    told(*passed, "found the queue empty and went past it; they count with a sojourn of 0");
    told(checks.kernel.requeues.least, "were given back by the device");
    if checks.invalid.is_empty() {
        told(checks.lost_events, "or more are missing, since events were lost");
        told(checks.departures_without_arrival, "left whose arrival was not seen");
        told(checks.arrivals_without_departure, "arrived whose departure was not seen");
        told(checks.packets_difference, "are the difference from the queue's own counter");
        told(checks.drops_difference, "dropped are the difference from the queue's own counter");
    }
    notes
}

/// Names and values of the queue as a whole.
pub(super) fn figures(document: &Document) -> Vec<[String; 2]> {
    let report = &document.report;
    let mut rows = vec![];
    let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
    if let Some(sojourn) = &report.sojourn_ms {
        let [mean, p50, p99, max] = [sojourn.mean, sojourn.p50, sojourn.p99, sojourn.max].map(number);
        row("sojourn, ms", format!("mean {mean}, median {p50}, p99 {p99}, longest {max}"));
    }
    let backlog = &report.backlog;
    let mean = number(backlog.mean_bytes / 1000.0);
    row("backlog, kB", format!("mean {mean}, most {}", number(backlog.max_bytes as f64 / 1000.0)));
    row("rate, Mbit/s", number(report.rate_mbps));
    rows
}

/// Departures, marks and drops by codepoint.
pub(super) fn codepoints(document: &Document) -> Vec<[String; 4]> {
    let rows = document.report.by_codepoint.iter();
    rows.map(|(name, of)| [(*name).to_owned(), count(of.packets), count(of.marked), count(of.dropped)])
        .collect()
}

/// Drops by reason.
pub(super) fn drops(document: &Document) -> Vec<[String; 3]> {
    let rows = document.report.drops_by_reason.iter();
    rows.map(|(name, of)| [name.clone(), count(of.at_arrival), count(of.after_waiting)]).collect()
}

/// The text: a sentence, warnings and notes, and the tables.
pub(super) fn text(document: &Document) -> String {
    let mut text = sentence(document) + "\n";
    let invalid = document.report.checks.invalid.iter().map(|why| format!("invalid: {why}"));
    for note in invalid.chain(notes(document)) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {note}");
    }
    text += "\n";
    text += &aligned(&figures(document), false);
    for table in [with_heading(&BY_CODEPOINT, codepoints(document)), with_heading(&DROPS, drops(document))] {
        if table.len() > 1 {
            text += "\n";
            text += &aligned(&table, true);
        }
    }
    text
}

fn with_heading<const N: usize>(heading: &[&str; N], rows: Vec<[String; N]>) -> Vec<Vec<String>> {
    let heading = heading.map(str::to_owned).to_vec();
    std::iter::once(heading).chain(rows.into_iter().map(|row| row.to_vec())).collect()
}

/// Lines of equal columns; all but the first are figures if they are to end at the same place.
fn aligned(table: &[impl AsRef<[String]>], to_the_right: bool) -> String {
    let width = |column: usize| {
        table
            .iter()
            .filter_map(|row| row.as_ref().get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for row in table {
        let mut line = String::new();
        for (column, cell) in row.as_ref().iter().enumerate() {
            let width = width(column);
            let _ = match to_the_right && column > 0 {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:width$}  "),
            };
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}

/// What happened since an earlier moment, which was `span` ago; `backlog` is what waits now.
pub(super) fn moment(span: Span, before: &QueuePeriod, now: &QueuePeriod, backlog: u64) -> Moment {
    let grown = |of: fn(&QueuePeriod) -> u64| of(now).saturating_sub(of(before));
    Moment {
        span,
        bytes: grown(|of| of.bytes),
        packets: grown(|of| of.packets),
        sojourn_ns: grown(|of| of.sojourn_ns).into(),
        backlog_bytes: backlog,
        drops: grown(|of| of.drops),
        marks: grown(|of| of.marks),
    }
}
