//! The tests of `kernel` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod circuits;
mod differential;
mod loading;
mod observing;
