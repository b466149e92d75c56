//! A result folder read back: its lab, its runs in the order of the tree, and the summary computed from their records.

use crate::folder::{FolderError, RunFile, cell_id, is_results, read_run, write_atomically};
use std::path::{Path, PathBuf};
use weir_base::Span;
use weir_plan::{Diagnostics, Lab, Run};
use weir_record::{
    FlowInfo, GroupInfo, LinkInfo, ParamInfo, RecordError, Records, RunInfo, RunSummary, Summary,
};
use weir_workload::Needs;

/// A folder that holds results.
#[derive(Debug)]
pub struct Results {
    /// The folder.
    pub path: PathBuf,
    /// The lab as it was run.
    pub lab: Lab,
    /// The finished runs, in the order of the tree, the engines of a run side by side.
    pub runs: Vec<FinishedRun>,
}

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// What `run.json` says.
    pub file: RunFile,
    /// The run, described for metrics.
    pub info: RunInfo,
}

/// Why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The folder holds no results of weir's.
    #[error("{0} holds no results: a lab.toml and runs/ should be in it")]
    NoResults(String),
    /// Its lab cannot be read.
    #[error("the lab that it holds cannot be read:\n{0}")]
    Lab(Diagnostics),
    /// Records of a run cannot be read.
    #[error("run {id}: {error}")]
    Records {
        /// The run.
        id: String,
        /// Why.
        error: RecordError,
    },
    /// Writing failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Engines, in the order in which their runs stand side by side.
const ENGINES: [&str; 2] = ["sim", "live"];

impl Results {
    /// Reads a folder: the lab, and which of its runs are finished. Records are read later, run by run.
    ///
    /// # Errors
    /// It is not a result folder.
    pub fn open(path: &Path) -> Result<Results, ResultsError> {
        let file = path.join("lab.toml");
        if !is_results(path) {
            return Err(ResultsError::NoResults(path.display().to_string()));
        }
        let lab = Lab::load(&file, &[]).map_err(ResultsError::Lab)?;
        let finished = |engine: &str, run: &Run| {
            let folder = path.join("runs").join(cell_id(engine, run));
            let file = read_run(&folder)?;
            let info = run_info(&file);
            Some(FinishedRun { folder, file, info })
        };
        let runs = lab.runs();
        let runs = runs.iter().flat_map(|run| ENGINES.iter().filter_map(move |engine| finished(engine, run)));
        let runs = runs.collect();
        Ok(Results { path: path.to_owned(), lab, runs })
    }

    /// Computes the summary of all runs from their records, after their own warm-up or another.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn summary(&self, warmup: Option<Span>) -> Result<Summary, ResultsError> {
        let runs = self.runs.iter().map(|run| run.summary(warmup)).collect::<Result<_, _>>()?;
        Ok(Summary { lab: self.lab.name().into(), weir_version: env!("CARGO_PKG_VERSION").into(), runs })
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), ResultsError> {
        let path = self.path.join("summary.json");
        let failed = |error| FolderError::Io { path: path.display().to_string(), error };
        let text = serde_json::to_string_pretty(summary).map_err(std::io::Error::other).map_err(failed)?;
        Ok(write_atomically(&path, (text + "\n").as_bytes()).map_err(failed)?)
    }
}

impl FinishedRun {
    /// Reads the run's records.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn records(&self) -> Result<Records, ResultsError> {
        Records::read(&self.folder).map_err(|error| ResultsError::Records { id: self.file.id.clone(), error })
    }

    /// Whether a group's data cross the link whose queue the run's own metrics are about.
    pub fn crosses_bottleneck(&self, group: usize) -> bool {
        let run = &self.file.run;
        let Some((link, group)) = self.info.bottleneck.zip(run.groups.get(group)) else { return false };
        weir_fabric::Paths::new(&crate::fabric_config(run)).crosses(group.from, group.to, link as usize)
    }

    /// Computes the run's metrics from its records.
    ///
    /// # Errors
    /// As [`FinishedRun::records`].
    pub fn summary(&self, warmup: Option<Span>) -> Result<RunSummary, ResultsError> {
        let mut summary = RunSummary::new(&self.info, &self.records()?, warmup);
        summary.warnings.clone_from(&self.file.outcome.warnings);
        summary.spoiled.clone_from(&self.file.outcome.spoiled);
        Ok(summary)
    }
}

/// A run's description for metrics.
fn run_info(file: &RunFile) -> RunInfo {
    let run = &file.run;
    let param =
        |param: &weir_plan::Param| ParamInfo { level: param.level.clone(), value: param.value.clone() };
    let link = |link: &weir_plan::Link| LinkInfo {
        name: link.name.clone(),
        rate: link.rate,
        delay: link.delay,
        queue: link.queue.name().into(),
        measured: link.measured,
    };
    let group = |group: &weir_plan::Group| {
        let stream = group.workload.needs() == Needs::Stream;
        GroupInfo {
            name: group.name.clone(),
            controller: stream.then(|| group.tcp.cc.name().into()),
            transport: if stream { "tcp" } else { "udp" }.into(),
            workload: group.workload.name().into(),
            rtt: group.rtt,
        }
    };
    let flow = |flow: &weir_plan::Flow| FlowInfo {
        name: flow.name.clone(),
        group: flow.group as u32,
        start: flow.start,
        stop: flow.stop,
    };
    RunInfo {
        id: file.id.clone(),
        lab: run.lab.clone(),
        engine: file.engine.clone(),
        seed: run.seed,
        repeat: run.repeat,
        params: run.params.iter().map(param).collect(),
        duration: run.duration,
        warmup: run.warmup,
        sample: run.sample,
        bottleneck: bottleneck(run),
        links: run.network.links.iter().map(link).collect(),
        groups: run.groups.iter().map(group).collect(),
        flows: run.flows.iter().map(flow).collect(),
    }
}

/// The measured link that the run's own queue metrics are about: the slowest one that a group's data crosses, the first of
/// several equals.
fn bottleneck(run: &Run) -> Option<u32> {
    let routes = weir_fabric::Paths::new(&crate::fabric_config(run));
    let crossed = |index: usize| run.groups.iter().any(|group| routes.crosses(group.from, group.to, index));
    let candidates = run.measured_links().filter(|(index, _)| crossed(*index));
    candidates.min_by_key(|(_, link)| link.rate).map(|(index, _)| index as u32)
}
