//! A router between two hosts, `client` and `server`: each is a namespace.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;
use weir_linux::device::index_of_name;
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_linux::netlink::{End, Mac, Netlink};

/// How long something that is to happen may take, and how long is waited for what is not to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const MOMENT: Duration = Duration::from_millis(300);

/// Addresses: of the client and of the router beside it, of the server and of the router beside it.
pub(crate) struct Addresses {
    pub(crate) client: IpAddr,
    pub(crate) beside_client: IpAddr,
    pub(crate) server: IpAddr,
    pub(crate) beside_server: IpAddr,
}

pub(crate) fn v4() -> Addresses {
    Addresses {
        client: [10, 9, 0, 2].into(),
        beside_client: [10, 9, 0, 1].into(),
        server: [192, 0, 2, 2].into(),
        beside_server: [192, 0, 2, 1].into(),
    }
}

pub(crate) fn v6() -> Addresses {
    let of = |net: u16, host: u16| IpAddr::from([0xfd00, net, 0, 0, 0, 0, 0, host]);
    Addresses { client: of(1, 2), beside_client: of(1, 1), server: of(2, 2), beside_server: of(2, 1) }
}

/// The three namespaces.
pub(crate) struct Place {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
}

/// Says why a test is skipped.
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
    assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
}

/// The sum of 16-bit words (RFC 1071).
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | two.get(1).map_or(0, |low| u32::from(*low))).sum()
}

impl Place {
    /// The client's default route leads to the router; the server has none, so that it answers the router alone.
    pub(crate) fn new(at: &Addresses) -> Place {
        let place = Place {
            client: Namespace::new().unwrap(),
            router: Namespace::new().unwrap(),
            server: Namespace::new().unwrap(),
        };
        for namespace in [&place.client, &place.router, &place.server] {
            namespace.inside(prepare).unwrap();
        }
        let routes = || {
            set_sysctl("ipv4.conf.all.forwarding", "1")?;
            // A kernel without IPv6 has nothing to set.
            let _ = set_sysctl("ipv6.conf.all.forwarding", "1");
            Ok(())
        };
        place.router.inside(routes).unwrap();
        join(&place.router, "to-client", at.beside_client, &place.client, at.client);
        join(&place.router, "to-server", at.beside_server, &place.server, at.server);
        let leave = || Netlink::open()?.add_route(index("eth0")?, None, at.beside_client);
        place.client.inside(leave).unwrap();
        place
    }
}

fn prepare() -> io::Result<()> {
    set_sysctl("ipv4.conf.all.rp_filter", "0")?;
    set_sysctl("ipv4.conf.default.rp_filter", "0")?;
    for name in ["all", "default"] {
        let _ = set_sysctl(&format!("ipv6.conf.{name}.disable_ipv6"), "0");
    }
    Netlink::open()?.set_up(index("lo")?)
}

/// The index of a device.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    index_of_name(name).ok_or_else(io::Error::last_os_error)
}

/// Joins the router to a host, whose device is `eth0`.
fn join(router: &Namespace, name: &str, beside: IpAddr, host: &Namespace, address: IpAddr) {
    const ROUTERS: Mac = [2, 0, 0, 0, 0, 1];
    const HOSTS: Mac = [2, 0, 0, 0, 0, 2];
    let pair = || {
        let near = End { name, mac: ROUTERS, namespace: None };
        let far = End { name: "eth0", mac: HOSTS, namespace: Some(host.as_fd()) };
        Netlink::open()?.add_veth(&near, &far, 1500)
    };
    router.inside(pair).unwrap();
    let set_up = |name: &str, own: IpAddr, other: IpAddr, mac: Mac| {
        let (mut netlink, device) = (Netlink::open()?, index(name)?);
        netlink.set_up(device)?;
        netlink.add_address(device, own)?;
        netlink.add_prefix_route(device, &other.into(), None)?;
        netlink.add_neighbour(device, other, mac)
    };
    router.inside(|| set_up(name, beside, address, HOSTS)).unwrap();
    host.inside(|| set_up("eth0", address, beside, ROUTERS)).unwrap();
}
