//! Shared by the tests of whole runs: simulates a lab, and reads its summary.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_engine::{Engine, Outcome, ResultFolder, Results, Watch};
use weir_plan::Lab;
use weir_record::{Distribution, ParquetRecorder, RunSummary, Value};
use weir_sim::Simulator;

/// Runs a lab and gives the summary of each run.
pub(crate) fn simulate(lab: &str) -> Vec<RunSummary> {
    let folder = tempfile::tempdir().unwrap();
    simulate_into(lab, folder.path())
}

/// Runs a lab into a folder, and gives the summary of each run.
pub(crate) fn simulate_into(lab: &str, folder: &Path) -> Vec<RunSummary> {
    simulate_to(&Lab::from_str(&format!("format = 1\n{lab}"), "truth.toml", folder, &[]).unwrap(), folder)
}

/// Runs a lab that was read, and gives the summary of each run.
pub(crate) fn simulate_lab(lab: &Lab) -> Vec<RunSummary> {
    simulate_to(lab, tempfile::tempdir().unwrap().path())
}

fn simulate_to(lab: &Lab, folder: &Path) -> Vec<RunSummary> {
    let out = ResultFolder::open(&folder.join("out"), lab.source(), "test").unwrap();
    for run in lab.runs() {
        let mut recorder = ParquetRecorder::create(&out.begin("sim", &run).unwrap()).unwrap();
        let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
        let outcome: Outcome = Simulator.run(&run, &mut recorder, &watch).unwrap();
        assert!(outcome.audit.balances(), "{:?}", outcome.audit);
        recorder.finish().unwrap();
        out.commit(&out.describe("sim", run.into(), outcome)).unwrap();
    }
    let runs = Results::open(out.path()).unwrap().summary(None).unwrap().runs;
    // A metric outside its domain makes a run invalid.
    runs.iter().for_each(|run| assert!(run.invalid.is_empty(), "{}: {:?}", run.id, run.invalid));
    runs
}

/// The value of a metric that is a number.
pub(crate) fn number(value: Value) -> f64 {
    match value {
        Value::Number(number) => number,
        Value::Count(count) => count as f64,
        other => panic!("not a number: {other:?}"),
    }
}

/// The value of a metric that is a distribution.
pub(crate) fn distribution(value: Value) -> Distribution {
    match value {
        Value::Distribution(distribution) => distribution,
        other => panic!("not a distribution: {other:?}"),
    }
}
