//! `[vary]`: the levels of the tree, their labels, and the names of runs made from them.

use crate::diagnostic::{Fault, Origin};
use crate::traces::file_part;
use crate::tree::{Entry, Item, Node, Path, Table};
use std::collections::{BTreeMap, HashMap};

/// A level of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) choices: Vec<Choice>,
}

/// One choice on a level.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) label: String,
    /// The label as a part of a run's name.
    pub(crate) slug: String,
    pub(crate) settings: Vec<(Path, Node)>,
    origin: Origin,
}

/// Reads the levels. Faults are added to `faults`, and the choices at fault are left out.
pub(crate) fn levels(root: &Table, faults: &mut Vec<Fault>) -> Vec<Level> {
    let Some(vary) = root.get("vary") else { return Vec::new() };
    let Some(table) = vary.as_table() else {
        faults.push(Fault::new(vary.origin, format!("[vary] is {}, not a table", vary.what()), HELP));
        return Vec::new();
    };
    let mut levels: Vec<Level> = Vec::new();
    for (name, entry) in &table.0 {
        let choices = match &entry.value.item {
            Item::Array(values) => plain(name, entry.named, values, faults),
            Item::Table(labels) => labelled(labels, faults),
            _ => {
                let message = format!(
                    "a level is a list of values or a table of labels, and this is {}",
                    entry.value.what()
                );
                faults.push(Fault::new(entry.value.origin, message, HELP));
                continue;
            }
        };
        if choices.is_empty() && faults.is_empty() {
            let message = format!("the level `{}` has no values, so the tree has no runs", name);
            faults.push(Fault::new(entry.value.origin, message, "give it a value, or remove the level"));
        }
        collisions(&choices, faults);
        levels.push(Level { name: name.clone(), choices });
    }
    overwritten(&levels, faults);
    levels
}

const HELP: &str = "write \"dumbbell.queue\" = [\"tail-drop\", \"pie\"], or mix = { \"a label\" = { \"dumbbell.queue\" = \"pie\" } }";

/// A path and its values.
fn plain(key: &str, named: Origin, values: &[Node], faults: &mut Vec<Fault>) -> Vec<Choice> {
    let Some(path) = path(key, named, faults) else { return Vec::new() };
    let choice = |value: &Node| {
        let label = label(path.last(), value);
        let slug = match &value.item {
            Item::String(_) | Item::Table(_) => slug(&label),
            _ => slug(&format!("{} {label}", path.last())),
        };
        Choice { slug, label, settings: vec![(path.clone(), value.clone())], origin: value.origin }
    };
    values.iter().map(choice).collect()
}

/// Labels and what each stands for.
fn labelled(labels: &Table, faults: &mut Vec<Fault>) -> Vec<Choice> {
    let mut choices = Vec::new();
    for (label, entry) in &labels.0 {
        let Some(settings) = entry.value.as_table() else {
            let message =
                format!("a label stands for a table of settings, and this is {}", entry.value.what());
            faults.push(Fault::new(entry.value.origin, message, HELP));
            continue;
        };
        let set =
            |(key, entry): (&String, &Entry)| Some((path(key, entry.named, faults)?, entry.value.clone()));
        let settings = settings.0.iter().filter_map(set).collect();
        choices.push(Choice { label: label.clone(), slug: slug(label), settings, origin: entry.named });
    }
    choices
}

/// The number with which a label begins (`"130 Mbit/s"`).
pub fn leading_number(label: &str) -> Option<f64> {
    let end = label.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(label.len());
    label[..end].parse().ok()
}

/// The sections whose settings may vary.
const SECTIONS: [&str; 10] =
    ["run", "dumbbell", "chain", "parking_lot", "star", "graph", "stations", "overlay", "nic", "traffic"];

/// The path of a setting that may vary.
fn path(key: &str, named: Origin, faults: &mut Vec<Fault>) -> Option<Path> {
    let path = match Path::of_key(key, named) {
        Ok(path) => path,
        Err(fault) => {
            faults.push(fault);
            return None;
        }
    };
    let wrong = if !SECTIONS.contains(&path.first()) {
        let near = crate::diagnostic::nearest(path.first(), SECTIONS);
        let help = match near {
            Some(near) if near != path.first() => format!("did you mean `{near}`?"),
            _ => {
                "a path begins with run, traffic, stations or the network's section, for example dumbbell.queue".into()
            }
        };
        Some((format!("`{key}` is not a setting that can vary"), help))
    } else if path.is(&["run"]) || path.is(&["run", "seed"]) || path.is(&["run", "repeats"]) {
        let help =
            "runs of one repeat share their seed, so that they can be compared: vary other keys of [run]"
                .into();
        Some((format!("`{key}` is the same for the whole tree"), help))
    } else {
        None
    };
    match wrong {
        Some((message, help)) => {
            faults.push(Fault::new(path.origin().unwrap_or(named), message, help));
            None
        }
        None => Some(path),
    }
}

/// A value as a readable label. `key` is the value's own key; a trace is labelled by its file's name.
fn label(key: &str, node: &Node) -> String {
    let pairs = |table: &Table, skip: &str| -> Vec<String> {
        let rest = table.0.iter().filter(|(key, _)| *key != skip);
        rest.map(|(key, entry)| format!("{key}={}", label(key, &entry.value))).collect()
    };
    match &node.item {
        Item::String(text) if key == "trace" => file_part(text).into(),
        Item::String(text) => text.clone(),
        Item::Integer(number) => number.to_string(),
        Item::Float(number) => number.to_string(),
        Item::Bool(truth) => truth.to_string(),
        Item::Array(values) if values.is_empty() => "none".into(),
        Item::Array(values) => values.iter().map(|value| label(key, value)).collect::<Vec<_>>().join(", "),
        Item::Table(table) => match table.get("kind") {
            Some(kind) => [vec![label("kind", kind)], pairs(table, "kind")].concat().join(" "),
            None => pairs(table, "").join(" "),
        },
    }
}

/// Longest part of a run's name.
const LONGEST_SLUG: usize = 32;

/// A label as a part of a run's name: lower case, `-` for all but letters and digits, units joined to their numbers. It depends
/// on the label alone, so that names stay when a level grows.
fn slug(label: &str) -> String {
    let text = label.to_lowercase().replace("bit/s", "bit").replace('%', " percent");
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let mut slug = String::new();
    for (i, c) in chars.iter().enumerate() {
        let before = if i == 0 { ' ' } else { at(i - 1) };
        let point = *c == '.' && before.is_ascii_digit() && at(i + 1).is_ascii_digit();
        let unit = *c == ' ' && before.is_ascii_digit() && at(i + 1).is_ascii_alphabetic();
        if c.is_ascii_alphanumeric() || point {
            slug.push(*c);
        } else if !unit && !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if !slug.is_empty() && slug.len() <= LONGEST_SLUG {
        return slug.to_string();
    }
    let digest = weir_base::Random::stream(0, label).bits() >> 40;
    let kept: String = slug.chars().take(LONGEST_SLUG - 7).collect();
    format!("{}-{digest:06x}", kept.trim_end_matches('-')).trim_start_matches('-').to_string()
}

/// The name of the run with these choices.
pub(crate) fn id<'a>(slugs: impl Iterator<Item = &'a str>, repeat: u32) -> String {
    slugs.map(|slug| format!("{slug}_")).collect::<String>() + &format!("r{repeat}")
}

fn collisions(choices: &[Choice], faults: &mut Vec<Fault>) {
    let mut seen: BTreeMap<&str, &Choice> = BTreeMap::new();
    for choice in choices {
        match seen.insert(&choice.slug, choice) {
            Some(other) if other.label == choice.label => faults.push(Fault::new(
                choice.origin,
                format!("\"{}\" is listed twice on this level", choice.label),
                "remove one; for more runs of the same cell, raise run.repeats",
            )),
            Some(other) => faults.push(Fault::new(
                choice.origin,
                format!("\"{}\" and \"{}\" would both be named `{}`", other.label, choice.label, choice.slug),
                "labels must differ in letters or digits: name the level and label its values",
            )),
            None => {}
        }
    }
}

/// Finds levels without effect: a later level sets the same path, or one around it.
fn overwritten(levels: &[Level], faults: &mut Vec<Fault>) {
    // The paths that are set and all their prefixes, with the first level that sets them.
    let mut set: HashMap<Vec<&str>, &str> = HashMap::new();
    for level in levels {
        let paths = level.choices.iter().flat_map(|choice| choice.settings.iter().map(|(path, _)| path));
        let paths: HashMap<Vec<&str>, &Path> = paths.map(|path| (path.keys().collect(), path)).collect();
        let clashing = paths.iter().filter_map(|(keys, path)| Some((path.origin()?, set.get(keys)?)));
        if let Some((origin, earlier)) = clashing.min() {
            let message = format!("the level `{}` overwrites what the level `{earlier}` sets", level.name);
            let help = "join the two into one level with labels, or put the wider setting first";
            faults.push(Fault::new(origin, message, help));
        }
        for keys in paths.keys() {
            for length in 1..=keys.len() {
                set.entry(keys[..length].to_vec()).or_insert(&level.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_short_readable_names() {
        for (label, expected) in [
            ("reno v cubic", "reno-v-cubic"),
            ("10 Mbit/s", "10mbit"),
            ("0.5 bdp", "0.5bdp"),
            ("pie target=15 ms", "pie-target-15ms"),
            ("flows 2", "flows-2"),
            ("drop 20, 30", "drop-20-30"),
            ("every second!", "every-second"),
        ] {
            assert_eq!(slug(label), expected);
        }
    }

    #[test]
    fn long_and_foreign_labels_are_distinguished_by_a_digest() {
        let long = |last: u32| slug(&format!("drop 20, 21, 22, 23, 24, 25, 26, 27, 28, {last}"));
        assert!(long(29).starts_with("drop-20-21-22-23-24") && long(29).len() <= LONGEST_SLUG);
        assert_ne!(long(29), long(30));
        assert_ne!(slug("é"), slug("ü"));
        assert!(!slug("é").is_empty());
    }
}
