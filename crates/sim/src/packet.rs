//! A simulated packet. What moves through queues and pipes is a pointer: a packet is moved a dozen times on its way, and
//! eighty bytes each time cost more. Those that have arrived are used again.

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, TcpOptionElement, UdpHeader};
use weir_base::{Ecn, FlowId, Packet, Time};
use weir_fabric::{TcpView, Wire};
use weir_plan::Ip;
use weir_transport::tcp::{Flags, Segment};
use weir_workload::Part;

/// A UDP header (RFC 768).
pub(crate) const UDP_HEADER: u32 = 8;
/// Window scale that captures show on SYNs; the simulator's windows are whole numbers of bytes and need none.
const CAPTURED_WINDOW_SCALE: u8 = 10;

/// A packet on its way between two hosts.
#[derive(Debug)]
pub(crate) struct SimPacket(Box<Fields>);

#[derive(Debug, Clone)]
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
    ip: Ip,
    corrupt: bool,
    /// What a datagram carries of a frame; it has no parts where that is nothing, and means nothing where `tcp` is set.
    part: Part,
}

/// No part of any frame.
const NO_PART: Part = Part { frame: 0, index: 0, parts: 0 };

/// Which flow a packet belongs to, and between which hosts it travels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) flow: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) ip: Ip,
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
        // A segment knows its length over IPv4.
        let length = self.next.0.segment.packet_len() + (way.ip.header() - Ip::V4.header());
        self.take(true, length, ecn, way)
    }

    pub(crate) fn udp(&mut self, length: u32, part: Option<Part>, ecn: Ecn, way: Way) -> SimPacket {
        self.next.0.part = part.unwrap_or(NO_PART);
        self.take(false, length, ecn, way)
    }

    #[inline]
    fn take(&mut self, tcp: bool, length: u32, ecn: Ecn, way: Way) -> SimPacket {
        let fields = &mut *self.next.0;
        fields.arrived = Time::ZERO;
        fields.flow = way.flow as u32;
        (fields.from, fields.to, fields.length) = (way.from as u16, way.to as u16, length as u16);
        (fields.ecn, fields.class, fields.tcp, fields.ip) = (ecn, ecn, tcp, way.ip);
        fields.corrupt = false;
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
            ip: Ip::V4,
            corrupt: false,
            part: NO_PART,
        }))
    }

    /// The part of a frame that it carries, if it is a datagram with one.
    pub(crate) fn part(&self) -> Option<Part> {
        Some(self.0.part).filter(|part| !self.0.tcp && part.parts > 0)
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

/// Its IPv6 address: fd77:6569:7200::1 for node 0 and so on, in a prefix for local use (RFC 4193), as live runs have them.
fn address_v6(node: u16) -> [u8; 16] {
    let [_, a, b, c] = (u32::from(node) + 1).to_be_bytes();
    [0xfd, 0x77, 0x65, 0x69, 0x72, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c]
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
            options.push(TcpOptionElement::MaximumSegmentSize((1500 - self.0.ip.header() - 20) as u16));
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

/// An IP header in a capture.
enum Header {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl SimPacket {
    fn protocol(&self) -> IpNumber {
        if self.0.tcp { IpNumber::TCP } else { IpNumber::UDP }
    }

    fn header_v4(&self, body: u16) -> Option<Ipv4Header> {
        let mut ip =
            Ipv4Header::new(body, 64, self.protocol(), address(self.0.from), address(self.0.to)).ok()?;
        ip.ecn = IpEcn::try_new(self.0.ecn as u8).unwrap_or_default();
        ip.dont_fragment = true;
        ip.header_checksum = ip.calc_header_checksum();
        Some(ip)
    }

    /// The codepoint is in the two low bits of the traffic class (RFC 3168, section 5).
    fn header_v6(&self, body: u16) -> Ipv6Header {
        Ipv6Header {
            traffic_class: self.0.ecn as u8,
            flow_label: Default::default(),
            payload_length: body,
            next_header: self.protocol(),
            hop_limit: 64,
            source: address_v6(self.0.from),
            destination: address_v6(self.0.to),
        }
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

    /// A new allocation: duplicates are rare, and when they arrive they are used again as others are.
    fn duplicate(&self) -> SimPacket {
        SimPacket(self.0.clone())
    }

    fn corrupt(&mut self) {
        self.0.corrupt = true;
    }

    #[inline]
    fn is_corrupt(&self) -> bool {
        self.0.corrupt
    }

    fn write_to(&self, frame: &mut Vec<u8>) {
        let body = self.0.length - self.0.ip.header() as u16;
        let header = match self.0.ip {
            Ip::V4 => self.header_v4(body).map(Header::V4),
            Ip::V6 => Some(Header::V6(self.header_v6(body))),
        };
        let Some(ip) = header else { return };
        match &ip {
            Header::V4(ip) => frame.extend_from_slice(&ip.to_bytes()),
            Header::V6(ip) => frame.extend_from_slice(&ip.to_bytes()),
        }
        match self.segment() {
            Some(segment) => {
                let mut header = self.tcp_header(segment);
                let payload = vec![0; usize::from(body).saturating_sub(header.header_len())];
                let checksum = match &ip {
                    Header::V4(ip) => header.calc_checksum_ipv4(ip, &payload),
                    Header::V6(ip) => header.calc_checksum_ipv6(ip, &payload),
                };
                header.checksum = checksum.unwrap_or(0);
                frame.extend_from_slice(&header.to_bytes());
                frame.extend_from_slice(&payload);
            }
            None => {
                let port = self.port();
                let mut payload = vec![0; usize::from(body).saturating_sub(UDP_HEADER as usize)];
                if let Some((part, room)) = self.part().zip(payload.first_chunk_mut()) {
                    *room = part.header();
                }
                let udp = match &ip {
                    Header::V4(ip) => UdpHeader::with_ipv4_checksum(port, port, ip, &payload),
                    Header::V6(ip) => UdpHeader::with_ipv6_checksum(port, port, ip, &payload),
                };
                if let Ok(udp) = udp {
                    frame.extend_from_slice(&udp.to_bytes());
                    frame.extend_from_slice(&payload);
                }
            }
        }
    }
}
