//! The tests of `plan` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken;
mod corpus;
mod graph;
mod hostile;
mod labs;
mod links;
mod never_panics;
mod pairs;
mod refusals;
mod stations;
mod tree;
mod warnings;
