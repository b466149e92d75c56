//! The network of `weir wrap --link`: links in a row, and rows of their own for packets to prefixes (`to=PREFIX`).

use crate::diagnostic::{Diagnostics, Fault, Origin};
use crate::one_line;
use crate::reading::Reading;
use crate::tree::{Entry, Item, Node, Table, parse, quoted};
use indexmap::IndexMap;
use std::str::FromStr;
use weir_base::Prefix;

/// The key of a link that has the prefix of the packets that take it.
const TO: &str = "to";

/// A link, and its number from 1 on the command line.
type Numbered = (usize, Entry);

/// The network of these links, the first of each row nearest the program, and the prefixes that have rows of their own, in the order in which
/// they appear. Without a prefix it is a `[dumbbell]` or a `[chain]`, otherwise a `[graph]` with a group for each row.
pub(super) fn network(reading: &mut Reading, lines: &[String]) -> Result<(Table, Vec<Prefix>), Diagnostics> {
    let mut rows: IndexMap<Option<Prefix>, Vec<Numbered>> = IndexMap::new();
    let mut first_to = None;
    for (number, line) in (1..).zip(lines) {
        let file = reading.line("--link", line);
        let mut table = one_line::parse(line, file).map_err(|faults| reading.fail(faults))?;
        if let Some(entry) = table.entry("from") {
            let help = "remove it: where a link stands is said by its order and by `to`";
            return Err(reading.fail(vec![Fault::new(entry.named, "a link here has no key `from`", help)]));
        }
        let to = table.0.shift_remove(TO);
        let prefix = to.as_ref().map(prefix_of).transpose().map_err(|fault| reading.fail(vec![fault]))?;
        first_to = first_to.or(to.map(|entry| entry.value.origin));
        let origin = Origin::new(file, 0..line.len());
        let link = Entry { named: origin, value: Node { item: Item::Table(table), origin } };
        rows.entry(prefix).or_default().push((number, link));
    }
    let others = rows.shift_remove(&None).unwrap_or_default();
    let Some(origin) = first_to else { return Ok((row(reading, others)?, vec![])) };
    if others.is_empty() {
        let help = "add --link 'rate=20mbit rtt=40ms' for them, without `to`";
        return Err(reading.fail(vec![Fault::new(origin, "no link is left for other destinations", help)]));
    }
    let (prefixes, own): (Vec<Option<Prefix>>, Vec<Vec<Numbered>>) = rows.into_iter().unzip();
    let root = graph(reading, others, own)?;
    Ok((root, prefixes.into_iter().flatten().collect()))
}

/// The value of `to`.
fn prefix_of(entry: &Entry) -> Result<Prefix, Fault> {
    let origin = entry.value.origin;
    let Item::String(text) = &entry.value.item else {
        return Err(Fault::new(origin, "this is not a prefix", "write to=192.0.2.0/24"));
    };
    let prefix = Prefix::from_str(text).map_err(|error| {
        let said = error.to_string();
        let (message, help) = said.split_once("; ").unwrap_or((&said, "write to=192.0.2.0/24"));
        Fault::new(origin, message, help)
    })?;
    if prefix.address().is_loopback() || prefix.address().is_multicast() {
        let message = format!("no packet to {prefix} leaves the program's host for a far end");
        return Err(Fault::new(origin, message, "name addresses of single hosts elsewhere"));
    }
    Ok(prefix)
}

/// Links in a row.
fn row(reading: &mut Reading, mut links: Vec<Numbered>) -> Result<Table, Diagnostics> {
    let (mut root, entry) = begun(reading, "format = 1\n")?;
    if links.len() == 1
        && let Some((_, only)) = links.pop()
    {
        root.0.insert("dumbbell".into(), only);
        return Ok(root);
    }
    // Data goes from left to right, so the link nearest the program is the last of the chain.
    let members = links.into_iter().rev().map(|(number, link)| (format!("link{number}"), link));
    let members = entry(Table(members.collect()));
    root.0.insert("chain".into(), entry(Table(std::iter::once(("links".into(), members)).collect())));
    Ok(root)
}

/// Rows beside each other: that of other destinations, then those with prefixes.
fn graph(
    reading: &mut Reading,
    others: Vec<Numbered>,
    own: Vec<Vec<Numbered>>,
) -> Result<Table, Diagnostics> {
    let (mut routers, mut groups) = (vec![], String::new());
    let mut members: Vec<(Numbered, [String; 2])> = vec![];
    for (place, links) in std::iter::once(others).chain(own).enumerate() {
        // A row is called as the link of it that is nearest the program.
        let first = links.first().map_or(0, |(number, _)| *number);
        let (name, ends) = match place {
            0 => (super::WRAPPED.to_owned(), ["near".to_owned(), "far".to_owned()]),
            _ => (format!("to-link{first}"), ["near", "far"].map(|end| format!("{end}-link{first}"))),
        };
        let [near, far] = &ends;
        groups += &format!("[traffic.{name}]\nfrom = {}\nto = {}\n", quoted(far), quoted(near));
        let behind = |(number, _): &Numbered| format!("behind-link{number}");
        let between = links[..links.len() - 1].iter().map(behind);
        let nodes: Vec<String> = std::iter::once(near.clone()).chain(between).chain([far.clone()]).collect();
        members.extend(links.into_iter().zip(nodes.windows(2).map(|two| [two[1].clone(), two[0].clone()])));
        routers.extend(nodes);
    }
    let routers: Vec<String> = routers.iter().map(|name| quoted(name)).collect();
    let text = format!("format = 1\n[graph]\nrouters = [{}]\n[graph.links]\n{groups}", routers.join(", "));
    let (mut root, entry) = begun(reading, &text)?;
    members.sort_by_key(|((number, _), _)| *number);
    let link = |((number, mut link), [from, to]): (Numbered, [String; 2])| {
        if let Item::Table(keys) = &mut link.value.item {
            for (key, node) in [("from", from), ("to", to)] {
                let value = Node { item: Item::String(node), origin: link.value.origin };
                keys.0.insert(key.into(), Entry { named: link.named, value });
            }
        }
        (format!("link{number}"), link)
    };
    let members = entry(Table(members.into_iter().map(link).collect()));
    if let Some(Item::Table(graph)) = root.0.get_mut("graph").map(|entry| &mut entry.value.item) {
        graph.0.insert("links".into(), members);
    }
    Ok(root)
}

/// A lab that begins with a text, and what makes entries of it.
fn begun(reading: &mut Reading, text: &str) -> Result<(Table, impl Fn(Table) -> Entry), Diagnostics> {
    let file = reading.line("wrap", text);
    let root = parse(text, file).map_err(|faults| reading.fail(faults))?;
    let origin = Origin::new(file, 0..text.len());
    Ok((root, move |table| Entry { named: origin, value: Node { item: Item::Table(table), origin } }))
}
