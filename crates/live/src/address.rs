//! The address plan of a testbed: which address a host has, and which flow a port belongs to. Addresses say nothing about
//! the topology; the fabric alone decides where packets go.

use crate::netlink::Mac;
use std::net::Ipv4Addr;
use weir_base::FlowId;

/// The port of flow 0 at both of its ends; flow `n` has the `n`-th after it. Below the range from which Linux takes ports of
/// its own accord (32768 up) for the first 9,700 flows; beyond, every port in use is bound explicitly all the same. Nothing
/// well known lives there that Wireshark would take the flow for.
const FIRST_PORT: u16 = 23_000;
/// The most flows that a run can have.
pub const MAX_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize;
/// Where every host sends everything: exists only as a neighbour that is known for good.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);
/// The gateway's hardware address. No device has it, so the fabric's own IP layer leaves the packets alone.
pub const GATEWAY_MAC: Mac = [0x02, 0x77, 0xff, 0xff, 0xff, 0xfe];

/// The flow that a packet belonging to none is counted under.
pub const NO_FLOW: FlowId = FlowId(u32::MAX);

/// The address of the host at a node: 10.0.0.1 for node 0, and so on.
pub fn address_of(node: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + node as u32)
}

/// The node whose host has an address; any number for an address that is not in the plan.
pub fn node_of(address: u32) -> usize {
    address.wrapping_sub(Ipv4Addr::new(10, 0, 0, 1).to_bits()) as usize
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
            assert_eq!(node_of(address_of(node).to_bits()), node);
        }
        assert_eq!(address_of(1).to_string(), "10.0.0.2");
    }

    #[test]
    fn a_port_of_no_flow_is_nobodys() {
        assert_eq!(flow_of(port_of(3), port_of(3), 4), FlowId(3));
        assert_eq!(flow_of(port_of(4), port_of(4), 4), NO_FLOW);
        assert_eq!(flow_of(40_000, port_of(3), 4), NO_FLOW);
        assert_eq!(flow_of(53, 53, 4), NO_FLOW);
    }
}
