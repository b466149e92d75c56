//! The two ends of a UDP flow.

use core::net::IpAddr;

/// The addresses and ports of a UDP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Source address.
    pub source: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination address.
    pub destination: IpAddr,
    /// Destination port.
    pub destination_port: u16,
}

impl FiveTuple {
    /// The five-tuple of a packet in the other direction.
    pub const fn reversed(&self) -> FiveTuple {
        FiveTuple {
            source: self.destination,
            source_port: self.destination_port,
            destination: self.source,
            destination_port: self.source_port,
        }
    }
}
