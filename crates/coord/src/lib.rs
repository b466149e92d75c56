//! The Coordination Protocol (CP): many flows between two sites share one path as one application.
//!
//! Source: the coordination dissertation (D. E. Ott, UNC Chapel Hill, 2005); section numbers in this crate are its own.
//! An *aggregation point* (AP) stands at the edge of each site. Every packet of an application carries a CP header. The
//! meaning of its words depends on the leg:
//!
//! | leg | words 1 to 4 | what happens there |
//! |---|---|---|
//! | endpoint to its AP | four operations | the AP writes cells of the application's [`Table`] |
//! | AP to AP | a probe | the receiving AP measures round trip time, loss and the rate of one flowshare |
//! | AP to endpoint | four reports | the endpoint reads the cells that its report pointers select |
//!
//! The AP informs; it does not delay, queue or shape. An application of `m` flows may send `m` flowshares in total; a
//! [`scheme`] splits them among the flows. Everything here is a pure state machine: its input is packets and times, its
//! output is rewritten headers, verdicts and the time of the next timer.
//!
//! `point.rs` is the file to open first.
#![forbid(unsafe_code)]

mod aggregate;
mod application;
pub mod cell;
pub mod checksum;
pub mod config;
pub mod endpoint;
pub mod estimator;
pub mod filter;
mod five_tuple;
pub mod guide;
pub mod header;
mod lag;
pub mod layer;
mod loss;
mod measure;
pub mod participation;
mod path;
pub mod point;
mod rtt;
pub mod scheme;
pub mod seal;
mod series;
mod share;
mod table;
mod ticks;

pub use aggregate::Function;
pub use application::{Application, Flow};
pub use config::Config;
pub use filter::Filter;
pub use five_tuple::FiveTuple;
pub use loss::{Detector, Outcome};
pub use path::Path;
pub use point::{Packet, Point, Refusal, Side, Verdict};
pub use rtt::Rtt;
pub use series::{Series, Statistic};
pub use table::Table;
pub use ticks::Ticks;
