//! Parking lots, stars and free graphs, drawn as places and links.
//!
//! A parking lot is a chain of equal links `hop1`, `hop2` and so on. A star has a router `hub` and the routers `leaf1`, `leaf2`
//! and so on around it; the link to the first is `arm1`, and so on. In a graph the lab names everything.

use crate::bottleneck::Bottleneck;
use crate::diagnostic::suggest;
use crate::drawing::{Drawing, Drawn, directions, in_a_row, routers_in_a_row};
use crate::limits;
use crate::reader::{Reader, bad_name};
use crate::route::{LabNode, Shape};
use crate::shape::{Arms, Ends, Graph, Row};
use std::collections::BTreeMap;
use weir_fabric::Link;

/// `count` equal links with the settings of one.
fn equal_links(
    reader: &mut Reader<'_>,
    section: &str,
    link: Bottleneck,
    name: &str,
    count: u64,
) -> Option<Vec<[Link; 2]>> {
    let first = directions(reader, &[section], link, [String::new(), String::new()])?;
    let named = |number: u64| {
        let [down, up] = first.clone();
        [Link { name: format!("{name}{number}"), ..down }, Link { name: format!("{name}{number}-up"), ..up }]
    };
    Some((1..=count).map(named).collect())
}

/// Checks the number of equal links.
fn number_of(reader: &mut Reader<'_>, path: &[&str], what: &str, count: u64, least: u64) -> Option<u64> {
    if (least..=limits::MOST_LINKS).contains(&count) {
        return Some(count);
    }
    let help = format!("write a number from {least} to {}", limits::MOST_LINKS);
    reader.wrong(path, format!("{what} cannot have {count} links"), help);
    None
}

/// `[parking_lot]`.
pub(crate) fn parking_lot(reader: &mut Reader<'_>) -> Option<Drawn> {
    let (row, link) = reader.both::<Row, Bottleneck>(&["parking_lot"])?;
    let count = number_of(reader, &["parking_lot", "bottlenecks"], "a parking lot", row.bottlenecks, 1);
    let links = equal_links(reader, "parking_lot", link, "hop", count.unwrap_or(1))?;
    count?;
    Some(Drawn {
        shape: Shape::Row,
        base_rtt: row.base_rtt,
        nodes: routers_in_a_row(links.len()),
        links: in_a_row(links),
    })
}

/// `[star]`.
pub(crate) fn star(reader: &mut Reader<'_>) -> Option<Drawn> {
    let (arms, link) = reader.both::<Arms, Bottleneck>(&["star"])?;
    let count = number_of(reader, &["star", "arms"], "a star", arms.arms, 2);
    let links = equal_links(reader, "star", link, "arm", count.unwrap_or(1))?;
    count?;
    let leaves = (1..=links.len()).map(|number| LabNode::router(format!("leaf{number}")));
    let drawing = |(leaf, [down, up]): (usize, [Link; 2])| Drawing { from: 0, to: leaf, down, up: Some(up) };
    Some(Drawn {
        shape: Shape::Star,
        base_rtt: arms.base_rtt,
        nodes: std::iter::once(LabNode::router("hub")).chain(leaves).collect(),
        links: (1..).zip(links).map(drawing).collect(),
    })
}

/// `[graph]`.
pub(crate) fn graph(reader: &mut Reader<'_>) -> Option<Drawn> {
    let before = reader.faults.len();
    let graph: Graph = reader.section(&["graph"])?;
    // The section was read, so its links are a table.
    let names: Vec<String> = reader.node(&["graph", "links"])?.as_table()?.keys().map(String::from).collect();
    if names.is_empty() {
        let help =
            "write [graph.links.NAME], and under it from, to, rate = \"10 Mbit/s\" and delay = \"10 ms\"";
        reader.wrong(&["graph", "links"], "the graph has no links", help);
    }
    let nodes = places(reader, &graph)?;
    if !limits::links(reader, "graph", &names) {
        return None;
    }
    let mut links = Vec::new();
    for name in &names {
        let path = ["graph", "links", name.as_str()];
        reader.name("link", &path);
        if nodes.iter().any(|place| place.name == *name) {
            let message = format!("`{name}` is a link and a node, and `via` could mean either");
            reader.wrong(&path, message, "give one of the two another name");
        }
        if let Some((ends, link)) = reader.both::<Ends, Bottleneck>(&path) {
            links.extend(drawing(reader, &nodes, name, &ends, link));
        }
    }
    (reader.faults.len() == before).then_some(Drawn {
        shape: Shape::Graph,
        base_rtt: graph.base_rtt,
        nodes,
        links,
    })
}

/// A graph's nodes: routers, then hosts.
fn places(reader: &mut Reader<'_>, graph: &Graph) -> Option<Vec<LabNode>> {
    let count = graph.routers.len() + graph.hosts.len();
    if count as u64 > limits::MOST_LINKS {
        let message = format!("{count} nodes are too many");
        reader.wrong(&["graph"], message, format!("write at most {}", limits::MOST_LINKS));
        return None;
    }
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    let mut places = Vec::new();
    for (list, names, host) in [("routers", &graph.routers, false), ("hosts", &graph.hosts, true)] {
        for name in names {
            if let Some((message, help)) = bad_name("node", name) {
                reader.wrong(&["graph", list], message, help);
            }
            if let Some(other) = seen.insert(name, list) {
                let message = match other == list {
                    true => format!("`{name}` is listed twice among the {list}"),
                    false => format!("`{name}` is both a router and a host"),
                };
                reader.wrong(&["graph", list], message, "name each node once");
            }
            places.push(LabNode { name: name.clone(), host });
        }
    }
    Some(places)
}

/// A graph's link.
fn drawing(
    reader: &mut Reader<'_>,
    nodes: &[LabNode],
    name: &str,
    ends: &Ends,
    link: Bottleneck,
) -> Option<Drawing> {
    let path = ["graph", "links", name];
    let at = |key: &'static str| [&path[..], &[key]].concat();
    let mut end = |key: &'static str, node: &str| {
        let found = nodes.iter().position(|place| place.name == node);
        if found.is_none() {
            let help = match nodes {
                [] => "write the nodes under [graph]: routers = [\"a\", \"b\"]".into(),
                _ => suggest(node, nodes.iter().map(|place| place.name.as_str())),
            };
            reader.wrong(&at(key), format!("there is no node `{node}`"), help);
        }
        found
    };
    let (from, to) = (end("from", &ends.from), end("to", &ends.to));
    if from.is_some() && from == to {
        reader.wrong(
            &at("to"),
            "the link leads nowhere: it begins and ends at the same node",
            "give it another end",
        );
    }
    if ends.one_way && link.rtt.is_some() {
        let help = "write delay = \"10 ms\" instead";
        reader.wrong(&at("rtt"), "a one-way link has no round trip", help);
    }
    if ends.one_way {
        one_way_only(reader, &path);
    }
    let [down, up] = directions(reader, &path, link, [name.into(), format!("{name}-up")])?;
    Some(Drawing { from: from?, to: to?, down, up: (!ends.one_way).then_some(up) })
}

/// Refuses values for the direction up of a link that has none.
fn one_way_only(reader: &mut Reader<'_>, path: &[&str]) {
    let keys: Vec<String> = match reader.node(path).and_then(crate::tree::Node::as_table) {
        Some(table) => table.keys().map(String::from).collect(),
        None => return,
    };
    for key in &keys {
        let up = [path, &[key.as_str(), "up"]].concat();
        if reader.has(&up) {
            let help = format!("remove it, and write {key} = .. without a direction");
            reader.wrong(&up, "a one-way link has no direction up", help);
        }
    }
}
