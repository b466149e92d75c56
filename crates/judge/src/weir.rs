//! The program `weir` as a subprocess: a lab simulated with all seeds, or run live with one. What is on disk is not run again.
//!
//! Simulated runs stand apart for each build of weir (`sim-BUILD`), so that another build reuses nothing of them. Live runs
//! depend on the kernel and the fabric alone and are kept (`live/seed-N`); an invalid one is set aside and repeated.

use crate::live;
use crate::measure::{Host, Measured};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use twox_hash::XxHash64;
use weir_record::{RunSummary, Summary};

/// Seeds that the simulator runs.
pub const SEEDS: usize = 20;
/// Seeds that it runs for a cell that is not decided with these: live runs are dear, simulated ones are not.
pub const MANY_SEEDS: usize = 60;
/// Attempts at a live run before it counts as impossible here.
pub const ATTEMPTS: usize = 5;
/// Longest time that the simulator may take for a cell.
const PATIENCE: Duration = Duration::from_secs(900);
/// Time that a live run may take beyond its own length.
const LIVE_PATIENCE: Duration = Duration::from_secs(60);
/// The longest time between two looks at a subprocess; a short run is looked at more often.
const LOOK: Duration = Duration::from_millis(50);

/// A build of weir.
#[derive(Debug, Clone)]
pub struct Weir {
    program: PathBuf,
    build: String,
    /// The longest wait for an idle machine before a live run.
    patience: Duration,
}

/// Why there are no runs.
#[derive(Debug)]
pub enum Trouble {
    /// Weir failed or refused the lab: the cell has a fault.
    Failed(String),
    /// Live runs were invalid again and again, for this reason.
    Invalid(String),
    /// A file could not be read or written, or weir could not be started.
    Io(String),
}

impl Trouble {
    /// A failure of the machine, with the place.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Trouble + '_ {
        move |error| Trouble::Io(format!("{}: {error}", path.display()))
    }
}

impl Weir {
    /// The program at this path; live runs wait up to `patience` for an idle machine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(program: &Path, patience: Duration) -> io::Result<Weir> {
        let program = fs::canonicalize(program)?;
        let build = hash(&fs::read(&program)?);
        Ok(Weir { program, build, patience })
    }

    /// Which build it is: a hash of the program.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// The lab's runs on the simulator with the first `seeds` seeds, on all cores. Simulated hosts pause as those of the live runs in
    /// `hosts` did, taken in turns.
    ///
    /// # Errors
    /// The simulator fails or refuses the lab, or a file cannot be written.
    pub fn simulate(&self, folder: &Path, seeds: usize, hosts: &[&Host]) -> Result<Vec<Measured>, Trouble> {
        let pauses: Vec<String> = hosts.iter().map(|host| pauses(host)).collect();
        let next = AtomicUsize::new(1);
        let work = || {
            let mut runs = vec![];
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed > seeds {
                    return Ok(runs);
                }
                runs.push(Measured::of(&self.simulated(folder, seed, &pauses)?, Host::default()));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let found: Vec<Result<Vec<Measured>, Trouble>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            let ended = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(Trouble::Io("a thread of the judge failed".into())))
            };
            threads.into_iter().map(ended).collect()
        });
        let mut runs: Vec<Measured> = vec![];
        for part in found {
            runs.extend(part?);
        }
        runs.sort_by_key(|run| run.seed);
        Ok(runs)
    }

    /// The simulated run with this seed.
    fn simulated(&self, folder: &Path, seed: usize, pauses: &[String]) -> Result<RunSummary, Trouble> {
        let pauses = pauses.get((seed - 1) % pauses.len().max(1)).map_or("", String::as_str);
        let paused =
            if pauses.is_empty() { String::new() } else { format!("-paused-{}", hash(pauses.as_bytes())) };
        let out = folder.join(format!("sim-{}{paused}", self.build)).join(format!("seed-{seed}"));
        let run = match read(&out) {
            Some(run) => run,
            None => {
                self.run(folder, "sim", &out, seed, pauses, PATIENCE)?;
                // The records can be made again; a hundred cells of them would fill a disk.
                let records = out.join("runs");
                match fs::remove_dir_all(&records) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Trouble::io(&records)(error));
                    }
                    _ => read(&out).ok_or_else(missing)?,
                }
            }
        };
        run.invalid.first().map_or(Ok(()), |reason| Err(Trouble::Failed(reason.clone())))?;
        Ok(run)
    }

    /// The live run with this seed, run now if it is not there; `None` if it is not there and `only_kept` is true. `length` is
    /// the lab's duration.
    ///
    /// # Errors
    /// Weir fails or refuses the lab, every attempt was invalid, or a file cannot be written.
    pub fn live(
        &self,
        folder: &Path,
        seed: usize,
        length: Duration,
        only_kept: bool,
    ) -> Result<Option<Measured>, Trouble> {
        let out = folder.join("live").join(format!("seed-{seed}"));
        loop {
            if let Some(run) = read(&out) {
                let Some(reason) = run.invalid.first() else {
                    return Ok(Some(Measured::of(&run, host(&out))));
                };
                let (reason, attempt) = (reason.clone(), attempts(&out) + 1);
                let aside = invalid(&out, attempt);
                fs::rename(&out, &aside).map_err(Trouble::io(&aside))?;
                eprintln!("    live run {seed}, attempt {attempt}, was invalid: {reason}");
            }
            let so_far = attempts(&out);
            if so_far >= ATTEMPTS {
                let reason = read(&invalid(&out, so_far)).and_then(|run| run.invalid.first().cloned());
                return Err(Trouble::Invalid(reason.unwrap_or_else(|| "the reason was removed".into())));
            }
            if only_kept {
                return Ok(None);
            }
            live::wait(self.patience);
            self.run(folder, "live", &out, seed, "", length + LIVE_PATIENCE)?;
        }
    }

    /// Runs the lab once, in a folder of its own that becomes `out` when it has ended well: a run that a killed judge left behind may
    /// still write. What weir says stands in a file beside it until then.
    fn run(
        &self,
        folder: &Path,
        engine: &str,
        out: &Path,
        seed: usize,
        pauses: &str,
        patience: Duration,
    ) -> Result<(), Trouble> {
        // A run that was interrupted left a folder without a summary, maybe of another build.
        if out.exists() {
            fs::remove_dir_all(out).map_err(Trouble::io(out))?;
        }
        forget_parts(out);
        let part = out.with_extension(format!("{PART}{}", std::process::id()));
        let said = out.with_extension("txt");
        fs::create_dir_all(out.parent().unwrap_or(folder)).map_err(Trouble::io(out))?;
        let file = File::create(&said).map_err(Trouble::io(&said))?;
        let mut child = Command::new(&self.program)
            .arg("run")
            .arg(folder.join("lab.toml"))
            .args(["--on", engine, "--no-report", "--set", &format!("run.seed={seed}"), "--out"])
            .arg(&part)
            .args((!pauses.is_empty()).then_some(["--set", pauses]).into_iter().flatten())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(Trouble::io(&self.program))?;
        let began = Instant::now();
        let status = loop {
            match child.try_wait().map_err(Trouble::io(&self.program))? {
                Some(status) => break status,
                None if began.elapsed() > patience => {
                    child.kill().and_then(|()| child.wait()).map_err(Trouble::io(&self.program))?;
                    return Err(Trouble::Failed(format!("weir did not end within {} s", patience.as_secs())));
                }
                None => std::thread::sleep((began.elapsed() / 10).clamp(Duration::from_millis(1), LOOK)),
            }
        };
        match status.code() {
            Some(0) if read(&part).is_none() => Err(missing()),
            Some(0) => {
                fs::rename(&part, out).map_err(Trouble::io(out))?;
                fs::remove_file(&said).map_err(Trouble::io(&said))
            }
            Some(130) => Err(Trouble::Io("interrupted; the same command goes on".into())),
            _ => Err(Trouble::Failed(format!("weir: {status}: {}", last_lines(&said)))),
        }
    }
}

/// What the host of a live run did.
fn host(out: &Path) -> Host {
    let of = || {
        let run: serde_json::Value =
            serde_json::from_slice(&fs::read(out.join("runs/live-r1/run.json")).ok()?).ok()?;
        let environment = run.pointer("/outcome/environment")?;
        let pauses = environment.get("applications_paused").cloned().unwrap_or_default();
        Some(Host {
            late_ms: environment.pointer("/lateness_us/mean")?.as_f64()? / 1000.0,
            pauses: serde_json::from_value(pauses).unwrap_or_default(),
        })
    };
    of().unwrap_or_default()
}

/// A host's pauses as a setting of the lab; empty if there are none.
fn pauses(host: &Host) -> String {
    if host.pauses.is_empty() {
        return String::new();
    }
    let each =
        host.pauses.iter().map(|(at, length)| format!("{{ at = \"{at} ms\", for = \"{length} ms\" }}"));
    format!("run.host_pauses=[{}]", each.collect::<Vec<_>>().join(", "))
}

fn missing() -> Trouble {
    Trouble::Failed("weir ended well, but its run is not there".into())
}

/// The run of a result folder; `None` if it has no summary, or none with a run.
fn read(out: &Path) -> Option<RunSummary> {
    let text = fs::read(out.join("summary.json")).ok()?;
    let mut summary: Summary = serde_json::from_slice(&text).ok()?;
    summary.runs.pop()
}

/// What the extension of a run that is under way begins with; the judge's process number follows.
const PART: &str = "part-";

/// Removes what killed judges left of a run.
fn forget_parts(out: &Path) {
    let Some(Ok(entries)) = out.parent().map(fs::read_dir) else { return };
    let is_part = |path: &PathBuf| {
        let extension = path.extension().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        path.file_stem() == out.file_name() && extension.starts_with(PART)
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_part) {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // A run that still writes there ends by itself; the next judge removes it.
                eprintln!("    {}: {error}", path.display());
            }
            _ => {}
        }
    }
}

/// Where an invalid run is set aside.
fn invalid(out: &Path, attempt: usize) -> PathBuf {
    out.with_extension(format!("invalid-{attempt}"))
}

/// How many attempts at a run were invalid.
fn attempts(out: &Path) -> usize {
    (1..).take_while(|attempt| invalid(out, *attempt).exists()).count()
}

/// Forgets the invalid attempts at a cell's live runs, so that they are tried again.
///
/// # Errors
/// They cannot be removed.
pub fn forget_invalid(folder: &Path) -> Result<(), Trouble> {
    let live = folder.join("live");
    let Ok(entries) = fs::read_dir(&live) else { return Ok(()) };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|it| it.to_string_lossy().starts_with("invalid-")) {
            fs::remove_dir_all(&path).map_err(Trouble::io(&path))?;
        }
    }
    Ok(())
}

/// The last lines that weir said, in one.
fn last_lines(said: &Path) -> String {
    let text = fs::read(said).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    lines[lines.len().saturating_sub(4)..].join("; ").chars().map(printable).take(400).collect()
}

/// A short hash, in text.
pub(crate) fn hash(content: &[u8]) -> String {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(content);
    format!("{:08x}", hasher.finish() >> 32)
}

/// Writes a file that appears whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Trouble> {
    let part = path.with_extension("part");
    fs::write(&part, text).map_err(Trouble::io(&part))?;
    fs::rename(&part, path).map_err(Trouble::io(path))
}
