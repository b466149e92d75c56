//! One lab tried on both engines: the simulator with all seeds, then one live run after the other until there is a verdict.

use crate::cell::Cell;
use crate::measure::{Host, Measured, Scale};
use crate::verdict::{self, FEWEST, Row, Verdict};
use crate::weir::{MANY_SEEDS, SEEDS, Trouble, Weir};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What the reason of a failure on the live engine begins with.
pub(crate) const LIVE: &str = "live: ";
/// Most live runs of a cell.
pub const MOST_LIVE: usize = 10;
const _: () = assert!(MOST_LIVE <= SEEDS);

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All measures agree.
    Agree,
    /// All measures agree once simulated hosts pause when those of the live runs did.
    AgreePaused,
    /// A measure differs.
    Differs,
    /// The live runs do not tell.
    CannotTell,
    /// Live runs are invalid on this machine.
    Invalid,
    /// An engine failed or refused the lab.
    Failed,
}

impl Outcome {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        ["agree", "agree with pauses", "differs", "cannot tell", "invalid here", "fails"][self as usize]
    }
    /// Whether it is a fault of the simulator until a cause is found.
    pub fn is_fault(self) -> bool {
        matches!(self, Outcome::Differs | Outcome::Failed)
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        match verdict {
            Verdict::Agree => Outcome::Agree,
            Verdict::Differs => Outcome::Differs,
            Verdict::CannotTell => Outcome::CannotTell,
        }
    }
}

/// How a lab is tried.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Most live runs.
    pub most: usize,
    /// The one measure that is judged; all if `None`.
    pub focus: Option<&'a str>,
    /// Whether only live runs that are on disk are used.
    pub only_kept: bool,
}

/// What a trial found.
#[derive(Debug)]
pub struct Trial {
    /// The outcome.
    pub outcome: Outcome,
    /// Why it is invalid or failed; empty otherwise.
    pub reason: String,
    /// Valid live runs.
    pub live: Vec<Measured>,
    /// The measures.
    pub rows: Vec<Row>,
    /// The same with simulated hosts that pause when those of the live runs did; empty where that was not tried.
    pub paused: Vec<Row>,
}

/// Tries a lab in this folder, which keeps its runs. `known` are its first live runs, if they are known without the folder.
///
/// # Errors
/// A file cannot be written, or weir cannot be started.
pub fn attempt(
    weir: &Weir,
    cell: &Cell,
    folder: &Path,
    known: Vec<Measured>,
    way: Way<'_>,
) -> Result<Trial, Trouble> {
    place(cell, folder)?;
    let (mut live, mut rows, mut paused) = (known, vec![], vec![]);
    let mut tried = || {
        decide(weir, cell, folder, way, &mut live, &mut rows)?;
        let outcome = Outcome::from(verdict::of_cell(&rows));
        if outcome != Outcome::Agree && live.iter().any(|run| !run.host.pauses.is_empty()) {
            let hosts: Vec<&Host> = live.iter().map(|run| &run.host).collect();
            for seeds in [SEEDS, MANY_SEEDS] {
                let sim = weir.simulate(folder, seeds, &hosts).map_err(failed_on("sim: "))?;
                paused = judged(cell, &live, &sim, way);
                if verdict::of_cell(&paused) != Verdict::CannotTell {
                    break;
                }
            }
        }
        Ok(if verdict::of_cell(&paused) == Verdict::Agree { Outcome::AgreePaused } else { outcome })
    };
    let (outcome, reason) = match tried() {
        Ok(outcome) => (outcome, String::new()),
        Err(Trouble::Invalid(reason)) => (Outcome::Invalid, reason),
        Err(Trouble::Failed(reason)) => (Outcome::Failed, reason),
        Err(trouble) => return Err(trouble),
    };
    Ok(Trial { outcome, reason, live, rows, paused })
}

/// Runs both engines until the measures are decided, or there are no more live runs. `live` and `rows` hold what is there at an error, too.
fn decide(
    weir: &Weir,
    cell: &Cell,
    folder: &Path,
    way: Way<'_>,
    live: &mut Vec<Measured>,
    rows: &mut Vec<Row>,
) -> Result<(), Trouble> {
    let simulate = |seeds| weir.simulate(folder, seeds, &[]).map_err(failed_on("sim: "));
    let run = |live: &mut Vec<Measured>, only_kept: bool| {
        let length = Duration::from_secs(cell.duration.into());
        let found = weir.live(folder, live.len() + 1, length, only_kept).map_err(failed_on(LIVE))?;
        let is_there = found.is_some();
        live.extend(found);
        Ok(is_there)
    };
    let judged = |live: &[Measured], sim: &[Measured]| judged(cell, live, sim, way);
    let sim = simulate(SEEDS)?;
    // Runs that are there already are all used: after a resimulation there may be more than the verdict needs.
    let mut kept = Ok(true);
    while live.len() < way.most && matches!(kept, Ok(true)) {
        kept = run(live, true);
    }
    *rows = judged(live, &sim);
    kept?;
    let is_open = |rows: &[Row]| verdict::of_cell(rows) == Verdict::CannotTell;
    while !way.only_kept && live.len() < way.most && (live.len() < FEWEST || is_open(rows)) {
        run(live, false)?;
        *rows = judged(live, &sim);
    }
    if live.len() >= FEWEST && is_open(rows) {
        *rows = judged(live, &simulate(MANY_SEEDS)?);
    }
    Ok(())
}

/// The measures of these runs, judged.
fn judged(cell: &Cell, live: &[Measured], sim: &[Measured], way: Way<'_>) -> Vec<Row> {
    let late_ms = live.iter().map(|run| run.host.late_ms).sum::<f64>() / live.len().max(1) as f64;
    let scale = Scale { packet_ms: cell.packet_ms(), late: 2.0 * late_ms / cell.rtt };
    let mut rows = verdict::rows(live, sim, scale, cell.draws_traffic());
    rows.retain(|row| way.focus.is_none_or(|focus| row.measure == focus));
    rows
}

/// Names the engine in a failure.
fn failed_on(engine: &'static str) -> impl Fn(Trouble) -> Trouble {
    move |trouble| match trouble {
        Trouble::Failed(reason) => Trouble::Failed(format!("{engine}{reason}")),
        trouble => trouble,
    }
}

/// Writes the lab into its folder. A folder with another lab, by another version of the judge, is set aside.
fn place(cell: &Cell, folder: &Path) -> Result<(), Trouble> {
    let (lab, text) = (folder.join("lab.toml"), cell.toml());
    match fs::read_to_string(&lab) {
        Ok(there) if there == text => return Ok(()),
        Ok(_) => {
            let aside = folder.with_extension("before");
            if aside.exists() {
                fs::remove_dir_all(&aside).map_err(Trouble::io(&aside))?;
            }
            fs::rename(folder, &aside).map_err(Trouble::io(&aside))?;
            eprintln!(
                "    {} has another lab: its runs are set aside in {}",
                folder.display(),
                aside.display()
            );
        }
        Err(_) => {}
    }
    fs::create_dir_all(folder).map_err(Trouble::io(folder))?;
    fs::write(&lab, text).map_err(Trouble::io(&lab))
}
