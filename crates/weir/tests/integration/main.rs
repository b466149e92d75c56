//! The tests of `weir` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod analyze;
mod ap;
mod browser;
mod capacity;
mod circuit;
mod circuit_send;
mod circuit_up;
mod cli;
mod daemons;
mod emulation;
mod hostile;
mod hosts;
mod kernel;
mod kills;
mod layout;
mod manual;
mod observe;
mod optimum;
mod overlay;
mod packages;
mod place;
mod plots;
mod questions;
mod ready;
mod results;
mod serve;
mod sliq;
mod sliq_transfer;
mod transfers;
mod wrap;
