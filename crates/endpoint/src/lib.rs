//! What an end of a connection is to its driver: a pure state machine with an explicit clock. Packets, writes and times go in;
//! packets, reads and the next time come out. The transports implement [`Endpoint`] in crates of their own.
//!
//! Also here: the bodies of packets ([`Body`]), the settings of connections, and what several transports share ([`Prr`]).
//! `endpoint.rs` is the file to open first.
#![forbid(unsafe_code)]

mod body;
mod endpoint;
mod prr;
mod segment;
mod settings;
mod setup;

pub use body::{Body, Datagram};
pub use endpoint::{Counts, Endpoint, Limits, Message, Part, Read, Sample, Stream};
pub use prr::Prr;
pub use segment::{AccEcnOption, Flags, MAX_SACK, Sack, Segment};
pub use settings::{Buffer, RTO_MIN, Settings};
pub use setup::{FullPacket, Setup};
