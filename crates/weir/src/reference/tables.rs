//! The tables of records and of exports, with their columns.

use super::{Page, prose};
use crate::names::dictionary;
use std::fmt::Write;
use weir_record::{Table, Tidy};

pub(super) fn page() -> Page {
    let records = Table::ALL.iter().map(|table| ("records", table.name()));
    let tidy = Tidy::ALL.iter().map(|table| ("tidy", table.name()));
    let mut text = String::new();
    for (kind, table) in records.chain(tidy) {
        let name = format!("{kind}.{table}");
        let columns = dictionary(&name).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "## `{name}`\n");
        for (column, what) in columns {
            let _ = writeln!(text, "- `{column}`: {}", prose(&what));
        }
        text.push('\n');
    }
    Page {
        file: "tables.md".into(),
        title: "Tables".into(),
        about: "The columns of a run's records (`runs/*/NAME.parquet`, `records.NAME`) and of the tables that `weir export` writes (`tidy.NAME`)."
            .into(),
        text,
    }
}
