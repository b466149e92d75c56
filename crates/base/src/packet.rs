//! The properties of a packet that queues and links use. Through this trait one discipline handles simulated and real packets.

use crate::{Dscp, Ecn, Time};
use core::fmt::Debug;

/// A flow's number within a run, as the plan numbers the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

/// A packet as links and queues see it.
///
/// A link stamps each packet with [`Packet::arrive`] when it reaches its queue; the stamp is what sojourn times and
/// per-class counts are computed from, so a discipline never measures them itself.
pub trait Packet: Debug + 'static {
    /// Length of the IP packet in bytes, with its headers, without link overhead.
    fn wire_length(&self) -> u32;
    /// The packet's flow. Real packets of unknown flows share one number.
    fn flow(&self) -> FlowId;
    /// The packet's current codepoint.
    fn ecn(&self) -> Ecn;
    /// The packet's DSCP; `CS0` for packets that have none.
    fn dscp(&self) -> Dscp {
        Dscp::default()
    }
    /// Sets the codepoint to CE. On a real packet this repairs the header checksum.
    fn mark_ce(&mut self);
    /// Stamps the arrival at a queue: the time, and the current codepoint as the packet's class.
    fn arrive(&mut self, now: Time);
    /// When the packet arrived at its queue.
    fn arrived(&self) -> Time;
    /// The packet's codepoint when it arrived at its queue.
    fn class(&self) -> Ecn;
}
