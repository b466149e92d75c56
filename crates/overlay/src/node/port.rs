//! A link of a node.

use super::Sent;
use super::depths::DepthsOut;
use super::signal::SentCapacity;
use crate::cat::{Cat, Delay};
use crate::linkstate::Adjacency;
use crate::message::Message;
use crate::nodes::{NodeId, Nodes};
use crate::zombie;
use weir_base::{Bytes, Rate, Span, Time};

/// A link and what is known of its other end.
#[derive(Debug)]
pub(super) struct Port<C> {
    pub(super) cat: C,
    pub(super) sent: Sent,
    pub(super) adjacency: Adjacency,
    /// The node at the other end, if the driver knows it by its key.
    pub(super) expected: Option<NodeId>,
    /// When the link would have sent all packets, messages and zombies that it was given: then zombies may leave again.
    pub(super) drains_at: Time,
    /// Bytes of zombies that have left in place of packets. As many bytes of packets go for nothing.
    pub(super) owed: u64,
    /// The delay and capacity as they were last announced.
    pub(super) announced: (Delay, Rate),
    pub(super) depths: DepthsOut,
    pub(super) told: SentCapacity,
    pub(super) flood_links: Nodes,
    pub(super) flood_groups: Nodes,
    pub(super) replies: Vec<Message>,
}

/// Zombies leave at this rate at least, so that a link that tells no capacity holds none for ever.
const LEAST_DRAIN: Rate = Rate::from_bits_per_sec(8000);
/// Zombies wait for a link no longer than this. A link that has just come up may tell a capacity far too low, or none; while the largest
/// gradient toward it is that of zombies, packets of other bins wait too.
const LONGEST_DRAIN: Span = Span::from_secs(1);

impl<C: Cat> Port<C> {
    /// Gives the link a datagram. Zombies of this kind wait for it.
    pub(super) fn offer(&mut self, bytes: Bytes, kind: &zombie::Config, now: Time) {
        self.cat.offer(bytes, now);
        if kind.drain().is_some() {
            self.occupy(bytes + self.cat.overhead(), now);
        }
    }

    /// The link's time is taken by so many bytes, whether it sends them or they are zombies.
    pub(super) fn occupy(&mut self, bytes: Bytes, now: Time) {
        let capacity = self.cat.capacity().max(LEAST_DRAIN);
        self.drains_at = (self.drains_at.max(now) + capacity.time_to_send(bytes)).min(now + LONGEST_DRAIN);
    }

    /// Zombies leave: in the time that the link has, or else in the turn of the next packets.
    pub(super) fn let_go(&mut self, bytes: u64, kind: &zombie::Config, now: Time) {
        if self.drains_at > now {
            self.owed += bytes;
        } else {
            self.occupy(Bytes::new(bytes.div_ceil(kind.drain().unwrap_or(1).into())), now);
        }
    }
}
