//! `weir list` and `weir describe`: the names that a lab can use, straight from the registries.

use crate::cli::{DescribeArgs, ListArgs};
use crate::failure::{Failure, terminal_width};
use crate::names::{Entry, dictionary, entries, usage};
use crate::parameters::{choices_and_keys, inline};
use crate::{print, print_json};
use serde_json::{Value, json};
use std::fmt::Write;
use weir_plan::SettingHelp;
use weir_report::fit::folded;

/// Lists the names that a lab can use.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let entries = entries(args.kind);
    if args.json {
        let row =
            |e: &Entry| json!({ "kind": e.kind, "name": e.name, "aliases": e.aliases, "summary": e.summary });
        return print_json(&entries.iter().map(row).collect::<Vec<_>>());
    }
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let (mut text, mut kind) = (String::new(), "");
    for entry in &entries {
        // Writing to a String cannot fail.
        if entry.kind != kind {
            let gap = if kind.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}", plural(entry.kind));
            kind = entry.kind;
        }
        let summary = folded(&entry.summary, width + 4, terminal_width());
        let _ = writeln!(text, "  {:width$}  {summary}", entry.name);
    }
    print(&text)
}

/// The word for several of a kind.
fn plural(kind: &str) -> String {
    kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"))
}

/// How similar two names must be for one to be suggested for the other (Jaro-Winkler, in `[0, 1]`).
const ALIKE: f64 = 0.75;

/// The name most similar to another, if one is similar enough. Metrics, whose names have underscores, are suggested only for
/// names with one.
fn near<'a>(entries: &'a [Entry], name: &str) -> Option<&'a str> {
    let fits = |entry: &&Entry| entry.kind != "metric" || name.contains('_');
    let alike = |entry: &'a Entry| (strsim::jaro_winkler(&entry.name, name), entry.name.as_str());
    let best = entries.iter().filter(fits).map(alike).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(alike, _)| *alike >= ALIKE).map(|(_, name)| name)
}

/// Describes a name, a setting of a lab file or a table.
pub(crate) fn describe(args: &DescribeArgs) -> Result<(), Failure> {
    let entries = entries(None);
    // A workload and a transport may have the same name.
    let mut meant = entries.iter().filter(|e| e.name == args.name || e.aliases.contains(&args.name.as_str()));
    let Some(entry) = meant.next() else {
        if let Some(found) = weir_study::describe_setting(&args.name) {
            return setting(args, &found);
        }
        if let Some(columns) = dictionary(&args.name) {
            return print_dictionary(args, &columns);
        }
        let near =
            near(&entries, &args.name).map_or(String::new(), |name| format!("did you mean `{name}`? "));
        return Err(Failure::bad_input(
            format!("there is no entry `{}`", args.name),
            format!("{near}`weir list` prints all names"),
        ));
    };
    if args.json {
        return print_json(&json!({
            "kind": entry.kind, "name": entry.name, "aliases": entry.aliases, "summary": entry.summary,
            "parameters": entry.parameters,
        }));
    }
    let mut text = described(entry);
    for entry in meant {
        text.push('\n');
        text.push_str(&described(entry));
    }
    print(&text)
}

/// The description of an entry, as text.
fn described(entry: &Entry) -> String {
    let summary = folded(&entry.summary, 2, terminal_width());
    let mut text = format!("{} ({})\n  {summary}\n", entry.name, entry.kind);
    if !entry.aliases.is_empty() {
        let _ = writeln!(text, "  also called: {}", entry.aliases.join(", "));
    }
    for (what, value) in entry.more.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "  {what}: {}", folded(value, 4, terminal_width()));
    }
    parameters(entry, &mut text);
    for (place, line) in usage(entry).into_iter().enumerate() {
        let head = if place == 0 { "\nIn a lab:\n" } else { "" };
        let _ = writeln!(text, "{head}  {line}");
    }
    text
}

fn print_dictionary(args: &DescribeArgs, columns: &[(String, String)]) -> Result<(), Failure> {
    if args.json {
        let column = |(name, what): &(String, String)| json!({ "name": name, "what": what });
        let columns: Vec<Value> = columns.iter().map(column).collect();
        return print_json(&json!({ "kind": "table", "name": args.name, "columns": columns }));
    }
    let mut text = format!("{} (columns of a table)\n", args.name);
    for (name, what) in columns {
        let _ = writeln!(text, "  {name}\n      {}", folded(what, 6, terminal_width()));
    }
    print(&text)
}

/// Describes a setting of a lab file.
fn setting(args: &DescribeArgs, setting: &SettingHelp) -> Result<(), Failure> {
    let SettingHelp { path, summary, values, default, example, keys } = setting;
    if args.json {
        let key = |(name, what): &(String, String)| json!({ "name": name, "summary": what });
        let keys: Vec<Value> = keys.iter().map(key).collect();
        return print_json(&json!({
            "kind": "setting", "name": path, "summary": summary, "values": values, "default": default, "example": example, "keys": keys
        }));
    }
    let summary = folded(summary, 2, terminal_width());
    let mut text = format!("{path} (setting of a lab file)\n  {summary}\n");
    // Writing to a String cannot fail.
    if !values.is_empty() {
        let _ = writeln!(text, "  values: {}", folded(values, 4, terminal_width()));
    }
    if let Some(default) = default.as_ref().filter(|default| !default.is_object()) {
        let _ = writeln!(text, "  default: {}", inline(default));
    }
    if let Some(example) = example {
        let (table, key) =
            path.rsplit_once('.').map_or((None, path.as_str()), |(table, key)| (Some(table), key));
        let table = table.map_or(String::new(), |table| format!("  [{table}]\n"));
        let _ = writeln!(text, "\nIn a lab:\n{table}  {key} = {}", inline(example));
    }
    if !keys.is_empty() {
        text.push_str("\nKeys:\n");
    }
    for (name, what) in keys {
        let _ = writeln!(text, "  {name}\n      {}", folded(what, 6, terminal_width()));
    }
    print(&text)
}

/// Adds the parameters of an entry to a text.
fn parameters(entry: &Entry, text: &mut String) {
    let properties = entry.parameters.get("properties").and_then(Value::as_object);
    let help = weir_plan::describe_parameters(entry.kind, &entry.name);
    for (place, SettingHelp { path, summary, values, default, .. }) in help.iter().enumerate() {
        let head = if place == 0 { "\nParameters:\n" } else { "" };
        let default = default.as_ref().map_or(String::new(), |default| format!(" = {}", inline(default)));
        let _ = writeln!(text, "{head}  {path}{default}\n      {}", folded(summary, 6, terminal_width()));
        let _ = writeln!(text, "      values: {}", folded(values, 8, terminal_width()));
        let Some(about) = properties.and_then(|properties| properties.get(path)) else { continue };
        for (name, meaning) in choices_and_keys(about, &entry.parameters) {
            let line = if meaning.is_empty() { name } else { format!("{name}: {meaning}") };
            let _ = writeln!(text, "        {}", folded(&line, 10, terminal_width()));
        }
    }
}
