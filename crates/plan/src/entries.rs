//! Sections of a lab file that other crates read: lists of tables, each table under a heading of its own (`[[expect]]`). The plan
//! keeps them as they are written, with their places.

use crate::diagnostic::{Fault, Origin};
use crate::tree::{Item, Node, Table};
use serde::Deserialize;

/// One table of such a section, as it is written.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a>(&'a Node);

impl<'a> Entry<'a> {
    /// Reads it as a type.
    ///
    /// # Errors
    /// The value that does not fit, with its place.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, Fault> {
        crate::read::read(self.0).map_err(|fault| fault.at(self.0.origin))
    }

    /// The place of the value at the end of this path, or of the innermost value around it.
    pub fn place(self, path: &[&str]) -> Origin {
        self.0.as_table().and_then(|table| table.locate(path)).unwrap_or(self.0.origin)
    }
}

/// The entries of a section; empty if there is no such section. `help` says how one is written.
pub(crate) fn entries<'a>(root: &'a Table, name: &str, help: &str) -> Result<Vec<Entry<'a>>, Fault> {
    let Some(section) = root.get(name) else { return Ok(Vec::new()) };
    match &section.item {
        Item::Array(entries) => Ok(entries.iter().map(Entry).collect()),
        _ => Err(Fault::new(
            section.origin,
            format!("`{name}` is {}, not a list of tables", section.what()),
            help,
        )),
    }
}
