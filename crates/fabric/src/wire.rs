//! What the fabric reads of a packet, beyond what a queue reads: its destination and its TCP header.

use core::net::SocketAddr;
use weir_base::{Ecn, FlowId, Packet, Span, Time};

/// The flow of packets that belong to no flow of the plan: those that stations write.
pub const NO_FLOW: FlowId = FlowId(u32::MAX);

/// A packet that can cross a fabric.
pub trait Wire: Packet + Sized {
    /// Whether packets that are dropped or lost are kept, for [`Fabric::take_discarded`](crate::Fabric::take_discarded).
    const IS_REUSED: bool = false;

    /// Its destination host: index of a node.
    fn destination(&self) -> usize;
    /// Its TCP header; `None` if it is not TCP.
    fn tcp(&self) -> Option<TcpView<'_>>;
    /// Sets its ECN codepoint. On a real packet this repairs the header checksum.
    fn relabel(&mut self, ecn: Ecn);
    /// Writes into it how long it has waited in a queue, and how many packets of its kind were dropped since the last report. Returns the
    /// drops that it has no room for; `None`, with nothing written, if it cannot hold a report.
    fn report(&mut self, delay: Span, drops: u64) -> Option<u64> {
        let _ = (delay, drops);
        None
    }
    /// Its addresses and the head of its payload, for a station that reads and rewrites them. `None` if it is no UDP datagram, or
    /// has no real bytes.
    fn datagram(&mut self) -> Option<DatagramView<'_>> {
        None
    }
    /// The head of its payload and the number of bytes behind it. `None` if it is no UDP datagram, or stations cannot write packets of
    /// this kind.
    fn payload(&self) -> Option<(&[u8], u32)> {
        None
    }
    /// An empty datagram for [`Wire::rewrite`], made from an old packet if there is one. `None` if stations cannot write packets of this
    /// kind.
    fn blank(old: Option<Self>) -> Option<Self> {
        let _ = old;
        None
    }
    /// Rewrites a datagram's addresses, ECN codepoint and the front of its payload. Returns false, and changes nothing, if it is no
    /// datagram, or stations cannot write packets of this kind.
    fn rewrite(&mut self, to: &Rewrite<'_>) -> bool {
        let _ = to;
        false
    }
    /// Notes when its host sent it, which no rewriting changes. Only packets that stations can write keep it.
    fn enter(&mut self, now: Time) {
        let _ = now;
    }
    /// It has waited in the queue of a station that carries it for so long. Only packets that stations can write keep it.
    fn waited(&mut self, time: Span) {
        let _ = time;
    }
    /// How long it has waited in such queues since its host sent it.
    fn waits(&self) -> Span {
        Span::ZERO
    }
    /// When its host sent it, if that was noted.
    fn entered(&self) -> Option<Time> {
        None
    }
    /// Turns a datagram into its own answer: addresses and ports are swapped, and an echo request becomes an echo reply. Returns
    /// false, and changes nothing, if it is no datagram.
    fn turn_round(&mut self) -> bool;
    /// Appends the packet as it would stand on the wire, from its IP header on.
    fn write_to(&self, frame: &mut Vec<u8>);
    /// An exact copy of the packet.
    fn duplicate(&self) -> Self;
    /// The same, with the memory of a packet that is not needed any more.
    fn duplicate_into(&self, old: Self) -> Self {
        let _ = old;
        self.duplicate()
    }
    /// Damages it, so that the checksums at its destination fail.
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
    /// The head of its payload. For a real datagram this is the whole payload; for a simulated one, the bytes before the zeros.
    pub head: &'a mut [u8],
    /// The UDP checksum as it stands in the header; zero says that there is none (RFC 768). `None` if packets have no such field. A
    /// caller that changes `head` must repair it.
    pub checksum: Option<&'a mut [u8; 2]>,
}

/// How a station rewrites a datagram. Both engines derive addresses from nodes and ports from flows.
#[derive(Debug, Clone, Copy)]
pub struct Rewrite<'a> {
    /// Its flow, or [`NO_FLOW`] for a packet between stations.
    pub flow: FlowId,
    /// The node whose address is the source.
    pub from: usize,
    /// The node whose address is the destination.
    pub to: usize,
    /// Its codepoint.
    pub ecn: Ecn,
    /// Bytes to take away from the front of its payload's head.
    pub cut: usize,
    /// Bytes to put there instead.
    pub put: &'a [u8],
    /// Zeros to add behind its payload.
    pub zeros: u32,
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
    /// ACK flag: the acknowledgement number is valid.
    pub ack: bool,
    /// SACK blocks: (first byte, byte after the last), the most recent first.
    pub sack: &'a [(u32, u32)],
}
