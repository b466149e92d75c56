//! The basic types that every other crate uses: time, rates and sizes with their units, ECN codepoints and DSCPs, the packet trait, filters,
//! seeded random streams, and the few transcendental functions that must give the same result on every machine.
//!
//! Nothing here reads a clock, the environment or the network.
//!
//! `units.rs` and `time.rs` are the files to open first.
#![forbid(unsafe_code)]

mod added;
mod bucket;
mod clock;
mod codepoint;
mod filter;
mod hex;
mod histogram;
mod limit;
pub mod math;
mod named;
mod packet;
mod parameter;
mod ports;
mod prefix;
mod random;
mod ranges;
mod registry;
pub mod terminal;
mod time;
mod units;

pub use added::{Added, Additions, Parameters, Prototype, Raised};
pub use bucket::Bucket;
pub use clock::Clock;
pub use codepoint::{CODEPOINTS, Dscp, Ecn};
pub use filter::{Ewma, WindowedMax, WindowedMin};
pub use hex::Hex;
pub use histogram::Histogram;
pub use limit::not_started;
pub use named::Named;
pub use packet::{FlowId, Packet};
pub use parameter::ParameterError;
pub use ports::Ports;
pub use prefix::{Prefix, PrefixError};
pub use random::Random;
pub use ranges::within;
pub use time::{Span, Time};
pub use units::{Bytes, Rate, UnitError, WORDS};

/// Re-exports for the [`registry!`] macro, so that its users need not depend on these crates.
#[doc(hidden)]
pub mod __private {
    pub use crate::registry::{Member, registry_schema};
    pub use {schemars, serde, serde_json};
}
