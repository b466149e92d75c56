//! The cost of a large tree beyond its cells, and how quickly its report opens: `make scale` runs it and keeps what it prints
//! as `docs/scale.md`.
//!
//! The cells of `benches/five-thousand.toml` are run three ways, in turns, so that a machine that is slower for a while is so
//! for all of them: on all cores with their records discarded; the same with their records written in the tree's form,
//! sixty-four runs a shard; and by the whole program, with plan, summary and report. A cell without records has no result, so
//! both sums are given.
//!
//!     cargo run --release --example scale -- target/release/weir /tmp/five-thousand

mod scale {
    pub(crate) mod browser;
    pub(crate) mod cost;
}

use scale::browser;
use scale::cost::{Cost, Median, measured};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_engine::{Engine, Watch};
use weir_plan::{Lab, Run};
use weir_record::{Gathered, Records, write_shard};
use weir_sim::Simulator;

type Failure = Box<dyn std::error::Error>;

const LAB: &str = "benches/five-thousand.toml";
/// How often everything is measured.
const ROUNDS: usize = 3;
/// Runs of a shard, as the tree has them.
const SHARD: usize = 64;
/// Most seconds of processor time that the whole program may take beyond its recorded cells.
const MOST_BEYOND: f64 = 2.0;
/// Most seconds that the index page may take to open.
const MOST_TO_OPEN: f64 = 2.0;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let weir = arguments.next().unwrap_or_else(|| "target/release/weir".into());
    let out = arguments.next().unwrap_or_else(|| "results/five-thousand".into());
    let lab = Lab::load(Path::new(LAB), &[]).map_err(|error| error.to_string())?;
    let runs = lab.runs();
    let cores = std::thread::available_parallelism()?.get();
    let shards = Path::new(&out).with_extension("shards");
    let alone = |_: usize, runs: &[Run]| runs.iter().try_for_each(|run| simulate(run).map(drop));
    let kept = |number: usize, runs: &[Run]| {
        let records = runs.iter().map(|run| Ok(Gathered::from(&simulate(run)?)));
        let records = records.collect::<Result<Vec<_>, String>>()?;
        let records: Vec<&Gathered> = records.iter().collect();
        write_shard(&shards.join(number.to_string()), &records).map_err(|error| error.to_string())
    };
    let one_by_one = measured(|| side_by_side(&runs, 1, alone))?;
    let [mut simulated, mut recorded, mut whole] = [const { Vec::new() }; 3];
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        simulated.push(measured(|| side_by_side(&runs, cores, alone))?);
        recorded.push(measured(|| side_by_side(&runs, cores, kept))?);
        std::fs::remove_dir_all(&shards)?;
        remove(Path::new(&out))?;
        whole.push(measured(|| program(&weir, &out))?);
    }
    let [simulated, recorded, whole] = [simulated, recorded, whole].map(Median::of);
    println!("`{LAB}`, {} cells, median of {ROUNDS} rounds, the smallest and the", runs.len());
    println!("largest beside it. CPU is user and system time of all threads.\n");
    println!(
        "| what | wall, s | CPU, s | the whole program takes longer by, wall | CPU |\n|---|---|---|---|---|"
    );
    row("the cells simulated, their records discarded, on all cores", &simulated, &whole);
    row("the cells simulated and recorded in shards, on all cores", &recorded, &whole);
    row("the whole program: plan, cells, records, summary, report", &whole, &whole);
    let beyond = whole.median.cpu - recorded.median.cpu;
    println!(
        "\nThe whole program takes {beyond:.1} s of CPU beyond its recorded cells, which {} the bar of {MOST_BEYOND} s.",
        if beyond <= MOST_BEYOND { "holds" } else { "misses" }
    );
    let Cost { wall, cpu } = one_by_one;
    println!(
        "\nOn one core, one after the other and measured once, the cells alone took {wall:.1} s ({cpu:.1} s of CPU).\n"
    );
    let bytes = size(Path::new(&out))?;
    let each = bytes as f64 / 1e3 / runs.len() as f64;
    println!("The result folder has {:.0} MB, {each:.0} KB a cell.", bytes as f64 / 1e6);
    match browser::opened(&Path::new(&out).join("index.html"))? {
        Some(seconds) => {
            let holds = if seconds <= MOST_TO_OPEN { "holds" } else { "misses" };
            println!(
                "Its index page can be used {seconds:.2} s after a browser (Chromium, headless) began to open it, which {holds} the bar of {MOST_TO_OPEN} s."
            );
        }
        None => println!("No browser is on the path, so how quickly its index opens was not measured."),
    }
    Ok(())
}

/// One line of the table.
fn row(what: &str, of: &Median, whole: &Median) {
    let Median { median: Cost { wall, cpu }, least, most } = of;
    let more = |whole: f64, part: f64| match part == whole {
        true => String::new(),
        false => format!("{:+.0} %", 100.0 * (whole / part - 1.0)),
    };
    let (longer, dearer) = (more(whole.median.wall, *wall), more(whole.median.cpu, *cpu));
    println!("| {what} | {wall:.1} ({least:.1} to {most:.1}) | {cpu:.1} | {longer} | {dearer} |");
}

/// Simulates a run.
fn simulate(run: &Run) -> Result<Records, String> {
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    let mut records = Records::default();
    Simulator.run(run, &mut records, &watch).map_err(|error| error.to_string())?;
    Ok(records)
}

/// Calls `each` with each shard of the runs, on this many threads.
fn side_by_side(
    runs: &[Run],
    threads: usize,
    each: impl Fn(usize, &[Run]) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Ok(())));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(shard) = runs.chunks(SHARD).nth(number) else { break };
            if let (Err(error), Ok(mut failed)) = (each(number, shard), failed.lock()) {
                *failed = Err(error);
                break;
            }
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().unwrap_or_else(|_| Err("a thread panicked".into()))
}

/// Removes the result of an earlier round, if there is one: each round runs the lab for the first time, and removing is not measured.
/// Other folders are not touched; the program refuses those that have something in them.
fn remove(out: &Path) -> std::io::Result<()> {
    if out.join("summary.json").exists() { std::fs::remove_dir_all(out) } else { Ok(()) }
}

/// The whole program.
fn program(weir: &str, out: &str) -> Result<(), String> {
    let status = Command::new(weir).args(["run", LAB, "--out", out]).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the run ended with {status}")),
        Err(error) => Err(format!("{weir}: {error}")),
    }
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
