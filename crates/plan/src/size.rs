//! Limits on the size of a lab: far above any use, and low enough for a lab to be read and checked in seconds.

use crate::diagnostic::{Fault, Origin};
use crate::tree::{Item, Node, Table};
use crate::vary::Level;

/// Largest lab file, in bytes; each that it extends may be as large.
pub(crate) const LARGEST_FILE: u64 = 4 << 20;
/// Most labs in a row that extend each other.
pub(crate) const MOST_EXTENDED: usize = 32;
/// Most traffic groups.
const MOST_GROUPS: usize = 10_000;
/// Most entries of a section that another crate reads.
const MOST_ENTRIES: usize = 10_000;
/// Most plots.
const MOST_PLOTS: usize = 1000;
/// Most levels of the tree.
const MOST_LEVELS: usize = 32;
/// Most cells of a tree, repeats counted.
pub(crate) const MOST_RUNS: u64 = 100_000;
/// Longest name of a run: folders are named after runs, with the engine before, and file systems take 255 bytes.
const LONGEST_ID: usize = 200;
/// Most groups and links of all cells together: each cell holds its own copies.
const MOST_MEMBERS: u64 = 2_000_000;
/// Most flows of all runs together.
pub(crate) const MOST_FLOWS: u64 = 20_000_000;

/// Faults of sections that have too many members.
pub(crate) fn of_text(root: &Table) -> Vec<Fault> {
    let count = |key: &str| match root.get(key).map(|node| &node.item) {
        Some(Item::Table(table)) => table.0.len(),
        Some(Item::Array(values)) => values.len(),
        _ => 0,
    };
    let bounds = [
        ("traffic", MOST_GROUPS, "traffic groups"),
        ("expect", MOST_ENTRIES, "claims"),
        ("plot", MOST_PLOTS, "plots"),
        ("vary", MOST_LEVELS, "levels"),
    ];
    let too_many = bounds.into_iter().filter(|(key, most, _)| count(key) > *most);
    let fault = |(key, most, what): (&str, usize, &str)| {
        let place = root.entry(key)?.named;
        Some(Fault::new(place, format!("the lab has {} {what}", count(key)), format!("write at most {most}")))
    };
    too_many.filter_map(fault).collect()
}

/// The fault of a tree that is too large; `None` if it is not. `home` is shown if there is no better place.
pub(crate) fn of_tree(levels: &[Level], root: &Table, home: Origin) -> Option<Fault> {
    let place = root.entry("vary").map_or(home, |entry| entry.named);
    let cells =
        levels.iter().try_fold(1u64, |product, level| product.checked_mul(level.choices.len() as u64));
    let Some(cells) = cells.filter(|cells| *cells <= MOST_RUNS) else {
        let count = cells.map_or("more than can be counted".into(), |cells| cells.to_string());
        let help = format!("remove values or levels: a tree may have {MOST_RUNS} runs");
        return Some(Fault::new(place, format!("the tree has {count} cells"), help));
    };
    let part = |level: &Level| level.choices.iter().map(|choice| choice.slug.len()).max().unwrap_or(0);
    let id = crate::vary::id(levels.iter().map(|_| ""), crate::limits::MOST_REPEATS).len()
        + levels.iter().map(part).sum::<usize>();
    if id > LONGEST_ID {
        let message = format!("the names of runs, made from their labels, have up to {id} letters");
        let help = format!("shorten labels, or join levels, until names have at most {LONGEST_ID}");
        return Some(Fault::new(place, message, help));
    }
    let members = members(root);
    if cells.saturating_mul(members) <= MOST_MEMBERS {
        return None;
    }
    let message = format!("the tree has {cells} cells, each with {members} traffic groups and links");
    let help = format!("a tree may have {MOST_MEMBERS} of them in all: remove values, groups or links");
    Some(Fault::new(place, message, help))
}

/// How many groups and links a cell has, as far as the text spells them out.
fn members(root: &Table) -> u64 {
    let table = |path: &[&str]| {
        let (last, tables) = path.split_last()?;
        tables.iter().try_fold(root, |table, key| table.get(key)?.as_table())?.get(last)?.as_table()
    };
    let number = |section: &str, key: &str| match table(&[section])?.get(key)?.item {
        Item::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let named = [&["traffic"][..], &["chain", "links"], &["graph", "links"]];
    let named: u64 = named.iter().filter_map(|path| Some(table(path)?.0.len() as u64)).sum();
    let hosts = |nic: &Node| match nic.as_table()?.get("hosts")?.item {
        Item::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let cards = table(&["nic"])
        .map(|nics| nics.0.values().filter_map(|entry| hosts(&entry.value)).fold(0, u64::saturating_add));
    let equal = [number("parking_lot", "bottlenecks"), number("star", "arms"), cards];
    equal.into_iter().flatten().fold(named, u64::saturating_add)
}
