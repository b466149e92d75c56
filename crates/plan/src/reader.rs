//! Reads the sections of a cell, and gathers what is wrong with them.

use crate::diagnostic::{Fault, Origin};
use crate::read::read;
use crate::traces::Traces;
use crate::tree::{Entry, Item, Node, Table};
use schemars::JsonSchema;
use serde::Deserialize;

/// Longest name of a group, link, host, station, window or lab.
const LONGEST_NAME: usize = 40;

/// A section with other settings beside its own: those of a link, or of a station.
pub(crate) trait Beside: for<'de> Deserialize<'de> + JsonSchema {
    /// Its own keys.
    const OWN: &'static [&'static str];
}

/// The settings of a cell, and what was found wrong with them.
pub(crate) struct Reader<'a> {
    pub(crate) root: &'a Table,
    pub(crate) faults: Vec<Fault>,
    /// Whether the faults that the schema finds are among them.
    pub(crate) schema: bool,
    /// The place to point at if there is no other: the lab's first key.
    pub(crate) home: Origin,
    pub(crate) traces: &'a Traces,
    /// The documentation of the key at the end of a path.
    pub(crate) describe: fn(&[&str]) -> Option<String>,
}

impl Reader<'_> {
    /// Reports a problem with the value at this path.
    pub(crate) fn wrong(&mut self, path: &[&str], message: impl Into<String>, help: impl Into<String>) {
        let origin = self.root.locate(path).unwrap_or(self.home);
        self.faults.push(Fault::new(origin, message, help));
    }

    /// Reads the section at this path. `None` when it is not there, or wrong.
    pub(crate) fn section<T: for<'de> Deserialize<'de>>(&mut self, path: &[&str]) -> Option<T> {
        let node = self.node(path)?;
        match read(node) {
            Ok(section) => Some(section),
            Err(fault) => {
                let node = node.clone();
                self.fault(&node, fault, path);
                None
            }
        }
    }

    /// Reads a section that has settings of another type beside its own, as two. `None` when one of them is not there, or wrong.
    pub(crate) fn both<T: Beside, U: for<'de> Deserialize<'de>>(&mut self, path: &[&str]) -> Option<(T, U)> {
        let (own, other) = self.beside::<T>(path)?;
        let read = read::<U>(&other);
        if let Err(fault) = read {
            self.fault(&other, fault, path);
            return None;
        }
        own.zip(read.ok())
    }

    /// Reads a section's own settings, and returns the settings beside them unread. `None` if the section is missing or is not
    /// a table.
    pub(crate) fn beside<T: Beside>(&mut self, path: &[&str]) -> Option<(Option<T>, Node)> {
        let node = self.node(path)?;
        let Some(table) = node.as_table() else {
            // Not a table: reading it as one says so.
            return self.section::<T>(path).and(None);
        };
        let part = |own: bool| {
            let entries = table.0.iter().filter(|(key, _)| T::OWN.contains(&key.as_str()) == own);
            Node {
                item: Item::Table(Table(entries.map(|(key, entry)| (key.clone(), entry.clone())).collect())),
                origin: node.origin,
            }
        };
        let (own, rest) = (part(true), part(false));
        match read::<T>(&own) {
            Ok(read) => Some((Some(read), rest)),
            Err(fault) => {
                self.fault(&own, fault, path);
                Some((None, rest))
            }
        }
    }

    pub(crate) fn node(&self, path: &[&str]) -> Option<&Node> {
        let (last, tables) = path.split_last()?;
        tables.iter().try_fold(self.root, |table, key| table.get(key)?.as_table())?.get(last)
    }

    pub(crate) fn has(&self, path: &[&str]) -> bool {
        self.node(path).is_some()
    }

    /// Reports a fault in this section, and adds the documentation of its key unless the fault has a suggestion.
    fn fault(&mut self, section: &Node, fault: Fault, path: &[&str]) {
        if fault.help.is_some() {
            return self.faults.push(fault.at(section.origin));
        }
        // Down to the value that the fault points at, along the tables around it.
        let mut keys = path.to_vec();
        let mut node = section;
        while let Some(table) = node.as_table() {
            let around = |(_, entry): &(&String, &Entry)| {
                fault.origin.is_some_and(|origin| entry.value.origin.contains(origin))
            };
            let Some((key, entry)) = table.0.iter().find(around) else { break };
            keys.push(key);
            node = &entry.value;
        }
        keys.extend(fault.missing);
        let help = match (self.describe)(&keys) {
            Some(described) => format!("{}: {described}", keys.join(".")),
            None => "`weir schema` and `weir new` show what a lab file can contain".into(),
        };
        self.faults.push(fault.or_help(&help).at(section.origin));
    }

    /// Checks a name that is a key of the lab, the last of `path`.
    pub(crate) fn name(&mut self, what: &str, path: &[&str]) {
        let name = path.last().copied().unwrap_or("");
        if let Some((message, help)) = bad_name(what, name) {
            let table =
                path[..path.len() - 1].iter().try_fold(self.root, |table, key| table.get(key)?.as_table());
            let origin = table.and_then(|table| table.entry(name)).map_or(self.home, |entry| entry.named);
            self.faults.push(Fault::new(origin, message, help));
        }
    }
}

/// Why a name is not allowed, and a suggestion; `None` if it is allowed. Names become parts of file names, hosts and paths.
pub(crate) fn bad_name(what: &str, name: &str) -> Option<(String, String)> {
    let fine = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (!fine || !begins || name.len() > LONGEST_NAME).then(|| {
        let help =
            format!("write up to {LONGEST_NAME} letters, digits, - and _, the first a letter or digit");
        (format!("\"{name}\" cannot be the name of a {what}"), help)
    })
}
