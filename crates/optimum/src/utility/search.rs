//! The ways of a class: paths to one receiver, or trees to all of them.

use super::{Class, Forwarding};
use crate::capacity::{LONGEST_DEADLINE, MOST_NODES_FOR_TREES};
use crate::corridor::Corridor;
use crate::network::{Network, Session};
use crate::trees::Trees;

/// Most paths that one search adds.
const PATHS: usize = 3;
/// Most receivers of a class for which trees are looked for: the sets of receivers are all looked at.
const MOST_LEAVES: usize = 8;
/// How far beyond what it is worth the cheapest tree is looked for; the bound of a dearer one is this.
const DEAREST: f64 = 2.0;

/// What finds cheap ways.
#[derive(Debug)]
pub(super) enum Search {
    /// Paths to one receiver.
    Paths(Corridor),
    /// Trees to all receivers, by a session and the deadline in nanoseconds.
    Trees(Session, u64),
}

/// The searches of a class: one for each receiver with coding, otherwise one. Trees are looked for in small networks only; elsewhere
/// coding bounds what trees carry.
pub(super) fn searches(network: &Network, class: &Class, forwarding: Forwarding) -> Vec<Search> {
    let limit = class.deadline.unwrap_or(LONGEST_DEADLINE).min(LONGEST_DEADLINE).as_nanos();
    if forwarding == Forwarding::Trees && class.receivers.len() > 1 && has_trees(network, class) {
        let session = Session::new(class.name.clone(), class.source, class.receivers.clone());
        return vec![Search::Trees(session, limit)];
    }
    let corridor = |&receiver: &usize| Search::Paths(Corridor::new(network, class.source, receiver, limit));
    class.receivers.iter().map(corridor).collect()
}

/// Whether trees are looked for.
pub(super) fn has_trees(network: &Network, class: &Class) -> bool {
    let forwards = network.nodes().iter().filter(|node| node.forwards).count();
    forwards <= MOST_NODES_FOR_TREES && class.receivers.len() <= MOST_LEAVES
}

impl Search {
    /// At these prices, a lower bound on the price of all ways, and the cheapest ways with others that are cheaper than `below`.
    pub(super) fn cheapest(&self, network: &Network, prices: &[f64], below: f64) -> (f64, Vec<Vec<u32>>) {
        match self {
            Search::Paths(corridor) => {
                let found = corridor.cheapest(prices, below, PATHS);
                (found.least, found.paths)
            }
            Search::Trees(session, limit) => {
                let most = below * DEAREST;
                let trees = Trees::new(network, std::slice::from_ref(session), *limit);
                let Some(found) = trees.fronts(0, prices, most) else { return (0.0, Vec::new()) };
                let least = found.iter().map(|(price, ..)| *price).fold(most, f64::min);
                (least, found.into_iter().map(|(_, _, links)| links).collect())
            }
        }
    }

    /// A first way: the fastest one. `None` if none is in time.
    pub(super) fn first(&self, network: &Network) -> Option<Vec<u32>> {
        match self {
            Search::Paths(corridor) => corridor.fastest(|_| true),
            Search::Trees(session, limit) => {
                let trees = Trees::new(network, std::slice::from_ref(session), *limit);
                let free = vec![0.0; network.links().len()];
                let found = trees.fronts(0, &free, 1.0)?;
                found.into_iter().min_by_key(|(_, delay, _)| *delay).map(|(_, _, links)| links)
            }
        }
    }
}
