//! Records: what engines write and every number is computed from; their Parquet files; and the registry of metrics.
#![forbid(unsafe_code)]

mod types;

pub use types::{
    Component, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, PacketFate, PacketRecord,
    Recorder, RttSample, StateSample, TransportSample,
};
