//! The table at the end of `weir run`: one row for each cell, under the levels of the tree, with the engines of a cell below
//! each other. Several repeats are shown as their mean with its 95 % interval. Each column names its link, class or group.
//! Plain text without colour, as wide as the terminal; if that is narrow, the columns that matter least are left out first, and a note
//! names them. What a group is judged by is never left out: such columns stand in several blocks if need be.

mod columns;
mod compared;

pub use columns::Columns;
pub use compared::compare_table;

use crate::fit::{cut, cut_apart, wrapped};
use crate::repeats;
use crate::warnings::of_oracle;
use columns::{Column, MAIN, columns};
use std::collections::BTreeSet;
use weir_base::terminal::printable_line;
use weir_record::{RunSummary, Summary};

/// Largest number of rows of a table; the others are only in the report.
const ROWS: usize = 80;
/// Largest number of notes on cells without a value.
const GAPS: usize = 4;
/// Largest number of notes on repeats that scatter.
const DOUBTS: usize = 3;
/// Least width of the labels: columns are left out to keep it.
const LABEL: usize = 14;
/// Greatest width that a column takes for the name of its link or group.
const WIDEST_NAME: usize = 14;
/// Greatest width of the labels.
const WIDEST_LABEL: usize = 34;

/// A row: its runs (one, or a cell's repeats on one engine), and the text of its cells.
struct Row<'a> {
    runs: Vec<&'a RunSummary>,
    label: String,
    engine: &'a str,
    cells: Vec<String>,
}

/// The table of a lab's results with the usual columns, at most `width` characters wide if that is possible.
pub fn table(summary: &Summary, width: usize) -> String {
    table_of(summary, None, width)
}

/// The same with the columns that a user asks for.
pub fn table_of(summary: &Summary, wanted: Option<&Columns>, width: usize) -> String {
    if summary.runs.is_empty() {
        return "no run is finished\n".into();
    }
    let columns = columns(summary, wanted);
    let all = gathered(summary);
    let hidden = all.len().saturating_sub(ROWS);
    let row = |runs: Vec<_>| Row {
        label: label(runs[0], summary),
        engine: runs[0].engine.as_str(),
        cells: columns.iter().map(|column| column.over(&sound(&runs))).collect(),
        runs,
    };
    let rows: Vec<Row<'_>> = all.into_iter().take(ROWS).map(row).collect();
    let engines = summary.runs.iter().any(|run| run.engine != summary.runs[0].engine);
    let layout = Layout::new(&columns, &rows, engines, width);
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let labels = cut_apart(&labels, layout.label.saturating_sub(1));
    let mut text = String::new();
    for block in &layout.blocks {
        text += &layout.head(block, &columns);
        let mut above: Option<&Row<'_>> = None;
        for (row, shown) in rows.iter().zip(&labels) {
            let outer = outer_of(row.runs[0]);
            if !outer.is_empty() && above.is_none_or(|above| outer_of(above.runs[0]) != outer) {
                text += &format!("{}\n", cut(&outer, width));
            }
            let fresh =
                above.is_none_or(|above| above.label != row.label || outer_of(above.runs[0]) != outer);
            text += &layout.row(block, row, if fresh { shown } else { "" });
            above = Some(row);
        }
    }
    text += &gaps(&columns, &rows, width);
    text += &doubts(&rows, width);
    text += &layout.left_out(&columns, width);
    text + &notes(summary, hidden, width)
}

/// Notes on cells without a value.
fn gaps(columns: &[Column], rows: &[Row<'_>], width: usize) -> String {
    let mut found: Vec<String> = vec![];
    for row in rows {
        let place = [outer_of(row.runs[0]), row.label.clone()].into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(" · ");
        found.extend(
            columns.iter().filter_map(|column| column.why(&row.runs)).map(|why| format!("{place}: {why}")),
        );
    }
    found.dedup();
    let more = found.len().saturating_sub(GAPS);
    let rest = (more > 0).then(|| format!("{more} more cells have no value; the report says why"));
    found.iter().take(GAPS).chain(&rest).map(|line| wrapped(line, width)).collect()
}

/// Notes on cells whose repeats scatter.
fn doubts(rows: &[Row<'_>], width: usize) -> String {
    let of_row = |row: &Row<'_>| {
        let place = format!("{} · {}", outer_of(row.runs[0]), row.label);
        let place = place.trim_start_matches([' ', '·']).to_owned();
        repeats::doubts(&sound(&row.runs))
            .into_iter()
            .map(move |doubt| format!("{place}: {doubt}"))
            .collect::<Vec<_>>()
    };
    let found: Vec<String> = rows.iter().flat_map(of_row).collect();
    let more = found.len().saturating_sub(DOUBTS);
    let rest = (more > 0).then(|| format!("{more} more values scatter so; the report has them"));
    found.iter().take(DOUBTS).chain(&rest).map(|line| wrapped(line, width)).collect()
}

/// The runs of each row: those that differ only in the repeat.
fn gathered(summary: &Summary) -> Vec<Vec<&RunSummary>> {
    let mut rows: Vec<Vec<&RunSummary>> = Vec::new();
    let same = |a: &RunSummary, b: &RunSummary| a.engine == b.engine && a.params == b.params;
    for run in &summary.runs {
        // The repeats of a cell are together, those of both engines mixed: only the last two rows can be theirs.
        match rows.iter_mut().rev().take(2).find(|row| same(row[0], run)) {
            Some(row) => row.push(run),
            None => rows.push(vec![run]),
        }
    }
    rows
}

/// The runs that are not invalid; all runs if all are invalid.
fn sound<'a>(runs: &[&'a RunSummary]) -> Vec<&'a RunSummary> {
    let sound: Vec<&RunSummary> = runs.iter().copied().filter(|run| run.invalid.is_empty()).collect();
    if sound.is_empty() { runs.to_vec() } else { sound }
}

/// The choice on the innermost level, or the lab's name.
fn label(run: &RunSummary, summary: &Summary) -> String {
    let value = run.params.last().map_or(summary.lab.as_str(), |param| param.value.as_str());
    printable_line(value).into_owned()
}

/// The choices on all levels but the innermost.
fn outer_of(run: &RunSummary) -> String {
    let outer = &run.params[..run.params.len().saturating_sub(1)];
    let parts: Vec<String> = outer.iter().map(|param| format!("{} {}", param.level, param.value)).collect();
    parts.join(" · ")
}

/// The widths of the table's parts, and the columns that fit.
struct Layout {
    label: usize,
    engine: usize,
    /// (index, width) of the columns that are shown; those of a block stand beside each other.
    blocks: Vec<Vec<(usize, usize)>>,
}

impl Layout {
    fn new(columns: &[Column], rows: &[Row<'_>], engines: bool, width: usize) -> Layout {
        let length = |text: &str| text.chars().count();
        let engine =
            if engines { rows.iter().map(|row| length(row.engine) + 1).max().unwrap_or(0) } else { 0 };
        let wide = |(index, column): (usize, &Column)| {
            let cells = rows.iter().map(|row| length(&row.cells[index])).max().unwrap_or(0);
            let head =
                length(&column.head).max(length(column.unit)).max(length(&column.whose).min(WIDEST_NAME));
            (index, cells.max(head) + 2)
        };
        let mut shown: Vec<(usize, usize)> = columns.iter().enumerate().map(wide).collect();
        let wanted = rows.iter().map(|row| length(&row.label) + 2).max().unwrap_or(0).min(WIDEST_LABEL);
        let taken =
            |shown: &[(usize, usize)]| engine + 2 + shown.iter().map(|(_, width)| width).sum::<usize>();
        let room = width.saturating_sub(wanted.min(LABEL));
        while taken(&shown) > room {
            // Columns of equal worth are left out together: the goodput of only one of two groups would mislead. What groups are
            // judged by always stays.
            let worths = shown.iter().map(|&(index, _)| columns[index].worth);
            let Some(least) = worths.filter(|worth| *worth < MAIN).min() else { break };
            if shown.iter().all(|&(index, _)| columns[index].worth == least) {
                break;
            }
            shown.retain(|&(index, _)| columns[index].worth != least);
        }
        // If even these columns have no room, they stand in several blocks.
        let mut blocks: Vec<Vec<(usize, usize)>> = vec![];
        for column in shown {
            match blocks.last_mut() {
                Some(block) if taken(block) + column.1 <= room => block.push(column),
                _ => blocks.push(vec![column]),
            }
        }
        let widest = blocks.iter().map(|block| taken(block)).max().unwrap_or(0);
        let label = wanted.min(width.saturating_sub(widest)).max(wanted.min(LABEL));
        Layout { label, engine, blocks }
    }

    /// A note that names the columns for which there is no room.
    fn left_out(&self, columns: &[Column], width: usize) -> String {
        let is_shown = |index: &usize| self.blocks.iter().flatten().any(|(shown, _)| shown == index);
        let missing = (0..columns.len()).filter(|index| !is_shown(index));
        let names: Vec<String> = missing.map(|index| columns[index].name()).collect();
        if names.is_empty() {
            return String::new();
        }
        wrapped(&format!("left out for want of room: {}; --columns all shows them", names.join(", ")), width)
    }

    /// Up to three lines: the subjects (unless all columns are of the run), the headings, and the units.
    fn head(&self, block: &[(usize, usize)], columns: &[Column]) -> String {
        let line = |text: &dyn Fn(usize, usize) -> String| {
            let mut line = " ".repeat(2 + self.label + self.engine);
            for &(index, width) in block {
                line += &format!("{:>width$}", text(index, width));
            }
            line.trim_end().to_string() + "\n"
        };
        let least = block.iter().map(|(_, width)| width - 2).min().unwrap_or(0);
        let names: Vec<&str> = columns.iter().map(|column| column.whose.as_str()).collect();
        let narrow = cut_apart(&names, least);
        let whose = |index: usize, width: usize| match names[index].chars().count() < width - 1 {
            true => names[index].to_owned(),
            false => narrow[index].clone(),
        };
        let first = if names.iter().all(|name| name.is_empty()) { String::new() } else { line(&whose) };
        first + &line(&|index, _| columns[index].head.clone()) + &line(&|index, _| columns[index].unit.into())
    }

    /// The line of a row, with this label, which is empty if the row above has the same.
    fn row(&self, block: &[(usize, usize)], row: &Row<'_>, label: &str) -> String {
        let mut line = format!("  {label:<width$}", width = self.label);
        if self.engine > 0 {
            line += &format!("{:<width$}", row.engine, width = self.engine);
        }
        for &(index, width) in block {
            line += &format!("{:>width$}", row.cells[index]);
        }
        if row.runs.iter().any(|run| !run.invalid.is_empty()) {
            line += " *";
        }
        line.trim_end().to_string() + "\n"
    }
}

/// Notes below the table: invalid runs, oracles that runs trip, how repeats are joined, rows that were left out.
fn notes(summary: &Summary, hidden: usize, width: usize) -> String {
    let mut notes = String::new();
    let invalid: Vec<&RunSummary> = summary.runs.iter().filter(|run| !run.invalid.is_empty()).collect();
    if let Some(first) = invalid.first() {
        let reason = first.invalid.first().map_or("", |reason| reason.as_str());
        let who = match invalid.len() {
            1 => format!("* {} is invalid", first.id),
            many => format!("* {many} runs are invalid; the first, {}", first.id),
        };
        notes += &wrapped(&format!("{who}: {reason}"), width);
    }
    let mut tripping = summary.runs.iter().filter(|run| !run.oracles.is_empty());
    if let Some((first, trip)) = tripping.next().and_then(|run| Some((run, run.oracles.first()?))) {
        let who = match tripping.count() {
            0 => first.id.clone(),
            more => format!("{} runs have such a warning; the first, {}", more + 1, first.id),
        };
        notes += &wrapped(&format!("warning: {who}: {}", of_oracle(trip, &first.engine)), width);
    }
    let prototypes: BTreeSet<&String> = summary.runs.iter().flat_map(|run| &run.prototypes).collect();
    for prototype in prototypes {
        notes += &wrapped(prototype, width);
    }
    if summary.runs.iter().any(|run| run.repeat > 1) {
        let text = "each row is the mean over a cell's repeats, with its 95 % interval (±)";
        notes += &wrapped(text, width);
    }
    if hidden > 0 {
        notes += &wrapped(&format!("{hidden} more rows are in the report"), width);
    }
    notes
}
