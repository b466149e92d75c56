//! Routes: for each node, the link towards each host, by least total delay; ties go to fewer links, then to the link that is named
//! first. Given routes take precedence: packets for a host that meet the host's route follow it.

use crate::config::Network;
use crate::shortest::{Edge, least_delay};

/// The routes that packets take through a network.
#[derive(Debug, Clone)]
pub struct Paths {
    routes: Routes,
    ends: Vec<usize>,
}

impl Paths {
    /// The routes through this network.
    pub fn new(network: &Network) -> Paths {
        Paths {
            routes: Routes::new(network, |_| true),
            ends: network.links.iter().map(|link| link.to).collect(),
        }
    }

    /// The links that packets from one host to another cross, in order. If no route leads there, the links up to where it ends.
    pub fn links(&self, from: usize, to: usize) -> Vec<usize> {
        let mut crossed = Vec::new();
        let mut node = from;
        // Given routes that contradict each other could lead in a circle; no route passes a node twice.
        for _ in 0..self.routes.nodes {
            if node == to {
                break;
            }
            let Some(next) = self.routes.link(node, to) else { break };
            crossed.push(next);
            node = self.ends[next];
        }
        crossed
    }

    /// Whether packets from one host to another cross this link.
    pub fn crosses(&self, from: usize, to: usize, link: usize) -> bool {
        self.links(from, to).contains(&link)
    }
}

/// The link to take from a node towards a host; `u32::MAX` if there is none.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    nodes: usize,
    next: Vec<u32>,
}

impl Routes {
    /// The routes to hosts, and to other nodes that packets may be addressed to.
    pub(crate) fn new(network: &Network, addressed: impl Fn(usize) -> bool) -> Routes {
        let nodes = network.nodes.len();
        let mut next = vec![u32::MAX; nodes * nodes];
        // From each target along the links backwards, so that a node's next link to it is found.
        let mut into: Vec<Vec<Edge>> = vec![vec![]; nodes];
        for (link, of) in (0..).zip(&network.links) {
            into[of.to].push(Edge { link, to: of.from, delay: of.delay });
        }
        let is_host = |node: usize| network.nodes[node].host;
        // To a host behind one router all routes are those to that router, which are found once for all of its hosts.
        let mut to_router: Vec<Option<Vec<Option<u32>>>> = vec![None; nodes];
        for target in (0..nodes).filter(|&node| is_host(node) || addressed(node)) {
            let mut set = |node: usize, link: u32| next[node * nodes + target] = link;
            let only = match into[target][..] {
                [Edge { link, to, .. }] if is_host(target) && !is_host(to) => Some((to, link)),
                _ => None,
            };
            let last = only.map_or(target, |(router, _)| router);
            let links = to_router[last].get_or_insert_with(|| least_delay(last, &into, is_host));
            let found = links.iter().enumerate().filter_map(|(node, link)| Some((node, (*link)?)));
            found.filter(|(node, _)| *node != target).for_each(|(node, link)| set(node, link));
            if let Some((router, link)) = only {
                set(router, link);
            }
        }
        for route in &network.routes {
            for &link in &route.links {
                next[network.links[link].from * nodes + route.to] = link as u32;
            }
        }
        Routes { nodes, next }
    }

    /// The routes without the links that packets pass without an event: `through` gives the far end of such a link, `stops` says
    /// whether there is a station at a node. They are for packets that have reached a node or, with `leaving`, for packets that
    /// leave its station.
    pub(crate) fn hops(
        &self,
        through: impl Fn(usize) -> Option<usize>,
        stops: impl Fn(usize) -> bool,
        leaving: bool,
    ) -> Hops {
        let hop = |from: usize, target: usize| {
            if stops(from) && !leaving {
                return HERE;
            }
            if stops(from) && from == target {
                return NOWHERE;
            }
            let mut node = from;
            for _ in 0..self.nodes {
                if node == target {
                    return ARRIVED;
                }
                let Some(link) = self.link(node, target) else { return NOWHERE };
                match through(link) {
                    Some(end) if stops(end) => return STATION | link as u32,
                    Some(end) => node = end,
                    None => return link as u32,
                }
            }
            // A loop over links that take no time: the given routes contradict each other.
            if node == target { ARRIVED } else { NOWHERE }
        };
        let nodes = self.nodes;
        Hops { nodes, next: (0..nodes * nodes).map(|index| hop(index / nodes, index % nodes)).collect() }
    }

    /// The link from `node` towards `target`; `None` if no route leads there.
    #[inline]
    pub(crate) fn link(&self, node: usize, target: usize) -> Option<usize> {
        let link = self.next[node * self.nodes + target];
        (link != u32::MAX).then_some(link as usize)
    }
}

/// The next hop on the route from a node to a host.
pub(crate) enum Hop {
    /// A link that takes time, or that may drop, hold or change packets.
    Link(usize),
    /// A station: at the end of this link, which takes no time, or at the node itself.
    Station(Option<usize>),
    /// The host: the rest of the way takes no time.
    Arrived,
    /// Nowhere: no route leads there.
    Nowhere,
}

const NOWHERE: u32 = u32::MAX;
const ARRIVED: u32 = u32::MAX - 1;
const HERE: u32 = u32::MAX - 2;
/// Flag of a link that leads to a station. Values below it are plain links.
const STATION: u32 = 1 << 31;

/// The next hop from each node to each host, so that a packet costs one lookup, however many links take no time.
#[derive(Debug, Clone)]
pub(crate) struct Hops {
    nodes: usize,
    next: Vec<u32>,
}

impl Hops {
    /// The link that all packets which leave this node take, if there is only one.
    pub(crate) fn only_link(&self, node: usize) -> Option<u32> {
        let mut links = self.next[node * self.nodes..][..self.nodes].iter().filter(|hop| **hop < STATION);
        let first = links.next().copied()?;
        links.all(|link| *link == first).then_some(first)
    }

    #[inline]
    pub(crate) fn next(&self, node: usize, target: usize) -> Hop {
        match self.next[node * self.nodes + target] {
            ARRIVED => Hop::Arrived,
            link if link < STATION => Hop::Link(link as usize),
            NOWHERE => Hop::Nowhere,
            HERE => Hop::Station(None),
            link => Hop::Station(Some((link & !STATION) as usize)),
        }
    }
}
