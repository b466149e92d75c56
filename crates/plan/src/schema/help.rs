//! What the schema says of a key: its sentence, what it takes, its default and an example. `weir describe` and the manual's reference
//! print it.

use super::{REGISTRIES, Registry, Root, SCHEMA, description, values};
use serde_json::Value;

/// A setting of a lab file.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingHelp {
    /// Its path, with NAME where any name may stand.
    pub path: String,
    /// Its documentation.
    pub summary: String,
    /// What it takes, in words: type, unit, range.
    pub values: String,
    /// Its value where a lab has none. `None` if it follows from other settings, as the documentation then says, or is needed.
    pub default: Option<Value>,
    /// A value that it takes. `None` for a table with keys of its own, and for a text of which no example is known.
    pub example: Option<Value>,
    /// The keys below it, each with its documentation; empty if it is a value or the member of a registry.
    pub keys: Vec<(String, String)>,
}

/// The schema of the key at the end of this path, and the path as it is shown. Where the last key is none of a table that holds tables of
/// any name, it is one of those tables (`traffic.rtt` is `traffic.NAME.rtt`), and any other key is such a name.
fn setting_of(root: Root, path: &[&str]) -> Option<(String, &'static Value)> {
    if let Some((last, place)) = path.split_last().filter(|(_, place)| !place.is_empty()) {
        let forms = root.forms(root.schema_of(place)?);
        if forms.iter().all(|form| form["properties"].get(last).is_none()) {
            let mut members = forms.iter().flat_map(|form| root.forms(&form["additionalProperties"]));
            if let Some(schema) = members.find_map(|member| member["properties"].get(last)) {
                return Some((format!("{}.NAME.{last}", place.join(".")), schema));
            }
        }
    }
    Some((path.join("."), root.schema_of(path)?))
}

/// What the keys mean that many tables have in common. `None` for others.
fn of_every_table(path: &str) -> Option<String> {
    let (table, key) = path.rsplit_once('.')?;
    match key {
        "down" | "up" => Some(format!("`{table}` in the direction {key} alone.")),
        "kind" => Some(
            "The name of what is used, as `weir list` prints it; the other keys are its parameters."
                .to_owned(),
        ),
        _ => None,
    }
}

/// The setting of a lab file at this path, such as `run.windows`; members of tables may have any name (`traffic.NAME.cc`), which may be
/// left out at the end (`traffic.cc`). `None` if there is no such setting.
pub fn describe_setting(path: &str) -> Option<SettingHelp> {
    describe_setting_in(&SCHEMA, path)
}

/// The same, where this is the schema of a lab file: one that has more keys than [`schema`](super::schema), such as those of claims.
pub fn describe_setting_in(schema: &'static Value, path: &str) -> Option<SettingHelp> {
    let root = Root(schema);
    let (path, schema) = setting_of(root, &path.split('.').collect::<Vec<_>>())?;
    Some(help(root, path, schema))
}

/// The members of a kind (`queue`), each with what it is in a sentence; empty if there is no such kind.
pub fn describe_members(what: &str) -> Vec<(&'static str, &'static str)> {
    let forms = SCHEMA["$defs"][what]["anyOf"].as_array().into_iter().flatten();
    forms.filter_map(|form| Some((form["title"].as_str()?, description(form)?))).collect()
}

/// The parameters of the member of a registry (of the queue `pie`); empty if there is no such member.
pub fn describe_parameters(what: &str, member: &str) -> Vec<SettingHelp> {
    let root = Root(&SCHEMA);
    root.parameters_of(what, member).map(|(key, schema)| help(root, key.clone(), schema)).collect()
}

/// What a schema says of the key at a path.
fn help(root: Root, path: String, schema: &'static Value) -> SettingHelp {
    let mut keys: Vec<(String, String)> = vec![];
    for form in root.forms(schema).into_iter().filter(|_| root.registry(schema).is_none()) {
        let (members, items) = (root.forms(&form["additionalProperties"]), root.forms(&form["items"]));
        let below = [("", form)].into_iter().chain(items.into_iter().map(|item| ("", item)));
        let below = below.chain(members.into_iter().map(|member| ("NAME.", member)));
        for (of, form) in below {
            let member = registry_of(form);
            let properties = form["properties"].as_object().into_iter().flatten();
            // Each kind of station has parameters of its own, as `describe_parameters` tells.
            let own = properties.filter(|(key, _)| member.is_none_or(|registry| !registry.is_parameter(key)));
            for (key, about) in own {
                let key = format!("{of}{key}");
                let summary = description(about).or(description(root.resolve(about).1)).unwrap_or_default();
                if keys.iter().all(|(known, _)| *known != key) {
                    keys.push((key, summary.replace('\n', " ")));
                }
            }
        }
    }
    let summary = description(schema).or(description(root.resolve(schema).1)).map(str::to_owned);
    let summary = summary.or_else(|| of_every_table(&path)).unwrap_or_default();
    let default = schema.get("default").filter(|value| !value.is_null()).cloned();
    let values = values::values(root, schema);
    let example = values::example(root, schema);
    SettingHelp { path, summary: summary.replace('\n', " "), values, default, example, keys }
}

/// The registry whose member's table a form is; `None` for any other form.
fn registry_of(form: &Value) -> Option<&'static Registry> {
    let title = form["title"].as_str().filter(|_| form["properties"]["kind"].is_object())?;
    REGISTRIES.iter().find(|registry| registry.names.iter().any(|(name, _)| *name == title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_the_keys_below_it() {
        let keys = |path: &str| {
            describe_setting(path).unwrap().keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        let below = keys("dumbbell");
        assert!(
            ["rate", "rtt", "queue"].iter().all(|key| below.iter().any(|known| known == key)),
            "{below:?}"
        );
        assert!(
            keys("traffic").contains(&"NAME.cc".to_owned()) && keys("traffic.any").contains(&"cc".to_owned())
        );
        // A value, and the member of a registry, which `weir describe pie` tells of.
        assert!(keys("run.duration").is_empty() && keys("dumbbell.queue").is_empty());
        assert_eq!(describe_setting("dumbbell.nothing"), None);
    }

    /// Levels of tables within tables that are looked at.
    const DEPTH: usize = 6;

    #[test]
    fn every_key_has_a_sentence_its_values_and_an_example_or_keys_of_its_own() {
        let mut ahead: Vec<String> = SCHEMA["properties"].as_object().unwrap().keys().cloned().collect();
        let (mut lacking, mut seen) = (vec![], 0);
        while let Some(path) = ahead.pop() {
            let help = describe_setting(&path).unwrap_or_else(|| panic!("{path}"));
            seen += 1;
            let parts = [
                ("sentence", !help.summary.is_empty()),
                ("values", !help.values.is_empty()),
                ("example", help.example.is_some() || !help.keys.is_empty()),
            ];
            lacking.extend(
                parts.into_iter().filter(|(_, there)| !there).map(|(part, _)| format!("{path}: {part}")),
            );
            if path.matches('.').count() < DEPTH {
                ahead.extend(help.keys.into_iter().map(|(key, _)| format!("{path}.{key}")));
            }
        }
        assert!(seen > 400, "{seen}");
        assert!(lacking.is_empty(), "{} of {seen}: {lacking:#?}", lacking.len());
    }

    #[test]
    fn every_parameter_of_a_member_has_a_sentence_its_values_and_an_example() {
        let (mut lacking, mut seen) = (vec![], 0);
        for registry in &REGISTRIES {
            for (member, _) in registry.names {
                for help in describe_parameters(registry.what, member) {
                    seen += 1;
                    let needed = help.example.is_some() || !help.keys.is_empty();
                    if help.summary.is_empty() || help.values.is_empty() || !needed {
                        lacking.push(format!("{member}: {help:?}"));
                    }
                }
            }
        }
        assert!(seen > 200, "{seen}");
        assert!(lacking.is_empty(), "{} of {seen}: {lacking:#?}", lacking.len());
    }

    #[test]
    fn the_members_of_a_kind_are_those_of_its_registry() {
        for registry in &REGISTRIES {
            let known: Vec<&str> = registry.names.iter().map(|(name, _)| *name).collect();
            let described = describe_members(registry.what);
            assert_eq!(described.iter().map(|(name, _)| *name).collect::<Vec<_>>(), known);
            assert!(described.iter().all(|(_, sentence)| !sentence.is_empty()));
        }
        assert!(describe_members("utility").iter().any(|(name, _)| *name == "log"));
        assert_eq!(describe_members("nothing"), []);
    }

    #[test]
    fn a_station_has_the_keys_that_every_kind_has() {
        let keys = describe_setting("stations").unwrap().keys.into_iter().map(|(key, _)| key);
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        assert_eq!(keys, ["NAME.at", "NAME.kind", "NAME.links"]);
        assert!(describe_parameters("station", "policer").iter().any(|help| help.path == "burst"));
        assert_eq!(describe_parameters("station", "nothing"), []);
    }

    #[test]
    fn a_key_tells_its_type_unit_range_default_and_an_example() {
        let of = |path: &str| describe_setting(path).unwrap();
        let duration = of("run.duration");
        assert_eq!(duration.values, "a time with its unit (ns, us, ms, s, min or h)");
        assert_eq!((duration.default, duration.example), (Some("10 s".into()), Some("25 ms".into())));
        let rate = of("dumbbell.rate");
        assert!(rate.values.starts_with(
            "a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with one"
        ));
        let loss = of("dumbbell.loss").values;
        assert!(loss.starts_with("a number from 0 to 1, or per cent in a text, or a table"), "{loss}");
        assert_eq!(of("run.repeats").values, "a whole number of 0 or more");
        assert_eq!(of("run.ip").values, "4, 6");
        assert_eq!(of("run.packets").example, Some(false.into()));
        assert!(of("traffic.bulk.cc").values.starts_with("the name of a controller, or a table"));
        // The key of a group, whose name may be left out.
        let rtt = of("traffic.rtt");
        assert_eq!((rtt.path.as_str(), &rtt), ("traffic.NAME.rtt", &of("traffic.NAME.rtt")));
        assert!(rtt.keys.iter().all(|(key, _)| key != "flows"), "{rtt:?}");
        assert_eq!(of("traffic.bulk").path, "traffic.bulk");
    }
}
