//! Shapers in the running kernel: the token bucket filter and the hierarchical token bucket with its classes, leaf queues and filters,
//! installed, changed and removed through netlink; and journals, by which the changes of a killed process are undone.
//!
//! A separate crate, since its two users need neither the eBPF loader nor the testbed: the circuits of the command line, and the live
//! engine. It is built without clang.
//!
//! A [`Step`] is one change; it can be printed as a `tc` command or made at a [`Device`]. A [`Snapshot`] holds all settings of a device,
//! as the kernel writes them. To restore it, the same bytes are handed to the kernel again, whichever disciplines they describe.
//!
//! `step.rs` is the file to open first.
#![forbid(unsafe_code)]

mod device;
mod filter;
mod journal;
mod message;
mod netlink;
mod problem;
mod psched;
mod snapshot;
mod step;

pub use device::{Counters, Device, Root};
pub use filter::Match;
pub use journal::Journals;
pub use message::Handle;
pub use problem::Problem;
pub use snapshot::Snapshot;
pub use step::{Class, Step, Tbf};
