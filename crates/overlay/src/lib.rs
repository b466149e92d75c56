//! The backpressure overlay: nodes that forward over every path at once, keep deadlines and survive outages, without a centre.
//!
//! Source: the GNAT report and its public source tree, by three digests whose sections this crate names: G (report), A (architecture) and
//! X (experiments). A node keeps a bin of packets for each destination, tells its neighbours how deep each bin is, and sends where the
//! depth falls most. The depth at a source is the price of admission: a flow's rate is K p / depth.
//!
//! | room | what it is |
//! |---|---|
//! | [`queue`] | bins, latency classes, bytes by destination |
//! | [`depth`] | what of a depth is told and used |
//! | [`gradient`] | differences of depth, with a bias for hops; dead ends |
//! | [`forward`] | which packet goes to which neighbour, and why |
//! | [`multicast`] | groups: choice and parting of packets, prices, a tree as the baseline |
//! | [`zombie`] | virtual depth, so that prices stay while delay goes |
//! | [`starvation`] | virtual depth for those who wait (ASAP) |
//! | [`linkstate`] | neighbours, announcements, ways |
//! | [`message`] | all bytes between neighbours |
//! | [`context`] | what a flow's packets have in common |
//! | [`cat`] | the link to a neighbour |
//! | [`admission`] | rates of elastic flows (LOG), and the rule for K |
//! | [`node`] | joins them |
//!
//! Everything is a pure state machine: packets, messages and times go in, decisions come out.
#![forbid(unsafe_code)]

pub mod admission;
pub mod advertised;
pub mod cat;
pub mod context;
pub mod depth;
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
pub mod queue;
pub mod starvation;
pub mod zombie;

pub use cat::{Cat, Wire};
pub use context::{Context, Inner};
pub use node::{Admitted, Config, Discard, FlowAt, Node, Output};
pub use nodes::{NodeId, Nodes};
pub use packet::{Body, Flow, GroupId, Key, Packet};
