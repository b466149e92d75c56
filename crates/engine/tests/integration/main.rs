//! The tests of `engine` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod corpus;
mod jobs;
mod made_up;
mod parts;
mod premises;
mod results;
