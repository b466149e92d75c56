//! `[[plot]]`: two metrics of each run against each other, which the report draws where its cells are compared.

use crate::diagnostic::Fault;
use crate::entries::{self, Entry};
use crate::names::Names;
use crate::tree::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two metrics against each other: a point for each run, and for each cell the median of its repeats with its 95 % confidence
/// region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Title above the plot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"Goodput against the round-trip time")]
    pub title: Option<String>,
    /// The metric on the horizontal axis.
    pub x: Axis,
    /// The metric on the vertical axis.
    pub y: Axis,
    /// The level whose labels differ in colour; each choice on the other levels has a plot of its own.
    #[schemars(example = &"queue")]
    pub colour: String,
}

/// A metric, and what it is taken of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The metric, as `weir list metrics` names it.
    #[schemars(example = &"rtt_ms")]
    pub metric: String,
    /// A traffic group, a flow or a link; by default the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"bulk")]
    pub of: Option<String>,
    /// A window of `[run.windows]`; by default the whole run after its warm-up.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"start")]
    pub window: Option<String>,
}

/// `[[plot]]`, checked against the tree.
pub(crate) fn read(root: &Table, names: &Names<'_>) -> Result<Vec<Plot>, Vec<Fault>> {
    let help = "write [[plot]], and under it x, y and colour";
    let entries = entries::entries(root, "plot", help).map_err(|fault| vec![fault])?;
    let (mut plots, mut faults) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.read::<Plot>() {
            Ok(plot) => {
                faults.extend(plot_faults(&plot, entry, names));
                plots.push(plot);
            }
            Err(fault) => faults.push(fault.or_help(help)),
        }
    }
    if faults.is_empty() { Ok(plots) } else { Err(faults) }
}

fn plot_faults(plot: &Plot, entry: Entry<'_>, names: &Names<'_>) -> Vec<Fault> {
    let axes = [("x", &plot.x), ("y", &plot.y)];
    let axis = |(key, axis): (&str, &Axis)| {
        let places = [entry.place(&[key, "of"]), entry.place(&[key, "metric"])];
        let window = axis.window.as_ref().and_then(|name| names.window(name, entry.place(&[key, "in"])));
        names.metric(&axis.metric, axis.of.as_slice(), false, places).or(window)
    };
    axes.into_iter().filter_map(axis).chain(names.level(&plot.colour, entry.place(&["colour"]))).collect()
}
