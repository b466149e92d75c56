//! A simulated packet. What moves through queues and pipes is a pointer: a packet is moved a dozen times on its way, and
//! eighty bytes each time cost more. Those that have arrived are used again.

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use weir_base::{Ecn, FlowId, Packet, Time};
use weir_fabric::{TcpView, Wire};
use weir_transport::tcp::{Flags, Segment};

/// IPv4 and UDP headers without options (RFC 791, RFC 768).
pub(crate) const UDP_HEADERS: u32 = 20 + 8;
/// Window scale that captures show on SYNs; the simulator's windows are whole numbers of bytes and need none.
const CAPTURED_WINDOW_SCALE: u8 = 10;

/// A packet on its way between two hosts.
#[derive(Debug)]
pub(crate) struct SimPacket(Box<Fields>);

#[derive(Debug)]
struct Fields {
    /// Means something where `tcp` is set.
    segment: Segment,
    arrived: Time,
    flow: u32,
    /// Node of the host it comes from, and of the one it is for.
    from: u16,
    to: u16,
    length: u16,
    ecn: Ecn,
    class: Ecn,
    tcp: bool,
}

/// Which flow a packet belongs to, and between which hosts it travels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) flow: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Makes packets, of those that have arrived where there are any.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The next one to leave.
    next: SimPacket,
    arrived: Vec<SimPacket>,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { next: SimPacket::new(), arrived: Vec::new() }
    }
}

impl Pool {
    /// Where the segment of the next packet is written; an earlier one stands there.
    #[inline]
    pub(crate) fn segment(&mut self) -> &mut Segment {
        &mut self.next.0.segment
    }

    /// The packet with the segment that was written last.
    #[inline]
    pub(crate) fn tcp(&mut self, ecn: Ecn, way: Way) -> SimPacket {
        let length = self.next.0.segment.packet_len();
        self.take(true, length, ecn, way)
    }

    pub(crate) fn udp(&mut self, length: u32, ecn: Ecn, way: Way) -> SimPacket {
        self.take(false, length, ecn, way)
    }

    #[inline]
    fn take(&mut self, tcp: bool, length: u32, ecn: Ecn, way: Way) -> SimPacket {
        let fields = &mut *self.next.0;
        fields.arrived = Time::ZERO;
        fields.flow = way.flow as u32;
        (fields.from, fields.to, fields.length) = (way.from as u16, way.to as u16, length as u16);
        (fields.ecn, fields.class, fields.tcp) = (ecn, ecn, tcp);
        let following = self.arrived.pop().unwrap_or_else(SimPacket::new);
        std::mem::replace(&mut self.next, following)
    }

    /// A packet is done with.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: SimPacket) {
        self.arrived.push(packet);
    }
}

impl SimPacket {
    #[cold]
    fn new() -> SimPacket {
        SimPacket(Box::new(Fields {
            segment: Segment::default(),
            arrived: Time::ZERO,
            flow: 0,
            from: 0,
            to: 0,
            length: 0,
            ecn: Ecn::NotEct,
            class: Ecn::NotEct,
            tcp: false,
        }))
    }

    /// The segment that it carries, if it is TCP.
    #[inline]
    pub(crate) fn segment(&self) -> Option<&Segment> {
        self.0.tcp.then_some(&self.0.segment)
    }
}

impl Packet for SimPacket {
    #[inline]
    fn wire_length(&self) -> u32 {
        self.0.length.into()
    }
    #[inline]
    fn flow(&self) -> FlowId {
        FlowId(self.0.flow)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.0.ecn
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.0.ecn = Ecn::Ce;
    }
    #[inline]
    fn arrive(&mut self, now: Time) {
        (self.0.arrived, self.0.class) = (now, self.0.ecn);
    }
    #[inline]
    fn arrived(&self) -> Time {
        self.0.arrived
    }
    #[inline]
    fn class(&self) -> Ecn {
        self.0.class
    }
}

/// The address that a node's host has in captures: 10.x.y.1, by the node's number.
fn address(node: u16) -> [u8; 4] {
    let [high, low] = node.to_be_bytes();
    [10, high, low, 1]
}

/// Ports in captures: one for each flow, the same at both ends, as live runs have them; nothing well known lives there.
const FIRST_PORT: u32 = 23_000;
const PORTS: u32 = 20_000;

impl SimPacket {
    /// The port of this packet's flow.
    fn port(&self) -> u16 {
        (FIRST_PORT + self.0.flow % PORTS) as u16
    }

    fn tcp_header(&self, segment: &Segment) -> TcpHeader {
        let port = self.port();
        let flag = |flag| segment.flags.has(flag);
        let syn = flag(Flags::SYN);
        let window = if syn { segment.window } else { segment.window >> CAPTURED_WINDOW_SCALE };
        let mut header = TcpHeader::new(port, port, segment.seq, window.min(0xffff) as u16);
        header.acknowledgment_number = segment.ack;
        (header.syn, header.fin, header.ack) = (syn, flag(Flags::FIN), flag(Flags::ACK));
        // AE has taken the bit of the nonce (RFC 9768, section 3).
        (header.ece, header.cwr, header.ns) = (flag(Flags::ECE), flag(Flags::CWR), flag(Flags::AE));
        let timestamps = TcpOptionElement::Timestamp(segment.tsval, segment.tsecr);
        let mut options = vec![];
        if syn {
            options.push(TcpOptionElement::MaximumSegmentSize(1460));
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
            options.extend([
                timestamps,
                TcpOptionElement::Noop,
                TcpOptionElement::WindowScale(CAPTURED_WINDOW_SCALE),
            ]);
        } else {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop, timestamps]);
            if let Some((first, rest)) = segment.sack().split_first() {
                let mut more = [None; 3];
                more.iter_mut().zip(rest).for_each(|(slot, block)| *slot = Some(*block));
                options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
                options.push(TcpOptionElement::SelectiveAcknowledgement(*first, more));
            }
        }
        // Cannot fail: at most 12 + 2 + 26 bytes of options, of the 40 that a header has room for.
        let _ = header.set_options(&options);
        let counters = segment.counters.to_option();
        if !counters.is_empty() {
            let mut raw = header.options.as_slice().to_vec();
            raw.extend(counters);
            let _ = header.set_options_raw(&raw);
        }
        header
    }
}

impl Wire for SimPacket {
    #[inline]
    fn destination(&self) -> usize {
        self.0.to.into()
    }

    #[inline]
    fn tcp(&self) -> Option<TcpView<'_>> {
        let segment = self.segment()?;
        Some(TcpView {
            sequence: segment.seq,
            acknowledgement: segment.ack,
            payload: segment.len.into(),
            syn: segment.flags.has(Flags::SYN),
            ack: segment.flags.has(Flags::ACK),
            sack: segment.sack(),
        })
    }

    fn write_to(&self, frame: &mut Vec<u8>) {
        let protocol = if self.0.tcp { IpNumber::TCP } else { IpNumber::UDP };
        let body = self.0.length - 20;
        let Ok(mut ip) = Ipv4Header::new(body, 64, protocol, address(self.0.from), address(self.0.to)) else {
            return;
        };
        ip.ecn = etherparse::IpEcn::try_new(self.0.ecn as u8).unwrap_or_default();
        ip.dont_fragment = true;
        ip.header_checksum = ip.calc_header_checksum();
        frame.extend_from_slice(&ip.to_bytes());
        match self.segment() {
            Some(segment) => {
                let mut header = self.tcp_header(segment);
                let payload = vec![0; usize::from(body).saturating_sub(header.header_len())];
                header.checksum = header.calc_checksum_ipv4(&ip, &payload).unwrap_or(0);
                frame.extend_from_slice(&header.to_bytes());
                frame.extend_from_slice(&payload);
            }
            None => {
                let port = self.port();
                let payload = vec![0; usize::from(body).saturating_sub(8)];
                if let Ok(udp) = UdpHeader::with_ipv4_checksum(port, port, &ip, &payload) {
                    frame.extend_from_slice(&udp.to_bytes());
                    frame.extend_from_slice(&payload);
                }
            }
        }
    }
}
