//! Circuits: paths whose rate is reserved. The planner computes the settings with which one transfer fills a circuit from the first round
//! trip on without losses; the calendar admits reservations without overbooking a card; [`transfer`] is the protocol by which two hosts
//! exchange files, and [`group`] the one by which a host sends files to many. Source: F. Alali, "A Cross-Layer Design for Large Data Transfers" (University of Virginia, 2016); a section number
//! without a source is of that thesis.
//!
//! All but [`Store`] is pure; the store touches only the file that it is given.
#![forbid(unsafe_code)]

mod burst;
mod calendar;
mod explain;
pub mod group;
mod headers;
mod plan;
mod refusal;
mod request;
mod store;
pub mod transfer;
mod utc;

pub use calendar::{Calendar, Card, Circuit, Conflict, Guarantee};
pub use explain::Row;
pub use headers::Headers;
pub use plan::{Control, Plan};
pub use refusal::Refusal;
pub use request::{Ip, Layer, Priority, Request, Timers};
pub use store::{Reserved, Store, StoreError};
pub use utc::{Utc, UtcError};
