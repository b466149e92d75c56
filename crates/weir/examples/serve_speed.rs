//! How quickly `weir serve` lists and searches a thousand results, and how much memory it takes: `make serve-speed` runs it and keeps what
//! it prints as `docs/serve-measured.md`.
//!
//! Ten labs of twenty runs each are run, with their reports, and each result is copied a hundred times. A server is started anew for each
//! first answer; the files are in the machine's memory, as they are after they were copied.
//!
//!     cargo run --release --example serve_speed -- target/release/weir /tmp/serve-speed

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// The labs: a name, and the key that makes each another one.
const LABS: [(&str, &str); 10] = [
    ("cubic", "traffic.a.cc='cubic'"),
    ("newreno", "traffic.a.cc='newreno'"),
    ("bbr", "traffic.a.cc='bbr'"),
    ("vegas", "traffic.a.cc='vegas'"),
    ("rate-5", "dumbbell.rate='5 Mbit/s'"),
    ("rate-20", "dumbbell.rate='20 Mbit/s'"),
    ("rtt-10", "dumbbell.rtt='10 ms'"),
    ("rtt-80", "dumbbell.rtt='80 ms'"),
    ("loss", "dumbbell.loss=0.001"),
    ("flows", "traffic.a.flows=3"),
];
/// Twenty runs of four seconds.
const LAB: &str = "format = 1\n[run]\nduration = '4 s'\nwarmup = '1 s'\nrepeats = 5\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '40 ms'\n\
    [traffic.a]\ncc = 'cubic'\n[traffic.b]\ncc = 'cubic'\necn = true\n[vary]\n'dumbbell.queue' = ['tail-drop', 'pie', 'codel', 'fq-codel']\n";
/// Copies of each result.
const COPIES: usize = 100;
/// How often everything is measured.
const ROUNDS: usize = 5;
/// What is searched for: what all results have, what a tenth has, and what none has.
const SEARCHES: [&str; 3] = ["pie", "bbr+codel", "nothing-has-this"];
/// The bars: seconds for the first answer and for later ones, milliseconds for a search, MiB of memory.
const BARS: [f64; 4] = [1.0, 0.3, 50.0, 200.0];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let weir = arguments.next().unwrap_or_else(|| "target/release/weir".into());
    let out = arguments.next().unwrap_or_else(|| "results/serve-speed".into());
    let (count, files, bytes) = generate(&weir, Path::new(&out))?;
    let [mut first, mut all, mut later, mut search, mut memory] = [const { Vec::new() }; 5];
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        let served = Served::new(&weir, &out)?;
        let began = Instant::now();
        let answer = served.ask("results?fresh=true")?;
        first.push(began.elapsed().as_secs_f64());
        if !answer.contains(&format!("\"all\":{count},")) {
            return Err(format!("the list has not {count} results").into());
        }
        while !served.ask("results?fresh=true")?.contains("\"unchecked\":0}") {
            std::thread::sleep(Duration::from_millis(250));
        }
        all.push(began.elapsed().as_secs_f64());
        for _ in 0..ROUNDS {
            std::thread::sleep(Duration::from_millis(500));
            later.push(served.timed("results?fresh=true")?);
            for words in SEARCHES {
                search.push(1e3 * served.timed(&format!("results?find={words}"))?);
            }
        }
        memory.push(served.peak()? / 1024.0);
    }
    println!(
        "`weir serve` lists {count} results of 20 runs, {files} \
         files of {:.1} GB, which are in the machine's memory.\n",
        bytes as f64 / 1e9,
    );
    println!("| what | bar | measured, median (smallest to largest) | |\n|---|---|---|---|");
    row("the first list of a server", BARS[0], "s", &first);
    row("later lists, as long as nothing has changed", BARS[1], "s", &later);
    row("a search", BARS[2], "ms", &search);
    row("memory at most", BARS[3], "MiB", &memory);
    println!(
        "\nThe first list has everything but sizes and damage of files, which are known when all files were looked at: {:.1} s after the first \
         request.",
        sorted(&all)[all.len() / 2]
    );
    Ok(())
}

/// Makes the results, if they are not there. Returns how many there are, and the number and size of their files.
fn generate(weir: &str, out: &Path) -> Result<(usize, usize, u64), Failure> {
    fs::create_dir_all(out)?;
    let lab = out.with_extension("toml");
    fs::write(&lab, LAB)?;
    for (name, setting) in LABS {
        let first = out.join(name).join("0");
        if first.exists() {
            continue;
        }
        eprintln!("{name}");
        let mut command = Command::new(weir);
        command.arg("run").arg(&lab).arg("--out").arg(&first).args([
            "--set",
            &format!("name='{name}'"),
            "--set",
            setting,
        ]);
        if !command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
            return Err(format!("the lab {name} failed").into());
        }
        for copy in 1..COPIES {
            let mut command = Command::new("cp");
            command.arg("-r").arg(&first).arg(out.join(name).join(copy.to_string()));
            if !command.status()?.success() {
                return Err("the results cannot be copied".into());
            }
        }
    }
    let (files, bytes) = size(out)?;
    Ok((LABS.len() * COPIES, files, bytes))
}

/// Number and size of the files below a folder.
fn size(folder: &Path) -> Result<(usize, u64), Failure> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (count, size) =
            if entry.file_type()?.is_dir() { size(&entry.path())? } else { (1, entry.metadata()?.len()) };
        files += count;
        bytes += size;
    }
    Ok((files, bytes))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn row(what: &str, bar: f64, unit: &str, values: &[f64]) {
    let values = sorted(values);
    let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
    let digits = if unit == "s" { 2 } else { 0 };
    let holds = if median <= bar { "holds" } else { "falls short" };
    println!(
        "| {what} | {bar} {unit} | {median:.digits$} {unit} ({least:.digits$} to {most:.digits$}) | {holds} |"
    );
}

/// A server that works until it is dropped.
struct Served {
    child: Child,
    host: String,
    path: String,
}

impl Served {
    fn new(weir: &str, folder: &str) -> Result<Served, Failure> {
        let mut child = Command::new(weir).args(["serve", folder]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (host, path) = address.ok_or("no address")?;
        Ok(Served { host: host.into(), path: path.into(), child })
    }

    fn ask(&self, what: &str) -> Result<String, Failure> {
        let mut socket = TcpStream::connect(&self.host)?;
        let Served { host, path, .. } = self;
        write!(socket, "GET /{path}{what} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Seconds until the whole of an answer is there.
    fn timed(&self, what: &str) -> Result<f64, Failure> {
        let began = Instant::now();
        self.ask(what)?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// The peak of the server's memory in KiB.
    fn peak(&self) -> Result<f64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
