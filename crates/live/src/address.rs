//! Addresses of a testbed beyond those of the plan ([`weir_plan::address`]): hardware addresses, the gateway, and the flow that
//! two ports belong to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_base::FlowId;
use weir_linux::netlink::Mac;
use weir_plan::Ip;
use weir_plan::address::{FIRST_PORT, PREFIX_V6};

pub use weir_plan::address::{PORTS as MAX_FLOWS, address_of, node_of, node_of_v6, port_of};

/// The next hop of every host's default route. It exists only as a permanent neighbour entry.
pub fn gateway(ip: Ip) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::new(10, 255, 255, 254).into(),
        Ip::V6 => Ipv6Addr::from_bits(PREFIX_V6 | 0xffff_fffe).into(),
    }
}

/// The gateway's hardware address. No device has it, so the fabric's own IP layer leaves the packets alone.
pub const GATEWAY_MAC: Mac = [0x02, 0x77, 0xff, 0xff, 0xff, 0xfe];

/// The flow number under which packets of no flow are counted.
pub use weir_fabric::NO_FLOW;

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

/// The flow that a packet between these ports belongs to: both ends of a flow have the same number.
pub fn flow_of(source: u16, destination: u16, flows: usize) -> FlowId {
    let flow = usize::from(destination).wrapping_sub(FIRST_PORT.into());
    if source == destination && flow < flows { FlowId(flow as u32) } else { NO_FLOW }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_no_flow_belongs_to_nobody() {
        assert_eq!(flow_of(port_of(3), port_of(3), 4), FlowId(3));
        assert_eq!(flow_of(port_of(4), port_of(4), 4), NO_FLOW);
        assert_eq!(flow_of(40_000, port_of(3), 4), NO_FLOW);
        assert_eq!(flow_of(53, 53, 4), NO_FLOW);
    }
}
