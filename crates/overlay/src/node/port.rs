//! A link of a node.

use super::depths::DepthsOut;
use super::{Node, Sent, capacity};
use crate::cat::{Cat, Delay};
use crate::linkstate::Adjacency;
use crate::message::Message;
use crate::nodes::{NodeId, Nodes};
use crate::packet::Body;
use weir_base::{Rate, Time};

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

impl<B: Body, C: Cat> Node<B, C> {
    /// A link's carrier.
    pub fn cat(&self, port: usize) -> Option<&C> {
        self.ports.get(port).map(|port| &port.cat)
    }

    /// A link's carrier, to change. Call [`Node::on_timer`] afterwards.
    pub fn cat_mut(&mut self, port: usize) -> Option<&mut C> {
        self.gates.get_mut(port)?.ask();
        self.chores_at = Time::ZERO;
        self.ports.get_mut(port).map(|port| &mut port.cat)
    }

    /// A link's carrier is this one from now on. Returns the one before; `None` if it is equal. Call [`Node::on_timer`] afterwards.
    pub fn replace_cat(&mut self, port: usize, cat: C) -> Option<C>
    where
        C: PartialEq,
    {
        let known = &mut self.ports.get_mut(port)?.cat;
        if *known == cat {
            return None;
        }
        self.gates[port].ask();
        self.chores_at = Time::ZERO;
        Some(std::mem::replace(known, cat))
    }
}
