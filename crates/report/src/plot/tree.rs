//! The tree of a result as a plot sees it: its cells with their runs, those that a request keeps, and the levels that it leaves
//! open. A level that is neither an axis nor fixed is refused, unless the request asks for the mean over it.

use super::{PlotError, asked, listed};
use std::collections::HashMap;
use weir_engine::{FinishedRun, Results};

/// A cell on one engine: its choices, and its repeats.
pub(super) struct Cell<'r> {
    /// The label on each level.
    pub(super) labels: Vec<String>,
    pub(super) engine: &'static str,
    /// Its finished runs that are not invalid, or all of them if all are; empty if none was run.
    pub(super) runs: Vec<&'r FinishedRun>,
    /// What a plot must say of these runs; empty if they are all valid.
    pub(super) hint: String,
}

/// The cells that a request keeps.
pub(super) struct Tree<'r> {
    /// The levels' names.
    names: Vec<String>,
    /// All labels of each level, in the order of the lab.
    all: Vec<Vec<String>>,
    pub(super) cells: Vec<Cell<'r>>,
}

impl<'r> Tree<'r> {
    pub(super) fn new(results: &'r Results, only: &[(String, String)]) -> Result<Tree<'r>, PlotError> {
        let (names, all) = results.lab.tree().levels.into_iter().unzip();
        let mut tree = Tree { names, all, cells: cells(results) };
        for (name, label) in only {
            let level = tree.level(name)?;
            if !tree.all[level].contains(label) {
                return Err(asked(
                    format!("`{label}` is not a label of `{name}`"),
                    format!("its labels are {}", listed(tree.all[level].iter().map(String::as_str))),
                ));
            }
            // With several labels of a level, cells with any of them are kept.
            let kept = |own: &String| only.iter().any(|(other, label)| other == name && label == own);
            tree.cells.retain(|cell| kept(&cell.labels[level]));
        }
        if tree.cells.iter().all(|cell| cell.runs.is_empty()) {
            return Err(asked("there is no run to plot", "run the lab, or leave --only out"));
        }
        Ok(tree)
    }

    /// A level by its name, or by the last parts of it.
    pub(super) fn level(&self, name: &str) -> Result<usize, PlotError> {
        let names = || self.names.iter().map(String::as_str);
        let named = weir_plan::level_named(names(), name);
        names().position(|known| Some(known) == named).ok_or_else(|| {
            asked(
                format!("`{name}` is not a level of this tree"),
                format!("the levels are {}", listed(names())),
            )
        })
    }

    /// A level's name as the pages show it.
    pub(super) fn short(&self, level: usize) -> &str {
        weir_plan::short_level(&self.names, level)
    }

    /// The levels on which the kept cells differ.
    pub(super) fn varied(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|level| self.labels(Some(*level)).len() > 1).collect()
    }

    /// The labels of a level that kept cells have, in the order of the lab; without a level, one empty label.
    pub(super) fn labels(&self, level: Option<usize>) -> Vec<String> {
        let Some(level) = level else { return vec![String::new()] };
        let has = |label: &&String| self.cells.iter().any(|cell| cell.labels[level] == **label);
        self.all[level].iter().filter(has).cloned().collect()
    }

    /// The levels over which the mean is taken.
    pub(super) fn averaged(&self, mean_over: &[String]) -> Result<Vec<usize>, PlotError> {
        mean_over.iter().map(|name| self.level(name)).collect()
    }

    /// Refuses a level that varies and is neither an axis nor averaged: a plot would hide it.
    pub(super) fn nothing_hidden(&self, axes: &[usize], averaged: &[usize]) -> Result<(), PlotError> {
        if let Some(level) = averaged.iter().find(|level| axes.contains(level)) {
            let name = self.short(*level);
            return Err(asked(
                format!("`{name}` is an axis, so there is no mean over it"),
                format!("leave --mean-over {name} out, or give the axis another level"),
            ));
        }
        let mut open =
            self.varied().into_iter().filter(|level| !axes.contains(level) && !averaged.contains(level));
        let Some(level) = open.next() else { return Ok(()) };
        let (name, labels) = (self.short(level), self.labels(Some(level)));
        Err(asked(
            format!(
                "`{name}` has {} labels ({}), and is neither an axis nor fixed: a plot would hide what it does",
                labels.len(),
                abridged(&labels)
            ),
            format!(
                "keep one label (--only {name}='{}'), make it an axis (--by {name} or --along {name}), or ask for the mean over it \
                 (--mean-over {name})",
                labels[0]
            ),
        ))
    }

    /// What a plot says below its title: fixed levels, and those over which the mean is taken.
    pub(super) fn about(&self, averaged: &[usize]) -> Vec<String> {
        let fixed = (0..self.names.len()).filter(|level| self.all[*level].len() > 1);
        let fixed = fixed.filter_map(|level| match self.labels(Some(level)).as_slice() {
            [label] => Some(format!("{} {label}", self.short(level))),
            _ => None,
        });
        let means = averaged.iter().map(|level| {
            format!("mean over {} ({})", self.short(*level), abridged(&self.labels(Some(*level))))
        });
        fixed.chain(means).collect()
    }
}

/// Labels for a sentence: the first ones, if there are many.
fn abridged(labels: &[String]) -> String {
    const MOST: usize = 5;
    let named = listed(labels.iter().take(MOST).map(String::as_str));
    if labels.len() > MOST { format!("{named}, ...") } else { named }
}

/// All cells of the lab on the engines that ran, in the order of the tree, those of both engines side by side.
fn cells(results: &Results) -> Vec<Cell<'_>> {
    let engines = ["sim", "live"]
        .into_iter()
        .filter(|engine| results.runs.iter().any(|run| run.file.engine == *engine));
    let engines: Vec<&'static str> = engines.collect();
    let mut runs: HashMap<(Vec<String>, &str), Vec<&FinishedRun>> = HashMap::new();
    for run in &results.runs {
        let labels = run.info.params.iter().map(|param| param.value.clone()).collect();
        runs.entry((labels, run.file.engine.as_str())).or_default().push(run);
    }
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for run in results.lab.runs().into_iter().filter(|run| run.repeat == 1) {
        let labels: Vec<String> = run.params.into_iter().map(|param| param.value).collect();
        for engine in &engines {
            let runs = runs.remove(&(labels.clone(), *engine)).unwrap_or_default();
            // A cell that only the other engine ran is no gap of this one.
            if !runs.is_empty() || engines.len() == 1 {
                cells.push(Cell::new(labels.clone(), engine, runs));
            }
        }
    }
    cells
}

impl<'r> Cell<'r> {
    fn new(labels: Vec<String>, engine: &'static str, all: Vec<&'r FinishedRun>) -> Cell<'r> {
        let count = all.len();
        let valid: Vec<&FinishedRun> =
            all.iter().copied().filter(|run| run.file.outcome.invalid.is_empty()).collect();
        let (runs, hint) = match valid.len() {
            0 if count > 0 => (all, "all runs are invalid".to_owned()),
            some if some < count => {
                (valid, format!("{} of {count} runs are invalid and left out", count - some))
            }
            _ => (valid, String::new()),
        };
        Cell { labels, engine, runs, hint }
    }
}
