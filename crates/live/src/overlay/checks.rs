//! Checks, before anything starts, for what an overlay of daemons cannot do that the simulated one can.

use super::dissolved::{is_relayed, nodes, passing};
use super::multicast::{group_of, has_groups};
use crate::controls::unable;
use std::ops::RangeInclusive;
use weir_base::Bytes;
use weir_engine::{EngineError, link_pairs};
use weir_plan::{Carriage, Group, Ip, Run};

/// Bytes around the payload of the largest packet of programs in a packet between nodes: the device of a daemon has an MTU that is so much
/// less than that of its links (docs/overlay-hosts.md).
const AROUND: Bytes = Bytes::new(111);
/// The MTUs of links that a daemon takes.
const MTU: RangeInclusive<u64> = 1280..=9000;

/// Refuses a run whose overlay the daemons cannot be.
pub(crate) fn check(run: &Run) -> Result<(), EngineError> {
    if nodes(run).next().is_none() {
        return Ok(());
    }
    check_nodes(run)?;
    check_passing(run)?;
    check_receivers(run)?;
    let least = run.network.links.iter().map(|link| link.mtu).min().unwrap_or(Bytes::ZERO);
    for group in &run.groups {
        let Some(carriage) = &group.overlay else {
            check_beside(group)?;
            continue;
        };
        check_group(group, carriage)?;
        let longest = group.workload.datagram().map_or(Bytes::ZERO, |(packet, _)| packet);
        if !is_relayed(group) && longest + AROUND > least {
            let most = least.saturating_sub(AROUND);
            return Err(unable(
                format!(
                    "group {}: packets of {longest} exceed the {most} that fit in sealed packets of {least}",
                    group.name
                ),
                "write a smaller `packet` in its workload, or use `--on sim`",
            ));
        }
    }
    Ok(())
}

/// What a reader of the results should know.
pub(crate) fn remarks(planned: &Run) -> Vec<String> {
    let is_wired = nodes(planned).any(|(_, _, overlay)| !overlay.cat.acknowledges());
    let wired = "the overlay's nodes are daemons here: sealed SLIQ connections by Copa are between them, in the place of `cat = \"wire\"`";
    is_wired.then(|| wired.to_owned()).into_iter().collect()
}

/// What a daemon has no parameter for.
fn check_nodes(run: &Run) -> Result<(), EngineError> {
    for (_, station, overlay) in nodes(run) {
        if let Some(planner) = overlay.planner {
            return Err(unable(
                format!(
                    "daemons of the overlay plan where a flow may be refused, so [overlay] planner = {planner} cannot be set"
                ),
                "remove it, or use `--on sim`",
            ));
        }
        if has_groups(run) && overlay.multicast != Default::default() {
            return Err(unable(
                "daemons of the overlay have no parameters for groups, so [overlay] multicast cannot be set"
                    .into(),
                "remove it, or use `--on sim`",
            ));
        }
        for (_, other, _) in nodes(run).filter(|(_, other, _)| other.at > station.at) {
            let mut links = link_pairs(run, station.at, other.at);
            let name = |at: usize| &run.network.nodes[at].name;
            if links.next().is_some() && links.next().is_some() {
                return Err(unable(
                    format!(
                        "the nodes {} and {} have two links, and a daemon has one connection to each neighbour",
                        name(station.at),
                        name(other.at)
                    ),
                    "put a node into one of the two links, or use `--on sim`",
                ));
            }
        }
    }
    let between = run.network.links.iter().filter(|link| link.instrumented);
    match between.map(|link| (link, link.mtu.get())).find(|(_, mtu)| !MTU.contains(mtu)) {
        Some((link, mtu)) => Err(unable(
            format!(
                "link {}: daemons need an MTU of {} to {} bytes, and it has {mtu}",
                link.name,
                MTU.start(),
                MTU.end()
            ),
            "write another mtu, or use `--on sim`",
        )),
        None => Ok(()),
    }
}

/// What the hosts of daemons cannot do for a group beside the overlay.
fn check_beside(group: &Group) -> Result<(), EngineError> {
    match group.ip {
        Ip::V4 => Ok(()),
        Ip::V6 => Err(unable(
            format!(
                "group {}: it goes beside the overlay over IPv6, which the hosts of nodes do not forward",
                group.name
            ),
            "write ip = 4, or use `--on sim`",
        )),
    }
}

/// Refuses packets beside the overlay that pass a router that is no node.
fn check_passing(run: &Run) -> Result<(), EngineError> {
    let is_node = |router: usize| nodes(run).any(|(_, station, _)| station.at == router);
    match passing(run).into_iter().find(|passing| !is_node(passing.router)) {
        Some(passing) => Err(unable(
            format!(
                "packets beside the overlay pass the router {}, which is no node of it",
                run.network.nodes[passing.router].name
            ),
            "add it to the nodes of [overlay], or use `--on sim`",
        )),
        None => Ok(()),
    }
}

/// Refuses two hosts behind a node that receive what is sent to groups: the links to them are no network that both are at.
fn check_receivers(run: &Run) -> Result<(), EngineError> {
    let mut receivers: Vec<(usize, usize)> = Vec::new();
    for flow in (0..run.flows.len()).filter(|flow| group_of(run, *flow).is_some()) {
        let host = run.pair(flow).to;
        let Some(link) = run.network.links.iter().find(|link| link.from == host) else { continue };
        match receivers.iter().find(|(router, _)| *router == link.to) {
            Some((router, other)) if *other != host => {
                let name = |node: usize| &run.network.nodes[node].name;
                return Err(unable(
                    format!(
                        "the hosts {} and {} behind the node {} both receive what is sent to groups",
                        name(*other),
                        name(host),
                        name(*router)
                    ),
                    "let another node receive one of the groups, or use `--on sim`",
                ));
            }
            Some(_) => {}
            None => receivers.push((link.to, host)),
        }
    }
    Ok(())
}

/// What a daemon cannot do for a group.
fn check_group(group: &Group, carriage: &Carriage) -> Result<(), EngineError> {
    let refused = |what: &str, help: &str| Err(unable(format!("group {}: {what}", group.name), help));
    if carriage.coupled.is_some() {
        return refused("daemons have no sets of coupled flows", "remove `coupled`, or use `--on sim`");
    }
    if carriage.is_sensitive != carriage.deadline.is_some() {
        return refused(
            "a daemon takes packets for sensitive that have a deadline, and no others",
            "remove `class`, or write a deadline, or use `--on sim`",
        );
    }
    Ok(())
}
