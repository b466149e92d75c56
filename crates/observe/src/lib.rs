//! What is seen of a network from outside, without weir at its ends: captures, read as streams, and the flows in them. Pure: bytes of
//! any reader go in, numbers come out.
//!
//! [`Capture`] returns packets, [`Packet`] reads their headers, [`Analysis`] follows their flows,
//! and [`compare`] finds the packets of two captures in each other. `analysis.rs` is the file to open first.

#![forbid(unsafe_code)]

mod analysis;
mod bytes;
mod capture;
mod crossing;
mod flow;
pub mod ip_id;
mod packet;
mod queue;
mod rate;
mod report;
mod spread;
mod stamped;
mod times;

pub use analysis::{Analysis, Settings};
pub use capture::{Capture, CaptureError, Ended, Frame, Unread};
pub use crossing::{Clocks, CrossingReport, KnownBy, Passage, WayReport, compare};
pub use flow::Side;
pub use packet::{Packet, Skipped, TCP, Tcp, UDP};
pub use queue::{
    Backlog, Bracket, ByCodepoint, Drops, KernelCounts, QueueChecks, QueueCounts, QueuePeriod, QueueReport,
    Sighting, WatchSettings, Watched, What,
};
pub use rate::Period;
pub use report::{DirectionReport, FlowReport, Report, TcpReport, Totals};
pub use stamped::{KindReport, StampedReport};
pub use times::Times;
