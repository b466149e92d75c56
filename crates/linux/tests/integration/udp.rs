//! Packets to several peers from one socket.

use crate::place::{index, skipped};
use std::net::SocketAddr;
use weir_base::{Ecn, Span, Time};
use weir_linux::clock::Clock;
use weir_linux::namespace::Namespace;
use weir_linux::netlink::Netlink;
use weir_linux::udp::{Buffers, UdpPort};

pub(crate) const TESTS: [(&str, fn()); 1] =
    [("packets_to_several_peers_wait_for_each_other_and_leave_in_order", gathers)];

/// Packets that leave by themselves.
const HELD: u8 = 16;

fn put(port: &mut UdpPort, to: SocketAddr, packet: &[u8]) {
    let mut left = Some(packet);
    let mut next = |into: &mut Vec<u8>| {
        into.extend_from_slice(left.take()?);
        Some(Ecn::NotEct)
    };
    assert!(port.gather(to, &mut next).unwrap());
}

/// The packets that have come, by their first bytes.
fn come(port: &mut UdpPort, buffers: &mut Buffers) -> Vec<u8> {
    let (clock, mut all) = (Clock::starting_in(Span::ZERO), vec![]);
    while port.receive(buffers, &clock, Time::ZERO, &mut |_, packet| all.push(packet[0])).unwrap() {}
    all
}

fn gathers() {
    let host = match Namespace::new() {
        Ok(host) => host,
        Err(error) => return skipped(&format!("no network namespace can be made: {error}")),
    };
    host.inside(|| Netlink::open()?.set_up(index("lo")?)).unwrap();
    let bind = || host.inside(|| UdpPort::bind("127.0.0.1:0".parse().unwrap(), true)).unwrap();
    let (mut own, mut buffers) = (bind(), Buffers::default());
    // One peer more than packets are kept for.
    let mut peers: Vec<UdpPort> = (0..9).map(|_| bind()).collect();
    let at: Vec<SocketAddr> = peers.iter().map(UdpPort::address).collect();
    for packet in [&[1][..], &[2], &[3]] {
        put(&mut own, at[usize::from(packet[0] == 2)], packet);
    }
    assert!(come(&mut peers[0], &mut buffers).is_empty(), "they wait");
    assert!(own.flush().unwrap());
    assert_eq!(come(&mut peers[0], &mut buffers), [1, 3]);
    assert_eq!(come(&mut peers[1], &mut buffers), [2]);
    // A longer one, and one behind a shorter one, leave behind those before them.
    for packet in [&[4][..], &[5, 0], &[6], &[7, 0]] {
        put(&mut own, at[0], packet);
    }
    assert!(own.flush().unwrap());
    assert_eq!(come(&mut peers[0], &mut buffers), [4, 5, 6, 7]);
    (0..HELD).for_each(|packet| put(&mut own, at[0], &[packet]));
    assert_eq!(come(&mut peers[0], &mut buffers), (0..HELD).collect::<Vec<u8>>());
    at.iter().for_each(|to| put(&mut own, *to, &[8]));
    assert!(own.flush().unwrap());
    assert!(peers.iter_mut().all(|peer| come(peer, &mut buffers) == [8]));
}
