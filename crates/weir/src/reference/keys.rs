//! The keys of a lab file: a page for each table at its top, and one for what stands beside them.

use super::{Page, prose};
use crate::parameters::inline;
use std::collections::HashMap;
use std::fmt::Write;
use weir_plan::SettingHelp;
use weir_study::describe_setting;

/// Levels of tables within tables that are followed. None of them contains itself.
const DEPTH: usize = 8;

/// The tables that were described, by what is said of them, each with its path and its page.
type Known = HashMap<String, (String, String)>;

pub(super) fn pages() -> Vec<Page> {
    let schema = weir_study::schema();
    let names = schema.pointer("/properties").and_then(|keys| keys.as_object()).into_iter().flatten();
    let all = names.filter_map(|(name, _)| describe_setting(name));
    let (tables, plain): (Vec<_>, Vec<_>) = all.partition(|help| !help.keys.is_empty());
    let mut known = Known::new();
    let mut first = String::new();
    plain.iter().for_each(|help| entry(help, &mut first));
    let mut pages = vec![Page {
        file: "keys/lab.md".into(),
        title: "Keys of a lab".into(),
        about: "The keys at the top of a lab file that are no tables of fixed keys.".into(),
        text: first,
    }];
    for table in tables {
        let file = format!("keys/{}.md", table.path.replace('_', "-"));
        let mut text = String::new();
        below(&table, &file, &mut known, &mut text);
        pages.push(Page {
            title: format!("Keys of [{}]", table.path),
            about: prose(&table.summary),
            file,
            text,
        });
    }
    pages
}

/// Describes the keys below a table.
fn below(table: &SettingHelp, page: &str, known: &mut Known, text: &mut String) {
    let is_side = |key: &str| matches!(key, "down" | "up");
    for (key, _) in table.keys.iter().filter(|(key, _)| !is_side(key)) {
        let path = format!("{}.{key}", table.path);
        let Some(help) = describe_setting(&path) else { continue };
        entry(&help, text);
        if help.keys.iter().all(|(key, _)| is_side(key)) || path.matches('.').count() >= DEPTH {
            continue;
        }
        let SettingHelp { summary, values, keys, .. } = &help;
        match known.get(&format!("{key} {summary} {values} {keys:?}")) {
            Some((same, other)) => {
                // Writing to a String cannot fail.
                let file = other.rsplit('/').next().unwrap_or(other);
                let _ = writeln!(text, "- **Keys**: as [`{same}`]({file}#{}).\n", anchor(same));
            }
            None => {
                known.insert(format!("{key} {summary} {values} {keys:?}"), (path.clone(), page.to_owned()));
                below(&help, page, known, text);
            }
        }
    }
}

/// The anchor of a path's heading: dots are left out.
fn anchor(path: &str) -> String {
    path.to_lowercase().replace('.', "")
}

/// Describes a key.
fn entry(help: &SettingHelp, text: &mut String) {
    let SettingHelp { path, summary, values, default, example, keys } = help;
    let name = path.rsplit('.').next().unwrap_or(path);
    let _ = writeln!(text, "## `{path}`\n\n{}\n\n- **Takes** {}.", prose(summary), prose(values));
    let default = default.as_ref().filter(|default| !default.is_object());
    let _ = match default {
        Some(default) => writeln!(text, "- **Default**: `{}`", inline(default)),
        None => writeln!(text, "- **Default**: none of its own"),
    };
    if let Some(example) = example {
        let _ = writeln!(text, "- **Example**: `{name} = {}`", inline(example));
    }
    if !keys.is_empty() {
        let names: Vec<String> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
        let _ = writeln!(text, "- **Keys**: {}", names.join(", "));
    }
    text.push('\n');
}
