//! What a large tree costs beside its cells: each cell of `benches/five-thousand.toml` alone on one core, its records taken
//! and thrown away, summed up; then the whole program on all cores, with plan, records on disk, summary and report.
//!
//!     cargo run --release --example scale -- target/release/weir /tmp/five-thousand

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_engine::{Engine, Watch};
use weir_plan::Lab;
use weir_record::Gathered;
use weir_sim::Simulator;

const LAB: &str = "benches/five-thousand.toml";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let weir = arguments.next().unwrap_or_else(|| "target/release/weir".into());
    let out = arguments.next().unwrap_or_else(|| "results/five-thousand".into());
    let lab = Lab::load(Path::new(LAB), &[]).map_err(|error| error.to_string())?;
    let runs = lab.runs();
    let mut alone = Duration::ZERO;
    for run in &runs {
        let mut records = Gathered::new();
        let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
        let began = Instant::now();
        Simulator.run(run, &mut records, &watch)?;
        alone += began.elapsed();
    }
    let cores = std::thread::available_parallelism()?.get();
    let began = Instant::now();
    let status =
        Command::new(weir).args(["run", LAB, "--rerun", "--out", &out]).stdout(Stdio::null()).status()?;
    let whole = began.elapsed();
    if !status.success() {
        return Err(format!("the run ended with {status}").into());
    }
    let share = alone / cores as u32;
    println!(
        "{} cells, each alone: {:.1} s, over {cores} cores {:.1} s",
        runs.len(),
        alone.as_secs_f64(),
        share.as_secs_f64()
    );
    println!(
        "the whole program: {:.1} s, {:+.1} % of that",
        whole.as_secs_f64(),
        100.0 * (whole.as_secs_f64() / share.as_secs_f64() - 1.0)
    );
    let bytes = size(Path::new(&out))?;
    println!(
        "its folder: {:.0} MB, {:.0} KB a cell",
        bytes as f64 / 1e6,
        bytes as f64 / 1e3 / runs.len() as f64
    );
    Ok(())
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
