//! A summary as tidy tables, for tools that draw and compute: one row for each run, group, flow, and link or class of its
//! packets, with names instead of numbers; and one for each of them in each named window. As CSV, JSON and Parquet.
//!
//! A row begins with the run, its engine, seed, repeat, the label chosen on each level (one column for each level), and the
//! window (empty for the whole run). The names of the row's subject follow, then the metrics of [`METRICS`] for such a
//! subject. A distribution has columns for its mean and each percentile: `rtt_ms`, `rtt_ms_p99`.

use crate::error::RecordError;
use crate::export::{ExportFormat, write_batch};
use crate::metrics::{Distribution, Level, METRICS, Metrics, Value};
use crate::summary::{Part, RunSummary, Summary};
use crate::table::{Batch, Column, Kind, Values};
use crate::writer::write_parquet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tidy table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tidy {
    /// One row for each run.
    Runs,
    /// One row for each traffic group.
    Groups,
    /// One row for each flow without random arrivals.
    Flows,
    /// One row for each link, and one for each class of its packets.
    Links,
}

/// A percentile of a distribution, with the suffix of its column.
type Percentile = (&'static str, fn(&Distribution) -> f64);
const PERCENTILES: [Percentile; 5] =
    [("_p1", |d| d.p1), ("_p25", |d| d.p25), ("_p50", |d| d.p50), ("_p75", |d| d.p75), ("_p99", |d| d.p99)];

impl Tidy {
    /// All of them.
    pub const ALL: [Tidy; 4] = [Tidy::Runs, Tidy::Groups, Tidy::Flows, Tidy::Links];

    /// Its name, which is that of its files.
    pub fn name(self) -> &'static str {
        ["runs", "groups", "flows", "links"][self as usize]
    }

    /// The columns that name a row's subject, each with its description.
    fn whose(self) -> &'static [(&'static str, &'static str)] {
        const CONTROLLER: (&str, &str) = ("controller", "Congestion controller; empty where there is none.");
        const TRANSPORT: (&str, &str) = ("transport", "Transport: tcp, udp, command.");
        match self {
            Tidy::Runs => &[],
            Tidy::Groups => &[("group", "The traffic group."), CONTROLLER, TRANSPORT],
            Tidy::Flows => &[("flow", "The flow."), ("group", "Its traffic group."), CONTROLLER, TRANSPORT],
            Tidy::Links => &[
                ("link", "The link."),
                ("queue", "Its queue discipline."),
                ("class", "Codepoint on arrival of the packets that the row is of; empty for all packets."),
            ],
        }
    }

    /// The levels of its metrics.
    fn levels(self) -> &'static [Level] {
        match self {
            Tidy::Runs => &[Level::Run],
            Tidy::Groups => &[Level::Group],
            Tidy::Flows => &[Level::Flow],
            Tidy::Links => &[Level::Link, Level::Class],
        }
    }

    /// The data dictionary: each column but those of the tree's levels, with its description.
    pub fn dictionary(self) -> Vec<(String, String)> {
        let own = FIRST.iter().chain([&WINDOW]).chain(self.whose());
        let own = own.map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
        own.chain(self.metrics().map(|metric| (metric.name.to_owned(), metric.definition.to_owned())))
            .collect()
    }

    fn metrics(self) -> impl Iterator<Item = &'static crate::Metric> {
        METRICS.iter().filter(move |metric| self.levels().iter().any(|level| metric.of.contains(level)))
    }
}

/// The first columns of every table.
const FIRST: [(&str, &str); 4] = [
    ("run", "The run's id."),
    ("engine", "The engine: sim or live."),
    ("seed", "The run's seed."),
    ("repeat", "Number of the repeat, from 1."),
];
const WINDOW: (&str, &str) =
    ("window", "The named window or phase of the run; empty for all of it after the warm-up.");

/// Writes the tidy tables of a summary as CSV, JSON and Parquet into a folder, which is made if it does not exist. Returns
/// the paths of the files.
///
/// # Errors
/// A file cannot be written.
pub fn export_tidy(summary: &Summary, to: &Path) -> Result<Vec<PathBuf>, RecordError> {
    std::fs::create_dir_all(to).map_err(RecordError::io(to))?;
    let mut files = Vec::new();
    for tidy in Tidy::ALL {
        let (columns, batch) = table(tidy, summary);
        let path = |ending: &str| to.join(format!("{}.{ending}", tidy.name()));
        for format in [ExportFormat::Csv, ExportFormat::Json] {
            let path = path(format.extension());
            write_batch(&columns, &batch, &path, format)?;
            files.push(path);
        }
        write_parquet(tidy.name(), &columns, &batch, &path("parquet"))?;
        files.push(path("parquet"));
    }
    Ok(files)
}

/// A row before its columns are known: its subject and its metrics.
struct Row<'a> {
    run: &'a RunSummary,
    window: &'a str,
    whose: Vec<&'a str>,
    metrics: &'a Metrics,
}

fn rows<'a>(tidy: Tidy, run: &'a RunSummary, window: &'a str, part: Part<'a>) -> Vec<Row<'a>> {
    let row = |whose: Vec<&'a str>, metrics: &'a Metrics| Row { run, window, whose, metrics };
    let or_none = |name: &'a Option<Arc<str>>| name.as_deref().unwrap_or_default();
    match tidy {
        Tidy::Runs => vec![row(vec![], part.metrics)],
        Tidy::Groups => {
            let of = part.groups.iter();
            of.map(|of| row(vec![&of.name, or_none(&of.controller), &of.transport], &of.metrics)).collect()
        }
        Tidy::Flows => {
            let of = part.flows.iter();
            of.map(|of| row(vec![&of.name, &of.group, or_none(&of.controller), &of.transport], &of.metrics))
                .collect()
        }
        Tidy::Links => {
            let mut rows = Vec::new();
            for of in part.queues {
                rows.push(row(vec![&of.link, &of.queue, ""], &of.metrics));
                let class = |class: &'a crate::ClassSummary| {
                    row(vec![&of.link, &of.queue, class.class.name()], &class.metrics)
                };
                rows.extend(of.classes.iter().map(class));
            }
            rows
        }
    }
}

pub(crate) fn table(tidy: Tidy, summary: &Summary) -> (Vec<Column>, Batch) {
    let mut all = Vec::new();
    for run in &summary.runs {
        let windows = run.windows.iter().map(|window| window.name.as_str());
        for window in std::iter::once("").chain(windows) {
            let part = run.part(Some(window).filter(|name| !name.is_empty()));
            all.extend(part.into_iter().flat_map(|part| rows(tidy, run, window, part)));
        }
    }
    let distributions: BTreeSet<&str> = all
        .iter()
        .flat_map(|row| row.metrics.iter())
        .filter(|(_, value)| matches!(value, Value::Distribution(_)))
        .map(|(name, _)| name)
        .collect();
    let mut table = Columns::default();
    let text = |of: &dyn Fn(&Row<'_>) -> String| all.iter().map(of).collect::<Vec<String>>();
    table.names("run", text(&|row| row.run.id.clone()));
    table.names("engine", text(&|row| row.run.engine.clone()));
    table.integers("seed", all.iter().map(|row| row.run.seed).collect());
    table.integers("repeat", all.iter().map(|row| row.run.repeat.into()).collect());
    let levels = summary.runs.first().map_or(&[][..], |run| &run.params);
    for level in levels {
        let chosen = |row: &Row<'_>| {
            let param = row.run.params.iter().find(|param| param.level == level.level);
            param.map_or(String::new(), |param| param.value.clone())
        };
        table.names(&level.level, text(&chosen));
    }
    table.names(WINDOW.0, text(&|row| row.window.to_owned()));
    for (place, (name, _)) in tidy.whose().iter().enumerate() {
        table.names(name, text(&|row| row.whose[place].to_owned()));
    }
    for metric in tidy.metrics() {
        let numbers = |of: &dyn Fn(Value) -> Option<f64>| {
            all.iter().map(|row| of(row.metrics.get(metric.name))).collect()
        };
        table.numbers(metric.name.into(), numbers(&|value| value.scalar()));
        for (ending, of) in PERCENTILES.iter().filter(|_| distributions.contains(metric.name)) {
            table.numbers(format!("{}{ending}", metric.name), numbers(&|value| value.distribution().map(of)));
        }
    }
    let batch = Batch::of(table.values, all.len());
    (table.columns, batch)
}

/// Columns that are being filled.
#[derive(Default)]
struct Columns {
    columns: Vec<Column>,
    values: Vec<Values>,
}

impl Columns {
    fn put(&mut self, name: String, kind: Kind, values: Values) {
        // A level may have the name of another column.
        let taken = self.columns.iter().any(|column| column.name == name);
        let name = if taken { format!("level {name}") } else { name };
        self.columns.push(Column { name, kind });
        self.values.push(values);
    }

    fn names(&mut self, name: &str, texts: Vec<String>) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let code = |text: String| {
            let known = names.iter().position(|name| **name == *text);
            known.unwrap_or_else(|| {
                names.push(text.into());
                names.len() - 1
            }) as u32
        };
        let codes = texts.into_iter().map(code).collect();
        self.put(name.into(), Kind::Name, Values::Name(codes, names));
    }

    fn integers(&mut self, name: &str, values: Vec<u64>) {
        let values = values.into_iter().map(|value| value as i64).collect();
        self.put(name.into(), Kind::Integer, Values::Integer(values));
    }

    fn numbers(&mut self, name: String, values: Vec<Option<f64>>) {
        self.put(name, Kind::OptionalReal, Values::OptionalReal(values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Param;
    use crate::summary::QueueSummary;

    fn summary() -> Summary {
        let delay = Distribution { count: 4, mean: 2.5, p1: 1.0, p25: 1.0, p50: 2.0, p75: 3.0, p99: 4.0 };
        let metrics = [("queue_delay_ms", Value::Distribution(delay)), ("dropped_packets", Value::Count(7))];
        let queue = QueueSummary {
            link: "up, \"thin\"".into(),
            queue: "pie".into(),
            carries: vec![],
            metrics: metrics.into_iter().collect(),
            classes: vec![],
        };
        let run = RunSummary {
            id: "sim-pie-1".into(),
            engine: "sim".into(),
            seed: 5,
            repeat: 1,
            params: vec![Param { level: "dumbbell.queue".into(), value: "pie".into() }],
            queues: vec![queue],
            ..RunSummary::default()
        };
        Summary { runs: vec![run], ..Summary::default() }
    }

    #[test]
    fn a_row_identifies_its_subject_by_names() {
        let folder = tempfile::tempdir().unwrap();
        let files = export_tidy(&summary(), folder.path()).unwrap();
        assert_eq!(files.len(), 12);
        let csv = std::fs::read_to_string(folder.path().join("links.csv")).unwrap();
        let (head, row) = csv.split_once('\n').unwrap();
        assert!(head.starts_with("run,engine,seed,repeat,dumbbell.queue,window,link,queue,class,"), "{head}");
        assert!(row.starts_with("sim-pie-1,sim,5,1,pie,,\"up, \"\"thin\"\"\",pie,,"), "{row}");
        let json = std::fs::read(folder.path().join("links.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!((&json[0]["queue_delay_ms"], &json[0]["queue_delay_ms_p99"]), (&2.5.into(), &4.0.into()));
        assert_eq!(
            (&json[0]["dropped_packets"], &json[0]["utilisation_percent"]),
            (&7.0.into(), &serde_json::Value::Null)
        );
        let parquet = std::fs::read(folder.path().join("links.parquet")).unwrap();
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    }

    #[test]
    fn the_dictionary_describes_every_column_except_levels_and_percentiles() {
        for tidy in Tidy::ALL {
            let dictionary = tidy.dictionary();
            let (columns, _) = table(tidy, &summary());
            let told =
                |name: &str| dictionary.iter().any(|(known, what)| known == name && what.ends_with('.'));
            for column in columns.iter().filter(|column| column.name != "dumbbell.queue") {
                let base = PERCENTILES.iter().find_map(|(ending, _)| column.name.strip_suffix(ending));
                assert!(told(&column.name) || base.is_some_and(told), "{}", column.name);
            }
        }
    }
}
