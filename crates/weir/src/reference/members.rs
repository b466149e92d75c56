//! The members of the registries, and the metrics: a page for each kind.

use super::{Page, prose};
use crate::cli::Kind;
use crate::names::{Entry, entries, usage};
use crate::parameters::{choices_and_keys, inline};
use serde_json::Value;
use std::fmt::Write;
use weir_plan::{SettingHelp, describe_parameters};

/// The kinds that have a page: its file and title, and what it says.
const KINDS: [(Kind, &str, &str, &str); 7] = [
    (Kind::Controllers, "controllers", "Controllers", "What `cc` in a group takes: congestion controllers."),
    (Kind::Queues, "queues", "Queues", "What `queue` of a link takes: queue disciplines and shapers."),
    (
        Kind::Workloads,
        "workloads",
        "Workloads",
        "What `workload` of a group takes: what an application does.",
    ),
    (Kind::Transports, "transports", "Transports", "What `transport` of a group takes: how data is carried."),
    (
        Kind::Stations,
        "stations",
        "Stations",
        "What `[stations.NAME]` takes as its `kind`: machines at routers.",
    ),
    (
        Kind::Utilities,
        "utilities",
        "Utilities",
        "What `admit` in a group's `overlay` takes: how the overlay admits flows.",
    ),
    (
        Kind::Metrics,
        "metrics",
        "Metrics",
        "Every number in `summary.json` and in reports: its definition, unit, values, levels and source.",
    ),
];

pub(super) fn pages() -> Vec<Page> {
    let page = |(kind, file, title, about): (Kind, &str, &str, &str)| {
        let mut text = String::new();
        entries(Some(kind)).iter().for_each(|entry| add(entry, &mut text));
        Page { file: format!("{file}.md"), title: title.into(), about: about.into(), text }
    };
    KINDS.into_iter().map(page).collect()
}

/// Describes a member.
fn add(entry: &Entry, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "## `{}`\n\n{}\n", entry.name, prose(&entry.summary));
    if !entry.aliases.is_empty() {
        let names: Vec<String> = entry.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let _ = writeln!(text, "Also called {}.\n", names.join(", "));
    }
    for (what, value) in &entry.more {
        let value = if value.is_empty() { "none" } else { value };
        let _ = writeln!(text, "- **{what}**: {}", prose(value));
    }
    if !entry.more.is_empty() {
        text.push('\n');
    }
    let lines = usage(entry);
    if !lines.is_empty() {
        let _ = writeln!(text, "```toml\n{}\n```\n", lines.join("\n"));
    }
    let properties = entry.parameters.get("properties").and_then(Value::as_object);
    for help in describe_parameters(entry.kind, &entry.name) {
        parameter(&help, text);
        let Some(about) = properties.and_then(|properties| properties.get(&help.path)) else { continue };
        for (name, meaning) in choices_and_keys(about, &entry.parameters) {
            let meaning = if meaning.is_empty() { String::new() } else { format!(": {}", prose(&meaning)) };
            let _ = writeln!(text, "  - `{name}`{meaning}");
        }
    }
    if !entry.parameters.is_null() {
        text.push('\n');
    }
}

/// Describes a parameter, in one item of a list.
fn parameter(help: &SettingHelp, text: &mut String) {
    let SettingHelp { path, summary, values, default, example, .. } = help;
    let default = default.as_ref().map_or("none of its own".to_owned(), |it| format!("`{}`", inline(it)));
    let _ = write!(text, "- **`{path}`**: {} Takes {}. Default: {default}.", prose(summary), prose(values));
    let example = example.as_ref().map(|it| format!(" Example: `{path} = {}`.", inline(it)));
    let _ = writeln!(text, "{}", example.unwrap_or_default());
}
