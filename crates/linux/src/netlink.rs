//! Netlink (netlink(7)): requests, each of which waits for the kernel's answer, and the handful of rtnetlink's that hosts need: veth pairs,
//! addresses, routes, permanent neighbours, counters.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{
    Socket, SocketAddr,
    protocols::{NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_SOCK_DIAG},
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use weir_base::Prefix;

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

/// A hardware address.
pub type Mac = [u8; 6];

/// One end of a veth pair that is to be made.
#[derive(Debug)]
pub struct End<'a> {
    /// Device name.
    pub name: &'a str,
    /// Hardware address.
    pub mac: Mac,
    /// Namespace of the device; `None` for the netlink socket's own namespace.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// A socket of the namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for rtnetlink in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Netlink> {
        Netlink::of(NETLINK_ROUTE)
    }

    /// Opens a socket for the diagnosis of sockets (sock_diag(7)).
    ///
    /// # Errors
    /// The kernel's.
    pub fn sock_diag() -> io::Result<Netlink> {
        Netlink::of(NETLINK_SOCK_DIAG)
    }

    /// Opens a socket for nfnetlink, of which nf_tables is a part.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn netfilter() -> io::Result<Netlink> {
        Netlink::of(NETLINK_NETFILTER)
    }

    fn of(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Makes a veth pair; both ends are down.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_veth(&mut self, end: &End<'_>, peer: &End<'_>, mtu: u32) -> io::Result<()> {
        let mut far = LinkMessage::default();
        far.attributes = attributes(peer, mtu);
        let mut near = LinkMessage::default();
        near.attributes = attributes(end, mtu);
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Brings a device up. ARP and multicast are switched off on it: neighbours are permanent, and nothing else may talk.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let up = LinkFlags::Up | LinkFlags::Noarp;
        self.set_flags(index, up, up | LinkFlags::Multicast)
    }

    /// Switches multicast on, on a device that [`Netlink::set_up`] has brought up.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_multicast(&mut self, index: u32) -> io::Result<()> {
        self.set_flags(index, LinkFlags::Multicast, LinkFlags::Multicast)
    }

    /// Sets those flags of a device that are in `mask`.
    fn set_flags(&mut self, index: u32, flags: LinkFlags, mask: LinkFlags) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = flags;
        link.header.change_mask = mask;
        self.change(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Limits how many segments TCP hands to a device at once. With a limit of 1, TCP hands over, paces and tracks single
    /// packets, as the simulator's hosts do; without it the kernel bundles packets and splits them again later.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_gso_max_segs(&mut self, index: u32, segments: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::GsoMaxSegs(segments)];
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds an address with a full-length prefix to a device. The address can be used at once, without duplicate address
    /// detection (RFC 4862).
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family_of(address);
        message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route through a gateway on a device: the default route, or that to one address. The gateway need not be in an address
    /// range of the device.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_route(&mut self, index: u32, to: Option<IpAddr>, gateway: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family_of(gateway);
        message.header.table = netlink_packet_route::route::RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.header.flags = netlink_packet_route::route::RouteFlags::Onlink;
        message.attributes =
            vec![RouteAttribute::Gateway(RouteAddress::from(gateway)), RouteAttribute::Oif(index)];
        if let Some(to) = to {
            message.header.destination_prefix_length = if to.is_ipv4() { 32 } else { 128 };
            message.attributes.push(RouteAttribute::Destination(RouteAddress::from(to)));
        }
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route to all addresses with a prefix through a device. What this host sends there has the source `source`, if one is given.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_prefix_route(&mut self, index: u32, to: &Prefix, source: Option<IpAddr>) -> io::Result<()> {
        let mut message = prefix_route(index, to);
        message.header.table = netlink_packet_route::route::RouteHeader::RT_TABLE_MAIN;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message
            .attributes
            .extend(source.map(|source| RouteAttribute::PrefSource(RouteAddress::from(source))));
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Makes all addresses with a prefix this host's own (a local route). `index` is the loopback device's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_local_route(&mut self, index: u32, to: &Prefix) -> io::Result<()> {
        let mut message = prefix_route(index, to);
        message.header.table = libc::RT_TABLE_LOCAL;
        message.header.scope = RouteScope::Host;
        message.header.kind = RouteType::Local;
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sets the MTU of a device, in bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::Mtu(mtu)];
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds a permanent neighbour.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family_of(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::from(address)),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// A device's counters.
    ///
    /// # Errors
    /// The kernel's, or an answer without counters.
    pub fn counters(&mut self, index: u32) -> io::Result<Stats64> {
        let found = self.link(index)?.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        });
        found.ok_or_else(|| io::Error::other("the kernel reported no counters of a device"))
    }

    /// The MTU of a device in bytes, and its queue length in packets.
    ///
    /// # Errors
    /// The kernel's, or an answer without them.
    pub fn sizes(&mut self, index: u32) -> io::Result<(u32, u32)> {
        let (mut mtu, mut queue) = (None, None);
        for attribute in self.link(index)? {
            match attribute {
                LinkAttribute::Mtu(value) => mtu = Some(value),
                LinkAttribute::TxQueueLen(value) => queue = Some(value),
                _ => {}
            }
        }
        mtu.zip(queue).ok_or_else(|| io::Error::other("the kernel reports no MTU for the device"))
    }

    /// Makes a pair of veth devices in this namespace, with this queue length and MTU, for trials.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_scratch(&mut self, name: &str, queue: u32, mtu: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::TxQueueLen(queue),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth)]),
        ];
        self.change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// The attributes of a device.
    fn link(&mut self, index: u32) -> io::Result<Vec<LinkAttribute>> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let message = RouteNetlinkMessage::GetLink(link);
        self.send(message.message_type(), NLM_F_ACK, &bytes_of(&message))?;
        let (mut header, mut attributes) = (NetlinkHeader::default(), vec![]);
        header.message_type = RouteNetlinkMessage::NewLink(LinkMessage::default()).message_type();
        self.receive(&mut |body| {
            if let Ok(RouteNetlinkMessage::NewLink(link)) = RouteNetlinkMessage::deserialize(&header, body) {
                attributes.extend(link.attributes);
            }
        })?;
        Ok(attributes)
    }

    /// Removes a device; of a veth pair, both ends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove_device(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        self.change(RouteNetlinkMessage::DelLink(link), 0)
    }

    pub(crate) fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message.message_type(), NLM_F_ACK | flags, &bytes_of(&message))?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    /// Sends a request of this kind.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut bytes = vec![];
        self.push(&mut bytes, kind, flags, body);
        self.socket.send(&bytes, 0).map(|_| ())
    }

    /// Appends a request to those that are sent together, with the next number, padded to four bytes (`NLMSG_ALIGN`).
    fn push(&mut self, bytes: &mut Vec<u8>, kind: u16, flags: u16, body: &[u8]) {
        self.sequence += 1;
        bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }

    /// Sends requests (kind, flags, body) to a subsystem of nfnetlink, of which the kernel carries out all or none
    /// (include/uapi/linux/netfilter/nfnetlink.h, `nfnetlink_rcv_batch`). Returns the places of those that it refused, and why.
    ///
    /// # Errors
    /// The kernel's about the batch as a whole: the process lacks the privilege, or there is no such subsystem.
    pub(crate) fn batch(
        &mut self,
        subsystem: u16,
        requests: &[(u16, u16, Vec<u8>)],
    ) -> io::Result<Vec<(usize, io::Error)>> {
        // Version and family are 0; the subsystem is in network order.
        let [high, low] = subsystem.to_be_bytes();
        let mut bytes = vec![];
        self.push(&mut bytes, libc::NFNL_MSG_BATCH_BEGIN as u16, 0, &[0, 0, high, low]);
        let begin = self.sequence;
        for (number, (kind, flags, body)) in requests.iter().enumerate() {
            // An error is always told. Of the others only the last is acknowledged, so that the answers fit into the socket's buffer.
            let ack = if number + 1 == requests.len() { NLM_F_ACK } else { 0 };
            self.push(&mut bytes, *kind, flags | ack, body);
        }
        let last = self.sequence;
        self.push(&mut bytes, libc::NFNL_MSG_BATCH_END as u16, 0, &[0, 0, high, low]);
        self.socket.send(&bytes, 0)?;
        let mut refused = vec![];
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            for (header, body) in messages(&answer) {
                let sequence = word(header, 8);
                let is_error = u16::from_ne_bytes([header[4], header[5]]) == NLMSG_ERROR;
                if !is_error || !(begin..=last).contains(&sequence) {
                    continue;
                }
                let code = word(body, 0).cast_signed();
                let error = || io::Error::from_raw_os_error(-code);
                if code != 0 && sequence == begin {
                    return Err(error());
                }
                if code != 0 {
                    refused.push(((sequence - begin - 1) as usize, error()));
                }
                if sequence == last {
                    return Ok(refused);
                }
            }
        }
    }

    /// Reads the answer to the last request, which asked for an acknowledgement (`NLM_F_ACK`) or a list (`NLM_F_DUMP`), to its end; `each`
    /// gets the body of each message. Returns false if the kernel says that the list changed while it was read.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut whole = true;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            for (header, body) in messages(&answer) {
                if word(header, 8) != self.sequence {
                    continue;
                }
                whole &= u16::from_ne_bytes([header[6], header[7]]) & NLM_F_DUMP_INTR == 0;
                match u16::from_ne_bytes([header[4], header[5]]) {
                    NLMSG_ERROR => {
                        let code = word(body, 0).cast_signed();
                        return if code == 0 { Ok(whole) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    NLMSG_DONE => {
                        // A list that failed half-way ends with an error (netlink_dump_done).
                        let code = word(body, 0).cast_signed();
                        return if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(whole) };
                    }
                    _ => each(body),
                }
            }
        }
    }
}

/// The messages of an answer: header and body of each.
fn messages(answer: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = answer;
    std::iter::from_fn(move || {
        let header = rest.get(..HEADER)?;
        let length = (word(header, 0) as usize).clamp(HEADER, rest.len());
        let body = &rest[HEADER..length];
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((header, body))
    })
}

pub(crate) fn bytes_of(message: &RouteNetlinkMessage) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// The 32-bit number at an offset, in this machine's byte order; 0 if the bytes are too few.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

/// A route to all addresses with a prefix through a device, without a table, a scope and a kind.
fn prefix_route(index: u32, to: &Prefix) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family_of(to.address());
    message.header.protocol = RouteProtocol::Static;
    message.header.destination_prefix_length = to.length();
    message.attributes =
        vec![RouteAttribute::Destination(RouteAddress::from(to.address())), RouteAttribute::Oif(index)];
    message
}

/// The family of an address.
pub(crate) fn family_of(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn attributes(end: &End<'_>, mtu: u32) -> Vec<LinkAttribute> {
    let mut attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::TxQueueLen(0),
    ];
    if let Some(namespace) = end.namespace {
        attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::index_of_name;
    use crate::namespace::Namespace;

    #[test]
    fn devices_have_the_sizes_that_they_were_made_with_and_a_name_is_taken_once() {
        let Ok(namespace) = Namespace::new() else { return };
        let made = namespace.inside(|| {
            let mut netlink = Netlink::open()?;
            netlink.add_scratch("weir-a", 100, 1400)?;
            let again = netlink.add_scratch("weir-a", 100, 1400).map_err(|error| error.raw_os_error());
            let index = index_of_name("weir-a").ok_or(io::ErrorKind::NotFound)?;
            netlink.set_up(index)?;
            netlink.add_address(index, IpAddr::from([10, 0, 0, 1]))?;
            netlink.counters(index)?;
            Ok((again, netlink.sizes(index)?, netlink.sizes(index + 100).is_err()))
        });
        assert_eq!(made.unwrap(), (Err(Some(libc::EEXIST)), (1400, 100), true));
    }
}
