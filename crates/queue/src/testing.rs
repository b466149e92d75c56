//! A packet and a fate for the tests of this room.

use crate::{DropReason, Fate};
use weir_base::{Dscp, Ecn, FlowId, Packet, Time};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestPacket {
    pub length: u32,
    pub flow: u32,
    /// The packet's number within its test.
    pub number: u64,
    pub ecn: Ecn,
    pub dscp: Dscp,
    pub class: Ecn,
    pub arrived: Time,
}

impl TestPacket {
    pub(crate) fn new(length: u32, ecn: Ecn) -> TestPacket {
        TestPacket { length, flow: 0, number: 0, ecn, dscp: Dscp::default(), class: ecn, arrived: Time::ZERO }
    }
}

impl Packet for TestPacket {
    fn wire_length(&self) -> u32 {
        self.length
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn arrive(&mut self, now: Time) {
        (self.arrived, self.class) = (now, self.ecn);
    }
    fn arrived(&self) -> Time {
        self.arrived
    }
    fn class(&self) -> Ecn {
        self.class
    }
}

/// Counts drops and marks.
#[derive(Debug, Default)]
pub(crate) struct TestFate {
    pub dropped: u64,
    pub dropped_full: u64,
    pub dropped_overload: u64,
    pub marked: u64,
    /// Drops of flows 0 to 3.
    pub by_flow: [u64; 4],
    pub dropped_bytes: u64,
    /// Signals that dropped a packet although it was ECN-capable.
    pub dropped_capable: u64,
}

impl Fate<TestPacket> for TestFate {
    fn dropped(&mut self, packet: TestPacket, reason: DropReason, now: Time) {
        assert!(packet.arrived() <= now);
        self.dropped += 1;
        self.dropped_bytes += u64::from(packet.length);
        self.dropped_capable += u64::from(reason == DropReason::Signal && packet.ecn.is_capable());
        if let Some(drops) = self.by_flow.get_mut(packet.flow as usize) {
            *drops += 1;
        }
        self.dropped_full += u64::from(reason == DropReason::Full);
        self.dropped_overload += u64::from(reason == DropReason::Overload);
    }
    fn marked(&mut self, packet: &TestPacket, _: Time) {
        assert_eq!(packet.ecn, Ecn::Ce);
        assert_ne!(packet.class, Ecn::NotEct);
        self.marked += 1;
    }
}
