//! The addresses and ports of a run, the same in both engines: which address a host has, and which port a flow. Addresses say
//! nothing about the topology; the fabric alone decides where packets go.

use crate::run::Ip;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The port of flow 0 at both of its ends; flow `n` has the `n`-th after it. Below the range from which Linux takes ports of
/// its own accord (32768 up) for the first 9,700 flows; beyond, every port in use is bound explicitly all the same. Nothing
/// well known lives there that Wireshark would take the flow for.
pub const FIRST_PORT: u16 = 23_000;
/// How many ports there are for flows. Live runs have no more flows than that; in the simulator ports begin again.
pub const PORTS: usize = (u16::MAX - FIRST_PORT) as usize;
/// The port of packets between nodes of an overlay, at both ends.
pub const OVERLAY_PORT: u16 = FIRST_PORT - 1;
/// fd77:6569:7200::, a prefix for local use (RFC 4193).
pub const PREFIX_V6: u128 = 0xfd77_6569_7200 << 80;

/// The address of multicast group 0 (RFC 2365, the organisation-local scope).
const FIRST_GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 0, 0);

/// The address of a multicast group of an overlay.
pub fn group_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_GROUP.to_bits().wrapping_add(number))
}

/// The address of the host at a node: 10.0.0.1 or fd77:6569:7200::1 for node 0, and so on.
pub fn address_of(node: usize, ip: Ip) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + node as u32).into(),
        Ip::V6 => Ipv6Addr::from_bits(PREFIX_V6 + node as u128 + 1).into(),
    }
}

/// The node whose host has an IPv4 address; any number for an address that is not in the plan.
pub fn node_of(address: u32) -> usize {
    address.wrapping_sub(Ipv4Addr::new(10, 0, 0, 1).to_bits()) as usize
}

/// The node whose host has an IPv6 address; any number for an address that is not in the plan.
pub fn node_of_v6(address: u128) -> usize {
    usize::try_from(address.wrapping_sub(PREFIX_V6 + 1)).unwrap_or(usize::MAX)
}

/// The port of a flow.
pub fn port_of(flow: usize) -> u16 {
    FIRST_PORT + (flow % PORTS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_nodes_belong_together() {
        for node in [0, 1, 254, 255, 256, 70_000] {
            let (IpAddr::V4(four), IpAddr::V6(six)) = (address_of(node, Ip::V4), address_of(node, Ip::V6))
            else {
                panic!("an address of the other version");
            };
            assert_eq!((node_of(four.to_bits()), node_of_v6(six.to_bits())), (node, node));
        }
        assert_eq!(address_of(1, Ip::V4).to_string(), "10.0.0.2");
        assert_eq!(address_of(1, Ip::V6).to_string(), "fd77:6569:7200::2");
        let stray: Ipv6Addr = "ff02::16".parse().unwrap();
        assert_eq!(node_of_v6(stray.to_bits()), usize::MAX);
    }
}
