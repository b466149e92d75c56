//! The valid live runs of a session, one line of JSON each, in the repository (`docs/judge/seed-N.jsonl`): a later build can be judged by
//! them on any machine, and a session goes on elsewhere.

use crate::cell::Cell;
use crate::measure::{Host, MEASURES, Measured};
use crate::weir::{Trouble, hash, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A live run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    cell: u64,
    /// Hash of the cell's lab file: another version of the judge may draw another lab.
    lab: String,
    kernel: String,
    /// Its number among those of the cell, from 1: the seed that it was asked for.
    run: u64,
    /// The seed that weir made of that.
    seed: u64,
    late_ms: f64,
    /// Beginning and length of each pause of the host, in ms; lines of before they were measured have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<(f64, f64)>,
    /// Measure, subject, value.
    values: Vec<(String, String, Option<f64>)>,
}

/// The live runs of a session, by the numbers of cell and run.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    /// The running kernel.
    kernel: String,
    runs: BTreeMap<(u64, u64), Line>,
}

impl Kept {
    /// Those in the file of this seed; `kernel` is the running one.
    ///
    /// # Errors
    /// The file is damaged, or its folder cannot be made.
    pub(crate) fn open(folder: &Path, seed: u64, kernel: String) -> Result<Kept, Trouble> {
        fs::create_dir_all(folder).map_err(Trouble::io(folder))?;
        let path = folder.join(format!("seed-{seed}.jsonl"));
        let text = if path.exists() {
            fs::read_to_string(&path).map_err(Trouble::io(&path))?
        } else {
            String::new()
        };
        let damaged = |(place, error)| Trouble::Io(format!("{}: line {place}: {error}", path.display()));
        let lines = text.lines().zip(1..).map(|(line, place)| {
            serde_json::from_str(line).map_err(|error: serde_json::Error| damaged((place, error)))
        });
        let runs: Result<_, Trouble> =
            lines.map(|line| line.map(|line: Line| ((line.cell, line.run), line))).collect();
        Ok(Kept { runs: runs?, path, kernel })
    }

    /// The first live runs of a cell, up to the first that is missing.
    pub(crate) fn of(&self, number: u64, cell: &Cell) -> Vec<Measured> {
        let lab = hash(cell.toml().as_bytes());
        let there = (1..).map_while(|run| self.runs.get(&(number, run)));
        there.take_while(|line| line.lab == lab).map(Line::measured).collect()
    }

    /// Keeps the live runs of a cell, of which the first may be kept already; those of another lab in its place go.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn put(&mut self, number: u64, cell: &Cell, live: &[Measured]) -> Result<(), Trouble> {
        let (there, lab) = (self.of(number, cell).len(), hash(cell.toml().as_bytes()));
        self.runs.retain(|(cell, _), line| *cell != number || line.lab == lab);
        for (run, measured) in (1..).zip(live).skip(there) {
            let values = measured
                .values
                .iter()
                .map(|((place, of), value)| (MEASURES[*place].name.to_owned(), of.clone(), *value));
            let line = Line {
                cell: number,
                lab: lab.clone(),
                kernel: self.kernel.clone(),
                run,
                seed: measured.seed,
                late_ms: measured.host.late_ms,
                pauses: measured.host.pauses.clone(),
                values: values.collect(),
            };
            self.runs.insert((number, run), line);
        }
        let mut text = String::new();
        for line in self.runs.values() {
            text += &serde_json::to_string(line).map_err(|error| Trouble::Io(error.to_string()))?;
            text.push('\n');
        }
        write_whole(&self.path, &text)
    }

    /// The kernels of these runs.
    pub(crate) fn kernels(&self) -> BTreeSet<String> {
        self.runs.values().map(|line| line.kernel.clone()).collect()
    }

    /// Why no live run may be added to these; `None` if one may.
    pub(crate) fn refusal(&self) -> Option<String> {
        let version = |release: &str| release.split('-').next().unwrap_or_default().to_owned();
        let other = self.kernels().into_iter().find(|there| version(there) != version(&self.kernel))?;
        let (path, kernel) = (self.path.display(), &self.kernel);
        Some(format!(
            "{path} has live runs of Linux {other}, and this is {kernel}: judge by them with --resimulate, or move the file away to begin anew"
        ))
    }
}

impl Line {
    /// A measure that this version of the judge does not know is left out.
    fn measured(&self) -> Measured {
        let known = |(name, of, value): &(String, String, Option<f64>)| {
            let place = MEASURES.iter().position(|measure| measure.name == name)?;
            Some(((place, of.clone()), *value))
        };
        Measured {
            seed: self.seed,
            host: Host { late_ms: self.late_ms, pauses: self.pauses.clone() },
            values: self.values.iter().filter_map(known).collect(),
        }
    }
}
