//! What the fabric must know of a packet beyond what a queue does: where it goes, and its TCP header.

use core::net::SocketAddr;
use weir_base::{Ecn, Packet};

/// A packet that can cross a fabric.
pub trait Wire: Packet + Sized {
    /// Whether packets that are dropped or lost are kept, for [`Fabric::take_discarded`](crate::Fabric::take_discarded).
    const IS_REUSED: bool = false;

    /// The host (index of a node) that it is for.
    fn destination(&self) -> usize;
    /// Its TCP header, if it is TCP.
    fn tcp(&self) -> Option<TcpView<'_>>;
    /// Gives it another codepoint. On a real packet this repairs the header checksum.
    fn relabel(&mut self, ecn: Ecn);
    /// Its addresses and the head of its payload, if it is a UDP datagram, for a station that reads and rewrites them. `None` too
    /// where a packet has no real bytes.
    fn datagram(&mut self) -> Option<DatagramView<'_>> {
        None
    }
    /// Turns a datagram into its own answer: it goes back to where it comes from, addresses and ports changed about, and what asked
    /// for an echo is one. False when it is no datagram, and unchanged.
    fn turn_round(&mut self) -> bool;
    /// Appends the packet as it would stand on the wire, from its IP header on.
    fn write_to(&self, frame: &mut Vec<u8>);
    /// Another packet that is the same in everything.
    fn duplicate(&self) -> Self;
    /// Damages it, so that the checksums of the host that it is for tell.
    fn corrupt(&mut self);
    /// Whether it has been damaged.
    fn is_corrupt(&self) -> bool;
}

/// What a station may read and rewrite of a UDP datagram.
#[derive(Debug)]
pub struct DatagramView<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// The bytes that its payload begins with: of a real datagram all of it, of a simulated one those that are not zeros.
    pub head: &'a mut [u8],
    /// The UDP checksum as it stands in the header; zero says that there is none (RFC 768). `None` where packets have no such
    /// field. Whoever changes `head` repairs it.
    pub checksum: Option<&'a mut [u8; 2]>,
}

/// What the taps read of a TCP header.
#[derive(Debug, Clone, Copy)]
pub struct TcpView<'a> {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Payload in bytes.
    pub payload: u32,
    /// SYN flag.
    pub syn: bool,
    /// Whether the acknowledgement number counts.
    pub ack: bool,
    /// SACK blocks: (first byte, byte after the last), the most recent first.
    pub sack: &'a [(u32, u32)],
}
