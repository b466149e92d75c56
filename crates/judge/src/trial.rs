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
    let mut attempt = Attempt { weir, cell, folder, way, live: known, rows: vec![], paused: vec![] };
    let (outcome, reason) = match attempt.outcome() {
        Ok(outcome) => (outcome, String::new()),
        Err(Trouble::Invalid(reason)) => (Outcome::Invalid, reason),
        Err(Trouble::Failed(reason)) => (Outcome::Failed, reason),
        Err(trouble) => return Err(trouble),
    };
    let Attempt { live, rows, paused, .. } = attempt;
    Ok(Trial { outcome, reason, live, rows, paused })
}

/// A trial under way. It holds what is there at an error, too.
struct Attempt<'a> {
    weir: &'a Weir,
    cell: &'a Cell,
    folder: &'a Path,
    way: Way<'a>,
    live: Vec<Measured>,
    rows: Vec<Row>,
    paused: Vec<Row>,
}

impl Attempt<'_> {
    fn outcome(&mut self) -> Result<Outcome, Trouble> {
        self.decide()?;
        let has_pauses = self.live.iter().any(|run| !run.host.pauses.is_empty());
        if verdict::of_cell(&self.rows) != Verdict::Agree && has_pauses {
            self.pause()?;
            if verdict::of_cell(&self.paused) == Verdict::CannotTell && self.may_run() {
                // The engines differ without pauses by fewer live runs than it takes to tell whether they agree with them.
                while self.may_run() {
                    self.run(false)?;
                }
                self.rows = self.judged(&self.simulate(MANY_SEEDS, &[])?);
                self.pause()?;
            }
        }
        Ok(match (verdict::of_cell(&self.rows), verdict::of_cell(&self.paused)) {
            (Verdict::Differs | Verdict::CannotTell, Verdict::Agree) => Outcome::AgreePaused,
            (plain, _) => plain.into(),
        })
    }

    /// Runs both engines until the measures are decided, or there are no more live runs.
    fn decide(&mut self) -> Result<(), Trouble> {
        let sim = self.simulate(SEEDS, &[])?;
        // Runs that are there already are all used: after a resimulation there may be more than the verdict needs.
        let mut kept = Ok(true);
        while self.live.len() < self.way.most && matches!(kept, Ok(true)) {
            kept = self.run(true);
        }
        self.rows = self.judged(&sim);
        kept?;
        while self.may_run() && (self.live.len() < FEWEST || self.is_open()) {
            self.run(false)?;
            self.rows = self.judged(&sim);
        }
        if self.live.len() >= FEWEST && self.is_open() {
            self.rows = self.judged(&self.simulate(MANY_SEEDS, &[])?);
        }
        Ok(())
    }

    /// Simulates the cell with the pauses of its live runs.
    fn pause(&mut self) -> Result<(), Trouble> {
        let hosts: Vec<&Host> = self.live.iter().map(|run| &run.host).collect();
        let mut judged = self.judged(&self.simulate(SEEDS, &hosts)?);
        if verdict::of_cell(&judged) == Verdict::CannotTell {
            judged = self.judged(&self.simulate(MANY_SEEDS, &hosts)?);
        }
        self.paused = judged;
        Ok(())
    }

    fn may_run(&self) -> bool {
        !self.way.only_kept && self.live.len() < self.way.most
    }

    fn is_open(&self) -> bool {
        verdict::of_cell(&self.rows) == Verdict::CannotTell
    }

    fn simulate(&self, seeds: usize, hosts: &[&Host]) -> Result<Vec<Measured>, Trouble> {
        self.weir.simulate(self.folder, seeds, hosts).map_err(failed_on("sim: "))
    }

    /// The next live run. Returns whether it is there.
    fn run(&mut self, only_kept: bool) -> Result<bool, Trouble> {
        let length = Duration::from_secs(self.cell.duration.into());
        let found = self.weir.live(self.folder, self.live.len() + 1, length, only_kept);
        let found = found.map_err(failed_on(LIVE))?;
        let is_there = found.is_some();
        self.live.extend(found);
        Ok(is_there)
    }

    /// The measures of the live runs and of these, judged.
    fn judged(&self, sim: &[Measured]) -> Vec<Row> {
        let live = &self.live;
        let late_ms = live.iter().map(|run| run.host.late_ms).sum::<f64>() / live.len().max(1) as f64;
        let scale = Scale { packet_ms: self.cell.packet_ms(), late: 2.0 * late_ms / self.cell.rtt };
        let mut rows = verdict::rows(live, sim, scale, self.cell.draws_traffic());
        rows.retain(|row| self.way.focus.is_none_or(|focus| row.measure == focus));
        rows
    }
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
