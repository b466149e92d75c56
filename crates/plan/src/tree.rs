//! A lab file as a tree of values, each of which remembers where it was written: through `extends`, `--set` and
//! `[vary]`, a wrong value can still be shown in its place.

use crate::diagnostic::{Fault, Origin, nearest};
use indexmap::IndexMap;
use serde_json::{Map, Number, Value};
use std::fmt::Write;
use toml::de::{DeTable, DeValue};

/// Lists of tables that other crates read ([`crate::entries`]).
pub(crate) const SECTIONS: [&str; 1] = ["expect"];

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) item: Item,
    pub(crate) origin: Origin,
}

/// A TOML value; a date is refused.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    String(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the text. Hashed, so that a table of many keys is read in linear time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(pub(crate) IndexMap<String, Entry>);

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Where the key was written.
    pub(crate) named: Origin,
    pub(crate) value: Node,
}

/// A path such as `traffic.cubic.cc`: each key, and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path(pub(crate) Vec<(String, Origin)>);

/// Reads a whole file. `file` is its number among the sources.
pub(crate) fn parse(text: &str, file: usize) -> Result<Table, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // Later errors are mostly consequences of the first.
        return Err(errors.iter().take(1).map(|error| syntax(error, file, text)).collect());
    }
    let mut faults = Vec::new();
    let table = convert_table(table.get_ref(), file, &mut faults);
    if faults.is_empty() { Ok(table) } else { Err(faults) }
}

/// Reads one value, as `--set` gives it: TOML, or else the text itself as a string.
pub(crate) fn parse_value(text: &str, file: usize, offset: usize) -> Result<Node, Vec<Fault>> {
    let whole = Origin::new(file, offset..offset + text.len());
    let Ok(value) = DeValue::parse(text) else {
        return Ok(Node { item: Item::String(text.into()), origin: whole });
    };
    let mut faults = Vec::new();
    let node = convert(&value, file, &mut faults);
    if faults.is_empty() { Ok(node.shifted(offset)) } else { Err(faults) }
}

fn syntax(error: &toml::de::Error, file: usize, text: &str) -> Fault {
    let span = error.span().unwrap_or(text.len()..text.len());
    let message = error.message().lines().next().unwrap_or("this is not TOML").to_string();
    let help = if message.contains("duplicate key") {
        "a name can be given once only: rename one of the two, or remove it"
    } else {
        "a lab file is TOML: `key = value` under `[section]`, and text, units included, in \"quotes\""
    };
    Fault::new(Origin::new(file, span), message, help)
}

fn convert_table(table: &DeTable<'_>, file: usize, faults: &mut Vec<Fault>) -> Table {
    let entry = |(key, value): (&toml::Spanned<_>, _)| {
        let name = AsRef::<str>::as_ref(key.get_ref()).to_string();
        (name, Entry { named: Origin::new(file, key.span()), value: convert(value, file, faults) })
    };
    Table(table.iter().map(entry).collect())
}

fn convert(value: &toml::Spanned<DeValue<'_>>, file: usize, faults: &mut Vec<Fault>) -> Node {
    let origin = Origin::new(file, value.span());
    let mut wrong = |message: &str, help: &str| {
        faults.push(Fault::new(origin, message, help));
        Item::Bool(false)
    };
    let item = match value.get_ref() {
        DeValue::String(text) => Item::String(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Item::Integer(number),
            Err(_) => wrong("this number is too large", "write a number of at most 18 digits"),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Item::Float(number),
            _ => wrong("this is not a finite number", "write a number such as 0.01"),
        },
        DeValue::Boolean(truth) => Item::Bool(*truth),
        DeValue::Datetime(_) => {
            wrong("a lab contains no dates", "times are lengths from the start, such as \"5 s\"")
        }
        DeValue::Array(values) => {
            Item::Array(values.iter().map(|value| convert(value, file, faults)).collect())
        }
        DeValue::Table(table) => Item::Table(convert_table(table, file, faults)),
    };
    Node { item, origin }
}

impl Node {
    /// The same, written `offset` bytes further on.
    fn shifted(mut self, offset: usize) -> Node {
        let shift = |origin: &mut Origin| {
            origin.start += offset;
            origin.end += offset;
        };
        shift(&mut self.origin);
        match &mut self.item {
            Item::Array(values) => {
                *values = std::mem::take(values).into_iter().map(|value| value.shifted(offset)).collect();
            }
            Item::Table(table) => {
                for (key, mut entry) in std::mem::take(&mut table.0) {
                    shift(&mut entry.named);
                    table.0.insert(key, Entry { value: entry.value.shifted(offset), ..entry });
                }
            }
            _ => {}
        }
        self
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.item {
            Item::String(text) => Some(text),
            _ => None,
        }
    }

    /// Its type in words, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self.item {
            Item::String(_) => "a text",
            Item::Integer(_) | Item::Float(_) => "a number",
            Item::Bool(_) => "true or false",
            Item::Array(_) => "a list",
            Item::Table(_) => "a table",
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match &self.item {
            Item::String(text) => Value::String(text.clone()),
            Item::Integer(number) => (*number).into(),
            Item::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
            Item::Bool(truth) => (*truth).into(),
            Item::Array(values) => values.iter().map(Node::to_json).collect(),
            Item::Table(table) => Value::Object(table.to_json()),
        }
    }

    /// Turns a plain value into a table, so that a path may lead into it: `"pie"` into `{ kind = "pie" }`, a value for both
    /// directions into `{ down = .., up = .. }`. `key` is the value's own key, `next` the key that is looked for in it. `None`
    /// if the value cannot be a table.
    fn open(&mut self, key: &str, next: &str) -> Option<&mut Table> {
        let one_way = matches!(next, "down" | "up");
        let closed = match &self.item {
            Item::Table(table) => {
                one_way && !table.0.is_empty() && table.get("down").is_none() && table.get("up").is_none()
            }
            Item::String(_) => true,
            Item::Integer(_) | Item::Float(_) => one_way || SHORTHANDS.contains(&key),
            _ => one_way,
        };
        if closed {
            let keys: &[&str] = match (one_way, DISTURBANCES.contains(&key)) {
                (false, _) if SHORTHANDS.contains(&key) => &[],
                (false, _) => &["kind"],
                (true, false) => &["down", "up"],
                (true, true) => &["down"],
            };
            let entry = |key: &&str| ((*key).into(), Entry { named: self.origin, value: self.clone() });
            self.item = Item::Table(Table(keys.iter().map(entry).collect()));
        }
        match &mut self.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// Disturbances of packets on a link: a plain value holds for the direction down alone. Plain values of other keys (rate,
/// delay, queue, overhead) hold for both directions.
const DISTURBANCES: [&str; 9] =
    ["loss", "largest", "jitter", "duplicate", "corrupt", "outage", "drop", "reorder", "schedule"];

/// Keys whose value may be plain or a table without a `kind`: a path into a plain value replaces it by a table.
const SHORTHANDS: [&str; 3] = ["rate", "loss", "jitter"];

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.shift_remove(key);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(key, entry)| (key.clone(), entry.value.to_json())).collect()
    }

    /// The place of the value at the end of a path, or of the innermost value around it; messages point there.
    pub(crate) fn locate(&self, path: &[&str]) -> Option<Origin> {
        let (first, rest) = path.split_first()?;
        let entry = self.entry(first)?;
        let inner = entry.value.as_table().and_then(|table| table.locate(rest));
        Some(inner.unwrap_or(entry.value.origin))
    }

    /// Lays `over` on top, as `extends` does: tables are joined key by key; a table that names a `kind`, the tree of
    /// `[vary]` and every other value are replaced; a chain takes a dumbbell's place, and the other way round.
    pub(crate) fn overlay(&mut self, over: Table) {
        if over.get("chain").is_some() {
            self.remove("dumbbell");
        }
        if over.get("dumbbell").is_some() {
            self.remove("chain");
        }
        for (key, entry) in over.0 {
            let old = self.0.get_mut(&key).filter(|_| key != "vary");
            match (old, entry.value.item) {
                (
                    Some(Entry { value: Node { item: Item::Table(below), .. }, named, .. }),
                    Item::Table(above),
                ) if above.get("kind").is_none() => {
                    *named = entry.named;
                    below.overlay(above);
                }
                (_, item) => {
                    let value = Node { item, origin: entry.value.origin };
                    self.0.insert(key, Entry { value, ..entry });
                }
            }
        }
    }

    /// Sets the value at the end of a path, and makes the tables on the way. Members of `traffic` and of `chain.links` are
    /// not made by settings inside them: a misspelt name would be a new group.
    pub(crate) fn set(&mut self, path: &Path, value: Node) -> Result<(), Fault> {
        let mut table = self;
        let mut walked: Vec<&str> = Vec::new();
        for (at, (key, origin)) in path.0.iter().enumerate() {
            let Some((next, _)) = path.0.get(at + 1) else {
                table.0.insert(key.clone(), Entry { named: *origin, value });
                return Ok(());
            };
            if table.get(key).is_none() {
                if walked == ["traffic"] || walked == ["chain", "links"] {
                    let what = if walked.len() == 1 { "traffic group" } else { "link" };
                    let help = match nearest(key, table.keys()) {
                        Some(name) => format!("did you mean `{name}`?"),
                        None => format!("known names: {}", crate::diagnostic::listed(table.keys())),
                    };
                    return Err(Fault::new(*origin, format!("there is no {what} `{key}`"), help));
                }
                let empty = Node { item: Item::Table(Table::default()), origin: *origin };
                table.0.insert(key.clone(), Entry { named: *origin, value: empty });
            }
            walked.push(key);
            // The key was found or made just above.
            let Some(entry) = table.0.get_mut(key) else { break };
            let what = entry.value.what();
            // The key before `down` or `up` decides what the value is.
            let what_key = match walked.as_slice() {
                [.., whose, "down" | "up"] => *whose,
                _ => key.as_str(),
            };
            let Some(inner) = entry.value.open(what_key, next) else {
                let message = format!("`{next}` cannot be set: `{}` is {what}", walked.join("."));
                return Err(Fault::new(*origin, message, "end the path there, and give a whole new value"));
            };
            table = inner;
        }
        Ok(())
    }
}

/// Longest path; the TOML parser has a limit of its own for what a file nests.
const DEEPEST: usize = 16;

impl Path {
    /// Reads a path that is a key of a table, in quotes if it has a dot.
    pub(crate) fn of_key(key: &str, named: Origin) -> Result<Path, Fault> {
        let quoted = usize::from(named.end - named.start > key.len());
        Path::parse(key, named.file, named.start + quoted)
    }

    /// Reads a dotted path whose keys may be quoted, as TOML has them.
    pub(crate) fn parse(text: &str, file: usize, offset: usize) -> Result<Path, Fault> {
        let mut keys = Vec::new();
        let mut rest = text;
        loop {
            let at = offset + text.len() - rest.len();
            let (key, length) = match rest.chars().next() {
                Some(quote @ ('"' | '\'')) => match rest[1..].find(quote) {
                    Some(end) => (&rest[1..=end], end + 2),
                    None => (rest, 0),
                },
                _ => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    (rest[..end].trim(), end)
                }
            };
            let tail = rest.get(length..).unwrap_or("");
            if length == 0 || key.is_empty() || !(tail.is_empty() || tail.starts_with('.')) {
                let whole = Origin::new(file, offset..offset + text.len());
                return Err(Fault::new(
                    whole,
                    format!("\"{text}\" is not a path"),
                    "write for example dumbbell.rate or traffic.NAME.cc",
                ));
            }
            if keys.len() == DEEPEST {
                let rest = Origin::new(file, at..offset + text.len());
                return Err(Fault::new(
                    rest,
                    "this path is longer than any setting's",
                    "write for example dumbbell.rate",
                ));
            }
            keys.push((key.to_string(), Origin::new(file, at..at + length)));
            match tail.strip_prefix('.') {
                Some(next) => rest = next,
                None => return Ok(Path(keys)),
            }
        }
    }

    pub(crate) fn starts_with(&self, other: &Path) -> bool {
        self.0.len() >= other.0.len() && self.0.iter().zip(&other.0).all(|((a, _), (b, _))| a == b)
    }

    /// Whether its keys are these.
    pub(crate) fn is(&self, keys: &[&str]) -> bool {
        self.0.len() == keys.len() && self.0.iter().zip(keys).all(|((a, _), b)| a == b)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", |(key, _)| key)
    }

    /// The last key.
    pub(crate) fn last(&self) -> &str {
        self.0.last().map_or("", |(key, _)| key)
    }

    /// The stretch of text that it was read from.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let (first, last) = (self.0.first()?.1, self.0.last()?.1);
        Some(Origin { end: last.end, ..first })
    }
}

/// Writes a lab as TOML that reads back to the same tree: sections, traffic groups, links and entries of lists under headings of
/// their own, everything below them in line, so that order is kept.
pub(crate) fn to_toml(root: &Table) -> String {
    let mut text = String::new();
    let (sections, values): (Vec<_>, Vec<_>) = root.0.iter().partition(|(key, entry)| {
        matches!(&entry.value.item, Item::Table(_)) || SECTIONS.contains(&key.as_str())
    });
    body(&mut text, values.iter().copied());
    for (key, entry) in sections {
        match (key.as_str(), &entry.value.item) {
            ("traffic", Item::Table(groups)) => members(&mut text, "traffic", groups),
            ("chain", Item::Table(chain)) => {
                let _ = writeln!(text, "\n[chain]");
                body(&mut text, chain.0.iter().filter(|(key, _)| *key != "links"));
                if let Some(links) = chain.get("links").and_then(Node::as_table) {
                    members(&mut text, "chain.links", links);
                }
            }
            (key, Item::Table(section)) => {
                let _ = writeln!(text, "\n[{}]", key_text(key));
                body(&mut text, section.0.iter());
            }
            (key, Item::Array(entries)) => {
                for entry in entries {
                    let _ = writeln!(text, "\n[[{key}]]");
                    body(&mut text, entry.as_table().into_iter().flat_map(|entry| entry.0.iter()));
                }
            }
            _ => {}
        }
    }
    text
}

fn members(text: &mut String, section: &str, members: &Table) {
    for (key, member) in &members.0 {
        let _ = writeln!(text, "\n[{section}.{}]", key_text(key));
        body(text, member.value.as_table().into_iter().flat_map(|member| member.0.iter()));
    }
}

fn body<'a>(text: &mut String, entries: impl Iterator<Item = (&'a String, &'a Entry)>) {
    for (key, entry) in entries {
        let _ = writeln!(text, "{} = {}", key_text(key), value_text(&entry.value));
    }
}

fn value_text(node: &Node) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match &node.item {
        Item::String(text) => quoted(text),
        Item::Integer(number) => number.to_string(),
        Item::Float(number) => format!("{number:?}"),
        Item::Bool(truth) => truth.to_string(),
        Item::Array(values) => format!("[{}]", joined(values.iter().map(value_text).collect())),
        Item::Table(table) if table.0.is_empty() => "{}".into(),
        Item::Table(table) => {
            let pair =
                |(key, entry): (&String, &Entry)| format!("{} = {}", key_text(key), value_text(&entry.value));
            format!("{{ {} }}", joined(table.0.iter().map(pair).collect()))
        }
    }
}

fn key_text(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { key.into() } else { quoted(key) }
}

/// A TOML basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
