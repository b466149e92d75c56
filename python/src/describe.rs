//! What the schema says of the keys of labs and of the names that they take. `weir/_labs.py` makes classes of it.

use pyo3::prelude::*;
use serde_json::{Value, json};
use weir_plan::{SettingHelp, describe_members, describe_parameters};

/// The tables at the top of a lab: the names of their keys.
#[pyfunction(name = "_tables")]
pub(crate) fn tables() -> Vec<String> {
    let schema = weir_study::schema();
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let has_keys =
        |name: &String| weir_study::describe_setting(name).is_some_and(|help| !help.keys.is_empty());
    names.filter(has_keys).collect()
}

/// A key of a lab by its path, as JSON; None if there is no such key.
#[pyfunction(name = "_setting")]
pub(crate) fn setting(path: &str) -> Option<String> {
    weir_study::describe_setting(path).map(|help| told(&help).to_string())
}

/// The members of a kind ("queue"), as JSON: name, sentence and parameters of each.
#[pyfunction(name = "_members")]
pub(crate) fn members(kind: &str) -> String {
    let of = |(name, sentence): (&str, &str)| {
        let parameters: Vec<Value> = describe_parameters(kind, name).iter().map(told).collect();
        json!([name, sentence.replace('\n', " "), parameters])
    };
    Value::Array(describe_members(kind).into_iter().map(of).collect()).to_string()
}

fn told(help: &SettingHelp) -> Value {
    let SettingHelp { path, summary, values, default, example, keys } = help;
    let keys: Vec<&String> = keys.iter().map(|(key, _)| key).collect();
    json!({ "path": path, "summary": summary, "values": values, "default": default, "example": example, "keys": keys })
}
