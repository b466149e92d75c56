//! A run that is over, as an engine: it gives the records of the run again, for a result folder.

use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_plan::Run;
use weir_record::{Recorder, Records};

/// The records of a run on real Linux, and how it ended.
#[derive(Debug)]
pub struct Replay {
    /// The records.
    pub records: Records,
    /// How it ended.
    pub outcome: Outcome,
}

impl Engine for Replay {
    fn name(&self) -> &'static str {
        "live"
    }
    fn runs_alone(&self) -> bool {
        false
    }
    fn check(&self, _: &Run) -> Result<(), EngineError> {
        Ok(())
    }
    fn run(&self, _: &Run, recorder: &mut dyn Recorder, _: &Watch<'_>) -> Result<Outcome, EngineError> {
        self.records.replay(recorder);
        Ok(self.outcome.clone())
    }
}
