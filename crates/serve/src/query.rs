//! What somebody looks for in the list: words, filters and an order.

use crate::row::{Row, State};
use serde::Deserialize;
use std::cmp::Reverse;
use std::sync::Arc;

/// Most rows of an answer, unless all are asked for.
const MOST_ROWS: usize = 200;

/// What somebody looks for. Everything that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Query {
    /// Words that the row has, in any order, in small or capital letters.
    find: String,
    /// The engine that ran it: `sim`, `live` or `both`; any if empty.
    engine: String,
    /// Only results with invalid runs.
    invalid: bool,
    /// Only results that somebody has pinned.
    pinned: bool,
    /// The order after the pinned ones and those that run.
    order: Order,
    /// Whether all rows are wanted, however many.
    pub(crate) all: bool,
    /// Whether the list is to be up to date, and not as it was last read.
    pub(crate) fresh: bool,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// The newest first.
    #[default]
    Newest,
    /// By lab and path.
    Name,
    /// The largest first.
    Size,
}

impl Query {
    /// The rows that are asked for, in their order, and how many there are, of which only a part may be returned.
    pub(crate) fn rows<'a>(&self, rows: &'a [Arc<Row>]) -> (Vec<&'a Row>, usize) {
        let small = self.find.to_lowercase();
        let words: Vec<&str> = small.split_whitespace().collect();
        let mut found: Vec<&Row> = rows
            .iter()
            .map(|row| &**row)
            .filter(|row| self.takes(row) && words.iter().all(|word| row.has(word)))
            .collect();
        let first = |row: &Row| (Reverse(row.pinned), Reverse(row.state == State::Running));
        match self.order {
            Order::Newest => found.sort_by_key(|row| (first(row), Reverse(row.ended))),
            Order::Name => found.sort_by_key(|row| (first(row), row.lab.as_str(), row.path.as_str())),
            Order::Size => found.sort_by_key(|row| (first(row), Reverse(row.bytes))),
        }
        let count = found.len();
        if !self.all {
            found.truncate(MOST_ROWS);
        }
        (found, count)
    }

    fn takes(&self, row: &Row) -> bool {
        let engine = match self.engine.as_str() {
            "" => true,
            "both" => row.engines.len() > 1,
            engine => row.engines.contains(&engine),
        };
        engine && (!self.invalid || row.invalid > 0) && (!self.pinned || row.pinned)
    }
}
