//! The network between hosts: links with their queues, delays, losses and schedules, routes, and the taps that count
//! packets at the hosts. One implementation carries simulated packets in virtual time and real ones in real time.
//!
//! A [`Fabric`] is a state machine: packets and a time go in, packets and the next time come out.
//!
//! `fabric.rs` is the file to open first, then `link.rs`.
#![forbid(unsafe_code)]

mod config;
mod event;
mod fabric;
mod jitter;
mod link;
mod loss;
mod pauses;
mod route;
mod shortest;
mod tap;
#[cfg(test)]
mod tests;
mod trace;
mod transit;
mod wifi;
mod wire;

pub use config::{
    Card, Change, Config, Flow, Link, MTU, Network, Node, Outage, Reorder, Report, RoundTrips, Route, Shaper,
};
pub use event::EventQueue;
pub use fabric::{
    Culprit, Decided, Delivery, Fabric, Net, Placed, Present, Station, StationCounters, Totals,
};
pub use jitter::{Distribution, Jitter, Part};
pub use link::{LinkCounters, Observer, PacketEvent};
pub use loss::{BitErrors, GilbertElliott, Loss, Times};
pub use route::Paths;
pub use shortest::{Edge, least_delay};
pub use tap::FlowCounters;
pub use trace::{OPPORTUNITY, Playback, Trace, TraceError};
pub use transit::Transits;
pub use weir_queue::DropReason;
pub use wifi::Wifi;
pub use wire::{DatagramView, NO_FLOW, Rewrite, TcpView, Wire};
