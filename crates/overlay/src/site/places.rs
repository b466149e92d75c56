//! Which node each address is behind.

use crate::nodes::NodeId;
use core::net::{IpAddr, Ipv4Addr};
use weir_base::Prefix;

/// The prefixes of all nodes, and those of groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Places {
    nodes: Vec<(Prefix, NodeId)>,
    groups: Vec<Prefix>,
}

impl Places {
    /// These prefixes. Of those that cover an address, the longest decides.
    pub fn new(mut prefixes: Vec<(Prefix, NodeId)>) -> Places {
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.length()));
        Places { nodes: prefixes, groups: Vec::new() }
    }

    /// The same with the prefixes of groups (multicast addresses) that the overlay carries.
    pub fn with_groups(self, groups: Vec<Prefix>) -> Places {
        Places { groups, ..self }
    }

    /// Whether an IPv4 address is that of a group which the overlay carries.
    pub fn is_group(&self, address: u32) -> bool {
        let address = IpAddr::V4(Ipv4Addr::from_bits(address));
        self.groups.iter().any(|prefix| prefix.contains(address))
    }

    /// The node of an IPv4 address.
    pub fn node_of(&self, address: u32) -> Option<NodeId> {
        let address = IpAddr::V4(Ipv4Addr::from_bits(address));
        self.nodes.iter().find(|(prefix, _)| prefix.contains(address)).map(|(_, node)| *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let [a, b] = [0, 1].map(|number| NodeId::new(number).unwrap());
        let places =
            Places::new(vec![("10.0.0.0/8".parse().unwrap(), a), ("10.2.0.0/16".parse().unwrap(), b)]);
        let [far, near, none] =
            [0x0a01_0001, 0x0a02_0001, 0x0b00_0001].map(|address| places.node_of(address));
        assert_eq!((far, near, none), (Some(a), Some(b), None));
    }
}
