//! Moves all definitions of a schema to its root. The schema of each member of a registry has definitions of its own. Within the
//! schema of a lab file, references to them would not resolve, since `#/$defs/NAME` is relative to the root.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Prefix of a reference to a definition.
const ROOT: &str = "#/$defs/";
/// Prefix of a reference that already has its final name.
const FINAL: &str = "#final/";

/// Moves all definitions to the root, and makes references point there. Unequal definitions of one name are numbered:
/// `Reading`, `Reading2`.
pub(super) fn gather(schema: &mut Value) {
    let Some(Value::Object(mut own)) = schema.as_object_mut().and_then(|root| root.remove("$defs")) else {
        return;
    };
    let reserved: Vec<String> = own.keys().cloned().collect();
    let mut moved = Map::new();
    own.values_mut().for_each(|definition| lift(definition, &reserved, &mut moved));
    lift(schema, &reserved, &mut moved);
    own.extend(moved);
    schema["$defs"] = Value::Object(own);
    each_reference(schema, &mut |target| {
        if let Some(name) = target.strip_prefix(FINAL) {
            *target = format!("{ROOT}{name}");
        }
    });
}

/// Moves the definitions within a schema to `moved`, the innermost first.
fn lift(schema: &mut Value, reserved: &[String], moved: &mut Map<String, Value>) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| lift(one, reserved, moved)),
        Value::Object(table) => {
            let own = table.remove("$defs");
            table.values_mut().for_each(|one| lift(one, reserved, moved));
            let Some(Value::Object(mut own)) = own else { return };
            own.values_mut().for_each(|one| lift(one, reserved, moved));
            let names: HashMap<String, String> = own
                .iter()
                .map(|(name, definition)| (name.clone(), free(name, definition, reserved, moved)))
                .collect();
            let mut rename = |target: &mut String| {
                if let Some(name) = target.strip_prefix(ROOT).and_then(|name| names.get(name)) {
                    *target = format!("{FINAL}{name}");
                }
            };
            own.values_mut().for_each(|one| each_reference(one, &mut rename));
            each_reference(schema, &mut rename);
            for (name, definition) in own {
                moved.insert(names[&name].clone(), definition);
            }
        }
        _ => {}
    }
}

/// The name under which a definition can stand: its own, unless another has it.
fn free(name: &str, definition: &Value, reserved: &[String], moved: &Map<String, Value>) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free =
        |name: &String| !reserved.contains(name) && moved.get(name).is_none_or(|known| known == definition);
    // Some number is always free.
    names.find(is_free).unwrap_or_default()
}

/// Calls `call` with each reference within a schema.
fn each_reference(schema: &mut Value, call: &mut impl FnMut(&mut String)) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| each_reference(one, call)),
        Value::Object(table) => {
            for (key, value) in table.iter_mut() {
                match value {
                    Value::String(target) if key == "$ref" => call(target),
                    value => each_reference(value, call),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn definitions_are_at_the_root_and_different_ones_of_one_name_are_numbered() {
        let inner = |kind: &str| json!({ "$ref": "#/$defs/Unit", "$defs": { "Unit": { "type": kind } } });
        let mut schema = json!({
            "a": inner("string"), "b": inner("number"), "c": inner("string"), "d": { "$ref": "#/$defs/Own" },
            "$defs": { "Own": { "type": "boolean" } },
        });
        gather(&mut schema);
        let target = |key: &str| schema[key]["$ref"].as_str().unwrap().to_owned();
        assert_eq!(
            ["a", "b", "c", "d"].map(target),
            ["#/$defs/Unit", "#/$defs/Unit2", "#/$defs/Unit", "#/$defs/Own"]
        );
        let definitions = json!({ "Own": { "type": "boolean" }, "Unit": { "type": "string" }, "Unit2": { "type": "number" } });
        assert_eq!(schema["$defs"], definitions);
        assert_eq!(schema["a"]["$defs"], Value::Null);
    }
}
