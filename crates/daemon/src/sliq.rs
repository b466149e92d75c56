//! The transport SLIQ between hosts: files, streams and measurements.

mod args;
mod connect;
mod files;
mod frames;
mod member;
mod perf;
mod received;
mod send;
mod serve;

pub use args::{PerfArgs, SendArgs, ServeArgs};

daemons! {
    /// Transfers and measurements over SLIQ.
    pub enum Command {
        /// Receive files, a stream or measurements from hosts whose keys are allowed
        Serve(ServeArgs),
        /// Send files, or standard input
        Send(SendArgs),
        /// Measure throughput, latency and the share of messages in time
        Perf(PerfArgs),
    }
}
