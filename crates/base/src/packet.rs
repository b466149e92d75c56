//! What a queue may know about a packet. One discipline serves simulated packets and real ones through this trait.

use crate::{Ecn, Time};

/// A flow's number within a run, as the plan counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

/// A packet as links and queues see it.
///
/// A link stamps each packet with [`Packet::arrive`] when it reaches its queue; the stamp is what sojourn times and
/// per-class counts are computed from, so a discipline never measures them itself.
pub trait Packet {
    /// Length of the IP packet in bytes, headers included, link overhead not.
    fn wire_length(&self) -> u32;
    /// The flow that it belongs to. Real packets that belong to no known flow share one number.
    fn flow(&self) -> FlowId;
    /// The codepoint that it carries now.
    fn ecn(&self) -> Ecn;
    /// Sets the codepoint to CE. On a real packet this repairs the header checksum.
    fn mark_ce(&mut self);
    /// Stamps the arrival at a queue: the time, and the codepoint of this moment as the packet's class.
    fn arrive(&mut self, now: Time);
    /// When it arrived at the queue that holds it.
    fn arrived(&self) -> Time;
    /// The codepoint with which it arrived at the queue that holds it.
    fn class(&self) -> Ecn;
}
