//! The tests of `transport` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod coordinated;
mod corpus;
mod rate_based;
mod sliq;
mod wire;
