//! The tests of `transport` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod any_network;
mod clocks;
mod coordinated;
mod corpus;
mod dense_losses;
mod ecn;
mod own_reduction;
mod pair;
mod rate_based;
mod scripted_loss;
mod send_buffer;
mod sliq;
mod wire;
mod without_sack;
