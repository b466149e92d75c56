//! The address plan of a testbed: which address a host has, and which flow a port belongs to. Addresses say nothing about
//! the topology; the fabric alone decides where packets go.

use crate::netlink::Mac;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_base::FlowId;
use weir_plan::Ip;

/// The port of flow 0 at both of its ends; flow `n` has the `n`-th after it. Below the range from which Linux takes ports of
/// its own accord (32768 up) for the first 9,700 flows; beyond, every port in use is bound explicitly all the same. Nothing
/// well known lives there that Wireshark would take the flow for.
const FIRST_PORT: u16 = 23_000;
/// The most flows that a run can have.
pub const MAX_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize;
/// Where every host sends everything: exists only as a neighbour that is known for good.
pub fn gateway(ip: Ip) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::new(10, 255, 255, 254).into(),
        Ip::V6 => Ipv6Addr::from_bits(PREFIX | 0xffff_fffe).into(),
    }
}

/// The gateway's hardware address. No device has it, so the fabric's own IP layer leaves the packets alone.
pub const GATEWAY_MAC: Mac = [0x02, 0x77, 0xff, 0xff, 0xff, 0xfe];
/// fd77:6569:7200::, a prefix for local use (RFC 4193).
const PREFIX: u128 = 0xfd77_6569_7200 << 80;

/// The flow that a packet belonging to none is counted under.
pub const NO_FLOW: FlowId = FlowId(u32::MAX);

/// The address of the host at a node: 10.0.0.1 or fd77:6569:7200::1 for node 0, and so on.
pub fn address_of(node: usize, ip: Ip) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + node as u32).into(),
        Ip::V6 => Ipv6Addr::from_bits(PREFIX + node as u128 + 1).into(),
    }
}

/// The node whose host has an IPv4 address; any number for an address that is not in the plan.
pub fn node_of(address: u32) -> usize {
    address.wrapping_sub(Ipv4Addr::new(10, 0, 0, 1).to_bits()) as usize
}

/// The node whose host has an IPv6 address; any number for an address that is not in the plan.
pub fn node_of_v6(address: u128) -> usize {
    usize::try_from(address.wrapping_sub(PREFIX + 1)).unwrap_or(usize::MAX)
}

/// The hardware address of the host at a node.
pub fn mac_of(node: usize) -> Mac {
    let [_, a, b, c] = (node as u32).to_be_bytes();
    [0x02, 0x77, 0, a, b, c]
}

/// The hardware address of the fabric's end of the pair that leads to the host at a node.
pub fn fabric_mac_of(node: usize) -> Mac {
    let [_, a, b, c] = (node as u32).to_be_bytes();
    [0x02, 0x77, 1, a, b, c]
}

/// The port of a flow.
pub fn port_of(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// The flow that a packet between these ports belongs to: both ends of a flow have the same number.
pub fn flow_of(source: u16, destination: u16, flows: usize) -> FlowId {
    let flow = usize::from(destination).wrapping_sub(FIRST_PORT.into());
    if source == destination && flow < flows { FlowId(flow as u32) } else { NO_FLOW }
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

    #[test]
    fn a_port_of_no_flow_is_nobodys() {
        assert_eq!(flow_of(port_of(3), port_of(3), 4), FlowId(3));
        assert_eq!(flow_of(port_of(4), port_of(4), 4), NO_FLOW);
        assert_eq!(flow_of(40_000, port_of(3), 4), NO_FLOW);
        assert_eq!(flow_of(53, 53, 4), NO_FLOW);
    }
}
