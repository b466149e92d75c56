//! Checks, before anything starts, for what an overlay of daemons cannot do that the simulated one can.

use super::dissolved::{is_relayed, nodes};
use crate::controls::unable;
use std::ops::RangeInclusive;
use weir_base::Bytes;
use weir_engine::{EngineError, link_pairs};
use weir_plan::{Carriage, Group, Run};

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
    let least = run.network.links.iter().map(|link| link.mtu).min().unwrap_or(Bytes::ZERO);
    for group in &run.groups {
        let Some(carriage) = &group.overlay else {
            return Err(unable(
                format!(
                    "group {}: it passes routers of the overlay beside it, which are hosts of their own here",
                    group.name
                ),
                "let the overlay carry the group, or use `--on sim`",
            ));
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

/// What a daemon cannot do for a group.
fn check_group(group: &Group, carriage: &Carriage) -> Result<(), EngineError> {
    let refused = |what: &str, help: &str| Err(unable(format!("group {}: {what}", group.name), help));
    if carriage.multicast.is_some() {
        return refused("hosts of a live lab neither join groups nor send to them", "use `--on sim`");
    }
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
