//! How the series of a lab's runs become scripts. Another process may do it, for a part of the lab.

use crate::charts::{self, RunSeries};
use crate::lab::Run;
use crate::{events, overlay, script};
use std::collections::HashMap;
use weir_engine::FinishedRun;
use weir_record::{Records, RunSummary, View};

/// What the script of a run's series depends on beside the run.
#[derive(Debug, Clone)]
pub struct Scripting {
    /// The number of each group's colour, by the group's name.
    colours: HashMap<String, usize>,
    /// Number of the lab's runs on all engines: a run of many has fewer points.
    runs: usize,
}

impl Scripting {
    /// For a lab with these traffic groups, in the order of their colours ([`crate::Growing::groups`]), and this number of runs on all
    /// engines.
    pub fn new<'a>(groups: impl IntoIterator<Item = &'a str>, runs: usize) -> Scripting {
        Scripting { colours: groups.into_iter().map(String::from).zip(0..).collect(), runs }
    }

    /// The series of a run with this summary as a script. The distributions are those of the view's window.
    pub fn script(
        &self,
        run: &FinishedRun,
        summary: &RunSummary,
        view: &View<'_>,
        records: &Records,
    ) -> Vec<u8> {
        self.of(&Run::new(summary, run), run, view, records)
    }

    /// The same for a run as the pages show it.
    pub(crate) fn of(&self, numbers: &Run, run: &FinishedRun, view: &View<'_>, records: &Records) -> Vec<u8> {
        let events = events::events(&run.file.run);
        let overlay = overlay::overlay(run, view, records);
        let series = RunSeries { events, overlay, ..charts::charts(&run.info, view, records, self.runs) };
        script::series(numbers, &series, &self.colours)
    }
}
