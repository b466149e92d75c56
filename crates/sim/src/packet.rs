//! A simulated packet. Queues and pipes move a pointer to it: a packet is moved a dozen times on its way, and to move
//! eighty bytes each time would cost more. Packets that have arrived are reused.

use core::net::{IpAddr, SocketAddr};
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, TcpOptionElement, UdpHeader};
use weir_base::{Dscp, Ecn, FlowId, Packet, Span, Time};
use weir_endpoint::Body;
use weir_endpoint::{Flags, Segment};
use weir_fabric::{DatagramView, Fabric, NO_FLOW, Rewrite, TcpView, Wire};
use weir_observe::ip_id::Stamp;
use weir_plan::Ip;
use weir_plan::address::{OVERLAY_PORT, address_of, port_of};

/// Window scale that captures show on SYNs; the simulator's windows are whole numbers of bytes and need none.
const CAPTURED_WINDOW_SCALE: u8 = 10;

/// The most datagrams that are kept for reuse by hosts; the network may use those beyond.
const MOST_SPARE: usize = 1 << 10;

/// A packet on its way between two hosts.
#[derive(Debug)]
pub(crate) struct SimPacket(Box<Fields>);

/// In this order, what each link and each station reads or writes stands together: a packet is seldom in the cache when its next event comes.
#[derive(Debug, Clone)]
#[repr(C)]
struct Fields {
    arrived: Time,
    address: FlowAddress,
    length: u16,
    /// The identification of IPv4: 0, or what a queue reports.
    identification: u16,
    ecn: Ecn,
    class: Ecn,
    corrupt: bool,
    body: Body,
    /// When its host sent it, for a packet that stations carry, and how long it has waited in their queues.
    entered: Time,
    waits: Span,
}

/// A packet's flow, source and destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowAddress {
    pub(crate) flow: u32,
    /// Node of the source host, then of the destination host.
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) ip: Ip,
    pub(crate) dscp: Dscp,
}

/// Packets that have arrived, for reuse. Segments and datagrams are kept apart, so that a body keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    segments: Vec<SimPacket>,
    datagrams: Vec<SimPacket>,
    made: u64,
}

impl Pool {
    /// How many packets were made, since there was none to reuse.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// A packet whose body is to be overwritten; it still holds the body of an earlier packet.
    #[inline]
    pub(crate) fn take(&mut self, datagrams: bool, fabric: &mut Fabric<SimPacket>) -> SimPacket {
        let packets = if datagrams { &mut self.datagrams } else { &mut self.segments };
        packets.pop().unwrap_or_else(|| self.refill(datagrams, fabric))
    }

    /// No packet is left: takes back those that the network has discarded.
    #[cold]
    fn refill(&mut self, datagrams: bool, fabric: &mut Fabric<SimPacket>) -> SimPacket {
        while let Some(packet) = fabric.take_discarded() {
            self.take_back(packet);
        }
        let packets = if datagrams { &mut self.datagrams } else { &mut self.segments };
        packets.pop().unwrap_or_else(|| {
            self.made += 1;
            SimPacket::new()
        })
    }

    /// Keeps a packet for reuse.
    #[inline]
    pub(crate) fn take_back(&mut self, packet: SimPacket) {
        _ = self.keep(packet);
    }

    /// The same; returns a packet of which there are enough. Copies for many receivers arrive in greater number than their originals
    /// leave.
    #[inline]
    pub(crate) fn keep(&mut self, packet: SimPacket) -> Option<SimPacket> {
        match packet.0.body {
            Body::Segment(_) => self.segments.push(packet),
            Body::Datagram(_) if self.datagrams.len() < MOST_SPARE => self.datagrams.push(packet),
            Body::Datagram(_) => return Some(packet),
        }
        None
    }
}

impl SimPacket {
    #[cold]
    fn new() -> SimPacket {
        SimPacket(Box::new(Fields {
            body: Body::Segment(Segment::default()),
            arrived: Time::ZERO,
            address: FlowAddress { flow: 0, from: 0, to: 0, ip: Ip::V4, dscp: Dscp::default() },
            length: 0,
            ecn: Ecn::NotEct,
            class: Ecn::NotEct,
            corrupt: false,
            identification: 0,
            entered: Time::NEVER,
            waits: Span::ZERO,
        }))
    }

    #[inline]
    pub(crate) fn body(&self) -> &Body {
        &self.0.body
    }

    /// The body, to be written.
    #[inline]
    pub(crate) fn body_mut(&mut self) -> &mut Body {
        &mut self.0.body
    }

    /// Writes the rest of the packet; the body must be written before.
    #[inline]
    pub(crate) fn address(&mut self, ecn: Ecn, address: &FlowAddress) {
        let fields = &mut *self.0;
        fields.arrived = Time::ZERO;
        // Field by field: a copy of the whole would copy its padding in pieces.
        let FlowAddress { flow, from, to, ip, dscp } = *address;
        let to_write = &mut fields.address;
        (to_write.flow, to_write.from, to_write.to) = (flow, from, to);
        (to_write.ip, to_write.dscp) = (ip, dscp);
        fields.length = (fields.body.length() + ip.header()) as u16;
        (fields.ecn, fields.class) = (ecn, ecn);
        (fields.corrupt, fields.identification) = (false, 0);
    }

    /// The TCP segment that it carries; `None` if it carries a datagram.
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        match &self.0.body {
            Body::Segment(segment) => Some(segment),
            Body::Datagram(_) => None,
        }
    }
}

impl Packet for SimPacket {
    #[inline]
    fn wire_length(&self) -> u32 {
        self.0.length.into()
    }
    #[inline]
    fn flow(&self) -> FlowId {
        FlowId(self.0.address.flow)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.0.ecn
    }
    #[inline]
    fn dscp(&self) -> Dscp {
        self.0.address.dscp
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

impl FlowAddress {
    /// The addresses and ports of both ends.
    fn sockets(&self) -> [SocketAddr; 2] {
        let port = port(self.flow);
        [self.from, self.to].map(|node| SocketAddr::new(address_of(node.into(), self.ip), port))
    }
}

/// The port of a flow, or of packets between nodes of an overlay.
fn port(flow: u32) -> u16 {
    if flow == NO_FLOW.0 { OVERLAY_PORT } else { port_of(flow as usize) }
}

impl SimPacket {
    /// The port of this packet's flow.
    fn port(&self) -> u16 {
        port(self.0.address.flow)
    }

    fn tcp_header(&self, segment: &Segment) -> TcpHeader {
        let port = self.port();
        let flag = |flag| segment.flags.has(flag);
        let syn = flag(Flags::SYN);
        let window = if syn { segment.window } else { segment.window >> CAPTURED_WINDOW_SCALE };
        let mut header = TcpHeader::new(port, port, segment.seq, window.min(0xffff) as u16);
        header.acknowledgment_number = segment.ack;
        (header.syn, header.fin, header.ack) = (syn, flag(Flags::FIN), flag(Flags::ACK));
        header.psh = flag(Flags::PSH);
        // AE has taken the bit of the nonce (RFC 9768, section 3).
        (header.ece, header.cwr, header.ns) = (flag(Flags::ECE), flag(Flags::CWR), flag(Flags::AE));
        let timestamps = TcpOptionElement::Timestamp(segment.tsval, segment.tsecr);
        let mut options = vec![];
        if syn {
            options
                .push(TcpOptionElement::MaximumSegmentSize((1500 - self.0.address.ip.header() - 20) as u16));
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
        if self.segment().is_some() { IpNumber::TCP } else { IpNumber::UDP }
    }

    fn header(&self, body: u16) -> Option<Header> {
        let [source, destination] = self.0.address.sockets().map(|socket| socket.ip());
        Some(match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let ends = (source.octets(), destination.octets());
                let mut ip = Ipv4Header::new(body, 64, self.protocol(), ends.0, ends.1).ok()?;
                ip.dscp = IpDscp::try_new(self.dscp().get()).unwrap_or_default();
                ip.ecn = IpEcn::try_new(self.0.ecn as u8).unwrap_or_default();
                ip.dont_fragment = true;
                ip.identification = self.0.identification;
                ip.header_checksum = ip.calc_header_checksum();
                Header::V4(ip)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => Header::V6(Ipv6Header {
                traffic_class: self.dscp().with(self.0.ecn),
                flow_label: Default::default(),
                payload_length: body,
                next_header: self.protocol(),
                hop_limit: 64,
                source: source.octets(),
                destination: destination.octets(),
            }),
            _ => return None,
        })
    }
}

impl Wire for SimPacket {
    const IS_REUSED: bool = true;

    #[inline]
    fn destination(&self) -> usize {
        self.0.address.to.into()
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

    fn relabel(&mut self, ecn: Ecn) {
        self.0.ecn = ecn;
    }

    fn report(&mut self, delay: Span, drops: u64) -> Option<u64> {
        if self.0.address.ip != Ip::V4 {
            return None;
        }
        let (identification, left) = Stamp { delay, drops }.encode();
        self.0.identification = identification;
        Some(left)
    }

    fn datagram(&mut self) -> Option<DatagramView<'_>> {
        let fields = &mut *self.0;
        let [source, destination] = fields.address.sockets();
        match &mut fields.body {
            Body::Datagram(datagram) => {
                Some(DatagramView { source, destination, head: &mut datagram.head, checksum: None })
            }
            Body::Segment(_) => None,
        }
    }

    fn payload(&self) -> Option<(&[u8], u32)> {
        match &self.0.body {
            Body::Datagram(datagram) => Some((&datagram.head, datagram.zeros)),
            Body::Segment(_) => None,
        }
    }

    fn blank(old: Option<SimPacket>) -> Option<SimPacket> {
        let mut packet = old.unwrap_or_else(SimPacket::new);
        packet.0.body.datagram_mut().set(&[], 0);
        (packet.0.corrupt, packet.0.entered, packet.0.address.ip) = (false, Time::NEVER, Ip::V4);
        (packet.0.address.dscp, packet.0.identification) = (Dscp::default(), 0);
        Some(packet)
    }

    fn rewrite(&mut self, to: &Rewrite<'_>) -> bool {
        let fields = &mut *self.0;
        let Body::Datagram(datagram) = &mut fields.body else { return false };
        let cut = to.cut.min(datagram.head.len());
        datagram.head.splice(..cut, to.put.iter().copied());
        datagram.zeros += to.zeros;
        let FlowId(flow) = to.flow;
        let FlowAddress { ip, dscp, .. } = fields.address;
        fields.address = FlowAddress { flow, from: to.from as u16, to: to.to as u16, ip, dscp };
        fields.length = (fields.body.length() + ip.header()) as u16;
        (fields.ecn, fields.class) = (to.ecn, to.ecn);
        true
    }

    fn enter(&mut self, now: Time) {
        (self.0.entered, self.0.waits) = (now, Span::ZERO);
    }

    fn waited(&mut self, time: Span) {
        self.0.waits += time;
    }

    fn waits(&self) -> Span {
        self.0.waits
    }

    fn entered(&self) -> Option<Time> {
        Some(self.0.entered).filter(|entered| *entered != Time::NEVER)
    }

    fn turn_round(&mut self) -> bool {
        let datagram = self.segment().is_none();
        if datagram {
            let fields = &mut *self.0;
            std::mem::swap(&mut fields.address.from, &mut fields.address.to);
        }
        datagram
    }

    /// A new allocation: duplicates are rare, and they are reused after arrival like other packets.
    fn duplicate(&self) -> SimPacket {
        SimPacket(self.0.clone())
    }

    fn duplicate_into(&self, mut old: SimPacket) -> SimPacket {
        let Fields { body, arrived, address, length, ecn, class, corrupt, identification, entered, waits } =
            &*self.0;
        let to = &mut *old.0;
        match (&mut to.body, body) {
            (Body::Datagram(to), Body::Datagram(from)) => to.set(&from.head, from.payload()),
            (to, from) => to.clone_from(from),
        }
        (to.arrived, to.address, to.length, to.corrupt) = (*arrived, *address, *length, *corrupt);
        (to.ecn, to.class, to.identification) = (*ecn, *class, *identification);
        (to.entered, to.waits) = (*entered, *waits);
        old
    }

    fn corrupt(&mut self) {
        self.0.corrupt = true;
    }

    #[inline]
    fn is_corrupt(&self) -> bool {
        self.0.corrupt
    }

    fn write_to(&self, frame: &mut Vec<u8>) {
        let body = self.0.length - self.0.address.ip.header() as u16;
        let Some(ip) = self.header(body) else { return };
        match &ip {
            Header::V4(ip) => frame.extend_from_slice(&ip.to_bytes()),
            Header::V6(ip) => frame.extend_from_slice(&ip.to_bytes()),
        }
        match &self.0.body {
            Body::Segment(segment) => {
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
            Body::Datagram(datagram) => {
                let port = self.port();
                let mut payload = Vec::new();
                datagram.append_to(&mut payload);
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
