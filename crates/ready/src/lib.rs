//! Ready tests: a question about a line, answered by a lab and a verdict of two sentences with numbers.
//!
//! A [`Test`] and the user's [`Options`] go in; a lab comes out ([`Test::lab`]), which the engines run as any other. Its summary goes in,
//! and a [`Verdict`] comes out. Open `test.rs` first; each test is a file beside it, its lab is in `labs/tests`, and a line in [`TESTS`]
//! registers it.
#![forbid(unsafe_code)]

mod bufferbloat;
mod call;
mod cells;
mod convergence;
mod fairness;
mod handover;
mod l4s;
mod loss;
mod options;
mod picture;
mod rrul;
mod shaper;
mod short_flows;
mod test;

pub use cells::{Cell, Numbers};
pub use options::{Options, QueueChoice, read_rates, read_time};
pub use picture::Picture;
pub use test::{Test, Verdict};

/// All tests, in the order in which they are listed.
pub const TESTS: [Test; 10] = [
    bufferbloat::TEST,
    rrul::TEST,
    fairness::TEST,
    convergence::TEST,
    short_flows::TEST,
    call::TEST,
    handover::TEST,
    l4s::TEST,
    loss::TEST,
    shaper::TEST,
];

/// The test of this name.
///
/// # Errors
/// There is no test of this name; the text says which is meant, or which there are.
pub fn find(name: &str) -> Result<&'static Test, String> {
    const ALL: &[Test] = &TESTS;
    let names = ALL.iter().map(|test| test.name);
    ALL.iter().find(|test| test.name == name).ok_or_else(|| weir_plan::suggest(name, names))
}
