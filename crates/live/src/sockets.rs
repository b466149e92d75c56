//! The sockets of all flows, opened inside their hosts' namespaces before the run starts. From then on one thread drives
//! them from outside: a socket stays in the namespace in which it was opened, and so do the sockets that it accepts.

use crate::address::{address_of, port_of};
use crate::controls::{kernel_name, receiving};
use crate::endpoint_socket::EndpointSocket;
use crate::kernel_socket::KernelSocket;
use crate::overlay::group_of;
use crate::testbed::Testbed;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use weir_base::Ecn;
use weir_coord::layer::Layer;
use weir_engine::EndSocket;
use weir_linux::option;
use weir_linux::udp::UdpPort;
use weir_plan::{Group, Run, Settings};
use weir_transport::Config;
use weir_workload::{Datagrams, End, Role};

/// Room for datagrams that the receiving application has not read yet: 0.3 s of 100 Mbit/s and more.
const DATAGRAM_BUFFER: usize = 4 << 20;

/// Time to live of datagrams to groups, in the place of the kernel's 1: they pass nodes.
const GROUP_TTL: u32 = 64;

/// A UDP header (RFC 768).
const UDP_HEADER: u64 = 8;

/// A socket of a flow.
pub(crate) enum FlowSocket {
    /// The kernel's transport.
    Kernel(Box<KernelSocket>),
    /// An endpoint of our own over UDP.
    Endpoint(Box<EndpointSocket>),
}

impl FlowSocket {
    /// The events for which the epoll instance watches it.
    pub(crate) fn watched(&mut self) -> &mut EventFlags {
        match self {
            FlowSocket::Kernel(socket) => &mut socket.watched,
            FlowSocket::Endpoint(socket) => &mut socket.watched,
        }
    }

    /// The events to watch it for, given whether the application reads from it, whether the flow carries datagrams, and whether the
    /// application waits for room to write.
    pub(crate) fn wanted(&self, reads: bool, datagrams: bool, room: bool) -> EventFlags {
        let mut wanted = EventFlags::empty();
        match self {
            FlowSocket::Kernel(socket) => {
                wanted.set(EventFlags::IN, reads && (socket.opened || datagrams) && !socket.ended);
                wanted.set(EventFlags::OUT, room);
            }
            FlowSocket::Endpoint(socket) => {
                wanted.set(EventFlags::IN, true);
                wanted.set(EventFlags::OUT, socket.port.is_blocked());
            }
        }
        wanted
    }
}

impl AsFd for FlowSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            FlowSocket::Kernel(socket) => socket.fd.as_fd(),
            FlowSocket::Endpoint(socket) => socket.port.as_fd(),
        }
    }
}

/// The sockets of one flow; each is `None` if the workload does not need it. For requests, the sender is the server, whose socket
/// is accepted, and the receiver is the client.
#[derive(Default)]
pub(crate) struct FlowSockets {
    /// Sends.
    pub(crate) sender: Option<FlowSocket>,
    /// Waits for the connection.
    pub(crate) listener: Option<OwnedFd>,
    /// Receives.
    pub(crate) receiver: Option<FlowSocket>,
}

impl FlowSockets {
    /// The socket of an end, listeners excluded.
    pub(crate) fn end(&mut self, end: End) -> &mut Option<FlowSocket> {
        match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        }
    }
}

/// Opens the sockets of all flows of a run, except flows that arrive at random: these are too many at once, so each gets its
/// sockets shortly before it starts.
///
/// # Errors
/// The kernel's error, with the flow's name.
pub(crate) fn open(run: &Run, testbed: &Testbed) -> io::Result<Vec<FlowSockets>> {
    let mut all: Vec<FlowSockets> = run.flows.iter().map(|_| FlowSockets::default()).collect();
    let random_arrivals = |flow: &usize| run.groups[run.flows[*flow].group].workload.has_random_arrivals();
    let flows: Vec<usize> = (0..run.flows.len()).filter(|flow| !random_arrivals(flow)).collect();
    for (flow, sockets) in flows.iter().zip(open_some(run, testbed, &flows)?) {
        all[*flow] = sockets;
    }
    Ok(all)
}

/// Opens the sockets of some flows, in their order.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_some(run: &Run, testbed: &Testbed, flows: &[usize]) -> io::Result<Vec<FlowSockets>> {
    let mut opened: Vec<FlowSockets> = flows.iter().map(|_| FlowSockets::default()).collect();
    let mut endpoints: Vec<[Option<weir_transport::End>; 2]> =
        flows.iter().map(|flow| endpoints(run, *flow)).collect::<io::Result<_>>()?;
    share(run, flows, &mut endpoints)?;
    let ends = |flow: usize| run.pair(flow);
    for host in &testbed.hosts {
        let here = |flow: &usize| [ends(*flow).from, ends(*flow).to].contains(&host.node);
        if !flows.iter().any(here) {
            continue;
        }
        host.namespace.inside(|| {
            let all = flows.iter().zip(&mut opened).zip(&mut endpoints);
            for ((&index, sockets), endpoints) in all.filter(|((flow, _), _)| here(flow)) {
                let (flow, pair) = (&run.flows[index], ends(index));
                let (sends, receives) = (host.node == pair.from, host.node == pair.to);
                let opened = match group_transport(run, index) {
                    Some(_) => place_endpoints(index, run, [sends, receives], endpoints, sockets),
                    None => open_ends(index, run, sends, receives, sockets),
                };
                opened
                    .map_err(|error| io::Error::new(error.kind(), format!("flow {}: {error}", flow.name)))?;
            }
            Ok(())
        })?;
    }
    Ok(opened)
}

/// Whether a transport runs as endpoints of our own over UDP sockets, since the kernel does not have it.
pub(crate) fn has_endpoints(transport: &Config) -> bool {
    !matches!(transport, Config::Tcp(_) | Config::Udp(_) | Config::CpUdp(_))
}

/// A flow's transport, if the kernel does not have it.
fn group_transport(run: &Run, flow: usize) -> Option<&Config> {
    run.groups[run.flows[flow].group].transport.as_ref().filter(|transport| has_endpoints(transport))
}

/// Whether a run has transports that the kernel does not have.
pub(crate) fn runs_endpoints(run: &Run) -> bool {
    (0..run.flows.len()).any(|flow| group_transport(run, flow).is_some())
}

/// The two endpoints of a flow; both `None` if the kernel has its transport.
fn endpoints(run: &Run, flow: usize) -> io::Result<[Option<weir_transport::End>; 2]> {
    let Some(transport) = group_transport(run, flow) else { return Ok([None, None]) };
    let ends = transport.protected_ends(&run.setup(flow));
    Ok(ends.ok_or_else(|| io::Error::other("cannot generate keys"))?.map(Some))
}

/// Makes flows that share a connection streams of it. The flow that starts first has made the connection.
fn share(run: &Run, flows: &[usize], endpoints: &mut [[Option<weir_transport::End>; 2]]) -> io::Result<()> {
    for mut sharing in run.shared_connections() {
        sharing.sort_by_key(|flow| run.flows[*flow].start);
        let mut places = sharing.iter().filter_map(|flow| flows.iter().position(|other| other == flow));
        let Some(first) = places.next() else { continue };
        for place in places {
            let [Some(from), Some(to)] = &mut endpoints[first] else { continue };
            let joined = run.join(flows[place], [from, to]);
            let joined = joined.ok_or_else(|| io::Error::other("a connection has too many streams"))?;
            endpoints[place] = joined.map(Some);
        }
    }
    Ok(())
}

/// Opens the sockets of those endpoints of a flow that are at the host whose namespace the calling thread is in. Packets leave one
/// by one, as from a simulated host.
fn place_endpoints(
    index: usize,
    run: &Run,
    here: [bool; 2],
    endpoints: &mut [Option<weir_transport::End>; 2],
    sockets: &mut FlowSockets,
) -> io::Result<()> {
    let (group, pair) = (&run.groups[run.flows[index].group], run.pair(index));
    let places = [pair.from, pair.to].map(|node| SocketAddr::new(address_of(node, group.ip), port_of(index)));
    let headers = u64::from(group.ip.header()) + UDP_HEADER;
    for (number, end) in [End::Sender, End::Receiver].into_iter().enumerate() {
        let Some(endpoint) = endpoints[number].take_if(|_| here[number]) else { continue };
        let port = UdpPort::bind(places[number], false)?;
        let socket = EndpointSocket::new(port, places[1 - number], EndSocket::new(endpoint, headers));
        *sockets.end(end) = Some(FlowSocket::Endpoint(Box::new(socket)));
    }
    Ok(())
}

/// Opens those ends of a flow that are at the host whose namespace the calling thread is in.
fn open_ends(
    index: usize,
    run: &Run,
    sends: bool,
    receives: bool,
    sockets: &mut FlowSockets,
) -> io::Result<()> {
    let (group, pair) = (&run.groups[run.flows[index].group], run.pair(index));
    let place = |node: usize| SocketAddr::new(address_of(node, group.ip), port_of(index));
    let settings = || group.tcp().ok_or(io::ErrorKind::Unsupported);
    let kernel = |socket| Some(FlowSocket::Kernel(Box::new(socket)));
    match group.workload.role() {
        Role::OneWay => {
            if sends {
                sockets.sender = kernel(KernelSocket::stream(stream_sender(settings()?, place(pair.from))?));
            }
            if receives {
                // Accepted sockets inherit the controller.
                let listener = stream_receiver(group, place(pair.to))?;
                rustix::net::listen(&listener, 1)?;
                sockets.listener = Some(listener);
            }
        }
        Role::Datagrams(Datagrams { ecn, exact }) => {
            let to_group = group_of(run, index);
            if sends && !exact && run.flows[index].copy_of.is_none() {
                let to =
                    to_group.map_or(place(pair.to), |group| SocketAddr::new(group.into(), port_of(index)));
                let sender = connected(place(pair.from), to, ecn, run.layer(index))?;
                if to_group.is_some() {
                    sockopt::set_ip_multicast_ttl(&sender.fd, GROUP_TTL)?;
                }
                sockets.sender = kernel(sender);
            }
            if let (Some(to_group), IpAddr::V4(own), true) =
                (to_group, address_of(pair.to, group.ip), receives)
            {
                let sender = run.flows[index].copy_of.unwrap_or(index);
                let socket = datagram_socket(SocketAddr::new(to_group.into(), port_of(sender)))?;
                sockopt::set_ip_add_membership(&socket, &to_group, &own)?;
                make_room(&socket);
                sockets.receiver = kernel(KernelSocket::datagrams(socket, None));
            } else if receives {
                let layer = run.layer(index);
                // An answer goes to the sender's socket, which datagrams that the fabric sends do not have.
                let socket = match layer.as_ref().is_some_and(Layer::answers) && !exact {
                    true => connected(place(pair.to), place(pair.from), ecn, layer)?,
                    false => KernelSocket::datagrams(datagram_socket(place(pair.to))?, layer),
                };
                make_room(&socket.fd);
                sockets.receiver = kernel(socket);
            }
        }
        Role::Echo(Datagrams { ecn, .. }) => {
            if sends {
                sockets.sender = kernel(connected(place(pair.from), place(pair.to), ecn, run.layer(index))?);
            }
            if receives {
                sockets.receiver =
                    kernel(connected(place(pair.to), place(pair.from), ecn, run.layer(index))?);
            }
        }
        // Accepted sockets inherit the listener's options: the server sends by the group's controller.
        Role::RequestResponse => {
            if sends {
                let listener = stream_sender(settings()?, place(pair.from))?;
                rustix::net::listen(&listener, 1)?;
                sockets.listener = Some(listener);
            }
            if receives {
                sockets.receiver = kernel(KernelSocket::stream(stream_receiver(group, place(pair.to))?));
            }
        }
        Role::Command => {}
    }
    Ok(())
}

/// Makes room for datagrams; a process without the right to more gets what the host permits.
fn make_room(socket: &OwnedFd) {
    let _ = sockopt::set_socket_recv_buffer_size_force(socket, DATAGRAM_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, DATAGRAM_BUFFER));
}

fn stream_sender(settings: &Settings, address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream_socket(address)?;
    set_controller(&socket, kernel_name(settings.cc.name()))?;
    if settings.pacing {
        pace(&socket)?;
    }
    Ok(socket)
}

fn stream_receiver(group: &Group, address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream_socket(address)?;
    if let Some(controller) = receiving(group) {
        set_controller(&socket, kernel_name(controller))?;
    }
    Ok(socket)
}

fn set_controller(socket: &OwnedFd, controller: &str) -> io::Result<()> {
    sockopt::set_tcp_congestion(socket, controller).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(
            error.kind(),
            format!("the kernel refuses the congestion control {controller}: {error}"),
        )
    })
}

fn stream_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket(SocketType::STREAM, address)?;
    // However the process ends, closing resets the connection at once. An orderly close would leave an orphan behind that
    // keeps the namespace alive until its last timer has run out. To send a FIN, shut the sending side down first.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// A datagram socket that is connected to its peer and sends with this codepoint.
fn connected(own: SocketAddr, peer: SocketAddr, ecn: Ecn, layer: Option<Layer>) -> io::Result<KernelSocket> {
    let socket = datagram_socket(own)?;
    match own {
        SocketAddr::V4(_) => sockopt::set_ip_tos(&socket, ecn as u8)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_tclass(&socket, ecn as u32)?,
    }
    rustix::net::connect(&socket, &peer)?;
    Ok(KernelSocket::datagrams(socket, layer))
}

fn datagram_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket(SocketType::DGRAM, address)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

fn socket(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// Makes the kernel pace a connection although its controller does not ask for it: any limit but "none" switches TCP's own
/// pacing on (`sk_setsockopt`, SO_MAX_PACING_RATE, in net/core/sock.c); the highest possible one changes nothing else.
fn pace(socket: &OwnedFd) -> io::Result<()> {
    let limit: libc::c_ulong = libc::c_ulong::MAX - 1;
    option::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, limit)
}
