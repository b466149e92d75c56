//! `weir list` and `weir describe`: the names that a lab can use, straight from the registries.

use crate::cli::{DescribeArgs, Kind, ListArgs};
use crate::failure::{Failure, terminal_width};
use crate::{print, print_json};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use weir_base::Named;
use weir_plan::{Lab, SettingHelp};
use weir_record::METRICS;
use weir_report::fit::folded;

/// A name that a lab can use: its kind, and the registry's facts about it.
struct Entry {
    kind: &'static str,
    name: String,
    aliases: Vec<&'static str>,
    summary: String,
    /// JSON schema of the parameters, or null.
    parameters: Value,
    /// Further lines: unit, source.
    more: Vec<(&'static str, String)>,
}

fn entries(kind: Option<Kind>) -> Vec<Entry> {
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
                ("source", metric.source.into()),
            ],
        }));
    }
    if wanted(Kind::Labs) {
        entries.extend(labs(Path::new("labs")));
    }
    entries
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
        if let Some(found) = weir_plan::describe_setting(&args.name) {
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
    parameters(&entry.parameters, &mut text);
    let properties = entry.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
    if entry.kind == "station" {
        let _ =
            writeln!(text, "\nIn a lab:\n  [stations.NAME]\n  at = \"ROUTER\"\n  kind = \"{}\"", entry.name);
        for (name, about) in properties.clone().filter(|(_, about)| about.get("default").is_none()) {
            if let Some(example) = about.pointer("/examples/0") {
                let _ = writeln!(text, "  {name} = {}", inline(example));
            }
        }
    }
    if matches!(entry.kind, "controller" | "queue" | "workload" | "transport") {
        let key = if entry.kind == "controller" { "cc" } else { entry.kind };
        let _ = writeln!(text, "\nIn a lab:\n  {key} = \"{}\"", entry.name);
        let first = properties.clone().find_map(|(name, about)| Some((name, example(about)?)));
        if let Some((name, value)) = first {
            let _ = writeln!(text, "  {key} = {{ kind = \"{}\", {name} = {value} }}", entry.name);
        }
    }
    if entry.kind == "utility" {
        let traffic = "\nIn a lab:\n  [traffic.NAME]\n  overlay = { admit =";
        let _ = writeln!(text, "{traffic} {{ kind = \"{}\", priority = 2 }} }}", entry.name);
    }
    text
}

/// An example value of a parameter, as TOML: the schema's example if the default is null or zero, otherwise the default. `None`
/// unless it is a text, a number or a truth value, which JSON and TOML write alike.
fn example(about: &Value) -> Option<&Value> {
    let default = about.get("default").unwrap_or(&Value::Null);
    let nothing = default.is_null() || default.as_str().is_some_and(|text| text.starts_with("0 "));
    let other = about.get("examples").and_then(|examples| examples.get(0)).filter(|_| nothing);
    other.or(Some(default)).filter(|value| value.is_string() || value.is_number() || value.is_boolean())
}

/// The schema that `about` refers to within `schema`; `about` itself if it refers to none.
fn resolved<'a>(about: &'a Value, schema: &'a Value) -> &'a Value {
    let place = about.get("$ref").and_then(Value::as_str);
    place.and_then(|place| schema.pointer(place.strip_prefix('#')?)).unwrap_or(about)
}

/// The description of a schema; empty if it has none.
fn description(about: &Value) -> &str {
    about.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// The values of an enumeration, each with its meaning; empty for any other schema.
fn choices<'a>(about: &'a Value, schema: &'a Value) -> Vec<(&'a Value, &'a str)> {
    let about = resolved(about, schema);
    let list = |key: &str| about.get(key).and_then(Value::as_array).into_iter().flatten();
    let meant = |one: &'a Value| Some((one.get("const")?, description(one)));
    list("enum").map(|value| (value, "")).chain(list("oneOf").filter_map(meant)).collect()
}

/// The keys of the table that a parameter is, or the members of the registry that it names with their keys; empty for any other
/// parameter.
fn below(about: &Value, schema: &Value) -> Vec<(String, String)> {
    let resolve = |about| resolved(about, schema);
    let about = resolve(about);
    let about = about.get("items").map_or(about, resolve);
    let forms = about.get("anyOf").and_then(Value::as_array);
    let forms: Vec<&Value> = forms.map_or(vec![about], |forms| forms.iter().map(resolve).collect());
    let mut found = vec![];
    for form in forms {
        let Some(properties) = form.get("properties").and_then(Value::as_object) else { continue };
        if let Some(member) = form.get("title").and_then(Value::as_str) {
            let keys = properties.keys().filter(|key| *key != "kind").map(|key| format!("`{key}`"));
            let keys = keys.collect::<Vec<_>>().join(", ");
            let keys = if keys.is_empty() { String::new() } else { format!("; parameters: {keys}") };
            found.push((format!("\"{member}\""), format!("{}{keys}", description(form))));
            continue;
        }
        let described = |about| Some(description(about)).filter(|text| !text.is_empty());
        let described = |about| described(about).unwrap_or_else(|| description(resolve(about))).to_owned();
        found.extend(properties.iter().map(|(key, about)| (key.clone(), described(about))));
    }
    found
}

/// The columns of a table of the records (`records.flows`) or of an export's tidy ones (`tidy.flows`), each with its
/// description; the singular names the same table. `None` if there is no such table.
fn dictionary(name: &str) -> Option<Vec<(String, String)>> {
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

/// A value as TOML on one line. Keys without a value (null) are left out.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let keys = table.iter().filter(|(_, value)| !value.is_null());
            let keys: Vec<String> = keys.map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn parameters(schema: &Value, text: &mut String) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty())
    else {
        return;
    };
    text.push_str("\nParameters:\n");
    for (name, about) in properties {
        let default = about.get("default").filter(|default| !default.is_null());
        let default = default.map_or(String::new(), |default| format!(" = {}", inline(default)));
        let _ =
            writeln!(text, "  {name}{default}\n      {}", folded(description(about), 6, terminal_width()));
        let values = choices(about, schema)
            .into_iter()
            .map(|(value, meaning)| (value.to_string(), meaning.to_owned()));
        for (name, meaning) in values.chain(below(about, schema)) {
            let line = if meaning.is_empty() { name } else { format!("{name}: {meaning}") };
            let _ = writeln!(text, "        {}", folded(&line, 10, terminal_width()));
        }
    }
}
