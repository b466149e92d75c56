//! The tests of this crate from outside, one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod corpus;
mod sliq;
