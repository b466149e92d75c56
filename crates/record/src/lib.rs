//! Records, which engines write and from which every number is computed; their Parquet files; and the registry of metrics.
//!
//! An engine hands its records to a [`Recorder`]: [`Records`] keep them in memory, a [`ParquetRecorder`] also writes them to
//! a run's folder. [`Gathered`] holds a run's records by column, until a [shard](write_shard) of several runs is written.
//! Reading gives [`Records`] again. With a [`RunInfo`], a [`View`] adds them up over a window of time, [`METRICS`] are
//! computed from the view, and a [`RunSummary`] holds the metrics of a run in `summary.json`. [`series()`] computes values
//! over time, [`spreads`] distributions. [`compare::compare`] compares two results, [`trajectory`] holds single flows of two
//! runs beside each other, [`export`] writes tables for other tools.
//!
//! `types.rs` is the file to open first, then `metrics/mod.rs`.
#![forbid(unsafe_code)]

mod alone;
mod bound;
pub mod compare;
mod error;
mod export;
mod frame;
mod gathered;
mod info;
mod json;
pub mod metrics;
mod oracle;
mod packed;
mod reader;
mod records;
mod seal;
mod selector;
mod series;
mod shard;
mod spread;
mod states;
mod sum;
mod summary;
mod table;
mod tables;
#[cfg(test)]
mod testing;
mod tidy;
pub mod trajectory;
mod types;
mod writer;

pub use alone::add_harm;
pub use error::RecordError;
pub use export::{ExportFormat, export, export_as, export_gathered};
pub use frame::{Cells, Frame, FrameColumn};
pub use gathered::Gathered;
pub use info::{
    ENGINES, FlowInfo, GroupInfo, LinkInfo, Param, Premises, RouteInfo, RunInfo, Sharing, StationInfo,
    WindowInfo,
};
pub use json::{to_json, write_json};
pub use metrics::{
    Column, Distribution, Domain, Level, METRICS, Metric, Metrics, Outside, Plot, SETTLING_TOLERANCE, Value,
    View, Window, metric,
};
pub use oracle::{LEAST_USED_PERCENT, MOST_ESTIMATE, ROUND_TRIPS_ABOVE, STARTUP_ROUND_TRIPS, Trip};
pub use packed::PackedHistogram;
pub use records::Records;
pub use seal::{check_lengths, read_sealed, read_shard_sealed, run_count, seal};
pub use selector::{Statistic, ValueSelector};
pub use series::{SeriesSet, Subject, Values, added, flow_series, series};
pub use shard::{read_shard, write_shard};
pub use spread::{SHARES, Spread, spreads};
pub use sum::Sealed;
pub use summary::{
    ClassSummary, FlowSummary, GroupSummary, PairSummary, Part, QueueSummary, RunSummary, StationSummary,
    Summary, WindowSummary,
};
pub use tables::{Described, Table};
pub use tidy::{Tidy, export_tidy};
pub use types::{
    Component, DecisionRecord, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Message,
    MessageFate, MessageKind, PacketRecord, Recorder, RttSample, StateSample, TransitSample, TransportSample,
};
/// The fabric's counters, and the events of a packet at a link, which samples hold unchanged.
pub use weir_fabric::{FlowCounters, LinkCounters, PacketEvent};
pub use writer::ParquetRecorder;
