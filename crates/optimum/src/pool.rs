//! The columns that were found so far. They stay of use when the deadline grows.

use std::collections::HashMap;

/// A path or a tree, by its links.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Column {
    /// What it serves: the index of a session, or of one receiver of a session.
    pub(crate) owner: u32,
    /// Its links; those of a path in order.
    pub(crate) links: Vec<u32>,
}

/// Different columns, and a rate for each that together the links can carry.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    columns: Vec<Column>,
    known: HashMap<Column, usize>,
    /// Bits per second; a column without an entry carries nothing.
    pub(crate) rates: Vec<f64>,
}

impl Pool {
    /// Adds a column; says whether it is new.
    pub(crate) fn add(&mut self, column: Column) -> bool {
        let count = self.columns.len();
        self.index(column) == count
    }

    /// The index of a column, which is new or was added before.
    pub(crate) fn index(&mut self, column: Column) -> usize {
        if let Some(&index) = self.known.get(&column) {
            return index;
        }
        self.known.insert(column.clone(), self.columns.len());
        self.columns.push(column);
        self.rates.push(0.0);
        self.columns.len() - 1
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns that carry something.
    pub(crate) fn carrying(&self) -> impl Iterator<Item = (&Column, f64)> {
        self.columns.iter().zip(self.rates.iter().copied()).filter(|&(_, rate)| rate > 0.0)
    }
}
