//! What a large tree costs beside its cells: each cell of `benches/five-thousand.toml` alone on one core, first simulated
//! with its records thrown away, then with its records written to a folder of its own; then the whole program on all cores,
//! with plan, records on disk, summary and report. A cell without records has no result, so both sums are told.
//!
//!     cargo run --release --example scale -- target/release/weir /tmp/five-thousand

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_engine::{Engine, Watch};
use weir_plan::{Lab, Run};
use weir_record::{Gathered, ParquetRecorder};
use weir_sim::Simulator;

const LAB: &str = "benches/five-thousand.toml";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let weir = arguments.next().unwrap_or_else(|| "target/release/weir".into());
    let out = arguments.next().unwrap_or_else(|| "results/five-thousand".into());
    let lab = Lab::load(Path::new(LAB), &[]).map_err(|error| error.to_string())?;
    let runs = lab.runs();
    let alone = sum(&runs, |run, watch| {
        Simulator.run(run, &mut Gathered::new(), watch)?;
        Ok(())
    })?;
    let folder = Path::new(&out).with_extension("cell");
    let recorded = sum(&runs, |run, watch| {
        let mut records = ParquetRecorder::create(&folder)?;
        Simulator.run(run, &mut records, watch)?;
        Ok(records.finish()?)
    })?;
    std::fs::remove_dir_all(&folder)?;
    let cores = std::thread::available_parallelism()?.get();
    let began = Instant::now();
    let status =
        Command::new(weir).args(["run", LAB, "--rerun", "--out", &out]).stdout(Stdio::null()).status()?;
    let whole = began.elapsed();
    if !status.success() {
        return Err(format!("the run ended with {status}").into());
    }
    for (what, sum) in [("simulated", alone), ("simulated and recorded, a folder each", recorded)] {
        let share = sum / cores as u32;
        println!(
            "{} cells, each alone, {what}: {:.1} s, over {cores} cores {:.1} s; the whole program takes {:+.1} %",
            runs.len(),
            sum.as_secs_f64(),
            share.as_secs_f64(),
            100.0 * (whole.as_secs_f64() / share.as_secs_f64() - 1.0)
        );
    }
    println!("the whole program: {:.1} s", whole.as_secs_f64());
    let bytes = size(Path::new(&out))?;
    println!(
        "its folder: {:.0} MB, {:.0} KB a cell",
        bytes as f64 / 1e6,
        bytes as f64 / 1e3 / runs.len() as f64
    );
    Ok(())
}

/// How long all runs take, one after the other.
fn sum(
    runs: &[Run],
    one: impl Fn(&Run, &Watch<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut sum = Duration::ZERO;
    for run in runs {
        let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
        let began = Instant::now();
        one(run, &watch)?;
        sum += began.elapsed();
    }
    Ok(sum)
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.path().is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}
