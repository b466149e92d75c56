//! A result as a folder: a page, all numbers, and the series.

use super::{Document, folder, show};
use crate::failure::Failure;
use std::fmt::Write;
use std::path::Path;
use weir_observe::QueuePeriod;
use weir_report::html::{Cell, Page, Table, escape, notices};
use weir_report::plot::Figure;
use weir_report::{Folder, write_assets};

/// Writes the folder.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(document: &Document, out: &Path) -> Result<(), Failure> {
    folder::write_document(document, out).map_err(|error| folder::unwritable(out, &error))?;
    let files = Folder::new(out);
    files.write("series.csv", csv(document).as_bytes())?;
    write_assets(&files)?;
    files.write("index.html", page(document)?.as_bytes())?;
    Ok(())
}

/// What happened in each period; its time is that of its start.
fn csv(document: &Document) -> String {
    let mut text = String::from("start_s,packets,bytes,mean_sojourn_ms,drops,marks,backlog_bytes\n");
    for (index, of) in document.report.periods.iter().enumerate() {
        let start = document.report.period_s * index as f64;
        let sojourn = of.mean_sojourn().map(|mean| mean.as_millis_f64().to_string()).unwrap_or_default();
        let QueuePeriod { packets, bytes, drops, marks, backlog_bytes, .. } = of;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{start},{packets},{bytes},{sojourn},{drops},{marks},{backlog_bytes}");
    }
    text
}

fn table<const N: usize>(title: &str, columns: &[&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(title, columns);
    for row in rows {
        let cell = |(index, text): (usize, &String)| match index {
            0 => Cell::text(text),
            _ => Cell::figure(escape(text)),
        };
        table.row(row.iter().enumerate().map(cell).collect());
    }
    table.render()
}

fn page(document: &Document) -> Result<String, Failure> {
    let report = &document.report;
    let at = |index: usize| report.period_s * index as f64;
    let end = at(report.periods.len());
    let curve = |of: &dyn Fn(&QueuePeriod) -> f64| -> Vec<(f64, f64)> {
        report.periods.iter().enumerate().map(|(index, period)| (at(index), of(period))).collect()
    };
    let sojourn = |of: &QueuePeriod| of.mean_sojourn().map_or(0.0, |mean| mean.as_millis_f64());
    let rate = |of: &QueuePeriod| of.bytes as f64 * 8.0 / report.period_s / 1e6;
    let mut body = notices(&document.report.checks.invalid, &show::notes(document));
    body += &table("The queue", &["", "value"], &show::figures(document));
    body += &table("By codepoint", &show::BY_CODEPOINT, &show::codepoints(document));
    body += &table("Drops by reason", &show::DROPS, &show::drops(document));
    if !report.periods.is_empty() {
        body += "<div class=\"pictures\">\n";
        for (title, axis, points) in [
            ("Mean sojourn", "sojourn, ms", curve(&sojourn)),
            ("Rate", "rate, Mbit/s", curve(&rate)),
            ("Most backlog", "backlog, kB", curve(&|of| of.backlog_bytes as f64 / 1000.0)),
        ] {
            body += &Figure::steps(title, ["time, s", axis], &document.device, &points, end).svg()?;
            body += "\n";
        }
        body += "</div>\n";
    }
    let page = Page {
        title: format!("{}: what its queue did", document.device),
        eyebrow: escape(&document.device),
        sentence: show::sentence(document),
        body,
        ..Page::default()
    };
    Ok(page.render())
}
