//! A link of a node.

use super::depths::DepthsOut;
use super::{Sent, capacity};
use crate::cat::Delay;
use crate::linkstate::Adjacency;
use crate::message::Message;
use crate::nodes::{NodeId, Nodes};
use weir_base::Rate;

/// A link and what is known of its other end.
#[derive(Debug)]
pub(super) struct Port<C> {
    pub(super) cat: C,
    pub(super) sent: Sent,
    pub(super) adjacency: Adjacency,
    /// The node at the other end, if the driver knows it by its key.
    pub(super) expected: Option<NodeId>,
    /// The delay and capacity as they were last announced.
    pub(super) announced: (Delay, Rate),
    pub(super) depths: DepthsOut,
    pub(super) told: capacity::Sent,
    pub(super) flood_links: Nodes,
    pub(super) flood_groups: Nodes,
    pub(super) replies: Vec<Message>,
}
