//! A lab file as a whole, as it is written. Doc comments here and in the files of its sections are the user's documentation: they become
//! the JSON schema's descriptions and the help in diagnostics.

use crate::bottleneck::Bottleneck;
use crate::host::Nic;
use crate::overlay;
use crate::plot::Plot;
use crate::shape::{Chain, Graph, ParkingLot, Star};
use crate::station;
use crate::timing::Timing;
use crate::traffic::Traffic;
use crate::words::Words;
use schemars::JsonSchema;
use serde_json::json;
use std::collections::BTreeMap;

/// A lab file. Only its schema is used: the sections are read one by one, so that all their errors are found.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub(crate) struct File {
    /// Version of the lab format: 1.
    #[schemars(extend("const" = 1))]
    format: u32,
    /// The lab's name: letters, digits, `-` and `_`. By default the file's name.
    #[schemars(example = &"first")]
    name: Option<String>,
    /// What the lab shows, in a sentence.
    #[schemars(example = "PIE beside tail drop")]
    title: Option<String>,
    /// Another lab file, relative to this one, whose settings hold unless this file has its own are given here. Tables are
    /// joined key by key; a table with a `kind`, the whole of `[vary]`, lists and plain values are replaced.
    #[schemars(example = "base.toml")]
    extends: Option<String>,
    /// How each run goes.
    run: Option<Timing>,
    /// One bottleneck between two routers, with all hosts around it.
    dumbbell: Option<Bottleneck>,
    /// Several links in a row.
    chain: Option<Chain>,
    /// Several equal links in a row, with traffic over all of them and traffic over one.
    parking_lot: Option<ParkingLot>,
    /// Equal links around a hub.
    star: Option<Star>,
    /// Any network: routers, hosts, and links between them.
    graph: Option<Graph>,
    /// Machines at routers by name: policers, middleboxes, responders.
    #[serde(default)]
    stations: BTreeMap<String, station::Section>,
    /// Nodes of the backpressure overlay, which sends over every path at once.
    overlay: Option<overlay::Section>,
    /// Traffic groups by name, each with its own pair of hosts unless they share a sender.
    traffic: BTreeMap<String, Traffic>,
    /// Network cards, by the names of the hosts that groups send from (`host`).
    nic: Option<BTreeMap<String, Nic>>,
    /// What varies. A path and a list of values (`"dumbbell.queue" = ["tail-drop", "pie"]`), or a name and a table of
    /// labels, each with several settings at once (`mix = { "reno v cubic" = { "traffic.a.cc" = "reno" } }`). The product
    /// of all levels is the tree of runs; their order is the order of the report.
    #[schemars(example = json!({ "dumbbell.queue": ["tail-drop", "pie"] }))]
    vary: Option<BTreeMap<String, Level>>,
    /// The part of the tree that is run: each level named here keeps only these labels, one or a list. Claims about cells with
    /// other labels are not judged.
    #[schemars(example = json!({ "queue": "pie" }))]
    only: Option<BTreeMap<String, Words>>,
    /// Claims about the results, which `weir reproduce` judges.
    #[schemars(example = json!([{ "metric": "utilisation_percent", "at_least": 90 }]))]
    expect: Option<Vec<BTreeMap<String, serde_json::Value>>>,
    /// Two metrics against each other, drawn in the report.
    plot: Option<Vec<Plot>>,
    /// Settings, by their paths, that apply only with `weir reproduce --full`: `"run.repeats" = 10`, `"vary.mix" = { .. }`.
    #[schemars(example = json!({ "run.repeats": 10 }))]
    full: Option<BTreeMap<String, serde_json::Value>>,
    /// Settings, by their paths, that apply only with `weir reproduce --on live`, such as `"only.rate" = "10 Mbit/s"`; if any lab of
    /// a study has this section, `--on live` runs only the labs that have it. A lab does not inherit it by `extends`.
    #[schemars(example = json!({ "only.rate": "10 Mbit/s" }))]
    live: Option<BTreeMap<String, serde_json::Value>>,
}

/// The keys of [`File`].
pub(crate) const KEYS: [&str; 20] = [
    "format",
    "name",
    "title",
    "extends",
    "run",
    "dumbbell",
    "chain",
    "parking_lot",
    "star",
    "graph",
    "stations",
    "overlay",
    "traffic",
    "nic",
    "vary",
    "only",
    "expect",
    "plot",
    "full",
    "live",
];

/// A level of the tree.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(crate) enum Level {
    /// Values of the setting whose path is the level's name.
    Values(Vec<serde_json::Value>),
    /// Labels, each with the settings that it stands for.
    Labels(BTreeMap<String, BTreeMap<String, serde_json::Value>>),
}
