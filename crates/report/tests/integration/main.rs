//! The tests of `report` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser;
mod chromium;
mod devtools;
mod folder;
mod received;
mod results;
mod sample;
mod tables;
mod trajectories;
