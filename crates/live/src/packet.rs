//! A real packet in the fabric: the Ethernet frame that a host sent, in a pooled buffer, and what was read of its IP, TCP
//! and UDP headers (RFC 791, 8200, 9293, 2018, 768). Steady state allocates nothing: a packet that ends gives its buffer back.

use crate::address::{NO_FLOW, address_of, fabric_mac_of, flow_of, mac_of, node_of, node_of_v6, port_of};
use crate::answer::{answer, repair, word_at};
use crate::datagram::datagram;
use crate::netlink::Mac;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use weir_base::{Ecn, FlowId, Packet, Time};
use weir_fabric::{DatagramView, TcpView, Wire};
use weir_plan::Ip;

/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Most SACK blocks that fit into a TCP header.
const SACK_BLOCKS: usize = 4;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const UDP_HEADER: usize = 8;
/// Time to live, hop limit: what hosts commonly begin with.
const HOPS: u8 = 64;

/// The network as parsing must know it.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    /// For each node, whether packets may come from it and be for it: it is a host, or has a station.
    pub addressed: Vec<bool>,
    /// Number of flows.
    pub flows: usize,
    /// For each node, the flow of the command whose packets begin or end there: they may have any ports, and are counted
    /// whatever they carry.
    pub commands: Vec<Option<FlowId>>,
}

/// Frames at rest. They stay boxed, since packets are moved about as pointers.
#[allow(clippy::vec_box)]
type Free = RefCell<Vec<Box<Frame>>>;

/// Buffers that packets come from and go back to. One thread's.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    free: Rc<Free>,
    directory: Rc<Directory>,
    room: usize,
}

/// A packet on its way through the fabric.
#[derive(Debug)]
pub(crate) struct LivePacket(Option<Box<Frame>>);

#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    facts: Facts,
    arrived: Time,
    class: Ecn,
    corrupt: bool,
    home: Weak<Free>,
}

/// What is read of a packet's headers once.
#[derive(Debug, Clone, Copy)]
struct Facts {
    flow: FlowId,
    /// Where it comes from, if that is in the network.
    source: Option<usize>,
    destination: usize,
    tcp: Option<TcpFacts>,
}

#[derive(Debug, Clone, Copy)]
struct TcpFacts {
    sequence: u32,
    acknowledgement: u32,
    payload: u32,
    syn: bool,
    ack: bool,
    sack: [(u32, u32); SACK_BLOCKS],
    sack_blocks: usize,
}

impl Pool {
    /// A pool for packets of up to `mtu` bytes.
    pub(crate) fn new(directory: Directory, mtu: usize) -> Pool {
        Pool { free: Rc::default(), directory: Rc::new(directory), room: mtu + ETHERNET }
    }

    /// Takes a frame in; none when it is not an IP packet for a host of this network.
    pub(crate) fn packet(&self, frame: &[u8]) -> Option<LivePacket> {
        let facts = Facts::read(frame, &self.directory)?;
        let mut packet = self.free.borrow_mut().pop().unwrap_or_else(|| {
            Box::new(Frame {
                bytes: Vec::with_capacity(self.room),
                facts,
                arrived: Time::ZERO,
                class: Ecn::NotEct,
                corrupt: false,
                home: Rc::downgrade(&self.free),
            })
        });
        packet.bytes.clear();
        packet.bytes.extend_from_slice(frame);
        (packet.facts, packet.corrupt) = (facts, false);
        Some(LivePacket(Some(packet)))
    }
}

impl Drop for LivePacket {
    fn drop(&mut self) {
        if let Some(frame) = self.0.take()
            && let Some(home) = frame.home.upgrade()
        {
            home.borrow_mut().push(frame);
        }
    }
}

impl LivePacket {
    #[inline]
    fn frame(&self) -> &Frame {
        self.0.as_deref().expect("the frame is taken out only by drop")
    }
    #[inline]
    fn frame_mut(&mut self) -> &mut Frame {
        self.0.as_deref_mut().expect("the frame is taken out only by drop")
    }

    /// The whole frame, Ethernet header included.
    pub(crate) fn ethernet(&self) -> &[u8] {
        &self.frame().bytes
    }

    /// Writes whom the frame is for.
    pub(crate) fn address_to(&mut self, mac: Mac) {
        self.frame_mut().bytes[..6].copy_from_slice(&mac);
    }
}

impl Packet for LivePacket {
    #[inline]
    fn wire_length(&self) -> u32 {
        (self.frame().bytes.len() - ETHERNET) as u32
    }
    #[inline]
    fn flow(&self) -> FlowId {
        self.frame().facts.flow
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        let ip = &self.frame().bytes[ETHERNET..];
        Ecn::from_bits(if ip[0] >> 4 == 4 { ip[1] } else { ip[1] >> 4 })
    }
    fn mark_ce(&mut self) {
        self.relabel(Ecn::Ce);
    }
    #[inline]
    fn arrive(&mut self, now: Time) {
        let class = self.ecn();
        let frame = self.frame_mut();
        (frame.arrived, frame.class) = (now, class);
    }
    #[inline]
    fn arrived(&self) -> Time {
        self.frame().arrived
    }
    #[inline]
    fn class(&self) -> Ecn {
        self.frame().class
    }
}

impl Wire for LivePacket {
    #[inline]
    fn destination(&self) -> usize {
        self.frame().facts.destination
    }
    #[inline]
    fn tcp(&self) -> Option<TcpView<'_>> {
        self.frame().facts.tcp.as_ref().map(|tcp| TcpView {
            sequence: tcp.sequence,
            acknowledgement: tcp.acknowledgement,
            payload: tcp.payload,
            syn: tcp.syn,
            ack: tcp.ack,
            sack: &tcp.sack[..tcp.sack_blocks],
        })
    }
    fn relabel(&mut self, ecn: Ecn) {
        let ip = &mut self.frame_mut().bytes[ETHERNET..];
        if ip[0] >> 4 != 4 {
            // The traffic class lies across two bytes, and no checksum covers it (RFC 8200, section 3).
            ip[1] = (ip[1] & !0x30) | ((ecn as u8) << 4);
            return;
        }
        let old = word_at(ip, 0);
        ip[1] = (ip[1] & !3) | ecn as u8;
        repair(ip, 10, old, word_at(ip, 0));
    }
    fn datagram(&mut self) -> Option<DatagramView<'_>> {
        datagram(&mut self.frame_mut().bytes[ETHERNET..])
    }
    fn turn_round(&mut self) -> bool {
        let frame = self.frame_mut();
        let Some(source) = frame.facts.source else { return false };
        if !answer(&mut frame.bytes[ETHERNET..]) {
            return false;
        }
        // The Ethernet addresses change places too.
        frame.bytes[..12].rotate_left(6);
        (frame.facts.source, frame.facts.destination) = (Some(frame.facts.destination), source);
        true
    }
    fn write_to(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.frame().bytes[ETHERNET..]);
    }
    fn duplicate(&self) -> LivePacket {
        let frame = self.frame();
        let spare = frame.home.upgrade().and_then(|home| home.borrow_mut().pop());
        let mut twin = spare.unwrap_or_else(|| {
            Box::new(Frame {
                bytes: Vec::with_capacity(frame.bytes.capacity()),
                facts: frame.facts,
                arrived: frame.arrived,
                class: frame.class,
                corrupt: frame.corrupt,
                home: Weak::clone(&frame.home),
            })
        });
        twin.bytes.clear();
        twin.bytes.extend_from_slice(&frame.bytes);
        (twin.facts, twin.arrived) = (frame.facts, frame.arrived);
        (twin.class, twin.corrupt) = (frame.class, frame.corrupt);
        LivePacket(Some(twin))
    }
    /// Flips a bit that a checksum of the receiving kernel covers: the last one of the payload; of a segment without, one of
    /// the checksum itself; and where there is no checksum but the IP header's, one of that.
    fn corrupt(&mut self) {
        let frame = self.frame_mut();
        frame.corrupt = true;
        let at = checked_byte(&frame.bytes[ETHERNET..], &frame.facts);
        frame.bytes[ETHERNET + at] ^= 1;
    }
    #[inline]
    fn is_corrupt(&self) -> bool {
        self.frame().corrupt
    }
}

/// A byte of this IP packet in which a changed bit is found out by the host that it reaches.
fn checked_byte(ip: &[u8], facts: &Facts) -> usize {
    let v6 = ip[0] >> 4 == 6;
    let header = if v6 { 40 } else { usize::from(ip[0] & 15) * 4 };
    match &facts.tcp {
        // The low byte of TCP's checksum (RFC 9293, section 3.1).
        Some(tcp) if tcp.payload == 0 => header + 17,
        Some(_) => ip.len() - 1,
        // Over IPv6 every upper protocol has a checksum of the whole (RFC 8200, section 8.1).
        None if v6 => ip.len() - 1,
        // A datagram with a payload and a checksum, which zero would be none (RFC 768).
        None if facts.flow != NO_FLOW
            && ip[9] == UDP
            && ip.len() > header + 8
            && ip[header + 6..header + 8] != [0, 0] =>
        {
            ip.len() - 1
        }
        // The low byte of the header's checksum (RFC 791, section 3.1).
        None => 11,
    }
}

impl Facts {
    fn read(frame: &[u8], directory: &Directory) -> Option<Facts> {
        let ip = frame.get(ETHERNET..)?;
        let header = match *frame.get(12..ETHERNET)?.first_chunk()? {
            ETHERTYPE_IPV4 => IpFacts::read_v4(ip)?,
            ETHERTYPE_IPV6 => IpFacts::read_v6(ip)?,
            _ => return None,
        };
        let IpFacts { source, destination, protocol, payload } = header;
        let addressed = |node: usize| directory.addressed.get(node).copied().unwrap_or(false);
        if !addressed(destination) {
            return None;
        }
        let from = Some(source).filter(|source| addressed(*source));
        let flow = match (protocol, payload) {
            (Some(TCP | UDP), &[a, b, c, d, ..]) => {
                flow_of(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), directory.flows)
            }
            _ => NO_FLOW,
        };
        let of = |node: usize| directory.commands.get(node).copied().flatten();
        if flow == NO_FLOW
            && let Some(flow) = of(source).or_else(|| of(destination))
        {
            return Some(Facts { flow, source: from, destination, tcp: None });
        }
        let tcp = if protocol == Some(TCP) { TcpFacts::read(payload) } else { None };
        Some(Facts { flow, source: from, destination, tcp })
    }
}

/// What is read of an IP header.
struct IpFacts<'a> {
    source: usize,
    destination: usize,
    /// What the payload begins with; none where that is the middle of something, behind a first fragment.
    protocol: Option<u8>,
    payload: &'a [u8],
}

impl IpFacts<'_> {
    fn read_v4(ip: &[u8]) -> Option<IpFacts<'_>> {
        if ip.len() < 20 || ip[0] >> 4 != 4 {
            return None;
        }
        let (header, total) = (usize::from(ip[0] & 15) * 4, usize::from(u16::from_be_bytes([ip[2], ip[3]])));
        if header < 20 || total < header || total != ip.len() {
            return None;
        }
        let first = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
        let (source, destination) = (node_of(u32_at(ip, 12)?), node_of(u32_at(ip, 16)?));
        Some(IpFacts { source, destination, protocol: first.then_some(ip[9]), payload: &ip[header..] })
    }

    /// Extension headers count as a protocol of their own: hosts here send none.
    fn read_v6(ip: &[u8]) -> Option<IpFacts<'_>> {
        let (header, payload) = ip.split_at_checked(40)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if header[0] >> 4 != 6 || length != payload.len() {
            return None;
        }
        let source = node_of_v6(u128::from_be_bytes(*header[8..].first_chunk()?));
        let destination = node_of_v6(u128::from_be_bytes(*header[24..].first_chunk()?));
        Some(IpFacts { source, destination, protocol: Some(header[6]), payload })
    }
}

impl TcpFacts {
    fn read(tcp: &[u8]) -> Option<TcpFacts> {
        let header = usize::from(tcp.get(12)? >> 4) * 4;
        if header < 20 || header > tcp.len() {
            return None;
        }
        let flags = tcp[13];
        let mut facts = TcpFacts {
            sequence: u32_at(tcp, 4)?,
            acknowledgement: u32_at(tcp, 8)?,
            payload: (tcp.len() - header) as u32,
            syn: flags & 0x02 != 0,
            ack: flags & 0x10 != 0,
            sack: [(0, 0); SACK_BLOCKS],
            sack_blocks: 0,
        };
        facts.read_sack(&tcp[20..header]);
        Some(facts)
    }

    /// Walks the options to the SACK blocks (kind 5, RFC 2018 section 3).
    fn read_sack(&mut self, mut options: &[u8]) {
        while let [kind, rest @ ..] = options {
            options = match (kind, rest) {
                (0, _) => return,
                (1, rest) => rest,
                (kind, [length, ..]) if (2..=options.len()).contains(&usize::from(*length)) => {
                    let (option, behind) = options.split_at((*length).into());
                    if *kind == 5 {
                        for (block, into) in option[2..].chunks_exact(8).zip(&mut self.sack) {
                            if let (Some(start), Some(end)) = (u32_at(block, 0), u32_at(block, 4)) {
                                *into = (start, end);
                                self.sack_blocks += 1;
                            }
                        }
                        return;
                    }
                    behind
                }
                _ => return,
            };
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// Builds the frame of a UDP datagram whose IP packet has `length` bytes, for datagrams that the fabric injects itself. The
/// UDP checksum is left out over IPv4, as it permits (RFC 768), and is there over IPv6, which does not (RFC 8200, section 8.1).
pub(crate) fn udp_frame(from: usize, to: usize, ip: Ip, flow: usize, length: usize, ecn: Ecn) -> Vec<u8> {
    let headers = ip.header() as usize + UDP_HEADER;
    let mut frame = vec![0; ETHERNET + length.max(headers)];
    frame[..6].copy_from_slice(&mac_of(to));
    frame[6..12].copy_from_slice(&fabric_mac_of(from));
    let (ethernet, packet) = frame.split_at_mut(ETHERNET);
    let (header, udp) = packet.split_at_mut(ip.header() as usize);
    udp[..2].copy_from_slice(&port_of(flow).to_be_bytes());
    udp[2..4].copy_from_slice(&port_of(flow).to_be_bytes());
    let length = udp.len() as u16;
    udp[4..6].copy_from_slice(&length.to_be_bytes());
    match (address_of(from, ip), address_of(to, ip)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet[12..].copy_from_slice(&ETHERTYPE_IPV4);
            header[0] = 0x45;
            header[1] = ecn as u8;
            header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            header[6] = 0x40; // don't fragment
            header[8] = HOPS;
            header[9] = UDP;
            header[12..16].copy_from_slice(&source.octets());
            header[16..20].copy_from_slice(&destination.octets());
            let sum = checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (source, destination) => {
            ethernet[12..].copy_from_slice(&ETHERTYPE_IPV6);
            header[0] = 0x60;
            header[1] = (ecn as u8) << 4;
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header[6] = UDP;
            header[7] = HOPS;
            for (address, at) in [(source, 8), (destination, 24)] {
                if let IpAddr::V6(address) = address {
                    header[at..at + 16].copy_from_slice(&address.octets());
                }
            }
        }
    }
    sum_up(&mut frame, ip);
    frame
}

/// Writes the UDP checksum of a datagram whose payload is complete, where there is one: over IPv6.
pub(crate) fn sum_up(frame: &mut [u8], ip: Ip) {
    if ip == Ip::V6 {
        let (header, udp) = frame[ETHERNET..].split_at_mut(ip.header() as usize);
        udp[6..8].fill(0);
        let sum = checksum_v6(header, udp);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The checksum of a payload over IPv6, with the pseudo-header (RFC 8200, section 8.1): addresses, length and next header. A sum
/// of zero is written as its other form, since zero means that there is none.
fn checksum_v6(header: &[u8], payload: &[u8]) -> u16 {
    let mut bytes = header[8..40].to_vec();
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend([0, 0, 0, header[6]]);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    match checksum(&bytes) {
        0 => 0xffff,
        sum => sum,
    }
}

/// Reads a frame as the pump does, marks it, and asserts that an IPv4 header whose checksum was right is still right: what
/// fuzzing calls.
///
/// # Panics
/// When weir is wrong.
#[doc(hidden)]
pub fn examine_frame(frame: &[u8]) {
    let directory = Directory { addressed: vec![true; 8], flows: 4, commands: vec![] };
    let Some(mut packet) = Pool::new(directory, 1500).packet(frame) else { return };
    let _ = packet.tcp();
    let header = |packet: &LivePacket| {
        let ip = &packet.ethernet()[ETHERNET..];
        (ip[0] >> 4 == 4).then(|| checksum(&ip[..usize::from(ip[0] & 15) * 4]))
    };
    let before = header(&packet);
    packet.mark_ce();
    assert_eq!(packet.ecn(), Ecn::Ce);
    assert!(before != Some(0) || header(&packet) == Some(0), "marking broke the checksum");
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Pool {
        Pool::new(Directory { addressed: vec![true, false, true], flows: 3, commands: vec![None; 3] }, 1500)
    }

    /// A TCP segment of flow 1 from node 0 to node 2, with these options and so many bytes of payload.
    fn segment(options: &[u8], payload: usize) -> Vec<u8> {
        let mut frame = udp_frame(0, 2, Ip::V4, 1, 40 + options.len() + payload, Ecn::Ect0);
        frame[ETHERNET + 9] = TCP;
        let tcp = &mut frame[ETHERNET + 20..];
        tcp[4..8].copy_from_slice(&7000u32.to_be_bytes());
        tcp[8..12].copy_from_slice(&9000u32.to_be_bytes());
        tcp[12] = (((20 + options.len()) / 4) as u8) << 4;
        tcp[13] = 0x10;
        tcp[20..20 + options.len()].copy_from_slice(options);
        frame
    }

    /// The sum over pseudo-header and datagram comes out to all ones when nothing was damaged.
    fn is_sound_v6(packet: &LivePacket) -> bool {
        let (header, udp) = packet.ethernet()[ETHERNET..].split_at(40);
        checksum_v6(header, udp) == 0xffff
    }

    #[test]
    fn a_datagram_over_ipv6_is_read_as_it_was_built_and_marked_without_a_trace() {
        for (length, ecn) in [(48, Ecn::Ect0), (49, Ecn::Ect1), (1500, Ecn::Ect1)] {
            let mut packet = pool().packet(&udp_frame(0, 2, Ip::V6, 1, length, ecn)).unwrap();
            assert_eq!((packet.wire_length() as usize, packet.flow()), (length, FlowId(1)));
            assert_eq!((packet.destination(), packet.ecn()), (2, ecn));
            assert!(is_sound_v6(&packet));
            packet.mark_ce();
            assert_eq!(packet.ecn(), Ecn::Ce);
            // The version before the traffic class and the flow label behind it stay what they were.
            assert_eq!(packet.ethernet()[ETHERNET..ETHERNET + 4], [0x60, 0x30, 0, 0]);
            assert!(is_sound_v6(&packet));
        }
    }

    #[test]
    fn a_segment_over_ipv6_shows_its_tcp_header() {
        let mut frame = udp_frame(0, 2, Ip::V6, 1, 40 + 20 + 7, Ecn::NotEct);
        frame[ETHERNET + 6] = TCP;
        let tcp = &mut frame[ETHERNET + 40..];
        tcp[4..8].copy_from_slice(&7000u32.to_be_bytes());
        tcp[12] = 5 << 4;
        tcp[13] = 0x02;
        let packet = pool().packet(&frame).unwrap();
        let tcp = packet.tcp().unwrap();
        assert_eq!((tcp.sequence, tcp.payload, tcp.syn, tcp.ack), (7000, 7, true, false));
    }

    #[test]
    fn a_datagram_is_read_as_it_was_built() {
        let packet = pool().packet(&udp_frame(0, 2, Ip::V4, 1, 1500, Ecn::Ect1)).unwrap();
        assert_eq!((packet.wire_length(), packet.flow(), packet.destination()), (1500, FlowId(1), 2));
        assert_eq!(packet.ecn(), Ecn::Ect1);
        assert!(packet.tcp().is_none());
        assert_eq!(checksum(&packet.ethernet()[ETHERNET..ETHERNET + 20]), 0);
    }

    #[test]
    fn marking_keeps_the_header_checksum_right() {
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            for length in 28..400 {
                let mut packet = pool().packet(&udp_frame(0, 2, Ip::V4, 1, length, ecn)).unwrap();
                packet.mark_ce();
                assert_eq!(packet.ecn(), Ecn::Ce);
                assert_eq!(checksum(&packet.ethernet()[ETHERNET..ETHERNET + 20]), 0);
            }
        }
    }

    #[test]
    fn a_datagram_that_is_turned_round_is_what_its_receiver_would_have_sent() {
        for (ip, length) in [(Ip::V4, 1500), (Ip::V4, 28), (Ip::V6, 1500), (Ip::V6, 48)] {
            let mut packet = pool().packet(&udp_frame(0, 2, ip, 1, length, Ecn::Ect1)).unwrap();
            assert!(packet.turn_round());
            let answer = udp_frame(2, 0, ip, 1, length, Ecn::Ect1);
            assert_eq!(packet.ethernet()[ETHERNET..], answer[ETHERNET..]);
            assert_eq!((packet.destination(), packet.flow(), packet.ecn()), (0, FlowId(1), Ecn::Ect1));
            assert_eq!(packet.ethernet()[6..12], mac_of(2));
        }
    }

    #[test]
    fn a_segment_and_what_comes_from_nowhere_in_the_network_are_not_turned_round() {
        let mut packet = pool().packet(&segment(&[], 5)).unwrap();
        let before = packet.ethernet().to_vec();
        assert!(!packet.turn_round() && packet.ethernet() == before);
        // Node 1 is a router.
        let mut packet = pool().packet(&udp_frame(1, 2, Ip::V4, 1, 100, Ecn::NotEct)).unwrap();
        assert!(!packet.turn_round() && packet.destination() == 2);
    }

    #[test]
    fn sack_blocks_are_found_behind_other_options() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
        for edge in [100u32, 200, 300, 400] {
            options.extend(edge.to_be_bytes());
        }
        let packet = pool().packet(&segment(&options, 5)).unwrap();
        let tcp = packet.tcp().unwrap();
        assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.payload), (7000, 9000, 5));
        assert!(tcp.ack && !tcp.syn);
        assert_eq!(tcp.sack, [(100, 200), (300, 400)]);
    }

    #[test]
    fn a_twin_is_the_same_and_goes_back_to_the_same_pool() {
        let pool = pool();
        let mut packet = pool.packet(&udp_frame(0, 2, Ip::V4, 1, 300, Ecn::Ect0)).unwrap();
        packet.arrive(Time::from_nanos(5));
        let twin = packet.duplicate();
        assert_eq!(twin.ethernet(), packet.ethernet());
        assert_eq!((twin.flow(), twin.arrived(), twin.class()), (packet.flow(), packet.arrived(), Ecn::Ect0));
        drop((packet, twin));
        assert_eq!(pool.free.borrow().len(), 2);
    }

    #[test]
    fn damage_is_one_bit_where_a_checksum_tells_of_it() {
        let changed = |frame: &[u8]| {
            let mut packet = pool().packet(frame).unwrap();
            packet.corrupt();
            assert!(packet.is_corrupt());
            let pairs = packet.ethernet().iter().zip(frame).enumerate();
            let places: Vec<_> =
                pairs.filter(|(_, (a, b))| a != b).map(|(at, (a, b))| (at - ETHERNET, a ^ b)).collect();
            assert_eq!(places.len(), 1);
            places[0]
        };
        assert_eq!(changed(&segment(&[], 100)), (139, 1), "the last byte of the payload");
        assert_eq!(changed(&segment(&[1, 1, 1, 1], 0)), (20 + 17, 1), "TCP's own checksum");
        let mut datagram = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
        assert_eq!(changed(&datagram), (11, 1), "a datagram without a checksum: the IP header's");
        datagram[ETHERNET + 27] = 9;
        assert_eq!(changed(&datagram), (99, 1));
    }

    #[test]
    fn what_a_command_sends_is_its_flows_whatever_the_ports() {
        let commands = vec![Some(FlowId(2)), None, None];
        let pool = Pool::new(Directory { addressed: vec![true, false, true], flows: 3, commands }, 1500);
        let mut ping = udp_frame(0, 2, Ip::V4, 9, 84, Ecn::NotEct);
        ping[ETHERNET + 9] = 1;
        assert_eq!(pool.packet(&ping).unwrap().flow(), FlowId(2));
        assert_eq!(
            pool.packet(&udp_frame(2, 0, Ip::V4, 9, 84, Ecn::NotEct)).unwrap().flow(),
            FlowId(2),
            "and answers"
        );
        assert_eq!(
            pool.packet(&udp_frame(0, 2, Ip::V4, 1, 84, Ecn::NotEct)).unwrap().flow(),
            FlowId(1),
            "a flow's own"
        );
    }

    #[test]
    fn what_is_not_for_a_host_of_the_network_is_not_taken() {
        let pool = pool();
        assert!(pool.packet(&udp_frame(0, 1, Ip::V4, 1, 100, Ecn::NotEct)).is_none(), "node 1 is a router");
        assert!(pool.packet(&udp_frame(0, 9, Ip::V4, 1, 100, Ecn::NotEct)).is_none(), "there is no node 9");
        let mut arp = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
        arp[13] = 0x06;
        assert!(pool.packet(&arp).is_none());
        assert!(pool.packet(&[]).is_none());
    }

    #[test]
    fn cut_and_garbled_packets_never_panic() {
        let pool = pool();
        let whole = segment(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], 20);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            drop(pool.packet(&cut));
            if length >= ETHERNET + 20 {
                cut[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&((length - ETHERNET) as u16).to_be_bytes());
                drop(pool.packet(&cut));
            }
        }
        let whole_v6 = udp_frame(0, 2, Ip::V6, 1, 80, Ecn::Ect0);
        for length in 0..whole_v6.len() {
            drop(pool.packet(&whole_v6[..length]));
        }
        for (at, value) in (0..whole_v6.len()).flat_map(|at| [0, 1, 6, 0xff].map(|value| (at, value))) {
            let mut garbled = whole_v6.clone();
            garbled[at] = value;
            drop(pool.packet(&garbled));
        }
        for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x5f, 0xff].map(|value| (at, value))) {
            let mut garbled = whole.clone();
            garbled[at] = value;
            drop(pool.packet(&garbled));
        }
    }

    #[test]
    fn a_packet_that_ends_gives_its_buffer_back() {
        let pool = pool();
        let frame = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
        let packets: Vec<_> = (0..10).map(|_| pool.packet(&frame).unwrap()).collect();
        drop(packets);
        assert_eq!(pool.free.borrow().len(), 10);
        let again = pool.packet(&frame).unwrap();
        assert_eq!(
            (pool.free.borrow().len(), again.flow()),
            (9, FlowId(usize::from(port_of(1) - port_of(0)) as u32))
        );
    }
}
