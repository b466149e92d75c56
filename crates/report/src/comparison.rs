//! The page of `weir compare`: cells of one result, or of several, as the comparison of a lab shows them, with the verdicts
//! below. Its folder is a report like any other: run pages, series and all metrics are beside it.

use crate::charts::RunSeries;
use crate::folder::Folder;
use crate::growing::{Series, write_pages};
use crate::lab::{Judged, Lab};
use crate::pages::Pages;
use crate::trajectories::Trajectories;
use crate::warnings::run_with_warnings;
use crate::{ReportError, charts, columns, events, script};
use std::path::Path;
use weir_engine::{FinishedRun, Results};
use weir_record::{Param, Records, RunSummary, Summary, View};

/// A result whose runs are shown.
pub struct Side<'a> {
    /// Its name.
    pub name: String,
    /// Its runs, in the order in which they are shown.
    pub results: &'a Results,
    /// Their metrics, in the same order.
    pub summary: &'a Summary,
}

/// Writes the page into a folder, as `index.html`, with the trajectories of single flows if there are any. With `in_order`, a cell has one label, and cells keep the order of their
/// runs; otherwise the levels of the tree are kept if all sides have the same.
///
/// # Errors
/// A file that cannot be written, or records that cannot be read.
pub fn write_comparison(
    folder: &Path,
    sides: &[Side<'_>],
    in_order: bool,
    judged: Option<Judged<'_>>,
    trajectories: Option<&Trajectories>,
) -> Result<(), ReportError> {
    let out = Folder::new(folder);
    let naming = Naming::new(sides, in_order);
    let mut lab = Lab {
        name: sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(" and "),
        version: env!("CARGO_PKG_VERSION").into(),
        levels: naming.levels.clone(),
        has_columns: true,
        ..Lab::default()
    };
    let mut summaries: Vec<RunSummary> = vec![];
    for (number, side) in sides.iter().enumerate() {
        for (run, summary) in side.results.runs.iter().zip(&side.summary.runs) {
            let mut numbers = run_with_warnings(summary, run);
            // Both engines' runs of a cell share their index and their id, as in the result itself.
            let first = lab.runs.iter().find(|known| known.id == named(sides, number, &numbers.id));
            numbers.number = first.map_or(lab.runs.len(), |known| known.number);
            numbers.id = named(sides, number, &numbers.id);
            numbers.params = naming.params(side, run);
            lab.runs.push(numbers);
            summaries.push(summary.clone());
        }
    }
    let colours = lab.group_names().into_iter().map(String::from).zip(0..).collect();
    let series = Series::of(&lab, lab.engines().len());
    let mut begin = 0;
    for side in sides {
        let text = |place: usize, run: &FinishedRun, records: &Records| {
            let numbers = &lab.runs[begin + place];
            let view = View::after(run.info.warmup, &run.info, records);
            let own = charts::charts(&run.info, &view, records, lab.runs.len());
            let own = RunSeries { events: events::events(&run.file.run), ..own };
            series.add(&out, numbers, script::series(numbers, &own, &colours))
        };
        side.results.each(|_| true, text)?;
        begin += side.results.runs.len();
    }
    let summary = Summary {
        lab: lab.name.clone(),
        weir_version: lab.version.clone(),
        planned_runs: summaries.len(),
        runs: summaries,
    };
    out.write("report/metrics.js", &columns::script(&summary))?;
    if let Some(all) = trajectories {
        all.write_scripts(&out)?;
    }
    write_pages(&out, &lab, &series)?;
    out.write("index.html", Pages::new(&lab).comparison("", judged, trajectories).as_bytes())
}

/// The id of a run; with several results the number of the result comes first, so that it is unique.
fn named(sides: &[Side<'_>], side: usize, id: &str) -> String {
    if sides.len() > 1 { format!("{}-{id}", side + 1) } else { id.into() }
}

/// The levels and labels by which runs are distinguished.
struct Naming {
    /// Whether there are several sides, distinguished by a level of their own.
    several: bool,
    levels: Vec<String>,
    /// Whether the levels of the tree are kept.
    kept: bool,
    /// The levels on which cells differ: a cell's label consists of these if the levels of the tree are not kept.
    told: Vec<String>,
}

impl Naming {
    fn new(sides: &[Side<'_>], in_order: bool) -> Naming {
        let levels_of = |side: &Side<'_>| -> Vec<String> {
            let first = side.results.runs.first();
            first.map_or(vec![], |run| run.info.params.iter().map(|param| param.level.clone()).collect())
        };
        let first = sides.first().map(levels_of).unwrap_or_default();
        let kept = !in_order && sides.iter().all(|side| levels_of(side) == first);
        let runs = || sides.iter().flat_map(|side| &side.results.runs);
        let label = |run: &FinishedRun, level: &str| -> Option<String> {
            Some(run.info.params.iter().find(|param| param.level == level)?.value.clone())
        };
        let differs = |level: &String| {
            let mut labels = runs().map(|run| label(run, level));
            let first = labels.next();
            labels.any(|other| Some(other) != first)
        };
        let mut levels = if sides.len() > 1 { vec!["result".to_string()] } else { vec![] };
        match kept {
            true => levels.extend(first),
            false => levels.push("cell".into()),
        }
        let all = runs().flat_map(|run| run.info.params.iter().map(|param| param.level.clone()));
        let mut told: Vec<String> = vec![];
        for level in all {
            if !told.contains(&level) && differs(&level) {
                told.push(level);
            }
        }
        Naming { several: sides.len() > 1, levels, kept, told }
    }

    fn params(&self, side: &Side<'_>, run: &FinishedRun) -> Vec<String> {
        let mut params = if self.several { vec![side.name.clone()] } else { vec![] };
        let labels = |params: &mut dyn Iterator<Item = &Param>| {
            params.map(|param| param.value.clone()).collect::<Vec<_>>()
        };
        if self.kept {
            params.extend(labels(&mut run.info.params.iter()));
        } else {
            let told = |param: &&Param| self.told.contains(&param.level);
            let cell = labels(&mut run.info.params.iter().filter(told)).join(", ");
            params.push(if cell.is_empty() { run.info.lab.clone() } else { cell });
        }
        params
    }
}
