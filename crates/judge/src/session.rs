//! A session: the cells of one seed, one after the other. Its folder holds each cell's lab and runs, and `session.json` with
//! the verdicts; live runs are kept in the repository too. Everything is written whole, so that after `kill -9` the same command goes on.

use crate::cell::{Cell, Value};
use crate::draw::draw;
use crate::id::Id;
use crate::kept::Kept;
use crate::shrink::{Failing, Shrunk, shrink};
use crate::trial::{self, LIVE, MOST_LIVE, Outcome, Trial, Way};
use crate::verdict::{self, Row, Verdict};
use crate::weir::{Trouble, Weir, forget_invalid, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds that a live run takes beyond its length, and that a cell takes on the simulator: for estimates.
const OVERHEAD: f64 = 1.5;
const SIMULATOR: f64 = 10.0;
/// Live runs of a cell that has no verdict yet: for estimates.
const USUAL_LIVE: f64 = 4.0;

/// What a session is asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The numbers of the cells.
    pub cells: Vec<u64>,
    /// Keep verdicts that another build of weir gave.
    pub keep: bool,
    /// Judge again with this build and the live runs that are there.
    pub resimulate: bool,
    /// Try cells again whose live runs were invalid.
    pub retry_invalid: bool,
    /// Shrink no cells.
    pub no_shrink: bool,
}

/// `session.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    /// The session's seed.
    pub seed: u64,
    /// The kernels of the live runs.
    pub kernels: BTreeSet<String>,
    /// The day of the last verdict.
    pub date: String,
    /// The judged cells, by number.
    pub cells: BTreeMap<u64, Judged>,
}

/// A judged cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The build of weir that simulated it.
    pub build: String,
    /// The lab in a line.
    pub line: String,
    /// Its keys, for the decision tree.
    pub keys: Vec<(String, Value)>,
    /// The outcome.
    pub outcome: Outcome,
    /// Why it is invalid or failed.
    pub reason: String,
    /// Valid live runs.
    pub live: usize,
    /// The measures.
    pub rows: Vec<Row>,
    /// The same with simulated hosts that pause when those of the live runs did; empty where that was not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<Row>,
    /// The smallest lab that still differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<Shrunk>,
}

impl Judged {
    fn new(build: &str, cell: &Cell, trial: Trial) -> Judged {
        let Trial { outcome, reason, live, rows, paused } = trial;
        let (line, keys, live) = (cell.line(), cell.keys(), live.len());
        Judged { build: build.into(), line, keys, outcome, reason, live, rows, paused, shrunk: None }
    }
}

/// A session with its folder.
#[derive(Debug)]
pub struct Session {
    /// The session's folder.
    folder: PathBuf,
    weir: Weir,
    kept: Kept,
    /// The verdicts.
    pub state: State,
    _lock: File,
}

impl Session {
    /// Opens or begins the session of this seed below `results`; its live runs are kept in the folder `live`.
    ///
    /// # Errors
    /// Another judge is at work in it, or it cannot be read or written.
    pub fn open(results: &Path, live: &Path, seed: u64, weir: Weir) -> Result<Session, Trouble> {
        let folder = results.join(format!("seed-{seed}"));
        fs::create_dir_all(&folder).map_err(Trouble::io(&folder))?;
        let lock = folder.join("lock");
        let file = File::create(&lock).map_err(Trouble::io(&lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Trouble::Io(format!("another judge is at work in {}", folder.display())));
            }
            Err(TryLockError::Error(error)) => return Err(Trouble::io(&lock)(error)),
        }
        let state = read(&folder)?.unwrap_or_else(|| State { seed, ..State::default() });
        let kept = Kept::open(live, seed, kernel())?;
        Ok(Session { folder, weir, kept, state, _lock: file })
    }

    /// Judges the cells that have no verdict yet, then shrinks those that differ; `after` is called after each.
    ///
    /// # Errors
    /// The live runs are another kernel's, a file cannot be written, or weir cannot be started.
    pub fn run(
        &mut self,
        asked: &Asked,
        mut after: impl FnMut(&State) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let began = Instant::now();
        if let Some(refusal) = self.kept.refusal().filter(|_| !asked.resimulate) {
            return Err(Trouble::Io(refusal));
        }
        let all = asked.cells.len();
        let open: Vec<u64> =
            asked.cells.iter().copied().filter(|number| !self.is_done(*number, asked)).collect();
        let done = all - open.len();
        eprintln!("seed {}: {all} cells, {done} with a verdict; weir {}", self.state.seed, self.weir.build());
        for (place, number) in open.iter().enumerate() {
            self.judge(*number, asked)?;
            after(&self.state)?;
            let left = self.seconds_left(&open[place + 1..], asked.resimulate);
            eprintln!("    {} of {all} cells; about {} left", done + place + 1, span(left));
        }
        if !asked.no_shrink && !asked.resimulate {
            self.shrink_all(asked, &mut after)?;
        }
        eprintln!("seed {}: done in {}", self.state.seed, span(began.elapsed().as_secs_f64()));
        Ok(())
    }

    fn cell_folder(&self, number: u64) -> PathBuf {
        self.folder.join(format!("cell-{number}"))
    }

    fn id(&self, number: u64) -> Id {
        Id { seed: self.state.seed, number }
    }

    /// Whether a cell's verdict stands.
    fn is_done(&self, number: u64, asked: &Asked) -> bool {
        let Some(judged) = self.state.cells.get(&number) else { return false };
        let same_cell = judged.line == draw(self.id(number)).line();
        let same_build = judged.build == self.weir.build();
        let no_live = judged.outcome == Outcome::Invalid || judged.reason.starts_with(LIVE);
        let again = asked.resimulate || (asked.retry_invalid && no_live);
        // A cell that was judged by the live runs at hand may need more of them.
        let is_open = |rows: &[Row]| !rows.is_empty() && verdict::of_cell(rows) == Verdict::CannotTell;
        let undecided =
            (judged.outcome == Outcome::CannotTell || is_open(&judged.paused)) && judged.live < MOST_LIVE;
        same_cell && (same_build || asked.keep) && !again && !undecided
    }

    fn judge(&mut self, number: u64, asked: &Asked) -> Result<(), Trouble> {
        let (id, folder) = (self.id(number), self.cell_folder(number));
        let cell = draw(id);
        eprintln!("cell {id}: {}", cell.line());
        if asked.retry_invalid {
            forget_invalid(&folder)?;
        }
        let way = Way { most: MOST_LIVE, focus: None, only_kept: asked.resimulate };
        let trial = trial::attempt(&self.weir, &cell, &folder, self.kept.of(number, &cell), way)?;
        self.kept.put(number, &cell, &trial.live)?;
        let mut judged = Judged::new(self.weir.build(), &cell, trial);
        if asked.resimulate && judged.outcome.is_fault() {
            judged.shrunk = self.state.cells.get_mut(&number).and_then(|before| before.shrunk.take());
        }
        eprintln!("    {} after {} live runs{}", judged.outcome.name(), judged.live, reasons(&judged));
        self.state.cells.insert(number, judged);
        self.write()
    }

    /// Shrinks the cells that differ and have not been shrunk with this build.
    fn shrink_all(
        &mut self,
        asked: &Asked,
        after: &mut impl FnMut(&State) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let all = self.state.cells.iter().filter(|(number, _)| asked.cells.contains(number));
        let open: Vec<u64> = all
            .filter(|(_, judged)| judged.outcome.is_fault() && judged.shrunk.is_none())
            .map(|(number, _)| *number)
            .collect();
        for number in open {
            let Some(judged) = self.state.cells.get(&number) else { continue };
            let id = self.id(number);
            eprintln!("cell {id} is shrunk: {}", judged.line);
            let fault = Failing { outcome: judged.outcome, reason: &judged.reason, rows: &judged.rows };
            let shrunk = shrink(&self.weir, &draw(id), fault, &self.cell_folder(number))?;
            eprintln!("    {} after {} live runs", shrunk.line, shrunk.live);
            if let Some(judged) = self.state.cells.get_mut(&number) {
                judged.shrunk = Some(shrunk);
            }
            self.write()?;
            after(&self.state)?;
        }
        Ok(())
    }

    /// Estimated time for these cells, by the live runs that cells took so far.
    fn seconds_left(&self, cells: &[u64], only_simulated: bool) -> f64 {
        let done: Vec<f64> = self.state.cells.values().map(|judged| judged.live as f64).collect();
        let live = (done.iter().sum::<f64>() + USUAL_LIVE) / (done.len() as f64 + 1.0);
        let of = |number: &u64| {
            let length = f64::from(draw(self.id(*number)).duration) + OVERHEAD;
            SIMULATOR + if only_simulated { 0.0 } else { live * length }
        };
        cells.iter().map(of).fold(0.0, |sum, seconds| sum + seconds)
    }

    fn write(&mut self) -> Result<(), Trouble> {
        self.state.date = today();
        self.state.kernels = self.kept.kernels();
        let path = self.folder.join("session.json");
        let text = serde_json::to_string_pretty(&self.state)
            .map_err(|error| Trouble::Io(format!("{}: {error}", path.display())))?;
        write_whole(&path, &text)
    }
}

/// The state of a session's folder; `None` if it has none.
///
/// # Errors
/// It is damaged.
fn read(folder: &Path) -> Result<Option<State>, Trouble> {
    let path = folder.join("session.json");
    let Ok(text) = fs::read(&path) else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        Trouble::Io(format!("{}: {error}; remove it to judge the runs again", path.display()))
    })
}

/// The states of all sessions below a folder, by seed.
///
/// # Errors
/// One is damaged.
pub fn all(results: &Path) -> Result<Vec<State>, Trouble> {
    let entries = fs::read_dir(results).map_err(Trouble::io(results))?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let states: Result<Vec<Option<State>>, Trouble> = folders.map(|folder| read(&folder)).collect();
    let mut states: Vec<State> = states?.into_iter().flatten().collect();
    states.sort_by_key(|state| state.seed);
    Ok(states)
}

/// Why a cell differs, is invalid or failed, in a few words.
fn reasons(judged: &Judged) -> String {
    let differ = judged.rows.iter().filter(|row| row.verdict == Verdict::Differs);
    let mut words: Vec<String> = differ
        .map(|row| {
            let number = |value: Option<f64>| value.map_or("none".into(), |value| format!("{value:.4}"));
            format!("{}: live {}, simulated {}", row.name(), number(row.live), number(row.sim))
        })
        .collect();
    if !judged.reason.is_empty() {
        words.push(judged.reason.clone());
    }
    if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) }
}

/// The running kernel's release.
fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Today's date in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = chrono::DateTime::from_timestamp(since.as_secs() as i64, 0).unwrap_or_default();
    now.format("%Y-%m-%d").to_string()
}

/// A time in words.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
