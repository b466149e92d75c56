//! The networks that a lab can ask for, spelled out as nodes and links. A dumbbell is a chain of one link: its routers are
//! `left` and `right`, its link's directions `down` and `up`. A chain's routers are `n0`, `n1` and so on; its link `x` has
//! the directions `x` and `x-up`. Each traffic group has a host at either end, on access links without a rate.

use crate::cell::Reader;
use crate::file::{Bottleneck, Chain, Change, Held, HostJitter, Ways};
use crate::limits;
use crate::run::{self, Hold, Link, Network, Node};
use weir_base::{Bytes, Rate, Span};

/// Largest IP packet: Ethernet's (RFC 894).
pub(crate) const MTU: Bytes = Bytes::new(1500);

/// What is needed to find a group's way.
pub(crate) struct Routes {
    /// The routers' names, from left to right.
    pub(crate) routers: Vec<String>,
    pub(crate) chain: bool,
    /// Rate, delay and overhead of each link's two directions.
    hops: Vec<[(Rate, Span, Bytes); 2]>,
}

/// The way of a group's data.
pub(crate) struct Route {
    from: usize,
    to: usize,
    /// Base RTT between its ends.
    pub(crate) rtt: Span,
    /// What the slowest link on the way needs for a packet of the MTU.
    serialisation: Span,
    /// Indices of the links on the way.
    pub(crate) links: Vec<usize>,
}

/// Builds the lab's own links; the hosts come with the groups.
pub(crate) fn build(reader: &mut Reader<'_>) -> Option<(Network, Routes)> {
    match (reader.has(&["dumbbell"]), reader.has(&["chain"])) {
        (true, false) => dumbbell(reader),
        (false, true) => chain(reader),
        (true, true) => {
            reader.wrong(&["chain"], "a lab has a dumbbell or a chain, not both", "remove one of the two");
            None
        }
        (false, false) => {
            let help = "write [dumbbell], and under it rate = \"10 Mbit/s\" and rtt = \"20 ms\"";
            reader.wrong(&["format"], "the lab has no network", help);
            None
        }
    }
}

fn dumbbell(reader: &mut Reader<'_>) -> Option<(Network, Routes)> {
    let link: Bottleneck = reader.section(&["dumbbell"])?;
    let directions = directions(reader, &["dumbbell"], link, ["down".into(), "up".into()])?;
    let base_rtt = Some(directions[0].delay + directions[1].delay);
    Some(row(vec!["left".into(), "right".into()], false, base_rtt, vec![directions]))
}

fn chain(reader: &mut Reader<'_>) -> Option<(Network, Routes)> {
    let chain: Chain = reader.section(&["chain"])?;
    // The section was read, so its links are a table.
    let names: Vec<String> = reader.node(&["chain", "links"])?.as_table()?.keys().map(String::from).collect();
    if names.is_empty() {
        let help = "write [chain.links.NAME], and under it rate = \"10 Mbit/s\" and delay = \"10 ms\"";
        reader.wrong(&["chain", "links"], "the chain has no links", help);
    }
    limits::chain(reader, chain.base_rtt, &names);
    let mut links = Vec::new();
    for name in &names {
        let path = ["chain", "links", name.as_str()];
        limits::name(reader, "link", &path);
        if let Some(link) = reader.section::<Bottleneck>(&path) {
            links.extend(directions(reader, &path, link, [name.clone(), format!("{name}-up")]));
        }
    }
    if links.is_empty() || links.len() < names.len() {
        return None;
    }
    let routers = (0..=links.len()).map(|n| format!("n{n}")).collect();
    Some(row(routers, true, chain.base_rtt, links))
}

/// Routers in a row and the links between them.
fn row(
    routers: Vec<String>,
    chain: bool,
    base_rtt: Option<Span>,
    links: Vec<[Link; 2]>,
) -> (Network, Routes) {
    let nodes =
        routers.iter().map(|name| Node { name: name.clone(), host: false, jitter: Span::ZERO }).collect();
    // A lab's own links have a rate.
    let hop = |link: &Link| (link.rate.unwrap_or_default(), link.delay, link.overhead);
    let hops = links.iter().map(|[down, up]| [hop(down), hop(up)]).collect();
    let mut network = Network { nodes, links: Vec::new(), base_rtt, mtu: MTU };
    for (left, [down, up]) in links.into_iter().enumerate() {
        network.links.push(Link { from: left, to: left + 1, ..down });
        network.links.push(Link { from: left + 1, to: left, ..up });
    }
    (network, Routes { routers, chain, hops })
}

/// The two directions of a link, checked.
fn directions(
    reader: &mut Reader<'_>,
    path: &[&str],
    link: Bottleneck,
    names: [String; 2],
) -> Option<[Link; 2]> {
    let before = reader.faults.len();
    let delays = match (link.rtt, link.delay) {
        (Some(rtt), None) => {
            limits::delay(reader, &[path, &["rtt"]].concat(), rtt);
            let up = Span::from_nanos(rtt.as_nanos() / 2);
            [Some(rtt - up), Some(up)]
        }
        (None, Some(delay)) => delay.both(),
        (None, None) => {
            reader.wrong(
                path,
                "the link has no delay",
                "add rtt = \"20 ms\", or delay = \"10 ms\" for each way",
            );
            [Some(Span::ZERO); 2]
        }
        (Some(_), Some(_)) => {
            let at = [path, &["delay"]].concat();
            reader.wrong(&at, "both rtt and delay say how long the way is", "remove one of the two");
            [Some(Span::ZERO); 2]
        }
    };
    let rates = link.rate.both();
    let mut queues = link.queue.map_or([None, None], Ways::both);
    let overheads = link.overhead.map_or([None; 2], Ways::both);
    let losses = link.loss.map_or([None; 2], Ways::down_only);
    let mut drops = link.drop.map_or([None, None], Ways::down_only);
    let mut holds = link.hold.map_or([None, None], Ways::down_only);
    let mut schedules = link.schedule.map_or([None, None], Ways::down_only);
    let mut made = Vec::new();
    for (side, (name, way)) in names.into_iter().zip(["down", "up"]).enumerate() {
        for (key, missing) in [("rate", rates[side].is_none()), ("delay", delays[side].is_none())] {
            if missing {
                let message = format!("`{key}` says nothing of the direction {way}");
                let help = format!("add {way} = .., or give one value for both");
                reader.wrong(&[path, &[key]].concat(), message, help);
            }
        }
        let link = Link {
            name,
            from: 0,
            to: 0,
            // Where one is missing, that is told above, and what stands in for it here goes nowhere.
            rate: Some(rates[side].unwrap_or(Rate::from_mbit_per_sec(1))),
            delay: delays[side].unwrap_or_default(),
            loss: losses[side].unwrap_or(0.0),
            overhead: overheads[side].unwrap_or_default(),
            queue: queues[side].take().unwrap_or_else(|| weir_queue::Config::TailDrop(Default::default())),
            drop: sorted(drops[side].take().unwrap_or_default()),
            hold: holds_of(holds[side].take().unwrap_or_default()),
            schedule: changes_of(schedules[side].take().unwrap_or_default()),
            measured: true,
        };
        limits::link(reader, path, way, &link);
        made.push(link);
    }
    if reader.faults.len() > before {
        return None;
    }
    made.try_into().ok()
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

fn holds_of(held: Vec<Held>) -> Vec<Hold> {
    let mut holds: Vec<Hold> = held.into_iter().map(|Held { packet, by }| Hold { packet, by }).collect();
    holds.sort_by_key(|hold| hold.packet);
    holds
}

fn changes_of(changes: Vec<Change>) -> Vec<run::Change> {
    let change = |Change { at, rate, delay, loss }| run::Change { at, rate, delay, loss };
    let mut changes: Vec<run::Change> = changes.into_iter().map(change).collect();
    changes.sort_by_key(|change| change.at);
    changes
}

impl Routes {
    /// The way from one router to another, which must not be the same.
    pub(crate) fn route(&self, from: usize, to: usize) -> Route {
        let way = usize::from(from > to);
        let between = from.min(to)..from.max(to);
        let delay = |[down, up]: &[(Rate, Span, Bytes); 2]| down.1 + up.1;
        let rtt = self.hops[between.clone()].iter().map(delay).fold(Span::ZERO, |sum, delay| sum + delay);
        let time = |hop: &[(Rate, Span, Bytes); 2]| hop[way].0.time_to_send(MTU + hop[way].2);
        let serialisation = self.hops[between.clone()].iter().map(time).max().unwrap_or(Span::ZERO);
        Route { from, to, rtt, serialisation, links: between.map(|hop| 2 * hop + way).collect() }
    }
}

/// Adds a group's two hosts and their access links; answers their indices. `extra` is what the group's base RTT is longer
/// than its path's: it lies between the sender and its router, half of it each way.
pub(crate) fn attach(
    network: &mut Network,
    group: &str,
    route: &Route,
    extra: Span,
    jitter: HostJitter,
) -> (usize, usize) {
    let jitter = match jitter {
        HostJitter::Auto => route.serialisation,
        HostJitter::Within(span) => span,
    };
    let (sender, receiver) = (network.nodes.len(), network.nodes.len() + 1);
    network.nodes.push(Node { name: format!("{group}-sender"), host: true, jitter });
    network.nodes.push(Node { name: format!("{group}-receiver"), host: true, jitter: Span::ZERO });
    let back = Span::from_nanos(extra.as_nanos() / 2);
    for (end, from, to, delay) in [
        ("sender-out", sender, route.from, extra - back),
        ("sender-in", route.from, sender, back),
        ("receiver-out", receiver, route.to, Span::ZERO),
        ("receiver-in", route.to, receiver, Span::ZERO),
    ] {
        network.links.push(Link {
            name: format!("{group}-{end}"),
            from,
            to,
            rate: None,
            delay,
            loss: 0.0,
            overhead: Bytes::ZERO,
            queue: weir_queue::Config::TailDrop(Default::default()),
            drop: Vec::new(),
            hold: Vec::new(),
            schedule: Vec::new(),
            measured: false,
        });
    }
    (sender, receiver)
}
