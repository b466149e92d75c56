//! The handful of rtnetlink requests that a testbed needs: veth pairs, addresses, routes, permanent neighbours, counters.
//! Every request waits for the kernel's answer.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
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
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// One end of a veth pair that is to be made.
#[derive(Debug)]
pub(crate) struct End<'a> {
    /// Device name.
    pub name: &'a str,
    /// Hardware address.
    pub mac: Mac,
    /// Namespace of the device; `None` for the netlink socket's own namespace.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// An rtnetlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Makes a veth pair; both ends are down.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn add_veth(&mut self, end: &End<'_>, peer: &End<'_>, mtu: u32) -> io::Result<()> {
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
    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up | LinkFlags::Noarp;
        link.header.change_mask = LinkFlags::Up | LinkFlags::Noarp | LinkFlags::Multicast;
        self.change(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Limits how many segments TCP hands to a device at once. With a limit of 1, TCP hands over, paces and tracks single
    /// packets, as the simulator's hosts do; without it the kernel bundles packets and splits them again later.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn set_gso_max_segs(&mut self, index: u32, segments: u32) -> io::Result<()> {
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
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a default route through a gateway on a device; the gateway need not be in an address range of the device.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn add_default_route(&mut self, index: u32, gateway: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(gateway);
        message.header.table = netlink_packet_route::route::RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.header.flags = netlink_packet_route::route::RouteFlags::Onlink;
        message.attributes =
            vec![RouteAttribute::Gateway(RouteAddress::from(gateway)), RouteAttribute::Oif(index)];
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a permanent neighbour.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
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
    pub(crate) fn counters(&mut self, index: u32) -> io::Result<Stats64> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        match self.exchange(RouteNetlinkMessage::GetLink(link), 0)? {
            Some(RouteNetlinkMessage::NewLink(link)) => {
                link.attributes.iter().find_map(|attribute| match attribute {
                    LinkAttribute::Stats64(stats) => Some(*stats),
                    _ => None,
                })
            }
            _ => None,
        }
        .ok_or_else(|| io::Error::other("the kernel reported no counters of a device"))
    }

    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_ACK | flags).map(|_| ())
    }

    /// Sends a request and returns the first message of the answer; `None` when it is a plain acknowledgement.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
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
