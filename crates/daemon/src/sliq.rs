//! The transport SLIQ between hosts: files, streams and measurements.

mod args;
mod connect;
mod drive;
mod frames;
mod member;
mod perf;
mod received;
mod send;
mod serve;

pub use args::{PerfArgs, SendArgs, ServeArgs};
pub use drive::{Application, Now, drive};

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
