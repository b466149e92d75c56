//! Shapers in the running kernel: the token bucket filter and the hierarchical token bucket with its classes, leaf queues and filters,
//! installed, changed and removed through netlink; and journals, from which what a killed process left is undone.
//!
//! A room of its own, since two others need it and neither the eBPF loader nor the testbed: the circuits of the command line, and the live
//! engine. It is built without clang.
//!
//! A [`Step`] is one change; it can be told as a `tc` command or made at a [`Device`]. A [`Snapshot`] is all that is set at a device, as
//! the kernel writes it: it is put back by handing the same bytes to the kernel again, whichever disciplines they are of.
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

pub use device::{Counters, Device};
pub use filter::Match;
pub use journal::Journals;
pub use message::Handle;
pub use problem::Problem;
pub use snapshot::Snapshot;
pub use step::{Class, Step, Tbf};
