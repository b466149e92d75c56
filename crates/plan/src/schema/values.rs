//! What a key of a lab file takes, in words, and an example of it: both from the schema.

use super::Root;
use serde_json::Value;
use weir_base::WORDS;

/// The values that a schema allows: types, units and ranges, the alternatives joined by "or".
pub(super) fn values(root: Root, schema: &'static Value) -> String {
    if let Some(registry) = root.registry(schema) {
        let what = registry.what;
        return format!(
            "the name of a {what}, or a table with its name as `kind` and its parameters (`weir list`)"
        );
    }
    let mut words: Vec<String> = vec![];
    for form in root.forms(schema) {
        let word = of_form(root, form);
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", or ")
}

fn of_form(root: Root, form: &'static Value) -> String {
    let list = |key: &str| form[key].as_array().into_iter().flatten();
    let choices: Vec<String> = list("enum")
        .chain(list("oneOf").filter_map(|one| one.get("const")))
        .chain(form.get("const"))
        .filter(|value| !value.is_null())
        .map(Value::to_string)
        .collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    if let Some(words) = form[WORDS].as_str() {
        return words.into();
    }
    let types = match &form["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    };
    let words = types.iter().filter_map(|name| of_type(root, name, form)).collect::<Vec<_>>();
    words.join(", or ")
}

fn of_type(root: Root, name: &str, form: &'static Value) -> Option<String> {
    Some(match name {
        "string" => "a text".into(),
        "boolean" => "true or false".into(),
        "integer" => format!("a whole number{}", range(form)),
        "number" => format!("a number{}", range(form)),
        "array" => match form["items"].is_object().then(|| values(root, &form["items"])) {
            Some(words) if !words.is_empty() => format!("a list; each: {words}"),
            _ => "a list".into(),
        },
        "object" => {
            let properties = form["properties"].as_object();
            let directed = |it: &serde_json::Map<_, _>| {
                it.len() == 2 && it.contains_key("down") && it.contains_key("up")
            };
            if properties.is_some_and(directed) {
                "a table with one for each direction, `{ down = .., up = .. }`".into()
            } else if properties.is_some() {
                "a table".into()
            } else {
                "a table whose keys are names of your choice".into()
            }
        }
        _ => return None,
    })
}

/// The range of a number.
fn range(form: &Value) -> String {
    let bound = |key: &str| form.get(key).filter(|value| value.is_number());
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of {least} or more"),
        (None, Some(most)) => format!(" at most {most}"),
        (None, None) => String::new(),
    }
}

/// A value that the key takes. `None` for tables with keys of their own, and for texts of which no example is known.
pub(super) fn example(root: Root, schema: &'static Value) -> Option<Value> {
    let registered =
        || root.registry(schema).and_then(|registry| registry.names.first()).map(|(name, _)| (*name).into());
    let given = |schema: &'static Value| schema["examples"].get(0).filter(|value| !value.is_null());
    let default =
        |schema: &'static Value| schema.get("default").filter(|value| !value.is_null() && !value.is_object());
    let forms = root.forms(schema);
    let own = given(schema).or(default(schema)).cloned();
    let below = || forms.iter().find_map(|form| given(form).or(default(form)).cloned());
    own.or_else(registered).or_else(below).or_else(|| forms.iter().find_map(|form| of_kind(root, form)))
}

fn of_kind(root: Root, form: &'static Value) -> Option<Value> {
    let first =
        form["enum"].get(0).or(form.get("const")).or(form["oneOf"].get(0).and_then(|one| one.get("const")));
    if let Some(value) = first.filter(|value| !value.is_null()) {
        return Some(value.clone());
    }
    let types = &form["type"];
    let is = |name: &str| {
        types == name || types.as_array().is_some_and(|types| types.iter().any(|one| one == name))
    };
    if is("boolean") {
        Some(true.into())
    } else if is("integer") {
        Some(form["minimum"].as_u64().unwrap_or(1).max(1).into())
    } else if is("number") {
        Some(form["maximum"].as_f64().map_or(1.0, |most| most / 2.0).into())
    } else if is("array") {
        example(root, &form["items"]).map(|one| vec![one].into())
    } else {
        None
    }
}
