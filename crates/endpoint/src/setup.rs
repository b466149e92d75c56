//! What the two ends of a flow's connection are made from, besides the parameters of their transport.

use crate::Settings;
use weir_base::{Bytes, Ecn};

/// Input to the two ends of a flow's connection, besides the transport's own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The group's settings; `None` if the transport uses none of them.
    pub settings: Option<&'a Settings>,
    /// Whether the application writes datagrams rather than a stream.
    pub datagrams: bool,
    /// Whether the network admits its datagrams one by one, and the host waits until it does.
    pub admitted: bool,
    /// The ECN codepoint of datagrams.
    pub ecn: Ecn,
    /// Largest IP packet.
    pub mtu: Bytes,
    /// Length of the IP header in bytes.
    pub ip_header: u32,
    /// The run's seed.
    pub seed: u64,
    /// Number of the flow.
    pub flow: u64,
}

/// A full packet of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullPacket {
    /// Bytes of the application in the packet.
    pub payload: Bytes,
    /// Length of the IP packet.
    pub length: Bytes,
}
