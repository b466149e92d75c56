//! The differences between two labs, key by key, for a user who changed a lab and asks for its results in the old folder.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// The differences between two labs, each given by its [`source`](crate::Lab::source): one line a key, `KEY: OLD -> NEW`, in
/// the order of the keys. Comments and the order of keys do not count. `None` if one of the two is not TOML.
pub fn changes(old: &str, new: &str) -> Option<Vec<String>> {
    let (old, new) = (values(old)?, values(new)?);
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |key: &String| match (old.get(key), new.get(key)) {
        (old, new) if old == new => None,
        (Some(old), Some(new)) => Some(format!("{key}: {old} -> {new}")),
        (Some(old), None) => Some(format!("{key}: {old} -> not given")),
        (_, new) => Some(format!("{key}: not given -> {}", new.map_or("", String::as_str))),
    };
    Some(keys.into_iter().filter_map(change).collect())
}

/// Each key that has a value, with its tables before it, and the value as TOML writes it.
fn values(source: &str) -> Option<BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    gather("", &source.parse::<Table>().ok()?, &mut out);
    Some(out)
}

fn gather(path: &str, table: &Table, out: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let name = key(name);
        let path = if path.is_empty() { name } else { format!("{path}.{name}") };
        match value {
            Value::Table(below) if !below.is_empty() => gather(&path, below, out),
            // The tables of an array, such as claims, are named by their place.
            Value::Array(list) if list.len() > 1 && list.iter().all(Value::is_table) => {
                for (place, below) in list.iter().enumerate() {
                    let below = below.as_table().cloned().unwrap_or_default();
                    gather(&format!("{path}[{}]", place + 1), &below, out);
                }
            }
            value => drop(out.insert(path, written(value))),
        }
    }
}

/// A key as TOML writes it.
fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if bare { name.into() } else { format!("{name:?}") }
}

/// A value in a line, as TOML writes it.
fn written(value: &Value) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => format!("[{}]", list(values.iter().map(written).collect())),
        Value::Table(table) => {
            let each = table.iter().map(|(name, value)| format!("{} = {}", key(name), written(value)));
            format!("{{ {} }}", list(each.collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_that_differs_is_shown_with_both_values() {
        let old = "format = 1\n[dumbbell]\nrate = '10 Mbit/s'\nqueue = 'pie'\n[traffic.a]\ncc = 'cubic'\n[vary]\n'dumbbell.rtt' = ['1 ms', '2 ms']\n";
        let new = "# Faster.\nformat = 1\n[traffic]\na = { cc = 'cubic', flows = 2 }\n[vary]\n'dumbbell.rtt' = ['1 ms']\n[dumbbell]\nrate = '20 Mbit/s'\n";
        assert_eq!(
            changes(old, new).unwrap(),
            [
                "dumbbell.queue: \"pie\" -> not given",
                "dumbbell.rate: \"10 Mbit/s\" -> \"20 Mbit/s\"",
                "traffic.a.flows: not given -> 2",
                "vary.\"dumbbell.rtt\": [\"1 ms\", \"2 ms\"] -> [\"1 ms\"]",
            ]
        );
    }

    #[test]
    fn comments_and_the_order_of_keys_are_not_changes() {
        let [old, new] = ["a = 1 # one\n[b]\nc = 2\n", "b.c = 2\na = 1\n"];
        assert_eq!(changes(old, new), Some(vec![]));
        assert_eq!(changes(old, "a = "), None);
    }
}
