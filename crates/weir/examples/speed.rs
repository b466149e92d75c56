//! Measures the speed of the simulator: runs the labs of `benches/` with the program itself, whole process, and prints a table
//! in Markdown. Wall time is the best of several runs, since machines are shared; instructions, if valgrind is there, are the
//! same on every run and must not regress.
//!
//!     cargo run --release --example speed -- target/release/weir > docs/speed.md

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A lab of `benches/`: the least packets a second that must hold, and how long its run is under valgrind.
struct Bench {
    lab: &'static str,
    least: Option<f64>,
    counted_seconds: u32,
}

const BENCHES: [Bench; 11] = [
    Bench { lab: "dumbbell", least: Some(4e6), counted_seconds: 20 },
    Bench { lab: "yield", least: Some(4e6), counted_seconds: 20 },
    Bench { lab: "dualpi2", least: Some(4e6), counted_seconds: 20 },
    Bench { lab: "loss", least: Some(1.5e6), counted_seconds: 10 },
    Bench { lab: "long-fat", least: Some(1.5e6), counted_seconds: 5 },
    Bench { lab: "many-flows", least: Some(1.5e6), counted_seconds: 2 },
    Bench { lab: "ten-thousand", least: None, counted_seconds: 2 },
    // Twice real time: 195,000 packets in each of 10 seconds, in half of its 11 s.
    Bench { lab: "overlay", least: Some(0.36e6), counted_seconds: 2 },
    // Its bar is 4 GiB of memory.
    Bench { lab: "overlay-128", least: None, counted_seconds: 2 },
    // A packet of 1,000 flows may cost 1.42 times one of 6 (the GNAT report's 3.4).
    Bench { lab: "overlay-tcp-6", least: None, counted_seconds: 6 },
    Bench { lab: "overlay-tcp-1000", least: None, counted_seconds: 6 },
];

const REPEATS: usize = 15;
/// A lab that takes long is repeated for so long at most.
const LONGEST: Duration = Duration::from_secs(60);

fn main() {
    let weir = std::env::args().nth(1).unwrap_or_else(|| "target/release/weir".into());
    let valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    println!(
        "Each row is the whole process with records on one core, best of {REPEATS}. A packet is a data packet"
    );
    println!(
        "that the bottleneck forwarded, with all the events that it causes; of the overlay, one that a node sent to another. Instructions per"
    );
    println!("packet are counted by callgrind.\n");
    println!(
        "| lab | packets | wall, s | M packets/s | must hold | peak memory, MiB | instructions a packet |"
    );
    println!("|---|---|---|---|---|---|---|");
    for bench in &BENCHES {
        let folder = std::env::temp_dir().join(format!("weir-speed-{}", std::process::id()));
        let (wall, memory) = best(&weir, bench.lab, &folder);
        let packets = packets(&folder);
        let counted = if valgrind { instructions(&weir, bench, &folder) } else { None };
        let _ = std::fs::remove_dir_all(&folder);
        let rate = packets / wall.as_secs_f64();
        println!(
            "| {} | {packets:.0} | {:.3} | {:.2} | {} | {:.0} | {} |",
            bench.lab,
            wall.as_secs_f64(),
            rate / 1e6,
            bench.least.map_or("-".into(), |least| {
                format!("{:.1} ({})", least / 1e6, if rate >= least { "holds" } else { "falls short" })
            }),
            memory as f64 / 1024.0,
            counted.map_or("-".into(), |n| format!("{n:.0}")),
        );
    }
}

fn command(program: &str, before: &[&str], lab: &str, folder: &Path, seconds: Option<u32>) -> Command {
    let mut words: Vec<&str> = before.to_vec();
    words.push(program);
    let mut command = Command::new(words[0]);
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches").join(format!("{lab}.toml"));
    command.args(&words[1..]).arg("run").arg(lab).args([
        "--no-report",
        "--rerun",
        "--jobs",
        "1",
        "--set",
        "run.warmup=0 s",
    ]);
    if let Some(seconds) = seconds {
        command.arg("--set").arg(format!("run.duration={seconds} s"));
    }
    command.arg("--out").arg(folder).stdout(Stdio::null()).stdin(Stdio::null());
    command
}

/// Best wall time, and the peak of resident memory in KiB.
fn best(weir: &str, lab: &str, folder: &Path) -> (Duration, u64) {
    let (mut least, mut memory) = (Duration::MAX, 0);
    let began = Instant::now();
    for repeat in 0..REPEATS {
        if repeat > 0 && began.elapsed() > LONGEST {
            break;
        }
        let start = Instant::now();
        let mut child = command(weir, &[], lab, folder, None).spawn().expect("the program can be started");
        let status = format!("/proc/{}/status", child.id());
        while child.try_wait().expect("a child can be waited for").is_none() {
            memory = memory.max(peak(&status));
            std::thread::sleep(Duration::from_micros(500));
        }
        least = least.min(start.elapsed());
    }
    (least, memory)
}

fn peak(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Data packets that the bottleneck forwarded, or that the nodes of an overlay sent to each other.
fn packets(folder: &Path) -> f64 {
    let text = std::fs::read(folder.join("summary.json")).expect("the run wrote its summary");
    let summary: Value = serde_json::from_slice(&text).expect("the summary is JSON");
    if let Some(packets) = summary["runs"][0]["metrics"]["overlay_packets"].as_f64() {
        return packets;
    }
    let queue = &summary["runs"][0]["queues"][0];
    let count = |name: &str| queue[name].as_f64().unwrap_or(0.0);
    count("arrived_packets") - count("dropped_packets")
}

/// Instructions per packet, counted over a shorter run.
fn instructions(weir: &str, bench: &Bench, folder: &Path) -> Option<f64> {
    let valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = command(weir, &valgrind, bench.lab, folder, Some(bench.counted_seconds)).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let total = text.lines().find_map(|line| line.split("Collected :").nth(1))?.trim().parse::<f64>().ok()?;
    Some(total / packets(folder))
}
