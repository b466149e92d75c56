//! A fabric from a run: the plan's network in the fabric's words. Both engines start here.

use weir_fabric as fabric;
use weir_plan::Run;

/// The fabric that a run describes.
pub fn fabric_config(run: &Run) -> fabric::Config {
    let change = |change: &weir_plan::Change| fabric::Change {
        at: change.at,
        rate: change.rate,
        delay: change.delay,
        loss: change.loss,
    };
    let link = |link: &weir_plan::Link| fabric::Link {
        from: link.from,
        to: link.to,
        rate: link.rate,
        delay: link.delay,
        loss: link.loss,
        overhead: link.overhead,
        queue: link.queue.clone(),
        drop: link.drop.clone(),
        hold: link.hold.iter().map(|hold| (hold.packet, hold.by)).collect(),
        schedule: link.schedule.iter().map(change).collect(),
        measured: link.measured,
    };
    let way = |way: &weir_plan::Way| fabric::Way { to: way.to, links: way.links.clone() };
    fabric::Config {
        nodes: run
            .network
            .nodes
            .iter()
            .map(|node| fabric::Node { host: node.host, jitter: node.jitter })
            .collect(),
        links: run.network.links.iter().map(link).collect(),
        ways: run.network.ways.iter().map(way).collect(),
        flows: run
            .flows
            .iter()
            .map(|flow| fabric::Flow { from: run.groups[flow.group].from, group: flow.group })
            .collect(),
        groups: run.groups.len(),
        base_rtt: run.network.base_rtt,
        mtu: run.network.mtu,
        seed: run.seed,
    }
}

/// The flow number of packets that belong to no flow of the plan.
pub const NO_FLOW: u32 = u32::MAX;
