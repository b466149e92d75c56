//! Parts common to both engines: the trait, building a fabric from a run, the result folder, jobs and progress.
//!
//! In goes a run of a plan; out come its records and a result folder. `jobs.rs` is the file to open first.
#![forbid(unsafe_code)]

mod atomic_write;
mod build;
pub mod capacity;
mod capture;
mod ceiling;
mod cores;
mod describe;
mod end_socket;
mod endpoint;
mod error;
mod extent;
mod folder;
mod jobs;
mod location;
mod lock;
pub mod notes;
pub mod optimum;
mod overlay;
mod overview;
mod parts;
pub mod pins;
pub mod premises;
mod prototypes;
mod rerun;
mod results;
mod run_file;
mod sampling;
mod shards;
mod yardsticks;

pub use atomic_write::{atomic_write, create_folder};
pub use build::{changeable_fabric, check_traces, fabric};
pub use capture::{Capture, PacketFile, captured, segments, segments_of};
pub use ceiling::shaper_rate;
pub use cores::{both, cores, helper, on_all_cores};
pub use describe::run_info;
pub use end_socket::EndSocket;
pub use endpoint::{record_counts, record_endpoint, record_limits, record_reported};
pub use error::{FolderError, Holder};
pub use extent::{Extent, Glance};
pub use folder::{ResultFolder, holds_results};
pub use jobs::{Cell, Jobs, Progress, Tally, run_all};
pub use location::RunLocation;
pub use lock::{Lock, writer};
pub use overlay::{link_pairs, offered};
pub use overview::{Overview, check_lengths, overview};
pub use parts::{Part, parts, run_part};
pub use rerun::Asked;
pub use results::{Count, FinishedRun, Results, ResultsError};
pub use run_file::{RunFile, cell_id};
pub use sampling::{HostCounts, PacketLog, Sampler, observer, record_notice};
pub use shards::{MOST_FOLDERS, shard_size};
pub use yardsticks::Yardsticks;

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weir_base::Raised;
use weir_fabric::Totals;
use weir_plan::Run;
use weir_record::Recorder;

/// Something that turns a run into records.
pub trait Engine: Sync {
    /// `sim` or `live`.
    fn name(&self) -> &'static str;

    /// Whether its runs must not share the machine with others.
    fn runs_alone(&self) -> bool;

    /// Whether this engine can do this run here, before anything starts.
    ///
    /// # Errors
    /// The engine cannot do this run here; the error says what is missing and gives advice.
    fn check(&self, run: &Run) -> Result<(), EngineError>;

    /// Runs `run` and writes its records. Stops early, with [`EngineError::Cancelled`], when `watch.cancel` is set.
    ///
    /// # Errors
    /// The run failed.
    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError>;
}

/// The caller's means to follow and stop a run.
pub struct Watch<'a> {
    /// Set when the run is to stop.
    pub cancel: &'a AtomicBool,
    /// Called now and then with the share of the run that is done, in `[0, 1]`.
    pub progress: &'a (dyn Fn(f64) + Sync),
    /// A packet capture of links, if one was asked for.
    pub capture: Option<Capture>,
    /// The run's folder, for files beside its records. `None` if such files are not kept.
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
    /// The run failed for a reason that may be temporary. It is tried again.
    #[error("{0}")]
    Failed(String),
    /// A command of the lab failed. The run is not tried again: the command may have had effects outside the lab, and a second
    /// try would repeat them.
    #[error("{0}")]
    Command(String),
    /// The simulated run does not go on, or holds more than a run may hold. It is not tried again: it would do the same.
    #[error("{0}")]
    Endless(String),
    /// A member that a program has added to a registry failed. It ends the session: the other runs would fail in the same way.
    #[error("{0}")]
    Raised(Raised),
}

/// How a run ended, beside its records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Counts of the run's packets, which must balance.
    pub audit: Audit,
    /// Why the run's numbers should not be trusted; empty when they can be.
    pub invalid: Vec<String>,
    /// The members that a program had added and that took part, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prototypes: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// The engine's measurements of itself and its machine: lateness, stalls, foreign load, effective settings (live only).
    pub environment: serde_json::Map<String, serde_json::Value>,
}

/// Where all packets of a run ended. The counts balance if
/// `sent + duplicated + made = delivered + corrupted + dropped + lost + discarded + held + in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Packets that hosts sent into the fabric.
    pub sent: u64,
    /// Duplicates that links made.
    #[serde(default, skip_serializing_if = "none")]
    pub duplicated: u64,
    /// Packets that stations made.
    #[serde(default, skip_serializing_if = "none")]
    pub made: u64,
    /// Packets that reached a host undamaged.
    pub delivered: u64,
    /// Packets that reached a host damaged; the host discarded them.
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
    /// Packets in queues or on links at the end.
    pub in_flight: u64,
    /// Packets lost outside the emulated network: in rings, sockets and backlogs (live only).
    pub leaked: u64,
}

impl Audit {
    /// The audit of a fabric's totals, with the number of packets that leaked outside it.
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

    /// Whether the counts balance and no packet leaked.
    pub fn balances(&self) -> bool {
        let by_stations = self.discarded + self.held;
        let gone = self.delivered + self.corrupted + self.dropped + self.lost + by_stations + self.in_flight;
        self.sent + self.duplicated + self.made == gone && self.leaked == 0
    }
}

/// Whether a count is 0: such counts are left out of `run.json`.
fn none(count: &u64) -> bool {
    *count == 0
}
