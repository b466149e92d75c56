//! A report that is written while its lab runs: runs join it as they end, the index is written now and then, and all pages
//! at the end. In a report of finished results no run has joined before the end.
//!
//! In a large lab, the series and pages of a hundred runs share a file, a piece: `report/series/K.js` and
//! `report/pages/K.js`; `report/run.html` shows the run that its address names. Writing ten thousand files would take longer
//! than simulating the runs. A piece's series are written when all its runs have joined.

use crate::folder::Folder;
use crate::lab::{Lab, PIECE, Run, agreement};
use crate::pages::{Pages, both_file, run_file};
use crate::scripting::Scripting;
use crate::tables::ENGINES;
use crate::warnings::run_with_warnings;
use crate::{ASSETS, ReportError, UPLOT_LICENSE, columns, scatter, script};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_base::Span;
use weir_engine::{FinishedRun, Results, on_all_cores};
use weir_record::{Records, RunSummary, Summary, View};

/// A run, identified by its engine and its index in the tree.
type Key = (String, usize);

/// A report to which runs are added as they end, from several threads.
pub struct Growing {
    outline: Lab,
    scripting: Scripting,
    out: Folder,
    joined: Mutex<BTreeMap<Key, Run>>,
    series: Series,
}

impl Growing {
    /// A report in a result folder, of this lab with these runs on this number of engines.
    pub fn new(
        folder: &Path,
        lab: &weir_plan::Lab,
        runs: &[impl Borrow<weir_plan::Run>],
        engines: usize,
    ) -> Growing {
        let runs: Vec<&weir_plan::Run> = runs.iter().map(Borrow::borrow).collect();
        Growing::of(folder, Lab::outline(lab, &runs, engines), engines)
    }

    fn of(folder: &Path, outline: Lab, engines: usize) -> Growing {
        let scripting = Scripting::new(outline.group_names(), outline.size());
        let (joined, series) = (Mutex::new(BTreeMap::new()), Series::of(&outline, engines));
        Growing { outline, scripting, out: Folder::new(folder), joined, series }
    }

    /// Names of the lab's traffic groups, in the order of their colours.
    pub fn groups(&self) -> &[String] {
        &self.outline.groups
    }

    /// Adds a run with its numbers only: the index shows it, and its plots are written at the end.
    pub fn join(&self, run: &FinishedRun, summary: &RunSummary) {
        let numbers = run_with_warnings(summary, run);
        let mut joined = self.joined();
        // Numbers that were read from disk may be older than those of a run that joined with its series.
        if !self.series.has(&numbers) {
            joined.insert((numbers.engine().to_owned(), run.number), numbers);
        }
    }

    /// Adds a run with its series, so that its records need not be read again.
    pub fn join_with_series(
        &self,
        run: &FinishedRun,
        summary: &RunSummary,
        view: &View<'_>,
        records: &Records,
    ) {
        let numbers = run_with_warnings(summary, run);
        let script = self.scripting.of(&numbers, run, view, records);
        self.take(numbers, script);
    }

    /// Adds a run with its series as a script ([`Scripting`]).
    pub fn join_with_script(&self, run: &FinishedRun, summary: &RunSummary, script: Vec<u8>) {
        self.take(run_with_warnings(summary, run), script);
    }

    fn take(&self, numbers: Run, script: Vec<u8>) {
        // A file that cannot be written now is tried again at the end, where an error is reported.
        let _ = self.series.add(&self.out, &numbers, script);
        self.joined().insert((numbers.engine().to_owned(), numbers.number), numbers);
    }

    /// Number of runs that have joined.
    pub fn count(&self) -> usize {
        self.joined().len()
    }

    fn joined(&self) -> MutexGuard<'_, BTreeMap<Key, Run>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the index of the runs that have joined so far.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn refresh(&self) -> Result<(), ReportError> {
        let mut runs: Vec<Run> = self.joined().values().cloned().collect();
        // Runs of both engines are side by side, as at the end.
        runs.sort_by_key(|run| run.number);
        let lab = Lab { runs, growing: true, ..self.outline.clone() };
        write_assets(&self.out)?;
        self.out.write("report/lab.js", &script::lab(&lab))?;
        self.out.write("index.html", Pages::new(&lab).index().as_bytes())
    }

    /// Writes the whole report: pages from the summary's metrics, series from the records. `warmup` is that of the summary if
    /// it is not the runs' own; plots show the whole run with the warm-up shaded.
    ///
    /// # Errors
    /// A file that cannot be written, or records that cannot be read.
    pub fn finish(
        self,
        results: &Results,
        summary: &Summary,
        warmup: Option<Span>,
    ) -> Result<(), ReportError> {
        let mut joined = self.joined.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut runs = Vec::with_capacity(summary.runs.len());
        for (summary, run) in summary.runs.iter().zip(&results.runs) {
            let known = joined.remove(&(summary.engine.clone(), run.number));
            let known = known.filter(|numbers| self.series.has(numbers));
            let mut numbers = known.unwrap_or_else(|| run_with_warnings(summary, run));
            // Metrics across runs are known only now.
            if numbers.summary.groups != summary.groups {
                numbers.summary = Arc::new(summary.clone());
            }
            if let Some(warmup) = warmup {
                Arc::make_mut(&mut numbers.summary).warmup_s = warmup.as_secs_f64();
            }
            numbers.params = summary.params.iter().map(|param| param.value.clone()).collect();
            runs.push(numbers);
        }
        let levels =
            results.runs.first().map(|run| run.info.params.iter().map(|param| param.level.clone()).collect());
        let lab = Lab {
            levels: levels.unwrap_or_default(),
            runs,
            agreement: agreement(summary),
            has_columns: true,
            scatters: scatter::scatters(&results.lab, summary),
            ..self.outline
        };
        let series = self.series;
        let wanted = |place: usize| !series.has(&lab.runs[place]);
        let text = |place: usize, run: &FinishedRun, records: &Records| {
            let numbers = &lab.runs[place];
            let view = View::after(warmup.unwrap_or(run.info.warmup), &run.info, records);
            series.add(&self.out, numbers, self.scripting.of(numbers, run, &view, records))
        };
        results.each(wanted, text)?;
        self.out.write("report/metrics.js", &columns::script(summary))?;
        write_pages(&self.out, &lab, &series)
    }
}

/// Writes the files that all pages share.
pub fn write_assets(out: &Folder) -> Result<(), ReportError> {
    for (name, content) in ASSETS {
        out.write(&format!("report/assets/{name}"), content.as_bytes())?;
    }
    out.write("report/assets/uplot-LICENSE", UPLOT_LICENSE.as_bytes())
}

/// Writes everything but the series of runs that have files of their own.
pub(crate) fn write_pages(out: &Folder, lab: &Lab, series: &Series) -> Result<(), ReportError> {
    let pages = Pages::new(lab);
    write_assets(out)?;
    if lab.is_large() {
        pieces(out, &pages, series)?;
        out.write("report/run.html", pages.any_run().as_bytes())?;
    } else {
        for (place, run) in lab.runs.iter().enumerate() {
            out.write(&run_file(run, "html"), pages.framed(pages.run(place), &[run]).as_bytes())?;
        }
        for (run, twin) in twins(&pages) {
            let page = pages.framed(pages.both(run, twin), &[run, twin]);
            out.write(&both_file(&run.id), page.as_bytes())?;
        }
    }
    out.write("report/lab.js", &script::lab(lab))?;
    let judged = lab.agreement.as_ref().map(|compared| (compared, ENGINES));
    out.write("report/compare.html", pages.comparison("../", judged, None).as_bytes())?;
    out.write("index.html", pages.index().as_bytes())?;
    out.sweep()
}

/// The simulated runs that have a live run of the same cell and repeat, with it.
fn twins<'a>(pages: &Pages<'a>) -> Vec<(&'a Run, &'a Run)> {
    let simulated = pages.lab.runs.iter().filter(|run| run.engine() == "sim");
    simulated.filter_map(|run| Some((run, pages.twin(run)?))).collect()
}

/// Writes the pages and series of a large lab's runs, on all cores.
fn pieces(out: &Folder, pages: &Pages<'_>, series: &Series) -> Result<(), ReportError> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, run) in pages.lab.runs.iter().enumerate() {
        members.entry(run.number / PIECE).or_default().push(place);
    }
    let members: Vec<(usize, Vec<usize>)> = members.into_iter().collect();
    let one = |(piece, places): &(usize, Vec<usize>)| -> Result<(), ReportError> {
        let mut text = Vec::new();
        for &place in places {
            let run = &pages.lab.runs[place];
            pages.run(place).push_script(&format!("{}/{}", run.engine(), run.id), &mut text);
            if let Some(twin) = pages.twin(run).filter(|_| run.engine() == "sim") {
                pages.both(run, twin).push_script(&format!("both/{}", run.id), &mut text);
            }
        }
        out.write(&format!("report/pages/{piece}.js"), &text)?;
        series.write(out, *piece)
    };
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(piece) = members.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = one(piece) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                break;
            }
        }
    };
    on_all_cores(members.len(), &work);
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The series of runs, as scripts. Each has a file of its own; in a large lab, scripts are kept until all runs of a piece
/// have joined, or until the report ends.
pub(crate) struct Series {
    in_pieces: bool,
    /// Number of runs in a complete piece; the last piece may have fewer.
    whole: usize,
    /// Scripts by index in the tree and engine; empty if the script is in a file.
    texts: Mutex<BTreeMap<(usize, String), Vec<u8>>>,
}

impl Series {
    /// The series of a lab's runs on this number of engines, none of which has joined yet.
    pub(crate) fn of(lab: &Lab, engines: usize) -> Series {
        Series { in_pieces: lab.is_large(), whole: PIECE * engines.max(1), texts: Mutex::default() }
    }

    fn texts(&self) -> MutexGuard<'_, BTreeMap<(usize, String), Vec<u8>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, out: &Folder, run: &Run, text: Vec<u8>) -> Result<(), ReportError> {
        let mut kept = text;
        if !self.in_pieces {
            out.write(&run_file(run, "js"), &kept)?;
            kept = Vec::new();
        }
        let piece = run.number / PIECE;
        let there = {
            let mut texts = self.texts();
            texts.insert((run.number, run.engine().to_owned()), kept);
            texts.range(members(piece)).count()
        };
        if self.in_pieces && there == self.whole { self.write(out, piece) } else { Ok(()) }
    }

    fn has(&self, run: &Run) -> bool {
        self.texts().contains_key(&(run.number, run.engine().to_owned()))
    }

    /// Writes the scripts of a piece's runs, if they are not in its file yet.
    fn write(&self, out: &Folder, piece: usize) -> Result<(), ReportError> {
        let texts =
            self.texts().range(members(piece)).map(|(_, text)| text.as_slice()).collect::<Vec<_>>().concat();
        if !texts.is_empty() {
            out.write(&format!("report/series/{piece}.js"), &texts)?;
            self.texts().range_mut(members(piece)).for_each(|(_, text)| *text = Vec::new());
        }
        Ok(())
    }
}

/// The keys of a piece's runs.
fn members(piece: usize) -> std::ops::Range<(usize, String)> {
    (piece * PIECE, String::new())..((piece + 1) * PIECE, String::new())
}
