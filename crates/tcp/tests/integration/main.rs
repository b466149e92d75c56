//! The tests of `tcp` from outside, one binary: linking is the longest part of building a test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod any_network;
mod clocks;
mod dense_losses;
mod ecn;
mod own_reduction;
mod pair;
mod scripted_loss;
mod send_buffer;
mod without_sack;
