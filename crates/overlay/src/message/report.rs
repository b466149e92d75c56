//! What a receiver's node tells the node where a flow enters: how many of its packets came in time (digest A 2.3, A 7.6).
//!
//! The study's report is a UDP packet of 32 bytes, whose 64-bit counters are cut to 32. Here it is a message that each node passes on over
//! the way of least delay, and counters have seven bits a byte.

use super::bytes::{Malformed, Reader, Writer};
use crate::nodes::NodeId;
use crate::packet::Flow;

/// A receiver's report. It is for the node at which the flow enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The flow.
    pub flow: Flow,
    /// The receiver's node.
    pub from: NodeId,
    /// Links that it has passed.
    pub hops: u8,
    /// The number of a packet of which the fate is known, and that of all before it. Below 2^63.
    pub highest: u64,
    /// How many of these came in time. Below 2^63.
    pub in_time: u64,
    /// Bytes of payload of all packets that came in time so far. Below 2^63.
    pub bytes: u64,
}

impl Report {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.flow(self.flow);
        writer.node(self.from);
        writer.u8(self.hops);
        [self.highest, self.in_time, self.bytes].into_iter().for_each(|count| writer.varint(count));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Report, Malformed> {
        let (flow, from, hops) = (reader.flow()?, reader.node()?, reader.u8()?);
        let (highest, in_time, bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
        // More than there were cannot have come.
        if in_time > highest {
            Err(Malformed)
        } else {
            Ok(Report { flow, from, hops, highest, in_time, bytes })
        }
    }
}
