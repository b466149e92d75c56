//! Two captures of the same packets.

use super::{AnalyzeArgs, open, page, print_document};
use crate::failure::Failure;
use crate::{print, say};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::str::FromStr;
use weir_base::Span;
use weir_base::terminal::printable_line;
use weir_observe::{Capture, Clocks, CrossingReport, KnownBy, Passage, WayReport, compare};
use weir_report::html::{Cell, Page, Table, escape, notices};
use weir_report::number::{count, number};
use weir_report::{Folder, write_assets};

/// The offset of a clock in nanoseconds: a time, which a minus may precede.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offset(i64);

impl FromStr for Offset {
    type Err = weir_base::UnitError;
    fn from_str(text: &str) -> Result<Offset, Self::Err> {
        let (sign, span) = text.trim().strip_prefix('-').map_or((1, text), |span| (-1, span));
        // A span that was read is at most half of the range of its integer.
        Ok(Offset(sign * span.parse::<Span>()?.as_nanos().cast_signed()))
    }
}

/// What was found, with the files.
#[derive(Serialize)]
struct Document {
    files: [String; 2],
    #[serde(flatten)]
    report: CrossingReport,
}

type Captures = [Capture<Box<dyn Read>>; 2];

/// Compares two captures and shows what they say.
pub(super) fn analyze(args: &AnalyzeArgs, files: [&Path; 2]) -> Result<(), Failure> {
    let is_standard_input = |file: &Path| file == Path::new("-");
    if files.into_iter().all(is_standard_input) {
        let help = "give one of the captures as a file";
        return Err(Failure::bad_input("both captures are to come from standard input", help));
    }
    if args.offset.is_none() && files.into_iter().any(is_standard_input) {
        let message = "to estimate the offset of the clocks, both captures are read twice, which standard input cannot be";
        return Err(Failure::bad_input(
            message,
            "give the offset, for example --offset 0s, or both as files",
        ));
    }
    let open_both = || -> Result<Captures, Failure> { Ok([open(files[0])?, open(files[1])?]) };
    let clocks = match args.offset {
        Some(Offset(offset_ns)) => Clocks { offset_ns, known_by: KnownBy::Given },
        None => estimated(open_both, args.longest, files)?,
    };
    let mut packets = None;
    if let Some(folder) = &args.out {
        let create = || -> io::Result<_> {
            fs::create_dir_all(folder)?;
            let mut file = BufWriter::new(File::create(folder.join("packets.csv"))?);
            writeln!(file, "time_s,way,ip_bytes,sojourn_ms")?;
            Ok(file)
        };
        packets = Some(create().map_err(|error| page::unwritable(folder, &error))?);
    }
    let mut each = |passage: &Passage| packets.as_mut().map_or(Ok(()), |file| row(file, passage));
    let report = compare(open_both()?, clocks, args.longest, &mut each);
    let report = report.map_err(|error| unreadable_of(files, &error))?;
    let files = files.map(|file| printable_line(&file.display().to_string()).into_owned());
    let document = Document { files, report };
    if let (Some(folder), Some(mut file)) = (&args.out, packets) {
        file.flush()
            .and_then(|()| page::write_document(&document, folder))
            .map_err(|error| page::unwritable(folder, &error))?;
        let out = Folder::new(folder);
        write_assets(&out)?;
        out.write("index.html", html(&document).as_bytes())?;
        say(&format!("{}", folder.join("index.html").display()));
    }
    if args.json { print_document(&document) } else { print(&text(&document)) }
}

fn unreadable_of(files: [&Path; 2], error: &io::Error) -> Failure {
    Failure::bad_input(
        format!("{} or {}: {error}", files[0].display(), files[1].display()),
        "name files that you can read, and with --out a folder that you can write",
    )
}

fn estimated(
    open_both: impl Fn() -> Result<Captures, Failure>,
    longest: Span,
    files: [&Path; 2],
) -> Result<Clocks, Failure> {
    // What is no capture is refused here, with its reason; later it can only have changed.
    open_both()?;
    let again = || open_both().map_err(|_| io::Error::other("it has changed meanwhile"));
    let clocks = Clocks::estimate(again, longest).map_err(|error| unreadable_of(files, &error))?;
    clocks.ok_or_else(|| {
        let message = format!(
            "{} and {} have no packet in common among their first 100,000 each",
            files[0].display(),
            files[1].display()
        );
        let help = "give captures of the same packets (address translation, and offloads that join packets, make them others), \
                    or with --offset captures that begin at different times";
        Failure::bad_input(message, help)
    })
}

/// A packet as a row of the table of packets. Without a sojourn it was lost.
fn row(file: &mut impl Write, passage: &Passage) -> io::Result<()> {
    let Passage { at, is_there, ip_bytes, sojourn } = passage;
    let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    let way = if *is_there { "there" } else { "back" };
    write!(file, "{seconds}.{nanos:09},{way},{ip_bytes},")?;
    match sojourn {
        Some(sojourn) => writeln!(file, "{}", sojourn.as_millis_f64()),
        None => writeln!(file),
    }
}

const COLUMNS: [&str; 8] = ["way", "packets", "lost", "lost %", "marked", "mean ms", "median ms", "p99 ms"];

fn cells(name: &str, way: &WayReport) -> [String; COLUMNS.len()] {
    let all = way.packets + way.lost;
    let time = |of: fn(&weir_observe::Times) -> f64| way.sojourn_ms.as_ref().map(of).map(number);
    [
        name.into(),
        count(way.packets),
        count(way.lost),
        if all > 0 { number(way.lost as f64 * 100.0 / all as f64) } else { String::new() },
        count(way.marked),
        time(|times| times.mean).unwrap_or_default(),
        time(|times| times.p50).unwrap_or_default(),
        time(|times| times.p99).unwrap_or_default(),
    ]
}

/// The ways that packets took.
fn rows(document: &Document) -> Vec<[String; COLUMNS.len()]> {
    let ways = [("first to second", &document.report.there), ("second to first", &document.report.back)];
    let used = ways.into_iter().filter(|(_, way)| way.packets + way.lost > 0);
    used.map(|(name, way)| cells(name, way)).collect()
}

fn sentence(document: &Document) -> String {
    let CrossingReport { there, back, .. } = &document.report;
    format!(
        "{} packets crossed between {} and {}, {} were lost",
        count(there.packets + back.packets),
        document.files[0],
        document.files[1],
        count(there.lost + back.lost)
    )
}

/// What is assumed, and what is not in the numbers.
fn notes(document: &Document) -> Vec<String> {
    let report = &document.report;
    let milliseconds = report.clocks.offset_ns as f64 / 1e6;
    let known_by = match report.clocks.known_by {
        KnownBy::Given => "as given",
        KnownBy::BothDirections => "estimated: the least times there and back are taken as equal",
        KnownBy::OneDirection => {
            "estimated: the least time is taken as zero, so sojourns are what exceeds it"
        }
    };
    let mut notes = vec![format!("the second clock is {milliseconds} ms ahead of the first ({known_by})")];
    let mut told = |number: u64, what: &str| {
        if number > 0 {
            notes.push(format!("{} packets {what}", count(number)));
        }
    };
    told(report.there.negative + report.back.negative, "arrived before they left, by these clocks");
    told(report.ambiguous, "are equal to one that was on its way, so that either may have been meant");
    for (index, file) in document.files.iter().enumerate() {
        told(report.elsewhere[index], &format!("of {file} take another way"));
        told(report.outside[index], &format!("of {file} passed while the other capture was not running"));
        told(report.skipped[index], &format!("of {file} were left out, since their headers are not read"));
    }
    notes
}

fn text(document: &Document) -> String {
    let mut text = sentence(document) + "\n";
    for note in notes(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {note}");
    }
    let mut table = vec![COLUMNS.map(str::to_owned)];
    table.extend(rows(document));
    text += "\n";
    for row in &table {
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let _ = write!(text, "{:first$}", row[0], first = width(0));
        for (column, cell) in row.iter().enumerate().skip(1) {
            let _ = write!(text, "  {cell:>width$}", width = width(column));
        }
        text += "\n";
    }
    text
}

fn html(document: &Document) -> String {
    let mut table = Table::new("Packets between the captures", &COLUMNS);
    for row in rows(document) {
        let cell = |(index, text): (usize, &String)| match index {
            0 => Cell::text(text),
            _ => Cell::figure(escape(text)),
        };
        table.row(row.iter().enumerate().map(cell).collect());
    }
    let names = document.files.join(" and ");
    let page = Page {
        title: format!("{names}: what happens between them"),
        eyebrow: escape(&names),
        sentence: sentence(document),
        body: format!("{}{}", notices(&[], &notes(document)), table.render()),
        ..Page::default()
    };
    page.render()
}
