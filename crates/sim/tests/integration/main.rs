//! The tests of `sim` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod added;
mod applications;
mod bounds;
mod captures;
mod clocks;
mod controllers;
mod coordination;
mod dissector;
mod echoes;
mod endings;
mod hosts;
mod links;
mod overlay;
mod overlay_dissector;
mod random;
mod retransmissions;
mod simulate;
mod stations;
mod truths;
