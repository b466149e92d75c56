//! The backpressure overlay: nodes that forward over every path at once, keep deadlines and survive outages, without central control.
//!
//! Source: the GNAT report and its public source tree, by three digests whose sections this crate names: G (report), A (architecture) and
//! X (experiments). A node keeps a bin of packets for each destination, advertises the depth of each bin to its neighbours, and
//! sends to the neighbour with the largest difference in depth. The depth at a source is the price of admission: a flow's rate is K p / depth.
//!
//! | module | what it is |
//! |---|---|
//! | [`queue`] | bins, latency classes, bytes by destination |
//! | [`depth`] | the depth that is advertised, and the one that is compared |
//! | [`gradient`] | differences in depth, with a bias for hops; dead ends |
//! | [`forward`] | which packet goes to which neighbour, with the reason |
//! | [`multicast`] | groups: choice and splitting of packets, prices, a tree as the baseline |
//! | [`zombie`] | virtual depth: prices remain while the delay falls |
//! | [`starvation`] | virtual depth for starved bins (ASAP) |
//! | [`linkstate`] | neighbours, announcements, routes |
//! | [`message`] | the formats of all messages |
//! | [`context`] | the header fields that a flow's packets share |
//! | [`cat`] | the link to a neighbour |
//! | [`utility`] | what a flow's rate is worth, and so what it is at a price |
//! | [`admission`] | how a flow stands and when its packets go; the rule for K |
//! | [`planner`] | which flows of a node are on (AMP) |
//! | [`edge`] | the flows that enter at a node, with their admission and its planner |
//! | [`proxy`] | what stands between unchanged applications and the overlay |
//! | [`node`] | joins them |
//! | [`site`] | a node with the programs of its site: datagrams in, datagrams out |
//!
//! Everything is a pure state machine: packets, messages and times go in, decisions come out.
#![forbid(unsafe_code)]

pub mod admission;
pub mod advertised;
pub mod cat;
pub mod context;
pub mod depth;
pub mod edge;
pub mod forward;
pub mod gradient;
#[cfg(test)]
mod harness;
pub mod linkstate;
pub mod message;
pub mod multicast;
pub mod node;
pub mod nodes;
pub mod packet;
pub mod planner;
pub mod proxy;
pub mod queue;
pub mod site;
pub mod starvation;
pub mod utility;
pub mod zombie;

pub use cat::{Cat, Reported, Wire};
pub use context::{Context, Inner};
pub use node::{Admitted, Config, Discard, FlowAt, Node, Output, Signal};
pub use nodes::{NodeId, Nodes};
pub use packet::{Body, Flow, GroupId, Key, Packet};
