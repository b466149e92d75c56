//! Records: what engines write and every number is computed from; their Parquet files; and the registry of metrics.
//!
//! An engine hands its records to a [`Recorder`]: [`Records`] keep them in memory, a [`ParquetRecorder`] writes them to a run's folder
//! too. [`Gathered`] are a run's records by column, until a [shard](write_shard) of several runs is written. What is read back are
//! [`Records`] again. With a [`RunInfo`] beside them, a [`View`] adds them up over a window of time, [`METRICS`] are computed from that, and [`RunSummary`] is what `summary.json` says of a run. [`series()`] gives the same over time,
//! [`spreads`] the distributions,
//! [`compare::compare`] holds two results against each other, [`export`] writes tables that other tools read.
#![forbid(unsafe_code)]

mod bound;
pub mod compare;
mod error;
mod export;
mod gathered;
mod info;
mod json;
mod metrics;
mod packed;
mod reader;
mod records;
mod seal;
mod series;
mod shard;
mod spread;
mod sum;
mod summary;
mod table;
mod tables;
mod taken;
#[cfg(test)]
mod testing;
mod tidy;
mod types;
mod writer;

pub use error::RecordError;
pub use export::{ExportFormat, export, export_as, export_gathered};
pub use gathered::Gathered;
pub use info::{FlowInfo, GroupInfo, LinkInfo, Param, RouteInfo, RunInfo, Sharing, StationInfo, WindowInfo};
pub use json::to_json;
pub use metrics::{
    Distribution, Domain, Level, METRICS, Metric, Metrics, Outside, SETTLING_TOLERANCE, Value, View, Window,
    metric,
};
pub use packed::PackedHistogram;
pub use records::Records;
pub use seal::{read_sealed, read_shard_sealed, seal};
pub use series::{SeriesSet, Subject, Values, flow_series, series};
pub use shard::{read_shard, write_shard};
pub use spread::{SHARES, Spread, spreads};
pub use sum::Sealed;
pub use summary::{
    ClassSummary, FlowSummary, GroupSummary, PairSummary, Part, QueueSummary, RunSummary, StationSummary,
    Summary, WindowSummary,
};
pub use tables::{Described, Table};
pub use taken::{Statistic, Taken};
pub use tidy::{Tidy, export_tidy};
pub use types::{
    Component, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Message, MessageFate,
    MessageKind, PacketRecord, Recorder, RttSample, StateSample, TransportSample,
};
/// What the fabric counts, and what happens to a packet at a link: samples hold both as they are.
pub use weir_fabric::{FlowCounters, LinkCounters, PacketEvent};
pub use writer::ParquetRecorder;
