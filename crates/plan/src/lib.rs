//! From a lab file to its tree of runs: the schema, units in strings, `extends`, `[vary]`, validation and diagnostics.
#![forbid(unsafe_code)]

mod run;

pub use run::{Buffer, Change, Flow, Group, Hold, Link, Network, Node, Param, Run, Tcp};
