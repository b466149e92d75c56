//! The table at the end of `weir run`: one row for each cell, under the levels of the tree, with the engines of a cell below
//! each other. Several repeats are shown as their mean with its 95 % interval. Each column names its link, class or group.
//! Plain text without colour, as wide as the terminal; if that is narrow, the columns that matter least are left out first.

use crate::fit::{cut, cut_apart, wrapped};
use crate::number::{number, rough};
use crate::verdict::{Said, by_cell};
use crate::warnings::of_oracle;
use weir_base::Ecn;
use weir_base::terminal::printable_line;
use weir_record::compare::{Compared, Estimate};
use weir_record::metrics::{completion, ensemble, message, queue, rate, tcp};
use weir_record::{Metric, RunSummary, Summary, Value};

/// Largest number of groups with a column each; if there are more, only their sum is shown.
const GROUPS: usize = 4;
/// Largest number of links with columns; if more carry data, those with the longest queues.
const LINKS: usize = 4;
/// Largest number of rows of a table; the others are only in the report.
const ROWS: usize = 80;
/// Least width of the labels: columns are left out to keep it.
const LABEL: usize = 14;
/// Greatest width that a column takes for the name of its link or group.
const WIDEST_NAME: usize = 14;
/// Least worth of a column that shows the interval of its mean.
const WITH_INTERVAL: u8 = 7;
/// Greatest width of the labels.
const WIDEST_LABEL: usize = 34;
/// Most runs that the lines about excluded runs name for one reason.
const RUNS_NAMED: usize = 3;

/// The value of a run in a column.
type Of = Box<dyn Fn(&RunSummary) -> Option<f64>>;

/// A column of numbers: subject, heading, unit, and worth (the columns of least worth are left out first).
struct Column {
    /// The subject: a link, with the class if it is of one, or a group; empty for the whole run.
    whose: String,
    head: String,
    unit: &'static str,
    worth: u8,
    of: Of,
}

impl Column {
    fn new(
        whose: &str,
        head: &str,
        unit: &'static str,
        worth: u8,
        of: impl Fn(&RunSummary) -> Option<f64> + 'static,
    ) -> Column {
        Column { whose: whose.into(), head: head.into(), unit, worth, of: Box::new(of) }
    }

    /// The mean over some runs, with its interval if there is one.
    fn over(&self, runs: &[&RunSummary]) -> String {
        let values: Vec<f64> = runs.iter().filter_map(|run| (self.of)(run)).collect();
        let Some(estimate) = Estimate::of(&values) else { return String::new() };
        match estimate.interval {
            Some((_, high)) if self.worth >= WITH_INTERVAL => {
                format!("{} ±{}", number(estimate.mean), rough(high - estimate.mean))
            }
            _ => number(estimate.mean),
        }
    }
}

/// A row: its runs (one, or a cell's repeats on one engine), and the text of its cells.
struct Row<'a> {
    runs: Vec<&'a RunSummary>,
    label: String,
    engine: &'a str,
    cells: Vec<String>,
}

/// The table of a lab's results, at most `width` characters wide if that is possible.
pub fn table(summary: &Summary, width: usize) -> String {
    if summary.runs.is_empty() {
        return "no run is finished\n".into();
    }
    let columns = columns(summary);
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
    let mut text = layout.head(&columns);
    let mut above: Option<&Row<'_>> = None;
    for (row, shown) in rows.iter().zip(&labels) {
        let outer = outer_of(row.runs[0]);
        if !outer.is_empty() && above.is_none_or(|above| outer_of(above.runs[0]) != outer) {
            text += &format!("{}\n", cut(&outer, width));
        }
        let fresh = above.is_none_or(|above| above.label != row.label || outer_of(above.runs[0]) != outer);
        text += &layout.row(row, if fresh { shown } else { "" });
        above = Some(row);
    }
    text + &notes(summary, hidden, width)
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

/// The columns that have something to show.
fn columns(summary: &Summary) -> Vec<Column> {
    let mut columns = Vec::new();
    let links = data_links(summary);
    for link in &links {
        columns.extend(columns_of(link, summary));
    }
    columns.extend(goodputs(summary));
    columns.extend(waits(summary));
    if links.is_empty() {
        let of_run = |metric: &'static Metric| move |run: &RunSummary| run.metrics.number(metric);
        columns.extend([
            Column::new("", "used", "%", 9, of_run(&queue::UTILISATION)),
            Column::new("", "delay", "ms", 8, of_run(&queue::QUEUE_DELAY)),
            Column::new("", "drop", "%", 6, of_run(&queue::DROP_PROBABILITY)),
        ]);
    }
    columns.push(Column::new("", "retrans", "%", 3, |run| run.metrics.number(&tcp::RETRANSMISSION_PERCENT)));
    // Columns of marks and retransmissions are left out if all their values are 0, as in most labs.
    let shows =
        |column: &Column| summary.runs.iter().any(|run| (column.of)(run).is_some_and(|value| value != 0.0));
    columns.retain(|column| column.head != "mark" && column.head != "retrans" || shows(column));
    columns.retain(|column| summary.runs.iter().any(|run| (column.of)(run).is_some()));
    columns
}

/// The links that carry data, in the order of the lab; if there are more than [`LINKS`], those with the longest queues.
fn data_links(summary: &Summary) -> Vec<String> {
    let mut links: Vec<(&str, f64)> = Vec::new();
    for queue in summary.runs.iter().flat_map(|run| &run.queues).filter(|queue| !queue.carries.is_empty()) {
        let delay = queue.metrics.number(&queue::QUEUE_DELAY).unwrap_or(0.0);
        match links.iter_mut().find(|(name, _)| *name == queue.link) {
            Some((_, most)) => *most = most.max(delay),
            None => links.push((&queue.link, delay)),
        }
    }
    let mut delays: Vec<f64> = links.iter().map(|(_, delay)| *delay).collect();
    delays.sort_by(|a, b| b.total_cmp(a));
    let least = delays.get(LINKS - 1).copied().unwrap_or(0.0);
    links.into_iter().filter(|(_, delay)| *delay >= least).take(LINKS).map(|(name, _)| name.into()).collect()
}

/// Least share of a class in what a link sent, in percent, for the class to have columns of its own.
const CLASS_PERCENT: f64 = 1.0;

/// The classes of a link with columns of their own, L4S first; empty unless L4S and other packets crossed it.
fn classes_apart(link: &str, summary: &Summary) -> Vec<Ecn> {
    let queues = summary.runs.iter().flat_map(|run| &run.queues).filter(|queue| queue.link == *link);
    let mut classes: Vec<Ecn> = Vec::new();
    for queue in queues {
        let part = |of: &weir_record::ClassSummary| of.metrics.number(&queue::UTILISATION).unwrap_or(0.0);
        let all: f64 = queue.classes.iter().map(part).sum();
        for class in queue.classes.iter().filter(|class| class.class != Ecn::Ce) {
            if 100.0 * part(class) >= CLASS_PERCENT * all
                && part(class) > 0.0
                && !classes.contains(&class.class)
            {
                classes.push(class.class);
            }
        }
    }
    classes.sort_by_key(|class| *class != Ecn::Ect1);
    if classes.len() > 1 && classes[0] == Ecn::Ect1 { classes } else { vec![] }
}

/// The columns of a link: for all its packets, or for each of its classes.
fn columns_of(link: &str, summary: &Summary) -> Vec<Column> {
    let classes = classes_apart(link, summary);
    let of = |class: Option<Ecn>, metric: &'static Metric, pick: fn(Value) -> Option<f64>| {
        let link = link.to_owned();
        move |run: &RunSummary| {
            let queue = run.queues.iter().find(|queue| queue.link == link)?;
            let metrics = match class {
                None => &queue.metrics,
                Some(class) => &queue.classes.iter().find(|one| one.class == class)?.metrics,
            };
            pick(metrics.value(metric))
        }
    };
    let mean = |value: Value| value.scalar();
    let p99 = |value: Value| value.distribution().map(|times| times.p99);
    let mut columns = vec![Column::new(link, "used", "%", 6, of(None, &queue::UTILISATION, mean))];
    let each = if classes.is_empty() { vec![None] } else { classes.into_iter().map(Some).collect() };
    for class in each {
        let whose = match class {
            None => link.to_owned(),
            Some(Ecn::Ect1) => format!("{link} L4S"),
            Some(class) => format!("{link} {}", crate::tables::class_name(class.name())),
        };
        columns.extend([
            Column::new(&whose, "delay", "ms", 8, of(class, &queue::QUEUE_DELAY, mean)),
            Column::new(&whose, "p99", "ms", 5, of(class, &queue::QUEUE_DELAY, p99)),
            Column::new(&whose, "drop", "%", 4, of(class, &queue::DROP_PROBABILITY, mean)),
            Column::new(&whose, "mark", "%", 4, of(class, &queue::MARK_PROBABILITY, mean)),
        ]);
    }
    columns
}

/// Goodput of each group, or of all together if there are more than [`GROUPS`].
fn goodputs(summary: &Summary) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for group in summary.runs.iter().flat_map(|run| &run.groups) {
        if !names.contains(&&*group.name) {
            names.push(&group.name);
        }
    }
    if names.len() > GROUPS {
        let sum = |run: &RunSummary| {
            run.groups.iter().map(|group| group.metrics.number(&rate::GOODPUT)).sum::<Option<f64>>()
        };
        return vec![Column::new("all groups", "goodput", "Mbit/s", 7, sum)];
    }
    let one = |name: &&str| {
        let group = name.to_string();
        Column::new(name, "goodput", "Mbit/s", 7, move |run| {
            run.groups.iter().find(|other| *other.name == *group)?.metrics.number(&rate::GOODPUT)
        })
    };
    names.iter().map(one).collect()
}

/// A metric of waiting times, the heading of its column, its unit, and the part of its value that is shown.
type Wait = (&'static Metric, &'static str, &'static str, fn(Value) -> Option<f64>);

/// Waiting times of groups: the 99th percentile of completion times of short flows and of request times, the share of frames
/// on time, the rate of ensembles and the mean of their completion asynchrony. A column is shown only if a run has a value in it.
fn waits(summary: &Summary) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for group in summary.runs.iter().flat_map(|run| &run.groups) {
        if !names.contains(&&*group.name) {
            names.push(&group.name);
        }
    }
    let p99 = |value: Value| value.distribution().map(|times| times.p99);
    let kinds: [Wait; 5] = [
        (&completion::COMPLETION_TIME, "done p99", "s", p99),
        (&message::REQUEST_TIME, "answer p99", "ms", p99),
        (&message::FRAMES_ON_TIME, "on time", "%", |value| value.scalar()),
        (&ensemble::PER_SECOND, "ensembles", "1/s", |value| value.scalar()),
        (&ensemble::ASYNCHRONY, "asynchrony", "ms", |value| value.scalar()),
    ];
    let mut columns = Vec::new();
    for name in names.into_iter().take(GROUPS) {
        for (metric, head, unit, pick) in kinds {
            let (whose, name) = (name, name.to_string());
            columns.push(Column::new(whose, head, unit, 7, move |run: &RunSummary| {
                // Completion times are shown only for flows without metrics of their own.
                let single_flows = run.flows.iter().any(|flow| *flow.group == *name);
                let told = *metric != completion::COMPLETION_TIME || !single_flows;
                pick(run.groups.iter().find(|group| *group.name == *name && told)?.metrics.value(metric))
            }));
        }
    }
    columns
}

/// The widths of the table's parts, and the columns that fit.
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
            let head =
                length(&column.head).max(length(column.unit)).max(length(&column.whose).min(WIDEST_NAME));
            (index, cells.max(head) + 2)
        };
        let mut shown: Vec<(usize, usize)> = columns.iter().enumerate().map(wide).collect();
        let wanted = rows.iter().map(|row| length(&row.label) + 2).max().unwrap_or(0).min(WIDEST_LABEL);
        let taken =
            |shown: &[(usize, usize)]| engine + 2 + shown.iter().map(|(_, width)| width).sum::<usize>();
        while taken(&shown) + wanted.min(LABEL) > width && shown.len() > 1 {
            // Columns of equal worth are left out together: the goodput of only one of two groups would mislead.
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

    /// Up to three lines: the subjects (unless all columns are of the run), the headings, and the units.
    fn head(&self, columns: &[Column]) -> String {
        let line = |text: &dyn Fn(usize, usize) -> String| {
            let mut line = " ".repeat(2 + self.label + self.engine);
            for &(index, width) in &self.shown {
                line += &format!("{:>width$}", text(index, width));
            }
            line.trim_end().to_string() + "\n"
        };
        let least = self.shown.iter().map(|(_, width)| width - 2).min().unwrap_or(0);
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
    fn row(&self, row: &Row<'_>, label: &str) -> String {
        let mut line = format!("  {label:<width$}", width = self.label);
        if self.engine > 0 {
            line += &format!("{:<width$}", row.engine, width = self.engine);
        }
        for &(index, width) in &self.shown {
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
    if summary.runs.iter().any(|run| run.repeat > 1) {
        let text = "each row is the mean over a cell's repeats, with its 95 % interval (±)";
        notes += &wrapped(text, width);
    }
    if hidden > 0 {
        notes += &wrapped(&format!("{hidden} more rows are in the report"), width);
    }
    notes
}

/// The table of a comparison, with a row and a verdict for each metric of each cell; `names` are those of the reference and
/// of the results compared with it.
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
    // If there is no room, the interval is left out first, then the bound: the verdict follows from both.
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
    for line in left_out(compared) {
        text += &wrapped(&line, width);
    }
    text + &wrapped(&crate::sentence::agreement(&compared.rows, names), width)
}

/// The runs that are not compared: a line for each reason, which names the first of its runs.
fn left_out(compared: &Compared) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (id, why) in &compared.left_out {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, runs)) => runs.push(id),
            None => reasons.push((why, vec![id])),
        }
    }
    let line = |(why, runs): (&str, Vec<&str>)| {
        let (named, rest) = runs.split_at(runs.len().min(RUNS_NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        format!("left out ({why}): {}{more}", named.join(", "))
    };
    reasons.into_iter().map(line).collect()
}
