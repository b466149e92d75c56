//! From a lab file to its tree of runs: the schema, units in strings, `extends`, `[vary]`, validation and diagnostics. In goes a text; out come
//! fully spelled-out runs, or what is wrong with its place. `lab.rs` is the file to open first.
//!
//! ```
//! let text = "format = 1\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[traffic.bulk]\ncc = \"cubic\"\n";
//! let lab = weir_plan::Lab::from_str(text, "first.toml", std::path::Path::new("."), &[]).unwrap();
//! assert_eq!(lab.runs()[0].id, "r1");
//! ```
#![forbid(unsafe_code)]

pub mod address;
mod admit;
mod bottleneck;
mod carriage;
mod cell;
mod change;
mod changes;
mod commands;
mod connection;
mod diagnostic;
mod drawing;
mod each;
mod entries;
mod file;
mod graph;
mod host;
mod lab;
mod limits;
mod link;
mod names;
mod network;
mod one_line;
mod only;
mod ordinary;
mod overlay;
mod per_direction;
mod plot;
mod probability;
mod prototypes;
mod read;
mod reader;
mod reading;
mod received;
mod route;
mod run;
mod schema;
mod shape;
mod size;
mod station;
mod template;
mod timing;
mod traces;
mod traffic;
mod tree;
mod vary;
mod warnings;
mod window;
mod words;
mod wrapped;

pub use change::change;
pub use changes::changes;
pub use commands::Commanded;
pub use diagnostic::{Diagnostics, Fault, Origin, Problem, suggest};

pub use entries::Entry;
pub use lab::{Form, Lab, Tree};
pub use names::{Names, level_named, short_level};
pub use plot::{Axis, Plot};
pub use prototypes::{Named, know};
pub use run::{Carriage, Flow, Group, Ip, Pair, Run, Station, Window};
pub use schema::{
    SettingHelp, describe_members, describe_parameters, describe_setting, describe_setting_in, schema,
};
pub use template::template;
pub use vary::leading_number;
pub use weir_endpoint::{Buffer, Settings};
/// A run's network, in the words of the fabric that is built from it.
pub use weir_fabric::{Card, Change, Link, Network, Node, Outage, Playback, Reorder, Route, Shaper};
pub use weir_record::Param;

pub use words::Words;
pub use wrapped::{Behind, WRAPPED, Wrapping};
