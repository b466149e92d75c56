//! Connections that reach a transparent proxy, although nobody has their destination.

use crate::place::{MOMENT, PATIENCE, Place, index, skipped, v4};
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use weir_linux::namespace::Namespace;
use weir_linux::netlink::Netlink;
use weir_linux::nft::{Table, Transparent};
use weir_linux::option;
use weir_linux::policy::{Delivery, remove_left_rules};
use weir_linux::transparent;

pub(crate) const TESTS: [(&str, fn()); 4] = [
    ("a_forwarded_connection_is_accepted_under_its_destination", forwarded),
    ("a_connection_of_the_proxys_own_host_is_accepted_under_its_destination", made_here),
    ("a_rule_that_was_left_is_removed_and_one_in_use_stays", left_rules),
    ("what_is_forwarded_to_the_proxys_port_elsewhere_is_left_alone", other_destinations),
];

const MARK: u32 = 0x7765_0001;
const OWN_MARK: u32 = 0x7765_0002;
const TABLE: u32 = 7770;
/// Nobody has these addresses (RFC 5737).
const NOWHERE: &str = "198.51.100.0/24";
const FIRST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)), 80);

/// A proxy on the router, and the device `weir-try` of the route to nowhere.
struct Proxy {
    listener: TcpListener,
    _table: Table,
    _delivery: Delivery,
}

fn device() -> io::Result<u32> {
    let mut netlink = Netlink::open()?;
    netlink.add_scratch("weir-try", 100, 1500)?;
    let device = index("weir-try")?;
    netlink.set_up(device)?;
    Ok(device)
}

impl Proxy {
    /// `None` if the kernel lacks something.
    fn new(router: &Namespace, except: Option<&'static str>) -> Option<Proxy> {
        let made = router.inside(move || {
            let device = device()?;
            let nowhere = NOWHERE.parse().map_err(io::Error::other)?;
            Netlink::open()?.add_prefix_route(device, &nowhere, Some([192, 0, 2, 1].into()))?;
            let listener = transparent::listener(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), OWN_MARK)?;
            let at = listener.local_addr()?;
            let prefixes = ["203.0.113.0/25".parse().map_err(io::Error::other)?, nowhere];
            let proxy =
                Transparent { to: &prefixes, not_to: &[], at, mark: MARK, own_mark: OWN_MARK, except };
            let _delivery = Delivery::new([0; 4].into(), MARK, TABLE, device)?;
            Ok(Proxy { listener, _table: Table::transparent("weir-try", &proxy)?, _delivery })
        });
        made.inspect_err(|error| skipped(&error.to_string())).ok()
    }

    /// The next connection.
    fn accept(&self) -> TcpStream {
        self.listener.set_nonblocking(true).unwrap();
        let begun = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((connection, _)) => return connection,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed() < PATIENCE, "no connection arrives");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Connects, exchanges bytes, and ends in both directions. Returns what the proxy thinks are both ends of the connection.
fn exchange(from: &Namespace, proxy: &Proxy, to: SocketAddr) -> (SocketAddr, SocketAddr) {
    let mut near = from.inside(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap();
    let mut far = proxy.accept();
    far.set_nonblocking(false).unwrap();
    for connection in [&near, &far] {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut bytes = [0; 3];
    near.write_all(b"ask").unwrap();
    far.read_exact(&mut bytes).unwrap();
    far.write_all(&bytes).unwrap();
    let ends = (far.local_addr().unwrap(), far.peer_addr().unwrap());
    drop(far);
    let mut answer = vec![];
    near.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"ask");
    assert_eq!((near.peer_addr().unwrap(), near.local_addr().unwrap()), ends, "both ends agree");
    ends
}

fn forwarded() {
    let at = v4();
    let place = Place::new(&at);
    let Some(proxy) = Proxy::new(&place.router, None) else { return };
    let (local, peer) = exchange(&place.client, &proxy, FIRST);
    assert_eq!((local, peer.ip()), (FIRST, at.client));
    // Another prefix, whose length is no multiple of eight.
    let second = SocketAddr::from(([203, 0, 113, 127], 443));
    assert_eq!(exchange(&place.client, &proxy, second).0, second);
    let beyond = SocketAddr::from(([203, 0, 113, 128], 443));
    assert!(place.client.inside(|| TcpStream::connect_timeout(&beyond, MOMENT)).is_err());
    drop(proxy);
    assert!(place.client.inside(|| TcpStream::connect_timeout(&FIRST, MOMENT)).is_err());
    let Some(excepting) = Proxy::again(&place.router, "to-client") else { return };
    assert!(place.client.inside(|| TcpStream::connect_timeout(&FIRST, MOMENT)).is_err());
    // What is made on the host itself does not come from the excepted device.
    exchange(&place.router, &excepting, FIRST);
}

impl Proxy {
    /// Another proxy, after the first is gone with everything but its device.
    fn again(router: &Namespace, except: &'static str) -> Option<Proxy> {
        router.inside(|| Netlink::open()?.remove_device(index("weir-try")?)).unwrap();
        Proxy::new(router, Some(except))
    }
}

fn made_here() {
    let at = v4();
    let place = Place::new(&at);
    let Some(proxy) = Proxy::new(&place.router, None) else { return };
    let (local, peer) = exchange(&place.router, &proxy, FIRST);
    assert_eq!((local, peer.ip()), (FIRST, at.beside_server), "the source is that of the route");
    // A socket of the proxy itself gets where its route leads: nowhere.
    let own = || {
        let family = rustix::net::AddressFamily::INET;
        let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None)?;
        option::set(&socket, libc::SOL_SOCKET, libc::SO_MARK, OWN_MARK)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        let begun = rustix::net::connect(&socket, &FIRST).map_err(|error| error.raw_os_error());
        assert_eq!(begun, Err(libc::EINPROGRESS));
        std::thread::sleep(MOMENT);
        Ok(sockopt::socket_error(&socket)?.is_ok() && rustix::net::getpeername(&socket).is_ok())
    };
    assert!(!place.router.inside(own).unwrap(), "it is connected");
}

fn left_rules() {
    let namespace = Namespace::new().unwrap();
    let delivery = |device, mark, table| Delivery::new([0; 4].into(), mark, table, device);
    let counts = namespace.inside(|| {
        let device = device()?;
        let used = delivery(device, MARK, TABLE)?;
        assert!(delivery(device, MARK, TABLE).is_err(), "the table has a route already");
        let none = remove_left_rules()?;
        // A process that is killed drops nothing; its device goes.
        std::mem::forget(used);
        Netlink::open()?.remove_device(device)?;
        Ok([none, remove_left_rules()?, remove_left_rules()?])
    });
    assert_eq!(counts.unwrap(), [0, 1, 0]);
    let dropped = namespace.inside(|| {
        let device = device()?;
        drop(delivery(device, MARK, TABLE)?);
        Netlink::open()?.remove_device(device)?;
        remove_left_rules()
    });
    assert_eq!(dropped.unwrap(), 0);
}

fn other_destinations() {
    let at = v4();
    let place = Place::new(&at);
    let Some(proxy) = Proxy::new(&place.router, None) else { return };
    let port = proxy.listener.local_addr().unwrap().port();
    // The server gets a way back.
    place.server.inside(|| Netlink::open()?.add_route(index("eth0")?, None, at.beside_server)).unwrap();
    let there = SocketAddr::new(at.server, port);
    let server = place.server.inside(|| TcpListener::bind(there)).unwrap();
    let connection = place.client.inside(|| TcpStream::connect_timeout(&there, PATIENCE)).unwrap();
    let (accepted, peer) = server.accept().unwrap();
    assert_eq!((accepted.local_addr().unwrap(), peer), (there, connection.local_addr().unwrap()));
}
