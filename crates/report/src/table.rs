//! The table that `weir run` ends with: a row a run, under the levels of the tree, the engines of a run below each other.
//! Plain text without colour, as wide as the terminal; where that is narrow, the columns that matter least go first.

use crate::number::number;
use crate::verdict::{Said, by_cell};
use weir_base::terminal::printable_line;
use weir_record::compare::Compared;
use weir_record::{RunSummary, Summary, Value};

/// Groups that have a column each; of more, only the sum is shown.
const GROUPS: usize = 4;
/// Rows above which the repeats of a cell are drawn together, as their mean.
const SINGLE_ROWS: usize = 40;
/// Rows that a table has at most; the rest is in the report.
const ROWS: usize = 80;
/// Least width of the labels before columns are given up for them.
const LABEL: usize = 14;
/// Widest that labels may be.
const WIDEST_LABEL: usize = 34;

/// What a column shows of a run.
type Of = Box<dyn Fn(&RunSummary) -> Option<f64>>;

/// A column of numbers: what it is of, its unit, and how much it matters (the least goes first).
struct Column {
    head: String,
    unit: &'static str,
    worth: u8,
    of: Of,
}

impl Column {
    fn new(
        head: &str,
        unit: &'static str,
        worth: u8,
        of: impl Fn(&RunSummary) -> Option<f64> + 'static,
    ) -> Column {
        Column { head: head.into(), unit, worth, of: Box::new(of) }
    }

    /// The mean over some runs.
    fn over(&self, runs: &[&RunSummary]) -> Option<f64> {
        let values: Vec<f64> = runs.iter().filter_map(|run| (self.of)(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// A row: the runs that it stands for (one, or a cell's repeats on one engine), and what it says of them.
struct Row<'a> {
    runs: Vec<&'a RunSummary>,
    label: String,
    engine: &'a str,
    cells: Vec<String>,
}

/// The table of a lab's results, at most `width` characters wide where that is possible.
pub fn table(summary: &Summary, width: usize) -> String {
    if summary.runs.is_empty() {
        return "no run is finished\n".into();
    }
    let together = summary.runs.len() > SINGLE_ROWS && summary.runs.iter().any(|run| run.repeat > 1);
    let columns = columns(summary);
    let mut rows: Vec<Row<'_>> = gathered(summary, together)
        .into_iter()
        .map(|runs| Row {
            label: label(runs[0], summary, together),
            engine: runs[0].engine.as_str(),
            cells: columns.iter().map(|column| column.over(&runs).map(number).unwrap_or_default()).collect(),
            runs,
        })
        .collect();
    let engines = summary.runs.iter().any(|run| run.engine != summary.runs[0].engine);
    let hidden = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let layout = Layout::new(&columns, &rows, engines, width);
    let mut text = layout.head(&columns);
    let mut above: Option<&Row<'_>> = None;
    for row in &rows {
        let outer = outer_of(row.runs[0]);
        if !outer.is_empty() && above.is_none_or(|above| outer_of(above.runs[0]) != outer) {
            text += &format!("{}\n", cut(&outer, width));
        }
        let fresh = above.is_none_or(|above| above.label != row.label || outer_of(above.runs[0]) != outer);
        text += &layout.row(row, fresh);
        above = Some(row);
    }
    text + &notes(summary, together, hidden, width)
}

/// The runs of each row: one, or those that differ only in the repeat.
fn gathered(summary: &Summary, together: bool) -> Vec<Vec<&RunSummary>> {
    let mut rows: Vec<Vec<&RunSummary>> = Vec::new();
    let same = |a: &RunSummary, b: &RunSummary| a.engine == b.engine && a.params == b.params;
    for run in &summary.runs {
        // The repeats of a cell stand together, those of its engines among them: only the last few rows can be theirs.
        match rows.iter_mut().rev().take(2).find(|row| together && same(row[0], run)) {
            Some(row) => row.push(run),
            None => rows.push(vec![run]),
        }
    }
    rows
}

/// The innermost choice, and the repeat where repeats have rows of their own.
fn label(run: &RunSummary, summary: &Summary, together: bool) -> String {
    let value = run.params.last().map_or(summary.lab.as_str(), |param| param.value.as_str());
    let repeats = !together && summary.runs.iter().any(|run| run.repeat > 1);
    let value = printable_line(value);
    if repeats { format!("{value} #{}", run.repeat) } else { value.into_owned() }
}

/// The choices on all levels but the innermost.
fn outer_of(run: &RunSummary) -> String {
    let outer = &run.params[..run.params.len().saturating_sub(1)];
    let parts: Vec<String> = outer.iter().map(|param| format!("{} {}", param.level, param.value)).collect();
    parts.join(" · ")
}

/// The columns that have something to show.
fn columns(summary: &Summary) -> Vec<Column> {
    let of_run = |name: &'static str| move |run: &RunSummary| single(run.metrics.get(name));
    let part = |name: &'static str, pick: fn(&weir_record::Distribution) -> f64| {
        move |run: &RunSummary| match run.metrics.get(name) {
            Value::Distribution(distribution) => Some(pick(&distribution)),
            _ => None,
        }
    };
    let mut columns = vec![Column::new("used", "%", 9, of_run("utilisation_percent"))];
    columns.extend(goodputs(summary));
    columns.extend(waits(summary));
    columns.extend([
        Column::new("delay", "ms", 8, part("queue_delay_ms", |delay| delay.mean)),
        Column::new("p99", "ms", 5, part("queue_delay_ms", |delay| delay.p99)),
        Column::new("drop", "%", 6, of_run("drop_probability_percent")),
        Column::new("mark", "%", 4, of_run("mark_probability_percent")),
        Column::new("resent", "%", 3, of_run("retransmission_percent")),
    ]);
    // Nothing was marked in most labs: a column of nothing says nothing.
    let shows =
        |column: &Column| summary.runs.iter().any(|run| (column.of)(run).is_some_and(|value| value != 0.0));
    columns.retain(|column| column.head != "mark" && column.head != "resent" || shows(column));
    columns.retain(|column| summary.runs.iter().any(|run| (column.of)(run).is_some()));
    columns
}

/// Goodput of each group, or of all together when there are many.
fn goodputs(summary: &Summary) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for group in summary.runs.iter().flat_map(|run| &run.groups) {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    if names.len() > GROUPS {
        let sum = |run: &RunSummary| {
            run.groups.iter().map(|group| single(group.metrics.get("goodput_mbps"))).sum::<Option<f64>>()
        };
        return vec![Column::new("goodput", "Mbit/s", 7, sum)];
    }
    let one = |name: &&str| {
        let name = name.to_string();
        let head = cut(&name, 10);
        Column::new(&head, "Mbit/s", 7, move |run| {
            single(run.groups.iter().find(|group| group.name == name)?.metrics.get("goodput_mbps"))
        })
    };
    names.iter().map(one).collect()
}

/// A metric of what groups wait for, the unit above its column, and what of its value is shown.
type Wait = (&'static str, &'static str, fn(Value) -> Option<f64>);

/// What groups waited for: the 99th percentile of completion times of short flows and of request times, and the share of
/// frames on time. A column is there only where a run has something to show in it.
fn waits(summary: &Summary) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for group in summary.runs.iter().flat_map(|run| &run.groups) {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    let p99 = |value: Value| value.distribution().map(|times| times.p99);
    let kinds: [Wait; 3] = [
        ("completion_time_s", "s p99", p99),
        ("request_time_ms", "ms p99", p99),
        ("frames_on_time_percent", "% in time", single),
    ];
    let mut columns = Vec::new();
    for name in names.into_iter().take(GROUPS) {
        for (metric, unit, pick) in kinds {
            let name = name.to_string();
            let head = cut(&name, 10);
            columns.push(Column::new(&head, unit, 6, move |run: &RunSummary| {
                // Flows with rows of their own are told one by one.
                let single_flows = run.flows.iter().any(|flow| flow.group == name);
                let told = metric != "completion_time_s" || !single_flows;
                pick(run.groups.iter().find(|group| group.name == name && told)?.metrics.get(metric))
            }));
        }
    }
    columns
}

fn single(value: Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(count as f64),
        Value::Number(number) => Some(number),
        Value::Distribution(distribution) => Some(distribution.mean),
        Value::Undefined => None,
    }
}

/// How wide everything is, and which columns there is room for.
struct Layout {
    label: usize,
    engine: usize,
    /// (index, width) of the columns that are shown.
    shown: Vec<(usize, usize)>,
}

impl Layout {
    fn new(columns: &[Column], rows: &[Row<'_>], engines: bool, width: usize) -> Layout {
        let length = |text: &str| text.chars().count();
        let engine =
            if engines { rows.iter().map(|row| length(row.engine) + 1).max().unwrap_or(0) } else { 0 };
        let wide = |(index, column): (usize, &Column)| {
            let cells = rows.iter().map(|row| length(&row.cells[index])).max().unwrap_or(0);
            (index, cells.max(length(&column.head)).max(length(column.unit)) + 2)
        };
        let mut shown: Vec<(usize, usize)> = columns.iter().enumerate().map(wide).collect();
        let wanted = rows.iter().map(|row| length(&row.label) + 2).max().unwrap_or(0).min(WIDEST_LABEL);
        let taken =
            |shown: &[(usize, usize)]| engine + 2 + shown.iter().map(|(_, width)| width).sum::<usize>();
        while taken(&shown) + wanted.min(LABEL) > width && shown.len() > 1 {
            // Columns that matter as much go together: of two groups' goodputs one alone would mislead.
            let worths = shown.iter().map(|&(index, _)| columns[index].worth);
            let (least, most) = (worths.clone().min(), worths.max());
            if least == most {
                break;
            }
            shown.retain(|&(index, _)| Some(columns[index].worth) != least);
        }
        let label = wanted.min(width.saturating_sub(taken(&shown))).max(wanted.min(LABEL));
        Layout { label, engine, shown }
    }

    /// Two lines: what, and in which unit.
    fn head(&self, columns: &[Column]) -> String {
        let line = |text: &dyn Fn(&Column) -> String| {
            let mut line = " ".repeat(2 + self.label + self.engine);
            for &(index, width) in &self.shown {
                line += &format!("{:>width$}", text(&columns[index]));
            }
            line.trim_end().to_string() + "\n"
        };
        line(&|column| column.head.clone()) + &line(&|column| column.unit.into())
    }

    /// One line; the label only where it differs from the one above.
    fn row(&self, row: &Row<'_>, fresh: bool) -> String {
        let label = if fresh { cut(&row.label, self.label.saturating_sub(1)) } else { String::new() };
        let mut line = format!("  {label:<width$}", width = self.label);
        if self.engine > 0 {
            line += &format!("{:<width$}", row.engine, width = self.engine);
        }
        for &(index, width) in &self.shown {
            line += &format!("{:>width$}", row.cells[index]);
        }
        if row.runs.iter().any(|run| !run.spoiled.is_empty()) {
            line += " *";
        }
        line.trim_end().to_string() + "\n"
    }
}

/// What the rows leave unsaid: spoiled runs, repeats drawn together, rows that had no room.
fn notes(summary: &Summary, together: bool, hidden: usize, width: usize) -> String {
    let mut notes = String::new();
    let spoiled: Vec<&RunSummary> = summary.runs.iter().filter(|run| !run.spoiled.is_empty()).collect();
    if let Some(first) = spoiled.first() {
        let reason = first.spoiled.first().map_or("", |reason| reason.as_str());
        let who = match spoiled.len() {
            1 => format!("* {} is spoiled", first.id),
            many => format!("* {many} runs are spoiled; the first, {}", first.id),
        };
        notes += &wrapped(&format!("{who}: {reason}"), width);
    }
    if together {
        notes += &wrapped("each row is the mean over a cell's repeats", width);
    }
    if hidden > 0 {
        notes += &wrapped(&format!("{hidden} more rows are in the report"), width);
    }
    notes
}

/// The table of a comparison, a row for each metric of each cell with its verdict; `names` are those of the reference and
/// of what is held against it.
pub fn compare_table(compared: &Compared, names: [&str; 2], width: usize) -> String {
    let rows: Vec<Said> = by_cell(compared).into_iter().map(Said::of).collect();
    let length = |text: &str| text.chars().count();
    let widest =
        |of: &dyn Fn(&Said) -> usize, least: usize| rows.iter().map(of).max().unwrap_or(0).max(least) + 2;
    let measure = widest(&|said| length(&said.measure), 0).min(36);
    let [reference, other] = [names[0], names[1]]
        .map(|name| widest(&|said| length(&said.reference).max(length(&said.other)), length(name)));
    let difference = widest(&|said| length(&said.difference), 10);
    let interval = widest(&|said| length(&said.interval), 13);
    let bound = widest(&|said| length(&said.bound), 5);
    // Where there is no room the interval goes first, then the bound: the verdict holds both.
    let fixed = 2 + measure + reference + other + difference + 2 + length("cannot tell");
    let bound = if fixed + bound <= width { bound } else { 0 };
    let interval = if fixed + bound + interval <= width { interval } else { 0 };
    let line = |cells: [&str; 7]| {
        let mut line = format!(
            "  {:<measure$}{:>reference$}{:>other$}{:>difference$}",
            cut(cells[0], measure - 1),
            cells[1],
            cells[2],
            cells[3]
        );
        for (cell, width) in
            [(cells[4], interval), (cells[5], bound)].into_iter().filter(|(_, width)| *width > 0)
        {
            line += &format!("{cell:>width$}");
        }
        format!("{line}  {}", cells[6]).trim_end().to_string() + "\n"
    };
    let mut text = String::new();
    let mut above: Option<&str> = None;
    if !rows.is_empty() {
        text += &line(["", names[0], names[1], "difference", "95 % interval", "bound", "verdict"]);
    }
    for said in &rows {
        if above != Some(&said.cell) && !said.cell.is_empty() {
            text += &format!("{}\n", cut(&said.cell, width));
        }
        above = Some(&said.cell);
        text += &line([
            &said.measure,
            &said.reference,
            &said.other,
            &said.difference,
            &said.interval,
            &said.bound,
            said.verdict,
        ]);
    }
    for (id, why) in &compared.left_out {
        text += &wrapped(&format!("left out: {id}, {why}"), width);
    }
    text + &wrapped(&crate::sentence::agreement(&compared.rows, names), width)
}

/// The text in at most `width` characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = printable_line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The text in lines of at most `width` characters, broken at spaces.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in printable_line(text).split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}
