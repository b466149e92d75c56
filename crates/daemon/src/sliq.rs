//! The transport SLIQ between hosts: files, streams and measurements.

mod args;
mod connect;
mod frames;
mod member;
mod perf;
mod received;
mod send;
mod serve;

pub use args::{PerfArgs, SendArgs, ServeArgs};
pub use perf::perf;
pub use send::send;
pub use serve::serve;
