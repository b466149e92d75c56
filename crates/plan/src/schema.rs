//! The JSON schema of lab files. It serves to find every unknown key and unknown name, wherever it stands, and to explain a key
//! whose value does not fit.

mod definitions;
mod help;
mod values;

use crate::diagnostic::{Fault, suggest};
use crate::file::File;
use crate::tree::{Entry, Item, Node, Table};
pub use help::{SettingHelp, describe_members, describe_parameters, describe_setting, describe_setting_in};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};
use weir_base::Prototype;

static SCHEMA: LazyLock<Value> = LazyLock::new(build);

fn build() -> Value {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<File>().to_value();
    definitions::gather(&mut schema);
    // A file may leave required keys to the profile that it extends, to `[vary]` or to the command line.
    for (name, table) in schema["$defs"].as_object_mut().into_iter().flatten() {
        if REGISTRIES.iter().all(|registry| registry.what != name) {
            forget_required(table);
        }
    }
    forget_required(&mut schema);
    schema["title"] = "weir lab file".into();
    schema["description"] =
        "A lab: a network, its traffic, what varies and what is expected (format 1).".into();
    schema
}

/// Makes all keys of a table of the schema optional.
fn forget_required(table: &mut Value) {
    if let Some(table) = table.as_object_mut() {
        table.remove("required");
    }
}

/// The JSON schema of a lab file, with the parameters of every controller, queue and workload.
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// A registry whose members a lab file names.
struct Registry {
    /// The kind of its members, which is also its name in the schema.
    what: &'static str,
    /// Its members' names, each with its aliases.
    names: &'static [(&'static str, &'static [&'static str])],
    /// The members that a program has added.
    added: fn() -> Vec<Arc<Prototype>>,
    /// Keys of a lab file beside `kind` and the parameters, which are read separately.
    beside: &'static [&'static str],
    check: fn(&str, Value) -> Result<(), String>,
}

impl Registry {
    /// Whether a key of a member's table is one of its parameters.
    fn is_parameter(&self, key: &str) -> bool {
        key != "kind" && !self.beside.contains(&key)
    }
}

const REGISTRIES: [Registry; 5] = [
    Registry {
        what: weir_control::Config::WHAT,
        names: weir_control::Config::NAMES,
        added: weir_control::Config::added,
        beside: &[],
        check: |name, parameters| weir_control::Config::with_parameters(name, parameters).map(drop),
    },
    Registry {
        what: weir_queue::Config::WHAT,
        names: weir_queue::Config::NAMES,
        added: weir_queue::Config::added,
        beside: &[],
        check: |name, parameters| weir_queue::Config::with_parameters(name, parameters).map(drop),
    },
    Registry {
        what: weir_workload::Config::WHAT,
        names: weir_workload::Config::NAMES,
        added: Vec::new,
        beside: &[],
        check: |name, parameters| weir_workload::Config::with_parameters(name, parameters).map(drop),
    },
    Registry {
        what: weir_station::Config::WHAT,
        names: weir_station::Config::NAMES,
        added: Vec::new,
        beside: <crate::station::StationPosition as crate::reader::Beside>::OWN,
        check: |name, parameters| weir_station::Config::with_parameters(name, parameters).map(drop),
    },
    Registry {
        what: weir_transport::Config::WHAT,
        names: weir_transport::Config::NAMES,
        added: Vec::new,
        beside: &[],
        check: |name, parameters| weir_transport::Config::with_parameters(name, parameters).map(drop),
    },
];

/// Everything in the lab that the schema does not know: keys, and members of registries with their parameters. To build the schema takes
/// longer than a short run, so only a lab with a fault is checked: reading the sections finds whether there is one, and this explains it.
pub(crate) fn check(root: &Table) -> Vec<Fault> {
    let mut faults = Vec::new();
    Root(&SCHEMA).check_table(&SCHEMA, root, "a lab file", &mut faults);
    faults
}

/// The documentation of the key at the end of this path; `None` if there is no such key.
pub(crate) fn describe(path: &[&str]) -> Option<String> {
    Some(description(Root(&SCHEMA).schema_of(path)?)?.replace('\n', " "))
}

fn description(schema: &Value) -> Option<&str> {
    schema["description"].as_str()
}

/// A schema of lab files, to whose definitions its parts refer.
#[derive(Clone, Copy)]
struct Root(&'static Value);

impl Root {
    /// The schema of the key at the end of this path; `None` if there is no such key.
    fn schema_of(self, path: &[&str]) -> Option<&'static Value> {
        path.iter().try_fold(self.0, |schema, key| {
            // The keys of a list's entries are named as if the list were one of them.
            let forms = self.forms(schema).into_iter();
            forms.flat_map(|form| [form].into_iter().chain(self.forms(&form["items"]))).find_map(|form| {
                let others = Some(&form["additionalProperties"]).filter(|value| value.is_object());
                form["properties"].get(key).or(others)
            })
        })
    }

    /// Follows a reference. Returns the name of its definition, empty if the schema is no reference, and the schema.
    fn resolve(self, schema: &'static Value) -> (&'static str, &'static Value) {
        match schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/")) {
            Some(name) => (name, &self.0["$defs"][name]),
            None => ("", schema),
        }
    }

    /// The alternatives that a schema allows.
    fn forms(self, schema: &'static Value) -> Vec<&'static Value> {
        let (_, schema) = self.resolve(schema);
        match schema["anyOf"].as_array() {
            Some(alternatives) => alternatives.iter().flat_map(|one| self.forms(one)).collect(),
            None => vec![schema],
        }
    }

    /// The registry whose members a schema allows.
    fn registry(self, schema: &'static Value) -> Option<&'static Registry> {
        let (name, schema) = self.resolve(schema);
        REGISTRIES.iter().find(|registry| registry.what == name).or_else(|| {
            schema["anyOf"]
                .as_array()
                .and_then(|alternatives| alternatives.iter().find_map(|one| self.registry(one)))
        })
    }

    fn check_node(self, schema: &'static Value, node: &Node, name: &str, faults: &mut Vec<Fault>) {
        let by_direction = |table: &Table| table.get("down").is_some() || table.get("up").is_some();
        let directed = node.as_table().is_some_and(by_direction);
        if let Some(registry) = self.registry(schema).filter(|_| !directed) {
            return self.check_member(registry, node, faults);
        }
        match &node.item {
            Item::Table(table) => {
                // Of several forms, take the one of the table's `kind`, or else the one that knows most of the keys; among equals, the
                // first.
                let kind = table.get("kind").and_then(Node::as_str);
                let known = |form: &&Value| {
                    let properties = &form["properties"];
                    let is_of_kind = kind.is_some_and(|kind| properties["kind"]["enum"][0] == kind);
                    (is_of_kind, table.keys().filter(|key| properties.get(key).is_some()).count())
                };
                let objects = self
                    .forms(schema)
                    .into_iter()
                    .filter(|form| form["type"] == "object" || form["properties"].is_object());
                if let Some(form) = objects.rev().max_by_key(known) {
                    self.check_table(form, table, name, faults);
                }
            }
            Item::Array(values) => {
                for form in self.forms(schema) {
                    if form["items"].is_object() {
                        values.iter().for_each(|value| self.check_node(&form["items"], value, name, faults));
                    }
                }
            }
            _ => {}
        }
    }

    fn check_table(self, form: &'static Value, table: &Table, name: &str, faults: &mut Vec<Fault>) {
        let properties = form["properties"].as_object();
        for (key, Entry { named, value }) in &table.0 {
            match (properties.and_then(|properties| properties.get(key)), &form["additionalProperties"]) {
                (Some(schema), _) => self.check_node(schema, value, &format!("`{key}`"), faults),
                (None, Value::Object(_)) => {
                    self.check_node(&form["additionalProperties"], value, &format!("`{key}`"), faults)
                }
                (None, Value::Bool(false)) => {
                    let help = suggest(key, properties.into_iter().flat_map(Map::keys).map(String::as_str));
                    faults.push(Fault::new(*named, format!("{name} has no key `{key}`"), help));
                }
                _ => {}
            }
        }
    }

    /// Checks a member of a registry, a name or a table with `kind`: its name, each parameter's name, and each value by itself.
    fn check_member(self, registry: &Registry, node: &Node, faults: &mut Vec<Fault>) {
        let what = registry.what;
        let empty = Table::default();
        let (kind, table) = match &node.item {
            Item::String(_) => (Some(node), &empty),
            Item::Table(table) => (table.get("kind"), table),
            _ => (None, &empty),
        };
        let added = (registry.added)();
        let added_names = || added.iter().map(|prototype| prototype.name.as_str());
        let names = || registry.names.iter().map(|(name, _)| *name).chain(added_names());
        let Some((kind, name)) = kind.and_then(|kind| Some((kind, kind.as_str()?))) else {
            let message = format!("expected the {what} by name, or a table with its `kind` and parameters");
            let help = format!("write for example \"{0}\" or {{ kind = \"{0}\" }}", registry.names[0].0);
            return faults.push(Fault::new(node.origin, message, help));
        };
        let is_named = |(known, aliases): &&(&str, &[&str])| *known == name || aliases.contains(&name);
        let own = registry.names.iter().find(is_named).map(|(name, _)| *name);
        let Some(name) = own.or_else(|| added_names().find(|added| *added == name)) else {
            let aliases = registry.names.iter().flat_map(|(_, aliases)| aliases.iter().copied());
            let help = match crate::diagnostic::nearest(name, names().chain(aliases)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("known names: {}", crate::diagnostic::listed(names())),
            };
            return faults.push(Fault::new(kind.origin, format!("unknown {what} \"{name}\""), help));
        };
        let is_parameter = |(key, _): &(&String, &Entry)| registry.is_parameter(key);
        let parameters = table.0.iter().filter(is_parameter);
        let parameters =
            parameters.map(|(key, Entry { value, .. })| (key.clone(), value.to_json())).collect();
        let whole = (registry.check)(name, Value::Object(parameters));
        if whole.is_ok() {
            return;
        }
        let before = faults.len();
        match own {
            Some(name) => self.check_parameters(registry, name, table, faults),
            None => {
                let prototype = added.iter().find(|prototype| prototype.name == name);
                prototype.into_iter().for_each(|prototype| check_added(registry, prototype, table, faults));
            }
        }
        if faults.len() == before
            && let Err(text) = whole
        {
            let mut fault = parameter_fault(registry, name, &text, &Value::Null);
            if let Some(prototype) = added.iter().find(|prototype| own.is_none() && prototype.name == name) {
                fault.help = Some(prototype.to_string());
            }
            faults.push(fault.at(node.origin));
        }
    }

    /// Checks each parameter of a registry's own member: its name, and its value by itself.
    fn check_parameters(self, registry: &Registry, name: &str, table: &Table, faults: &mut Vec<Fault>) {
        let what = registry.what;
        let properties = self.parameters_of(what, name);
        for (key, Entry { named, value }) in table.0.iter().filter(|(key, _)| registry.is_parameter(key)) {
            let Some((_, property)) = properties.clone().find(|(parameter, _)| *parameter == key) else {
                let help = suggest(key, properties.clone().map(|(parameter, _)| parameter.as_str()));
                faults.push(Fault::new(*named, format!("{what} \"{name}\" has no parameter `{key}`"), help));
                continue;
            };
            let alone = Map::from_iter([(key.clone(), value.to_json())]);
            let Err(text) = (registry.check)(name, Value::Object(alone)) else { continue };
            let before = faults.len();
            self.check_node(property, value, &format!("`{key}`"), faults);
            if faults.len() == before {
                faults.push(parameter_fault(registry, name, &text, property).at(value.origin));
            }
        }
    }

    /// The parameters of a registry's member, each with its schema.
    fn parameters_of(
        self,
        what: &str,
        member: &str,
    ) -> impl Iterator<Item = (&'static String, &'static Value)> + Clone {
        let schema: &'static Value = &self.0["$defs"][what];
        let form = schema["anyOf"].as_array().into_iter().flatten().find(|form| form["title"] == member);
        let properties = form.and_then(|form| form["properties"].as_object());
        let registry = REGISTRIES.iter().find(|registry| registry.what == what);
        let is_parameter =
            move |key: &str| registry.map_or(key != "kind", |registry| registry.is_parameter(key));
        properties.into_iter().flatten().filter(move |(key, _)| is_parameter(key))
    }
}

/// Checks the names of the parameters of a member that a program has added. Their values are for that program to judge.
fn check_added(registry: &Registry, prototype: &Prototype, table: &Table, faults: &mut Vec<Fault>) {
    for (key, Entry { named, .. }) in table.0.iter().filter(|(key, _)| registry.is_parameter(key)) {
        if !prototype.parameters.contains_key(key) {
            let help = suggest(key, prototype.parameters.keys().map(String::as_str));
            let message = format!("{} \"{}\" has no parameter `{key}`", registry.what, prototype.name);
            faults.push(Fault::new(*named, message, help));
        }
    }
}

fn parameter_fault(registry: &Registry, member: &str, text: &str, property: &Value) -> Fault {
    let text = text.strip_prefix(&format!("{} {member}: ", registry.what)).unwrap_or(text);
    let mut fault = <Fault as serde::de::Error>::custom(text);
    let described = property["description"].as_str().map(|text| text.replace('\n', " "));
    fault.help.get_or_insert(described.unwrap_or_else(|| format!("see `weir describe {member}`")));
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_holds_every_member_of_every_registry_with_its_parameters() {
        let members = [
            weir_control::Config::members(),
            weir_queue::Config::members(),
            weir_workload::Config::members(),
            weir_station::Config::members(),
            weir_transport::Config::members(),
        ];
        for (registry, members) in REGISTRIES.iter().zip(members) {
            let forms = schema()["$defs"][registry.what]["anyOf"].as_array().unwrap().clone();
            for member in members {
                let form = forms.iter().find(|form| form["title"] == member.name).unwrap();
                let parameters = member.parameters.get("properties").and_then(Value::as_object);
                for name in parameters.into_iter().flat_map(Map::keys) {
                    assert!(form["properties"].get(name).is_some(), "{} {name}", member.name);
                }
                assert_eq!(form["additionalProperties"], false);
            }
        }
    }

    #[test]
    fn the_keys_of_a_lab_file_are_those_of_its_schema() {
        let mut keys: Vec<&String> = SCHEMA["properties"].as_object().unwrap().keys().collect();
        let mut known = crate::file::KEYS;
        keys.sort();
        known.sort_unstable();
        assert_eq!(keys, known);
    }

    #[test]
    fn every_key_of_a_lab_is_described() {
        let mut without = Vec::new();
        let defs = SCHEMA["$defs"].as_object().unwrap().iter();
        let defs = defs.map(|(name, schema)| (name.as_str(), schema));
        for (name, schema) in defs.chain([("file", &*SCHEMA)]) {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                let reference = Root(&SCHEMA).resolve(property).1;
                if property["description"].is_null() && reference["description"].is_null() {
                    without.push(format!("{name}.{key}"));
                }
            }
        }
        assert_eq!(without, Vec::<String>::new());
    }

    #[test]
    fn a_key_is_described_wherever_it_stands() {
        assert_eq!(
            describe(&["traffic", "any", "flows"]).unwrap(),
            "How many flows; by default as many as the longest list of `rtt`, `start` and `to` has entries, or one. \
             Where flows arrive at random, how many sources they come from in equal parts."
        );
        assert!(describe(&["dumbbell", "schedule"]).unwrap().starts_with("Changes of rate, delay, loss"));
        assert!(describe(&["chain", "links", "any", "rate", "down"]).is_some());
        assert_eq!(describe(&["dumbbell", "nothing"]), None);
    }
}
