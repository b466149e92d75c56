//! A TUN device, with datagrams that the kernel takes together.

use crate::place::{MOMENT, PATIENCE, skipped, sum};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;
use weir_linux::namespace::Namespace;
use weir_linux::netlink::Netlink;
use weir_linux::tun::Tun;

pub(crate) const TESTS: [(&str, fn()); 1] =
    [("a_tun_device_carries_datagrams_alone_and_in_a_bundle", carries)];

const OWN: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
/// Length of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// A datagram of 10.8.0.1:5000 to 10.9.0.1:4000 (RFC 791, RFC 768). With `is_bundle` the checksum of UDP is the sum of the pseudo-header.
fn datagram(payload: &[u8], is_bundle: bool) -> Vec<u8> {
    let [whole, udp] =
        [HEADERS + payload.len(), 8 + payload.len()].map(|length| (length as u16).to_be_bytes());
    let ip = [&[0x45, 0], &whole[..], &[0, 0, 0, 0, 64, 17, 0, 0], &OTHER.octets(), &OWN.octets()].concat();
    let mut all = [&ip[..], &[0x13, 0x88, 0x0f, 0xa0], &udp, &[0, 0], payload].concat();
    let of_ip = !folded(sum(&ip));
    all[10..12].copy_from_slice(&of_ip.to_be_bytes());
    let pseudo = sum(&all[12..20]) + 17 + u32::from(u16::from_be_bytes(udp));
    let of_udp = if is_bundle { folded(pseudo) } else { !folded(pseudo + sum(&all[20..])) };
    all[26..28].copy_from_slice(&of_udp.to_be_bytes());
    all
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn carries() {
    let host = match Namespace::new() {
        Ok(host) => host,
        Err(error) => return skipped(&format!("no network namespace can be made: {error}")),
    };
    let tun = match host.inside(|| Tun::open("over0")) {
        Ok(tun) => tun,
        Err(error) => return skipped(&format!("no TUN device can be made: {error}")),
    };
    let set_up = host.inside(|| {
        let mut netlink = Netlink::open()?;
        netlink.add_address(tun.index(), OWN.into())?;
        netlink.set_up(tun.index())?;
        netlink.add_prefix_route(tun.index(), &format!("{OTHER}/32").parse().unwrap(), None)
    });
    set_up.unwrap();
    let socket = host.inside(|| UdpSocket::bind((OWN, 4000))).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2048];
    let mut arrives = || {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(from, SocketAddr::new(IpAddr::V4(OTHER), 5000));
        buffer[..length].to_vec()
    };
    assert!(tun.send(&datagram(b"alone", false)));
    assert_eq!(arrives(), b"alone");
    if tun.takes_bundles() {
        assert!(tun.send_bundle(&datagram(b"firstnext!end", true), 5));
        assert_eq!([arrives(), arrives(), arrives()], [&b"first"[..], b"next!", b"end"]);
    } else {
        println!("the kernel takes no bundles");
    }
    // What is sent leaves as it is, with its checksum.
    let begun = Instant::now();
    socket.send_to(b"answer", (OTHER, 5000)).unwrap();
    let mut packet = [0; 2048];
    let length = loop {
        assert!(begun.elapsed() < PATIENCE, "nothing leaves");
        match tun.receive(&mut packet).unwrap() {
            Some(length) if packet[..length].ends_with(b"answer") => break length,
            // The kernel sends packets of its own by the device, too.
            Some(_) => {}
            None => std::thread::sleep(MOMENT),
        }
    };
    assert_eq!(length, HEADERS + b"answer".len());
    let checked = sum(&packet[12..length]) + 17 + (length - 20) as u32;
    assert_eq!(folded(checked), 0xffff);
    assert!(!tun.send(&[]));
}
