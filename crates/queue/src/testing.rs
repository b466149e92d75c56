//! A packet and a fate for the tests of this room.

use crate::{DropReason, Fate};
use weir_base::{Ecn, FlowId, Packet, Time};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestPacket {
    pub length: u32,
    pub flow: u32,
    pub ecn: Ecn,
    class: Ecn,
    arrived: Time,
}

impl TestPacket {
    pub(crate) fn new(length: u32, ecn: Ecn) -> TestPacket {
        TestPacket { length, flow: 0, ecn, class: ecn, arrived: Time::ZERO }
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

/// Counts what happened.
#[derive(Debug, Default)]
pub(crate) struct TestFate {
    pub dropped: u64,
    pub dropped_full: u64,
    pub dropped_overload: u64,
    pub marked: u64,
}

impl Fate<TestPacket> for TestFate {
    fn dropped(&mut self, _: TestPacket, reason: DropReason, _: Time) {
        self.dropped += 1;
        self.dropped_full += u64::from(reason == DropReason::Full);
        self.dropped_overload += u64::from(reason == DropReason::Overload);
    }
    fn marked(&mut self, packet: &TestPacket, _: Time) {
        assert_eq!(packet.ecn, Ecn::Ce);
        self.marked += 1;
    }
}
