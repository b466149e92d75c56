//! The deterministic simulator: virtual time, packet by packet, one thread per run. Hosts with their transports and
//! applications stand at the edge of a [`weir_fabric::Fabric`]; one seed gives one result, to the byte.
//!
//! In goes a run; out come its records. `world.rs` is the file to open first.
#![forbid(unsafe_code)]

mod flow;
mod packet;
mod world;

use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_plan::Run;
use weir_record::Recorder;

/// The simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn runs_alone(&self) -> bool {
        false
    }

    fn check(&self, run: &Run) -> Result<(), EngineError> {
        world::check(run)
    }

    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        world::World::new(run, recorder).run(watch)
    }
}
