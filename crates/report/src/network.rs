//! The network of a lab as a small drawing, and below it the settings of each link: rate, delay, queue, and all others. A
//! setting that differs between runs is said to vary.

#[cfg(test)]
mod tests;

use crate::html::escape;
use crate::naming::spelled;
use std::borrow::Cow;
use std::fmt::Write;
use weir_plan::{Link, Run};

/// Largest number of nodes that are drawn; the links of larger networks are only listed.
const MOST_NODES: usize = 14;
/// Largest number of links in a list that is open at first.
const MOST_LISTED: usize = 12;
/// Distances in the drawing.
const STEP: usize = 170;
const ROW: usize = 74;
const MARGIN: usize = 70;

/// The drawing and the list, as HTML; empty without runs.
pub(crate) fn network(runs: &[&Run]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut html = drawing(first);
    let links = shown(first);
    let mut list = String::new();
    for link in &links {
        let others =
            || runs.iter().filter_map(|run| run.network.links.iter().find(|other| other.name == link.name));
        let _ = write!(
            list,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(&listed(first, link)),
            escape(&words(link, others))
        );
    }
    for group in &first.groups {
        let others =
            || runs.iter().filter_map(|run| run.groups.iter().find(|other| other.name == group.name));
        let flows = first.flows.iter().filter(|flow| first.groups[flow.group].name == group.name).count();
        let controller = |group: &weir_plan::Group| match (group.controller(), &group.transport) {
            (Some(controller), _) => spelled(controller.name()),
            (None, Some(transport)) => spelled(transport.name()),
            (None, None) => "a command".into(),
        };
        let count = if group.workload.has_random_arrivals() {
            "flows that arrive at random".into()
        } else {
            plural(flows, "flow")
        };
        let text = format!(
            "{}, {}, {count}, base RTT {}",
            same(controller(group), others().map(controller), "controller"),
            group.workload.name(),
            same(rtts(group), others().map(rtts), "RTT"),
        );
        let _ = write!(list, "<div><dt>traffic {}</dt><dd>{}</dd></div>", escape(&group.name), escape(&text));
    }
    let list = format!("<dl class=\"facts\">{list}</dl>");
    html += &match links.len() > MOST_LISTED {
        true => format!("<details><summary>{}</summary>{list}</details>", plural(links.len(), "link")),
        false => list,
    };
    html
}

/// The instrumented links; of links that leave equal hosts, only those of the first host.
fn shown(run: &Run) -> Vec<&Link> {
    let is_first =
        |link: &&Link| equal(run, link.from).is_none_or(|(_, nodes)| nodes.first() == Some(&link.from));
    run.instrumented_links().map(|(_, link)| link).filter(is_first).collect()
}

/// The common name of a node and its equals, and their indices, its own included. `None` if it has no such name.
fn equal(run: &Run, node: usize) -> Option<(&str, Vec<usize>)> {
    let nodes = &run.network.nodes;
    let alike = nodes.get(node)?.alike.as_ref()?;
    let equal = |node: &usize| nodes[*node].alike.as_ref() == Some(alike);
    Some((alike, (0..nodes.len()).filter(equal).collect()))
}

/// Name of a link in the list.
fn listed(run: &Run, link: &Link) -> String {
    match equal(run, link.from) {
        Some((name, nodes)) if nodes.len() > 1 => format!("links {name}-1 to {name}-{}", nodes.len()),
        _ => format!("link {}", link.name),
    }
}

/// Label of a node in the drawing, or of a link that leaves it; equal nodes are labelled by their number and common name.
fn drawn<'a>(run: &'a Run, node: usize, name: &'a str) -> Cow<'a, str> {
    match equal(run, node) {
        Some((alike, nodes)) if nodes.len() > 1 => format!("{} × {alike}", nodes.len()).into(),
        _ => name.into(),
    }
}

/// The base RTT of a group's flows, or the least and the greatest if they differ.
fn rtts(group: &weir_plan::Group) -> String {
    let rtts = || group.pairs.iter().map(|pair| pair.rtt);
    match (rtts().min(), rtts().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        _ => group.rtt().to_string(),
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The text if it is the same in all runs; otherwise, that `what` varies.
fn same(text: String, mut all: impl Iterator<Item = String>, what: &str) -> String {
    if all.any(|other| other != text) { format!("{what} varies") } else { text }
}

/// An impairment's name, and whether a link has it.
type Mark = (&'static str, fn(&Link) -> bool);

/// The settings of a link, in words.
fn words<'a, I: Iterator<Item = &'a Link>>(link: &Link, others: impl Fn() -> I) -> String {
    let rate = |link: &Link| match (&link.trace, link.rate) {
        (Some(trace), _) => format!("trace {}", trace.file),
        (None, Some(rate)) => rate.to_string(),
        (None, None) => "no rate limit".into(),
    };
    let mut words = vec![
        same(rate(link), others().map(rate), "rate"),
        same(
            format!("{} one way", link.delay),
            others().map(|link| format!("{} one way", link.delay)),
            "delay",
        ),
        same(queue(link), others().map(queue), "queue"),
    ];
    let jitter = |link: &Link| link.jitter.is_some();
    let marks: [Mark; 7] = [
        ("loss", |link| json(&link.loss).as_f64() != Some(0.0)),
        ("802.11 contention", |link| link.wifi.is_some()),
        ("loss of long packets", |link| link.largest.is_some()),
        ("duplicates", |link| link.duplicate > 0.0),
        ("damage", |link| link.corrupt > 0.0),
        ("scripted drops", |link| !link.drop.is_empty()),
        ("scripted reordering", |link| !link.reorder.is_empty()),
    ];
    words.extend(others().any(jitter).then(|| "jitter".into()));
    words.extend(marks.into_iter().filter(|(_, set)| others().any(set)).map(|(what, _)| what.into()));
    if link.overhead.get() > 0 {
        words.push(format!("{} overhead a packet", link.overhead));
    }
    let changes = others().map(|link| link.schedule.len()).max().unwrap_or(0);
    words.extend((changes > 0).then(|| plural(changes, "scheduled change")));
    let outages = others().map(|link| link.outages.len()).max().unwrap_or(0);
    words.extend((outages > 0).then(|| plural(outages, "outage")));
    words.join(", ")
}

/// A queue with the parameters that differ from its defaults.
fn queue(link: &Link) -> String {
    let name = link.queue.name();
    let (own, default) = (json(&link.queue), json(&default_of(&link.queue, name)));
    let mut text = spelled(name);
    for (key, value) in own.as_object().into_iter().flatten() {
        if key != "kind" && default.get(key) != Some(value) {
            let value = value.as_str().map_or_else(|| value.to_string(), String::from);
            let _ = write!(text, " {key} {value}");
        }
    }
    text
}

fn json(config: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The default configuration of a registry's member: that of a lab that gives only its name.
fn default_of<T: std::str::FromStr + Clone>(config: &T, name: &str) -> T {
    name.parse().unwrap_or_else(|_| config.clone())
}

/// Draws the nodes at the ends of instrumented links in columns by their distance from the first, and a line for each pair
/// of links. Equal hosts are drawn once.
fn drawing(run: &Run) -> String {
    let links = shown(run);
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let Some(first) = links.first() else { return String::new() };
    columns.push((first.from, 0));
    let mut next = 0;
    while let Some(&(node, column)) = columns.get(next) {
        for link in &links {
            let other = if link.from == node {
                link.to
            } else if link.to == node {
                link.from
            } else {
                continue;
            };
            if columns.iter().all(|(known, _)| *known != other) {
                columns.push((other, column + 1));
            }
        }
        next += 1;
    }
    if columns.len() > MOST_NODES {
        return String::new();
    }
    let place = |node: usize| {
        let column = columns.iter().find(|(known, _)| *known == node).map_or(0, |(_, column)| *column);
        let row =
            columns.iter().take_while(|(known, _)| *known != node).filter(|(_, c)| *c == column).count();
        (MARGIN + column * STEP, ROW / 2 + row * ROW)
    };
    let most = columns.iter().map(|(_, column)| *column).max().unwrap_or(0);
    let rows =
        (0..=most).map(|c| columns.iter().filter(|(_, column)| *column == c).count()).max().unwrap_or(1);
    let (width, height) = (2 * MARGIN + most * STEP, rows * ROW);
    let mut svg = format!(
        "<svg class=\"network\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"The network\">"
    );
    for (number, link) in links.iter().enumerate() {
        let back = links.iter().position(|other| (other.from, other.to) == (link.to, link.from));
        if back.is_some_and(|back| back < number) {
            continue;
        }
        let ((x1, y1), (x2, y2)) = (place(link.from), place(link.to));
        let (x, y) = ((x1 + x2) / 2, (y1 + y2) / 2);
        let _ = write!(svg, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
        let label = |name: &str, y: usize, forward: bool| {
            let name = if forward == (x2 >= x1) {
                format!("{} →", escape(name))
            } else {
                format!("← {}", escape(name))
            };
            format!("<text x=\"{x}\" y=\"{y}\">{name}</text>")
        };
        svg += &label(&drawn(run, link.from, &link.name), y - 7, true);
        svg += &back.map_or(String::new(), |back| label(&links[back].name, y + 17, false));
    }
    for (node, _) in &columns {
        let (x, y) = place(*node);
        let name = run.network.nodes.get(*node).map_or("", |node| node.name.as_str());
        let _ = write!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"6\"/><text class=\"node\" x=\"{x}\" y=\"{}\">{}</text>",
            y + 24,
            escape(&drawn(run, *node, name))
        );
    }
    svg + "</svg>\n"
}
