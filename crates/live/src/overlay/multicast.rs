//! Groups (multicast) of a run on hosts. A sending host sends to the group's address, receiving hosts join it, and the nodes where they are
//! hear of that by IGMP. The fabric brings what a host sends to a group to its node, and what a node sends to groups to the one host behind
//! it that receives.

use super::dissolved::Dissolved;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use weir_plan::Run;
use weir_plan::address::group_address;

/// The prefix of all groups.
pub(super) const GROUPS: &str = "239.192.0.0/14";

/// Whether a run has groups.
pub(super) fn has_groups(run: &Run) -> bool {
    run.groups.iter().any(|group| group.overlay.as_ref().is_some_and(|one| one.multicast.is_some()))
}

/// The group that a flow sends to; `None` if it has one receiver.
pub(crate) fn group_of(run: &Run, flow: usize) -> Option<Ipv4Addr> {
    let carriage = run.groups[run.flows[flow].group].overlay.as_ref()?;
    carriage.multicast.map(group_address)
}

/// The other flows that a flow's packets are for. They follow it.
pub(crate) fn copies(run: &Run, flow: usize) -> Range<usize> {
    let rest = run.flows.get(flow + 1..).unwrap_or_default();
    flow + 1..flow + 1 + rest.iter().take_while(|other| other.copy_of == Some(flow)).count()
}

/// Where packets to groups go, by the node of the network at which they enter, and whose they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways {
    ways: BTreeMap<usize, usize>,
    /// The flow of a receiving host, by the number of the flow that sends.
    flows: BTreeMap<(u32, usize), u32>,
}

impl Ways {
    /// Those of a run.
    pub(crate) fn of(dissolved: &Dissolved) -> Ways {
        let (run, mut all) = (&dissolved.run, Ways::default());
        for flow in (0..run.flows.len()).filter(|flow| group_of(run, *flow).is_some()) {
            let (pair, own) = (run.pair(flow), run.flows[flow].copy_of.unwrap_or(flow));
            let (Some(near), Some(far)) = (dissolved.gate(pair.from), dissolved.gate(pair.to)) else {
                continue;
            };
            all.ways.extend([(pair.from, near), (pair.to, far), (far, pair.to)]);
            all.flows.insert((own as u32, pair.to), flow as u32);
        }
        all
    }

    /// Where a packet to a group goes that enters at a node.
    pub(crate) fn from(&self, node: usize) -> Option<usize> {
        self.ways.get(&node).copied()
    }

    /// The flow of a packet to a group at the host that it goes to.
    pub(crate) fn flow_at(&self, flow: u32, host: usize) -> u32 {
        self.flows.get(&(flow, host)).copied().unwrap_or(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dissolved;
    use super::*;
    use crate::frame::{address_to_group, udp_frame};
    use crate::packet::{Directory, Pool};
    use weir_base::{Ecn, FlowId, Packet};
    use weir_fabric::Wire;
    use weir_plan::{Ip, Lab};

    #[test]
    fn a_packet_to_a_group_goes_to_the_node_and_from_a_node_to_its_receiver_whose_flow_it_is() {
        let text = "format = 1\n[graph]\nrouters = [\"a\", \"b\", \"c\"]\n[graph.links]\n\
                    ab = { from = \"a\", to = \"b\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    ac = { from = \"a\", to = \"c\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    [overlay]\nnodes = [\"a\", \"b\", \"c\"]\n\
                    [traffic.one]\nfrom = \"b\"\nto = \"a\"\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1052 B\" }\n\
                    [traffic.all]\nfrom = \"a\"\nmulticast = [\"b\", \"c\"]\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1052 B\" }\n";
        let lab = Lab::from_str(text, "test.toml", ".".as_ref(), &[]);
        let run = lab.unwrap_or_else(|error| panic!("{}", error.render(false, 100))).runs().remove(0);
        let after = dissolved(&run);
        let (group, [first, second]) = (group_of(&run, 1).unwrap(), [run.pair(1), run.pair(2)]);
        assert_eq!((copies(&run, 0), copies(&run, 1)), (1..1, 2..3));
        assert!(group_of(&run, 0).is_none() && group_of(&run, 2) == Some(group) && has_groups(&run));
        let directory = Directory {
            addressed: (0..after.run.network.nodes.len()).map(|node| after.run.is_addressed(node)).collect(),
            flows: run.flows.len(),
            commands: vec![],
            beyond: None,
            ways: after.ways(),
            groups: Ways::of(&after),
        };
        let pool = Pool::new(directory, 1500);
        let gate = |host: usize| after.gate(host).unwrap();
        let mut frame = udp_frame(first.from, first.to, Ip::V4, 1, 1052, Ecn::NotEct);
        address_to_group(&mut frame, group);
        for (enters, goes, flow) in [
            (first.from, gate(first.from), 1),
            (gate(first.to), first.to, 1),
            (gate(second.to), second.to, 2),
        ] {
            let mut packet = pool.packet(enters, &frame).unwrap();
            assert_eq!((packet.destination(), packet.flow()), (goes, FlowId(flow)));
            // It keeps the address of the group, by which its host's device takes it.
            packet.address_to([2; 6]);
            assert_eq!(packet.ethernet()[..3], [1, 0, 0x5e]);
        }
        // Between nodes there are no packets to groups.
        let end = after.sites[0].ends[0].node;
        assert!(pool.packet(end, &frame).is_none());
    }
}
