//! The networks that a lab can ask for, spelled out as nodes and links. A dumbbell is a chain of one link: its routers are
//! `left` and `right`, its link's directions `down` and `up`. A chain's routers are `n0`, `n1` and so on; its link `x` has
//! the directions `x` and `x-up`. The other shapes are in [`crate::graph`]. Each traffic group has a host at either end, on
//! access links without a rate.

use crate::bottleneck::Bottleneck;
use crate::drawing::{Drawing, Drawn, directions, in_a_row, routers_in_a_row};
use crate::graph;
use crate::host::Hosts;
use crate::limits::{self, LARGEST_MTU};
use crate::reader::Reader;
use crate::route::{LabNode, Route, Routes, Shape};
use crate::run::Pair;
use crate::shape::Chain;
use crate::timing::HostJitter;
use std::sync::Arc;
use weir_base::Span;
use weir_fabric::{Link, MTU, Network, Node, Outage};

/// Builds the lab's own nodes and links; [`attach`] adds the hosts of groups.
pub(crate) fn build(reader: &mut Reader<'_>) -> Option<(Network, Routes)> {
    let mut shapes = SHAPES.iter().filter(|(section, _)| reader.has(&[section]));
    match (shapes.next(), shapes.next()) {
        (Some((section, build)), None) => {
            let Drawn { shape, base_rtt, nodes, links } = build(reader)?;
            if let Some(rtt) = base_rtt.filter(|_| shape != Shape::Dumbbell) {
                limits::delay(reader, &[section, "base_rtt"], rtt);
            }
            check_queues(reader, section, base_rtt, &links);
            Some(assemble(shape, base_rtt, nodes, links))
        }
        (Some((first, _)), Some((second, _))) => {
            let message = format!("a lab has one network, but this one has [{first}] and [{second}]");
            reader.wrong(&[second], message, "remove one of the two");
            None
        }
        (None, _) => {
            let help = "write [dumbbell], and under it rate = \"10 Mbit/s\" and rtt = \"20 ms\"";
            reader.wrong(&["format"], "the lab has no network", help);
            None
        }
    }
}

/// Checks the queue parameters that depend on the link and on the network's base RTT.
fn check_queues(reader: &mut Reader<'_>, section: &str, base_rtt: Option<Span>, links: &[Drawing]) {
    for link in links.iter().flat_map(|drawing| std::iter::once(&drawing.down).chain(&drawing.up)) {
        let Some(rate) = link.rate else { continue };
        let Some(fault) = link.queue.fault(&weir_queue::Link { rate, base_rtt, mtu: link.mtu }) else {
            continue;
        };
        let name = link.name.trim_end_matches("-up");
        let paths = [vec![section, "links", name, "queue", fault.key], vec![section, "queue", fault.key]];
        let path = paths.into_iter().find(|path| reader.has(path)).unwrap_or(vec![section]);
        // Equal links share a queue in the lab file, so one fault is enough.
        return reader.wrong(&path, fault.message, fault.help);
    }
}

type Build = fn(&mut Reader<'_>) -> Option<Drawn>;

/// The sections that a network can be written as.
const SHAPES: [(&str, Build); 5] = [
    ("dumbbell", dumbbell),
    ("chain", chain),
    ("parking_lot", graph::parking_lot),
    ("star", graph::star),
    ("graph", graph::graph),
];

fn dumbbell(reader: &mut Reader<'_>) -> Option<Drawn> {
    let link: Bottleneck = reader.section(&["dumbbell"])?;
    let [down, up] = directions(reader, &["dumbbell"], link, ["down".into(), "up".into()])?;
    Some(Drawn {
        shape: Shape::Dumbbell,
        base_rtt: Some(down.delay + up.delay),
        nodes: ["left", "right"].map(LabNode::router).into(),
        links: in_a_row(vec![[down, up]]),
    })
}

fn chain(reader: &mut Reader<'_>) -> Option<Drawn> {
    let chain: Chain = reader.section(&["chain"])?;
    // The section was read, so its links are a table.
    let names: Vec<String> = reader.node(&["chain", "links"])?.as_table()?.keys().map(String::from).collect();
    if names.is_empty() {
        let help = "write [chain.links.NAME], and under it rate = \"10 Mbit/s\" and delay = \"10 ms\"";
        reader.wrong(&["chain", "links"], "the chain has no links", help);
    }
    if !limits::links(reader, "chain", &names) {
        return None;
    }
    let mut links = Vec::new();
    for name in &names {
        let path = ["chain", "links", name.as_str()];
        reader.name("link", &path);
        if let Some(link) = reader.section::<Bottleneck>(&path) {
            links.extend(directions(reader, &path, link, [name.clone(), format!("{name}-up")]));
        }
    }
    if links.is_empty() || links.len() < names.len() {
        return None;
    }
    Some(Drawn {
        shape: Shape::Row,
        base_rtt: chain.base_rtt,
        nodes: routers_in_a_row(links.len()),
        links: in_a_row(links),
    })
}

/// The network of routers and the lab's links, and its table for finding paths.
fn assemble(
    shape: Shape,
    base_rtt: Option<Span>,
    nodes: Vec<LabNode>,
    drawings: Vec<Drawing>,
) -> (Network, Routes) {
    // Routers accept the largest packet of any link.
    let largest = drawings.iter().map(|drawing| drawing.down.mtu).max().unwrap_or(MTU);
    let node = |place: &LabNode| Node {
        name: place.name.clone(),
        host: false,
        jitter: Span::ZERO,
        pauses: Arc::default(),
        mtu: largest,
        card: None,
        alike: None,
        edge: place.host,
    };
    let mut network =
        Network { nodes: nodes.iter().map(node).collect(), links: Vec::new(), routes: Vec::new(), base_rtt };
    for Drawing { from, to, down, up } in drawings {
        network.links.push(Link { from, to, ..down });
        network.links.extend(up.map(|up| Link { from: to, to: from, ..up }));
    }
    let routes = Routes::new(shape, nodes, &network.links);
    (network, routes)
}

/// The ends of a group's flows: the number of their sending host and the number of their path, both from 0.
pub(crate) type Ends = (u64, u32);

/// Adds a group's hosts: its senders, and a receiver for each of its paths (`ways`) that does not end at a station. A path's delay
/// beyond its links is put on access links: on the sender's if its host is not shared and there is one path, or if the path ends at
/// a station; otherwise on the receivers'. Returns a pair for each of `pairs`; `None` if the paths begin at different routers, a
/// shared host stands elsewhere, or a path contradicts an earlier one.
pub(crate) fn attach(
    network: &mut Network,
    hosts: &mut Hosts,
    (group, host): (&str, Option<&str>),
    ways: &[(&Route, Span)],
    pairs: &[Ends],
    jitter: HostJitter,
) -> Option<Vec<Pair>> {
    let slowest = ways.iter().map(|(route, _)| route.serialisation).max()?;
    let jitter = match jitter {
        HostJitter::Auto => slowest,
        HostJitter::Within(span) => span,
    };
    let (first, extra) = *ways.first()?;
    if ways.iter().any(|(route, _)| route.from != first.from) {
        return None;
    }
    let by_sender = host.is_none() && ways.len() == 1 || first.to_station;
    let at_sender = if by_sender { halves(extra) } else { [Span::ZERO; 2] };
    let senders = match host {
        Some(host) => {
            let count = pairs.iter().map(|(sender, _)| sender + 1).max()?;
            shared(network, hosts, host, count, first.from, at_sender, jitter)?
        }
        None => {
            let name = format!("{group}-sender");
            vec![add_host(network, name, jitter, first.from, group, "sender", at_sender)]
        }
    };
    let receiver = |(number, (route, extra)): (usize, &(&Route, Span))| match route.to_station {
        true => route.to,
        false => {
            let at_receiver = if by_sender { [Span::ZERO; 2] } else { halves(*extra) };
            let end = if number == 1 { "receiver".into() } else { format!("receiver-{number}") };
            add_host(network, format!("{group}-{end}"), Span::ZERO, route.to, group, &end, at_receiver)
        }
    };
    let receivers: Vec<usize> = (1..).zip(ways).map(receiver).collect();
    let of_pair = |&(sender, way): &Ends| {
        let ((route, extra), from, to) =
            (ways[way as usize], senders[sender as usize], receivers[way as usize]);
        for node in [from, to] {
            let mtu = &mut network.nodes[node].mtu;
            *mtu = route.mtu.min(*mtu);
        }
        // A graph may have several paths, so each group's is spelled out; other shapes have only one.
        if route.given {
            give_way(network, to, &route.links)?;
            give_way(network, from, &route.back)?;
        }
        Some(Pair { from, to, rtt: route.rtt + extra })
    };
    pairs.iter().map(of_pair).collect()
}

/// Splits a round-trip delay into the delays of its two directions.
fn halves(rtt: Span) -> [Span; 2] {
    let back = Span::from_nanos(rtt.as_nanos() / 2);
    [rtt - back, back]
}

/// At least `count` hosts of a name that groups share: those of earlier groups, then new ones. `None` if they stand elsewhere.
fn shared(
    network: &mut Network,
    hosts: &mut Hosts,
    name: &str,
    count: u64,
    router: usize,
    delays: [Span; 2],
    jitter: Span,
) -> Option<Vec<usize>> {
    let known = hosts.nodes(name).clone();
    let is_there = |&host: &usize| network.links.iter().any(|link| link.from == host && link.to == router);
    if !known.first().is_none_or(is_there) {
        return None;
    }
    for number in known.len() as u64..count {
        let own = hosts.name(name, number);
        // A card's queue spaces the packets by itself.
        let jitter = if hosts.card(name).is_some() { Span::ZERO } else { jitter };
        let host = add_host(network, own.clone(), jitter, router, &own, "sender", delays);
        if let Some(nic) = hosts.card(name) {
            let node = &mut network.nodes[host];
            node.card = Some(nic.card());
            node.mtu = nic.mtu.unwrap_or(LARGEST_MTU);
            node.alike = (hosts.count(name) > 1).then(|| name.to_owned());
            let out = network.links.len() - 2;
            nic.fit(&own, &mut network.links[out]);
        }
        hosts.nodes(name).push(host);
    }
    Some(hosts.nodes(name).clone())
}

/// Lowers the MTU of each host's links to the host's own. Called when all hosts are in the network.
pub(crate) fn fit_access(network: &mut Network) {
    let Network { nodes, links, .. } = network;
    for link in links {
        for node in [&nodes[link.from], &nodes[link.to]].into_iter().filter(|node| node.host) {
            link.mtu = link.mtu.min(node.mtu);
        }
    }
}

/// All hosts have these pauses.
pub(crate) fn pause(network: &mut Network, pauses: &[Outage]) {
    let pauses: Arc<[Outage]> = pauses.into();
    network.nodes.iter_mut().filter(|node| node.host).for_each(|host| host.pauses = pauses.clone());
}

/// Adds a route to the node `to`. `None` if an earlier route to it leaves one of the nodes on the way by another link.
fn give_way(network: &mut Network, to: usize, links: &[usize]) -> Option<()> {
    let known = || network.routes.iter().filter(|way| way.to == to);
    let leaves = |link: usize| network.links[link].from;
    let contradicts = |way: &weir_fabric::Route| {
        way.links
            .iter()
            .any(|&there| links.iter().any(|&here| there != here && leaves(there) == leaves(here)))
    };
    if known().any(contradicts) {
        return None;
    }
    if !known().any(|way| way.links == links) {
        network.routes.push(weir_fabric::Route { to, links: links.to_vec() });
    }
    Some(())
}

/// Adds a host at a router, with the links to it and from it. Returns its index. The link from the host comes first.
fn add_host(
    network: &mut Network,
    name: String,
    jitter: Span,
    router: usize,
    owner: &str,
    end: &str,
    [out, back]: [Span; 2],
) -> usize {
    let host = network.nodes.len();
    network.nodes.push(Node { jitter, mtu: LARGEST_MTU, ..Node::host(name) });
    for (way, from, to, delay) in [("out", host, router, out), ("in", router, host, back)] {
        let name = format!("{owner}-{end}-{way}");
        network.links.push(Link { delay, mtu: LARGEST_MTU, ..Link::plain(name, from, to) });
    }
    host
}
