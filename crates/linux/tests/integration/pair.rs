//! A pair of devices in the place of a TUN device.

use crate::place::{MOMENT, PATIENCE, skipped, sum};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;
use weir_linux::device::index_of_name;
use weir_linux::namespace::{Namespace, sysctl};
use weir_linux::netlink::Netlink;
use weir_linux::pair::Pair;

pub(crate) const TESTS: [(&str, fn()); 3] = [
    ("a_pair_carries_what_is_routed_to_it_and_what_the_process_sends", || {
        carried([10, 9, 0, 1].into(), [10, 8, 0, 1].into())
    }),
    ("a_pair_carries_ipv6", || match sysctl("ipv6.conf.all.disable_ipv6") {
        Some(_) => {
            let of = |net: u16| IpAddr::from([0xfd00, net, 0, 0, 0, 0, 0, 1]);
            carried(of(1), of(2));
        }
        None => println!("the kernel has no IPv6"),
    }),
    ("a_pair_has_a_name_once_and_is_gone_when_it_is_closed", named),
];

fn namespace() -> Option<Namespace> {
    Namespace::new().map_err(|error| skipped(&format!("no network namespace can be made: {error}"))).ok()
}

/// A datagram of the host's socket leaves by the pair with its checksum, and the answer that the process makes of it arrives there.
fn carried(own: IpAddr, other: IpAddr) {
    let Some(host) = namespace() else { return };
    let pair = host.inside(|| {
        let pair = Pair::open("over0", 1500)?;
        let mut netlink = Netlink::open()?;
        netlink.add_address(pair.index(), own)?;
        netlink.set_up(pair.index())?;
        let length = if other.is_ipv4() { 32 } else { 128 };
        netlink.add_prefix_route(pair.index(), &format!("{other}/{length}").parse().unwrap(), None)?;
        Ok(pair)
    });
    let pair = pair.unwrap();
    let socket = host.inside(|| UdpSocket::bind(SocketAddr::new(own, 4000))).unwrap();
    socket.set_read_timeout(Some(MOMENT)).unwrap();
    let (mut packet, begun) = ([0; 2048], Instant::now());
    // The kernel sends packets of its own by the device, too.
    let length = loop {
        assert!(begun.elapsed() < PATIENCE, "nothing leaves");
        let _ = socket.send_to(b"question", SocketAddr::new(other, 5000));
        match pair.receive(&mut packet).unwrap() {
            Some(length) if packet[..length].ends_with(b"question") => break length,
            _ => {}
        }
    };
    let packet = &mut packet[..length];
    let (source, header) = if own.is_ipv4() { (12, 20) } else { (8, 40) };
    let addresses = header - source;
    // Addresses, protocol and length of UDP (RFC 768), then all of UDP.
    let checked = sum(&packet[source..]) + 17 + (length - header) as u32;
    assert_eq!((checked & 0xffff) + (checked >> 16), 0xffff, "the checksum is filled in");
    // The answer: addresses and ports exchanged, which leaves both checksums as they are.
    let (from, to) = packet[source..header].split_at_mut(addresses / 2);
    from.swap_with_slice(to);
    let (from, to) = packet[header..header + 4].split_at_mut(2);
    from.swap_with_slice(to);
    let mut answer = [0; 100];
    // The far device sends, and an address of IPv6 is the host's, from a moment after the set-up: workers of the kernel see to both.
    let (length, from) = loop {
        assert!(begun.elapsed() < PATIENCE, "no answer arrives");
        assert!(pair.send(packet));
        if let Ok(arrived) = socket.recv_from(&mut answer) {
            break arrived;
        }
    };
    assert_eq!((&answer[..length], from), (&b"question"[..], SocketAddr::new(other, 5000)));
    // What is no IP packet, or longer than the MTU, is not taken.
    packet[0] = 0;
    assert!(!pair.send(packet) && !pair.send(&[]));
    let mut long = [0; 1600];
    long[0] = 0x45;
    assert!(!pair.send(&long));
}

fn named() {
    let Some(host) = namespace() else { return };
    let open = |name: &'static str| host.inside(move || Pair::open(name, 1500));
    let pair = open("over0").unwrap();
    assert_eq!(open("over0").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    for name in ["", "longer-than-fits"] {
        assert_eq!(open(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
    }
    drop(pair);
    let begun = Instant::now();
    while host.inside(|| Ok(index_of_name("over0"))).unwrap().is_some() {
        assert!(begun.elapsed() < PATIENCE, "the device stays");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
