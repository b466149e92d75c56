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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_results_and_those_that_run_come_first_and_no_more_rows_than_asked_for() {
        let row = |path: &str, ended: i64, bytes: u64| {
            let mut row = Row::default();
            (row.path, row.ended, row.bytes) = (path.into(), ended, Some(bytes));
            row
        };
        let mut rows = vec![row("old", 1, 3), row("new", 3, 1), row("pinned", 0, 2), row("running", 2, 0)];
        rows[2].pinned = true;
        rows[3].state = State::Running;
        rows[0].engines = vec!["sim", "live"];
        rows[1].engines = vec!["sim"];
        let rows: Vec<Arc<Row>> = rows.into_iter().map(Arc::new).collect();
        let paths =
            |query: &Query| query.rows(&rows).0.iter().map(|row| row.path.clone()).collect::<Vec<_>>();
        let ordered = |order| Query { order, ..Query::default() };
        assert_eq!(paths(&ordered(Order::Newest)), ["pinned", "running", "new", "old"]);
        assert_eq!(paths(&ordered(Order::Size)), ["pinned", "running", "old", "new"]);
        assert_eq!(paths(&Query { engine: "both".into(), ..Query::default() }), ["old"]);
        assert_eq!(paths(&Query { engine: "sim".into(), ..Query::default() }), ["new", "old"]);
        let many: Vec<Arc<Row>> = (0..1000).map(|n| Arc::new(row(&n.to_string(), n, 0))).collect();
        let (some, count) = Query::default().rows(&many);
        assert_eq!((some.len(), count), (MOST_ROWS, 1000));
        assert_eq!(Query { all: true, ..Query::default() }.rows(&many).0.len(), 1000);
    }
}
