//! The names that a lab can use and the tables of results, straight from the registries.

use crate::cli::Kind;
use crate::parameters::{example, inline};
use serde_json::Value;
use std::path::Path;
use weir_base::Named;
use weir_plan::Lab;
use weir_record::{Level, METRICS, Metric};

/// A name that a lab can use: its kind, and the registry's facts about it.
pub(crate) struct Entry {
    pub kind: &'static str,
    pub name: String,
    pub aliases: Vec<&'static str>,
    pub summary: String,
    /// JSON schema of the parameters, or null.
    pub parameters: Value,
    /// Further lines: unit, values, levels, source.
    pub more: Vec<(&'static str, String)>,
}

/// The names of a kind, or all.
pub(crate) fn entries(kind: Option<Kind>) -> Vec<Entry> {
    let wanted = |one| kind.is_none_or(|kind| kind == one);
    let named = |kind: &'static str, members: Vec<Named>| {
        members.into_iter().map(move |member| Entry {
            kind,
            name: member.name.into(),
            aliases: member.aliases.to_vec(),
            summary: member.summary.into(),
            parameters: member.parameters.to_value(),
            more: vec![],
        })
    };
    let mut entries = vec![];
    if wanted(Kind::Controllers) {
        entries.extend(named("controller", weir_control::Config::members()));
    }
    if wanted(Kind::Queues) {
        entries.extend(named("queue", weir_queue::Config::members()));
    }
    if wanted(Kind::Workloads) {
        entries.extend(named("workload", weir_workload::Config::members()));
    }
    if wanted(Kind::Transports) {
        entries.extend(named("transport", weir_transport::Config::members()));
    }
    if wanted(Kind::Stations) {
        entries.extend(named("station", weir_station::Config::members()));
    }
    if wanted(Kind::Utilities) {
        entries.extend(named("utility", weir_overlay::utility::Config::members()));
    }
    if wanted(Kind::Metrics) {
        entries.extend(METRICS.iter().map(|metric| Entry {
            kind: "metric",
            name: metric.name.into(),
            aliases: vec![],
            summary: metric.definition.into(),
            parameters: Value::Null,
            more: vec![
                ("unit", metric.unit.into()),
                ("values", metric.domain.to_string()),
                ("computed for", levels(metric)),
                ("source", metric.source.into()),
            ],
        }));
    }
    if wanted(Kind::Labs) {
        entries.extend(labs(Path::new("labs")));
    }
    entries
}

/// What a metric is computed for, in the words of `summary.json`.
fn levels(metric: &Metric) -> String {
    let level = |level: &Level| match level {
        Level::Run => "run",
        Level::Link => "link",
        Level::Class => "class of a link's packets",
        Level::Flow => "flow",
        Level::Group => "group",
        Level::Pair => "pair of groups",
    };
    metric.of.iter().map(level).collect::<Vec<_>>().join(", ")
}

/// The labs below a folder, by path; a lab that cannot be read is listed too, with a hint.
fn labs(folder: &Path) -> Vec<Entry> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let lab = |path: &Path| {
        let summary = match Lab::load(path, &[]) {
            Ok(lab) => lab.title().unwrap_or("no title").to_owned(),
            Err(_) => format!("cannot be read: `weir run {} --dry-run` shows why", path.display()),
        };
        let name = path.display().to_string();
        Entry { kind: "lab", name, aliases: vec![], summary, parameters: Value::Null, more: vec![] }
    };
    let of = |path: std::path::PathBuf| {
        if path.is_dir() {
            labs(&path)
        } else if path.ends_with(weir_study::PROFILE) {
            // A profile is not a lab: the labs of its study extend it.
            vec![]
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            vec![lab(&path)]
        } else {
            vec![]
        }
    };
    paths.into_iter().flat_map(of).collect()
}

/// Lines of a lab that use the entry; empty for metrics and labs.
pub(crate) fn usage(entry: &Entry) -> Vec<String> {
    let name = &entry.name;
    let properties = entry.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
    match entry.kind {
        "station" => {
            let mut lines = vec![
                "[stations.NAME]".to_owned(),
                "at = \"ROUTER\"".to_owned(),
                format!("kind = \"{name}\""),
            ];
            let needed = properties.filter(|(_, about)| about.get("default").is_none());
            let shown = needed.filter_map(|(name, about)| Some((name, about.pointer("/examples/0")?)));
            lines.extend(shown.map(|(name, example)| format!("{name} = {}", inline(example))));
            lines
        }
        "controller" | "queue" | "workload" | "transport" => {
            let key = if entry.kind == "controller" { "cc" } else { entry.kind };
            let mut lines = vec![format!("{key} = \"{name}\"")];
            let mut shown = properties.filter_map(|(name, about)| Some((name, example(about)?)));
            if let Some((parameter, value)) = shown.next() {
                lines.push(format!("{key} = {{ kind = \"{name}\", {parameter} = {value} }}"));
            }
            lines
        }
        "utility" => vec![
            "[traffic.NAME]".to_owned(),
            format!("overlay = {{ admit = {{ kind = \"{name}\", priority = 2 }} }}"),
        ],
        _ => vec![],
    }
}

/// The columns of a table of the records (`records.flows`) or of an export's tidy ones (`tidy.flows`), each with its
/// description; the singular names the same table. `None` if there is no such table.
pub(crate) fn dictionary(name: &str) -> Option<Vec<(String, String)>> {
    let (kind, table) = name.split_once('.')?;
    let called = |other: &str| other == table || other.strip_suffix('s') == Some(table);
    match kind {
        "records" => {
            let table = weir_record::Table::ALL.into_iter().find(|one| called(one.name()))?;
            Some(table.dictionary().into_iter().map(|one| (one.column, one.what.to_owned())).collect())
        }
        "tidy" => Some(weir_record::Tidy::ALL.into_iter().find(|one| called(one.name()))?.dictionary()),
        _ => None,
    }
}
