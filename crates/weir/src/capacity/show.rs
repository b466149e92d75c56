//! Answers as text and as JSON.

use super::{Checked, Found, Input};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_optimum::{Answer, Carried, Delivery, Mode, Network, Piece, Session, Verified};
use weir_report::number::rounded;

/// Digits of a rate: the answers are exact to six.
const DIGITS: i32 = 6;
/// Most prices in the text.
const MOST_PRICES: usize = 24;
/// Prices below this are left out of the text.
const LEAST_PRICE: f64 = 1e-4;

/// What a rate is: rates that are not zero, in the unit that leaves one to three digits before the point.
pub(crate) fn rate(bits: f64) -> String {
    let (unit, size) = match bits {
        bits if bits >= 0.999_999_5e9 => ("Gbit/s", 1e9),
        bits if bits >= 0.999_999_5e6 => ("Mbit/s", 1e6),
        bits if bits >= 0.999_999_5e3 => ("kbit/s", 1e3),
        _ => ("bit/s", 1.0),
    };
    format!("{} {unit}", rounded(bits / size, DIGITS))
}

/// The answers as text.
pub(super) fn text(input: &Input, found: &Found) -> String {
    let Input { name, network, sessions } = input;
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!(
        "{name}: {}, {}, {}\n",
        counted(network.nodes().len(), "node"),
        counted(network.links().len(), "directed link"),
        counted(sessions.len(), "session"),
    );
    let what = match found.mode {
        Mode::Coded => "Nothing that forwards, coded or not, delivers more to all receivers",
        Mode::Trees => "Nothing that copies and forwards without coding delivers more to all receivers",
        Mode::TreeBounds => "Without coding, between these rates can be delivered to all receivers",
    };
    let sum = if sessions.len() > 1 { " (sum of the sessions by weight)" } else { "" };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{what}{sum}:\n");
    table(&mut text, found);
    if let [Checked { answer, .. }] = found.checked.as_slice() {
        detail(&mut text, network, sessions, answer);
    }
    text += "\nThis is an upper bound of what can be measured: it knows no queues, losses, headers or protocols.\n";
    text
}

fn table(text: &mut String, found: &Found) {
    let mut rows = vec![["deadline".to_owned(), "rate".to_owned(), "gap".to_owned(), "checked".to_owned()]];
    for Checked { answer, verified } in &found.checked {
        let bounds = answer.bounds;
        let within = if bounds.are_exact() {
            rate(bounds.upper)
        } else {
            format!("{} to {}", rate(bounds.lower), rate(bounds.upper))
        };
        let checked = match verified {
            Verified::All => "yes",
            Verified::AllButUpper => "all but the upper bound",
        };
        let from = if found.until.is_some() { "from " } else { "" };
        rows.push([
            format!("{from}{}", answer.deadline),
            within,
            if bounds.gap() == 0.0 { "0".into() } else { format!("{:.0e}", bounds.gap()) },
            checked.into(),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [a, b, c, d] in &rows {
        let _ = writeln!(
            text,
            "  {a:w0$}  {b:>w1$}  {c:>w2$}  {d}",
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2]
        );
    }
}

fn detail(text: &mut String, network: &Network, sessions: &[Session], answer: &Answer) {
    let name = |node: usize| network.nodes()[node].name.as_str();
    for (session, carried) in sessions.iter().zip(&answer.sessions) {
        let to: Vec<&str> = session.receivers.iter().map(|&node| name(node)).collect();
        let Carried { rate: bits, delivery } = carried;
        let Session { name: own, source, .. } = session;
        let _ =
            writeln!(text, "\nSession {own}, from {} to {}: {}", name(*source), to.join(", "), rate(*bits));
        match delivery {
            Delivery::Paths(lists) => {
                for (receiver, paths) in to.iter().zip(lists) {
                    let _ = writeln!(text, "  to {receiver}");
                    pieces(text, paths, |path| path_of(network, session, path).join(" > "));
                }
            }
            Delivery::Trees(trees) => pieces(text, trees, |tree| {
                tree.links.iter().map(|&link| named(network, link)).collect::<Vec<_>>().join(", ")
            }),
        }
    }
    if let Some(cut) = &answer.cut {
        let links: Vec<String> = cut.links.iter().map(|&link| named(network, link)).collect();
        let _ = writeln!(
            text,
            "\nA tight cut: every path in time to {} crosses one of {}, with {} together",
            name(cut.receiver),
            links.join(", "),
            rate(cut.rate)
        );
    }
    let prices = answer.prices.by_link(network.links().len());
    let mut dear: Vec<(u32, f64)> = (0..).zip(prices).filter(|&(_, price)| price >= LEAST_PRICE).collect();
    dear.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if !dear.is_empty() {
        let shown =
            dear.iter().map(|&(link, price)| format!("{} {}", named(network, link), rounded(price, 4)));
        let mut shown: Vec<String> = shown.take(MOST_PRICES).collect();
        if dear.len() > MOST_PRICES {
            shown.push(format!("and {} cheaper ones", dear.len() - MOST_PRICES));
        }
        let shown = shown.join(", ");
        let _ = writeln!(text, "\nPrices of links (bit/s that a bit/s more would add, at most): {shown}");
    }
}

fn pieces(text: &mut String, pieces: &[Piece], shown: impl Fn(&Piece) -> String) {
    let rates: Vec<String> = pieces.iter().map(|piece| rate(piece.rate)).collect();
    let width = rates.iter().map(|rate| rate.chars().count()).max().unwrap_or(0);
    for (piece, rate) in pieces.iter().zip(rates) {
        let _ = writeln!(text, "    {rate:>width$} in {}: {}", piece.delay, shown(piece));
    }
}

/// The names of the nodes on a path.
fn path_of<'a>(network: &'a Network, session: &Session, path: &Piece) -> Vec<&'a str> {
    let ends = path.links.iter().map(|&link| network.links()[link as usize].to);
    std::iter::once(session.source).chain(ends).map(|node| network.nodes()[node].name.as_str()).collect()
}

/// A link by its ends.
fn named(network: &Network, link: u32) -> String {
    let link = &network.links()[link as usize];
    format!("{} > {}", network.nodes()[link.from].name, network.nodes()[link.to].name)
}

/// The answers as JSON.
pub(super) fn document(input: &Input, found: &Found) -> Value {
    let mode = match found.mode {
        Mode::Coded => "coding",
        Mode::Trees => "routing",
        Mode::TreeBounds => "routing, bounds",
    };
    let answers: Vec<Value> = found.checked.iter().map(|checked| step(input, checked)).collect();
    json!({
        "file": input.name,
        "nodes": input.network.nodes().len(),
        "links": input.network.links().len(),
        "mode": mode,
        "until_ms": found.until.map(weir_base::Span::as_millis_f64),
        "interrupted": found.interrupted,
        "deadlines": answers,
    })
}

fn step(input: &Input, Checked { answer, verified }: &Checked) -> Value {
    let Input { network, sessions, .. } = input;
    let name = |node: usize| network.nodes()[node].name.as_str();
    let carried = sessions.iter().zip(&answer.sessions).map(|(session, carried)| {
        let to: Vec<&str> = session.receivers.iter().map(|&node| name(node)).collect();
        let mut value = json!({
            "name": session.name,
            "from": name(session.source),
            "to": to,
            "weight": session.weight,
            "rate_bit_per_s": carried.rate,
        });
        match &carried.delivery {
            Delivery::Paths(lists) => {
                let lists = to.iter().zip(lists).flat_map(|(to, paths)| paths.iter().map(move |path| (to, path)));
                let paths = lists.map(|(to, path)| {
                    let nodes = path_of(network, session, path);
                    json!({ "to": to, "rate_bit_per_s": path.rate, "delay_ms": path.delay.as_millis_f64(), "nodes": nodes })
                });
                value["paths"] = paths.collect();
            }
            Delivery::Trees(trees) => {
                let trees = trees.iter().map(|tree| {
                    let links: Vec<Value> = tree.links.iter().map(|&link| ends(network, link)).collect();
                    json!({ "rate_bit_per_s": tree.rate, "delay_ms": tree.delay.as_millis_f64(), "links": links })
                });
                value["trees"] = trees.collect();
            }
        }
        value
    });
    let cut = answer.cut.as_ref().map(|cut| {
        let links: Vec<Value> = cut.links.iter().map(|&link| ends(network, link)).collect();
        json!({ "receiver": name(cut.receiver), "rate_bit_per_s": cut.rate, "links": links })
    });
    json!({
        "deadline_ms": answer.deadline.as_millis_f64(),
        "lower_bit_per_s": answer.bounds.lower,
        "upper_bit_per_s": answer.bounds.upper,
        "gap": answer.bounds.gap(),
        "exact": answer.bounds.are_exact(),
        "checked": if *verified == Verified::All { "all" } else { "all but the upper bound" },
        "sessions": carried.collect::<Value>(),
        "cut": cut,
        "prices": prices(network, sessions, answer),
    })
}

/// The proof of the upper bound: for each session and receiver (without coding for each session), the links that are not free.
fn prices(network: &Network, sessions: &[Session], answer: &Answer) -> Vec<Value> {
    let mut values = Vec::new();
    for (session, lists) in sessions.iter().zip(&answer.prices.sessions) {
        let of_tree = lists.len() < session.receivers.len();
        for (&receiver, list) in session.receivers.iter().zip(lists) {
            let receiver = (!of_tree).then(|| network.nodes()[receiver].name.as_str());
            let by_link: BTreeMap<u32, f64> = list.iter().copied().collect();
            for (link, price) in by_link {
                let mut value = ends(network, link);
                value["session"] = json!(session.name);
                value["receiver"] = json!(receiver);
                value["price"] = json!(price);
                values.push(value);
            }
        }
    }
    values
}

fn ends(network: &Network, link: u32) -> Value {
    let link = &network.links()[link as usize];
    json!({ "from": network.nodes()[link.from].name, "to": network.nodes()[link.to].name })
}
