//! `[[plot]]`: two metrics of each run against each other, which the report draws where its cells are compared.

use crate::claims::Known;
use crate::diagnostic::Fault;
use crate::tree::{Item, Node, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two metrics against each other: a point for each run, for each cell the median of its repeats and the region in which
/// that lies with 95 % confidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What stands above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What goes along.
    pub x: Axis,
    /// What goes up.
    pub y: Axis,
    /// The level whose labels have a colour each; every choice on the others has a plot of its own.
    pub colour: String,
}

/// A metric, and whose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The metric, as `weir list metrics` names it.
    pub metric: String,
    /// A traffic group, a flow or a link; the run's own if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// In which of the windows that `[run.windows]` names; in the whole run after its warm-up if none.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// `[[plot]]`, checked against the tree.
pub(crate) fn read(root: &Table, known: &Known<'_>) -> Result<Vec<Plot>, Vec<Fault>> {
    let Some(plots) = root.get("plot") else { return Ok(Vec::new()) };
    let help = "write [[plot]], and under it x, y and colour";
    let Item::Array(entries) = &plots.item else {
        let message = format!("`plot` is {}, not a list of plots", plots.what());
        return Err(vec![Fault::new(plots.origin, message, help)]);
    };
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for entry in entries {
        match crate::read::read::<Plot>(entry) {
            Ok(plot) => {
                faults.extend(plot_faults(&plot, entry, known));
                read.push(plot);
            }
            Err(mut fault) => {
                fault.help.get_or_insert(help.into());
                faults.push(fault.at(entry.origin));
            }
        }
    }
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

fn plot_faults(plot: &Plot, entry: &Node, known: &Known<'_>) -> Vec<Fault> {
    let place = |path: &[&str]| entry.as_table().and_then(|table| table.locate(path)).unwrap_or(entry.origin);
    let axes = [("x", &plot.x), ("y", &plot.y)];
    let axis = |(key, axis): (&str, &Axis)| {
        let places = [place(&[key, "of"]), place(&[key, "metric"])];
        let window = axis.window.as_ref().and_then(|name| known.window(name, place(&[key, "in"])));
        known.metric(&axis.metric, axis.of.as_slice(), false, places).or(window)
    };
    axes.into_iter().filter_map(axis).chain(known.level(&plot.colour, place(&["colour"]))).collect()
}
