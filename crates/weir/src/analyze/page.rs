//! An analysis as a folder: a page, all flows, and the series.

use super::{Document, show};
use crate::failure::Failure;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use weir_base::Span;
use weir_observe::Period;
use weir_report::html::{Cell, Page, Table, escape, notices};
use weir_report::plot::Figure;
use weir_report::{Folder, write_assets};

/// Writes the folder.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(document: &Document<'_>, most: usize, folder: &Path) -> Result<(), Failure> {
    write_document(document, folder).map_err(|error| unwritable(folder, &error))?;
    let (period, periods) = document.analysis.series();
    let out = Folder::new(folder);
    out.write("series.csv", csv(period, periods).as_bytes())?;
    write_assets(&out)?;
    out.write("index.html", page(document, most)?.as_bytes())?;
    Ok(())
}

/// That the folder cannot be written.
pub(crate) fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("{}: {error}", folder.display());
    Failure::bad_input(message, "give --out a folder that you can write")
}

/// Writes `analysis.json` into the folder, which may be new, as the document is made.
pub(crate) fn write_document(document: &impl Serialize, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(folder.join("analysis.json"))?);
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.flush()
}

/// What passed in each period; its time is that of its start, since the first packet.
fn csv(period: Span, periods: &[Period]) -> String {
    let mut text = String::from("start_s,packets,ip_bytes,retransmitted_segments,ce_packets\n");
    for (index, of) in periods.iter().enumerate() {
        let start = period.as_secs_f64() * index as f64;
        let Period { packets, ip_bytes, retransmissions, marks } = of;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{start},{packets},{ip_bytes},{retransmissions},{marks}");
    }
    text
}

fn page(document: &Document<'_>, most: usize) -> Result<String, Failure> {
    let largest = document.analysis.largest(most);
    let mut table = Table::new("Flows with the most bytes", &show::COLUMNS).sorted_by_click();
    for row in largest.iter().flat_map(show::rows) {
        let cell = |(index, text): (usize, &String)| match index < show::NAMES {
            true => Cell::text(text),
            false => Cell::figure(escape(text)),
        };
        table.row(row.iter().enumerate().map(cell).collect());
    }
    let (period, periods) = document.analysis.series();
    let points: Vec<(f64, f64)> = (0u32..)
        .zip(periods)
        .map(|(index, of)| {
            let rate = of.ip_bytes as f64 * 8.0 / period.as_secs_f64() / 1e6;
            (f64::from(index) * period.as_secs_f64(), rate)
        })
        .collect();
    let end = period.as_secs_f64() * points.len() as f64;
    let figure = Figure::steps("Rate of all flows", ["time, s", "rate, Mbit/s"], "all flows", &points, end);
    let picture = match points.is_empty() {
        true => String::new(),
        false => format!("<div class=\"pictures\">\n{}\n</div>", figure.svg()?),
    };
    let stamped = document.analysis.stamped();
    let queue: String =
        stamped.iter().flat_map(show::queue).map(|line| format!("<p>{}</p>\n", escape(&line))).collect();
    let page = Page {
        title: format!("{}: what the capture says", document.file),
        eyebrow: escape(&document.file),
        sentence: show::sentence(document),
        body: format!("{}{queue}{}\n{picture}", notices(&[], &show::notes(document)), table.render()),
        ..Page::default()
    };
    Ok(page.render())
}
