//! A real packet in the fabric: the Ethernet frame that a host sent, in a pooled buffer, and the facts read from its IP, TCP
//! and UDP headers (RFC 791, 8200, 9293, 2018, 768). Steady state allocates nothing: a packet that ends gives its buffer back.

use crate::address::{NO_FLOW, flow_of};
use crate::answer::{answer, repair, word_at};
use crate::datagram::datagram;
use crate::frame::checksum;
use crate::headers::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IpFacts, TCP, TcpFacts, UDP};
use crate::outside::Outside;
use crate::overlay::Ways;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use weir_base::{Dscp, Ecn, FlowId, Packet, Span, Time};
use weir_fabric::{DatagramView, TcpView, Wire};
use weir_linux::netlink::Mac;
use weir_observe::ip_id::{self, Stamp};

/// The facts about the network that parsing needs.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    /// For each node, whether packets may come from its address and go to it: true for hosts and for nodes with a station.
    pub addressed: Vec<bool>,
    /// Number of flows.
    pub flows: usize,
    /// For each node, the flow of the command whose packets begin or end there; `None` without a command. These packets may
    /// have any ports, and are counted whatever they carry.
    pub commands: Vec<Option<FlowId>>,
    /// Where packets for addresses outside the network go; `None` if there is no way out.
    pub beyond: Option<Outside>,
    /// For each node, where all packets go that enter there, whatever their destination address; `None` where that says it. Nodes beyond
    /// the end have no such way.
    pub ways: Vec<Option<usize>>,
    /// Where packets to groups go.
    pub groups: Ways,
}

/// Unused frames. They stay boxed, since packets are moved about as pointers.
#[allow(clippy::vec_box)]
type Free = RefCell<Vec<Box<Frame>>>;

/// Pool of packet buffers, for one thread.
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

/// The facts read once from a packet's headers.
#[derive(Debug, Clone, Copy)]
struct Facts {
    flow: FlowId,
    /// The node at which it enters the network.
    enters: usize,
    /// The node that it comes from; `None` if that is not in the network.
    source: Option<usize>,
    destination: usize,
    tcp: Option<TcpFacts>,
}

impl Pool {
    /// A pool for packets of up to `mtu` bytes.
    pub(crate) fn new(directory: Directory, mtu: usize) -> Pool {
        Pool { free: Rc::default(), directory: Rc::new(directory), room: mtu + ETHERNET }
    }

    /// Copies a frame that enters at a node into a packet; `None` if it is not an IP packet for an addressed node of this network.
    pub(crate) fn packet(&self, node: usize, frame: &[u8]) -> Option<LivePacket> {
        let facts = Facts::read(node, frame, &self.directory)?;
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

    /// The node at which it enters the network: that of its host, or one that stands for it.
    pub(crate) fn enters(&self) -> usize {
        self.frame().facts.enters
    }

    /// The TOS byte of IPv4 or the traffic class of IPv6.
    #[inline]
    fn traffic_class(&self) -> u8 {
        let ip = &self.frame().bytes[ETHERNET..];
        if ip[0] >> 4 == 4 { ip[1] } else { ip[0] << 4 | ip[1] >> 4 }
    }

    /// Sets it. The header's checksum is repaired.
    fn set_traffic_class(&mut self, class: u8) {
        let ip = &mut self.frame_mut().bytes[ETHERNET..];
        if ip[0] >> 4 != 4 {
            // It lies across two bytes, and no checksum covers it (RFC 8200, section 3).
            (ip[0], ip[1]) = (ip[0] & 0xf0 | class >> 4, ip[1] & 0x0f | class << 4);
            return;
        }
        let old = word_at(ip, 0);
        ip[1] = class;
        repair(ip, 10, old, word_at(ip, 0));
    }

    /// Sets the DSCP.
    pub(crate) fn set_dscp(&mut self, dscp: Dscp) {
        if self.dscp() != dscp {
            self.set_traffic_class(dscp.with(self.ecn()));
        }
    }

    /// Hides the TCP header from the fabric, which then reads no round trips from it.
    pub(crate) fn hide_tcp(&mut self) {
        self.frame_mut().facts.tcp = None;
    }

    /// Sets the destination address of the frame; that of a group stays.
    pub(crate) fn address_to(&mut self, mac: Mac) {
        let own = &mut self.frame_mut().bytes[..6];
        // The lowest bit of the first byte tells a group (IEEE 802, section 8.2).
        if own[0] & 1 == 0 {
            own.copy_from_slice(&mac);
        }
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
        Ecn::from_bits(self.traffic_class())
    }
    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::from_bits(self.traffic_class())
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
        self.set_traffic_class(self.dscp().with(ecn));
    }
    fn report(&mut self, delay: Span, drops: u64) -> Option<u64> {
        let (identification, left) = Stamp { delay, drops }.encode();
        ip_id::write(&mut self.frame_mut().bytes[ETHERNET..], identification).then_some(left)
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
    /// Flips a bit that a checksum of the receiving kernel covers: the last bit of the payload; in a segment without payload, a
    /// bit of TCP's checksum; and if the only checksum is the IP header's, a bit of that.
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

/// Offset of a byte of this IP packet in which the receiving host detects a changed bit.
fn checked_byte(ip: &[u8], facts: &Facts) -> usize {
    let v6 = ip[0] >> 4 == 6;
    let header = if v6 { 40 } else { usize::from(ip[0] & 15) * 4 };
    match &facts.tcp {
        // The low byte of TCP's checksum (RFC 9293, section 3.1).
        Some(tcp) if tcp.payload == 0 => header + 17,
        Some(_) => ip.len() - 1,
        // Over IPv6 every upper protocol has a checksum of the whole (RFC 8200, section 8.1).
        None if v6 => ip.len() - 1,
        // A datagram with a payload and a checksum; a checksum of zero means none (RFC 768).
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
    fn read(node: usize, frame: &[u8], directory: &Directory) -> Option<Facts> {
        let ip = frame.get(ETHERNET..)?;
        let header = match *frame.get(12..ETHERNET)?.first_chunk()? {
            ETHERTYPE_IPV4 => IpFacts::read_v4(ip)?,
            ETHERTYPE_IPV6 => IpFacts::read_v6(ip)?,
            _ => return None,
        };
        let IpFacts { source, destination, travels, is_to_group, protocol, payload } = header;
        let addressed = |node: usize| directory.addressed.get(node).copied().unwrap_or(false);
        let beyond = directory.beyond.as_ref();
        // Of a packet between the program and an address with a prefix of its own, one of the two addresses is no node's.
        let own = beyond.filter(|_| travels && !(addressed(source) && addressed(destination)));
        let own = own.and_then(|beyond| beyond.ends(node, ip));
        let of_group = if is_to_group { directory.groups.from(node) } else { None };
        let destination = match (of_group, directory.ways.get(node).copied().flatten(), own) {
            (Some(way), _, _) => way,
            (None, Some(way), _) => Some(way).filter(|_| travels)?,
            (None, None, Some((_, to))) => to,
            (None, None, None) if addressed(destination) => destination,
            // What the way out itself sends there would come back to it.
            (None, None, None) => beyond.map(|beyond| beyond.far).filter(|far| travels && source != *far)?,
        };
        let (enters, source) = own.map_or((node, source), |(from, _)| (from, from));
        let from = Some(source).filter(|source| addressed(*source));
        let flow = match (protocol, payload) {
            (Some(TCP | UDP), &[a, b, c, d, ..]) => {
                let FlowId(flow) =
                    flow_of(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), directory.flows);
                FlowId(if of_group.is_some() { directory.groups.flow_at(flow, destination) } else { flow })
            }
            _ => NO_FLOW,
        };
        let of = |node: usize| directory.commands.get(node).copied().flatten();
        if flow == NO_FLOW
            && let Some(flow) = of(source).or_else(|| of(destination))
        {
            return Some(Facts { flow, enters, source: from, destination, tcp: None });
        }
        let tcp = if protocol == Some(TCP) { TcpFacts::read(payload) } else { None };
        Some(Facts { flow, enters, source: from, destination, tcp })
    }
}

/// For fuzzing: reads a frame as the pump does, marks it, and asserts that a correct IPv4 header checksum stays correct.
///
/// # Panics
/// If the assertion fails.
#[doc(hidden)]
pub fn examine_frame(frame: &[u8]) {
    let directory = Directory {
        addressed: vec![true; 8],
        flows: 4,
        commands: vec![],
        beyond: None,
        ways: vec![],
        groups: Ways::default(),
    };
    let Some(mut packet) = Pool::new(directory, 1500).packet(0, frame) else { return };
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

#[cfg(test)]
mod tests;
