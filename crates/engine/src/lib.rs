//! What the two engines share: the trait, building a fabric from a run, the result folder, jobs and progress.
#![forbid(unsafe_code)]

mod below;
mod build;
mod capture;
mod ceiling;
mod cores;
mod describe;
mod end_socket;
mod endpoint;
mod error;
mod folder;
mod jobs;
mod lock;
mod place;
mod rerun;
mod results;
mod run_file;
mod sampling;
mod shards;

pub use below::{folder_below, write_below};
pub use build::{NO_FLOW, check_traces, fabric};
pub use capture::Capture;
pub use cores::{both, cores, helper, on_all_cores};
pub use describe::run_info;
pub use end_socket::EndSocket;
pub use endpoint::{record_counts, record_endpoint};
pub use error::{FolderError, Holder};
pub use folder::ResultFolder;
pub use jobs::{Cell, Jobs, Progress, Tally, run_all};
pub use lock::Lock;
pub use place::Place;
pub use rerun::Asked;
pub use results::{Count, FinishedRun, Results, ResultsError};
pub use run_file::{RunFile, cell_id};
pub use sampling::{PacketLog, Sampler, observer, record_notice};
pub use shards::MOST_FOLDERS;

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weir_fabric::Totals;
use weir_plan::Run;
use weir_record::Recorder;

/// The names of all engines, in the order in which their runs stand side by side.
pub(crate) const ENGINES: [&str; 2] = ["sim", "live"];

/// Something that turns a run into records.
pub trait Engine: Sync {
    /// `sim` or `live`.
    fn name(&self) -> &'static str;

    /// Whether its runs must not share the machine with others.
    fn runs_alone(&self) -> bool;

    /// Whether this engine can do this run here, before anything starts.
    ///
    /// # Errors
    /// What is missing, and what can be done about it.
    fn check(&self, run: &Run) -> Result<(), EngineError>;

    /// Runs it, writing records as it goes. Stops early, with [`EngineError::Cancelled`], when `watch.cancel` is set.
    ///
    /// # Errors
    /// Why the run failed.
    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError>;
}

/// How the caller watches over a run.
pub struct Watch<'a> {
    /// Set when the run is to stop.
    pub cancel: &'a AtomicBool,
    /// Told the share of the run that is done, in `[0, 1]`, now and then.
    pub progress: &'a (dyn Fn(f64) + Sync),
    /// A packet capture of a link, where one was asked for.
    pub capture: Option<Capture>,
    /// The run's folder, where whatever a run leaves beside its records is kept; none keeps nothing.
    pub folder: Option<&'a std::path::Path>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It was told to stop.
    #[error("cancelled")]
    Cancelled,
    /// This machine or engine cannot do it.
    #[error("{what}")]
    Unable {
        /// What cannot be done.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// Something went wrong on the way. The run is tried again.
    #[error("{0}")]
    Failed(String),
    /// A command of the lab failed. The run is not tried again: nobody knows what the command has done outside the lab, and
    /// a second try would do it twice.
    #[error("{0}")]
    Command(String),
}

/// How a run ended, beside its records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether the packets add up.
    pub audit: Audit,
    /// Why the run's numbers should not be trusted; empty when they can be.
    pub invalid: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// What the engine measured of itself: lateness, stalls, foreign load, effective settings (live only).
    pub environment: serde_json::Map<String, serde_json::Value>,
}

/// Every packet has gone somewhere:
/// `sent + duplicated + made = delivered + corrupted + dropped + lost + discarded + held + in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Packets that hosts sent into the fabric.
    pub sent: u64,
    /// Packets that links made of others.
    #[serde(default, skip_serializing_if = "none")]
    pub duplicated: u64,
    /// Packets that stations made.
    #[serde(default, skip_serializing_if = "none")]
    pub made: u64,
    /// Packets that reached a host undamaged.
    pub delivered: u64,
    /// Packets that reached a host damaged, and were thrown away there.
    #[serde(default, skip_serializing_if = "none")]
    pub corrupted: u64,
    /// Dropped by queues.
    pub dropped: u64,
    /// Lost by links.
    pub lost: u64,
    /// Discarded by stations.
    #[serde(default, skip_serializing_if = "none")]
    pub discarded: u64,
    /// Held by stations at the end.
    #[serde(default, skip_serializing_if = "none")]
    pub held: u64,
    /// Still in queues or on the way at the end.
    pub in_flight: u64,
    /// Lost where nothing should be lost: rings, sockets, backlogs (live only).
    pub leaked: u64,
}

impl Audit {
    /// That of a fabric, and of what leaked around it.
    pub fn new(totals: &Totals, leaked: u64) -> Audit {
        Audit {
            sent: totals.sent,
            duplicated: totals.duplicated,
            made: totals.made,
            delivered: totals.delivered,
            corrupted: totals.corrupted,
            dropped: totals.dropped,
            lost: totals.lost,
            discarded: totals.discarded,
            held: totals.held,
            in_flight: totals.in_flight,
            leaked,
        }
    }

    /// Whether the sum comes out and nothing leaked.
    pub fn balances(&self) -> bool {
        let by_stations = self.discarded + self.held;
        let gone = self.delivered + self.corrupted + self.dropped + self.lost + by_stations + self.in_flight;
        self.sent + self.duplicated + self.made == gone && self.leaked == 0
    }
}

/// Whether there are none: what no link or station of a run does is not told of it.
fn none(count: &u64) -> bool {
    *count == 0
}
