//! The kernel as judge of the simulator: labs are drawn at random, run on both engines by the program `weir`, and judged
//! measure by measure. What differs is shrunk to a lab that a person can read.
//!
//! `weir-judge` is a program of its own, since it needs nothing of weir but its command line and its `summary.json`.
//!
//! In go a seed and a number of cells; out come docs/judge.md and the live runs in docs/judge/. `session.rs` is the file to open first.
#![forbid(unsafe_code)]

pub mod causes;
pub mod cell;
mod difference;
pub mod document;
pub mod draw;
pub mod id;
mod kept;
mod live;
pub mod measure;
pub mod session;
mod shrink;
pub mod tree;
pub mod trial;
pub mod verdict;
pub mod weir;
