//! What the JSON schema of a parameter says: an example, its choices, the keys below it.

use serde_json::Value;

/// An example value of a parameter, as TOML: the schema's example if the default is null or zero, otherwise the default. `None`
/// unless it is a text, a number or a truth value, which JSON and TOML write alike.
pub(crate) fn example(about: &Value) -> Option<&Value> {
    let default = about.get("default").unwrap_or(&Value::Null);
    let nothing =
        default.is_null() || default.as_str().is_some_and(|text| text.is_empty() || text.starts_with("0 "));
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

/// What a parameter may be: the values of an enumeration, the members of a registry, or the keys of a table, each with its meaning;
/// empty for any other parameter. `schema` is that of all parameters.
pub(crate) fn choices_and_keys(about: &Value, schema: &Value) -> Vec<(String, String)> {
    let values = choices(about, schema);
    let values = values.into_iter().map(|(value, meaning)| (value.to_string(), meaning.to_owned()));
    values.chain(below(about, schema)).collect()
}

/// A value as TOML on one line. Keys without a value (null) are left out.
pub(crate) fn inline(value: &Value) -> String {
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
