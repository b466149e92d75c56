//! The optimum as text and as JSON.

use super::Answered;
use crate::capacity::rate;
use serde_json::{Value, json};
use std::fmt::Write;
use weir_optimum::{Blocked, Class, Share, Why};
use weir_report::number::rounded;

/// Digits of prices.
const DIGITS: i32 = 4;
/// A Mbit/s that costs less is free: this is the solver's accuracy.
const LEAST_PRICE: f64 = 1e-6;
/// Most links in the text, and most links that a reason names.
const MOST_LINKS: usize = 24;
const MOST_NAMED: usize = 3;

impl Answered<'_> {
    fn node(&self, node: usize) -> &str {
        &self.run.network.nodes[node].name
    }

    /// The router where a flow enters or leaves.
    fn place(&self, host: usize) -> &str {
        let access = self.run.network.links.iter().find(|link| link.from == host);
        self.node(access.map_or(host, |link| link.to))
    }

    fn link(&self, link: u32) -> String {
        let link = &self.question.network.links()[link as usize];
        format!("{} > {}", self.node(link.from), self.node(link.to))
    }

    /// The links with a price, the dearest first.
    fn priced(&self) -> Vec<u32> {
        let prices = &self.answer.prices;
        let mut priced: Vec<u32> =
            (0u32..).zip(prices).filter(|(_, price)| **price > 0.0).map(|(link, _)| link).collect();
        priced.sort_by(|&a, &b| prices[b as usize].total_cmp(&prices[a as usize]).then(a.cmp(&b)));
        priced
    }
}

/// A price for a Mbit/s.
fn price(of_bit: f64) -> f64 {
    rounded(of_bit * 1e6, DIGITS)
}

fn shown_rate(bits: f64) -> String {
    if bits > 0.0 { rate(rounded(bits, DIGITS)) } else { "0".into() }
}

/// The optimum as text.
pub(super) fn text(answered: &Answered<'_>) -> String {
    let Answered { run, question, answer } = answered;
    let flows: u32 = question.classes.iter().map(|class| class.count).sum();
    let mut text = format!(
        "{} of {} at {}: {} flows in {} classes\nThe sum of utilities is largest, at weir's headers, messages and losses, with:\n\n",
        run.id,
        run.lab,
        question.at,
        flows,
        question.classes.len(),
    );
    let mut rows = vec![["flows", "from", "to", "on", "each", "price"].map(String::from).to_vec()];
    for (class, share) in question.classes.iter().zip(&answer.shares) {
        let to: Vec<&str> = class.receivers.iter().map(|&host| answered.place(host)).collect();
        let cost = match share.cost {
            cost if !cost.is_finite() => "-".into(),
            cost if cost * 1e6 < LEAST_PRICE => "0".into(),
            cost => price(cost).to_string(),
        };
        rows.push(vec![
            class.name.clone(),
            answered.place(class.source).into(),
            to.join(","),
            format!("{} of {}", share.on, class.count),
            shown_rate(share.rate),
            cost,
        ]);
    }
    let reasons: Vec<String> = std::iter::once("why no more".into())
        .chain(
            question.classes.iter().zip(&answer.shares).map(|(class, share)| reason(answered, class, share)),
        )
        .collect();
    table(&mut text, &rows, &reasons);
    let priced = answered.priced();
    if priced.is_empty() {
        text += "\nNo link is full.\n";
        return text;
    }
    text += "\nFull links, with the utility that a Mbit/s more would add:\n\n";
    let rows: Vec<Vec<String>> = priced
        .iter()
        .take(MOST_LINKS)
        .map(|&link| {
            let (load, price) = (answer.loads[link as usize], price(answer.prices[link as usize]));
            vec![answered.link(link), shown_rate(load), price.to_string()]
        })
        .collect();
    table(&mut text, &rows, &vec![String::new(); rows.len()]);
    if priced.len() > MOST_LINKS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  and {} cheaper ones", priced.len() - MOST_LINKS);
    }
    text
}

/// Aligned columns, and a last one that is not.
fn table(text: &mut String, rows: &[Vec<String>], last: &[String]) {
    let count = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for (row, last) in rows.iter().zip(last) {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", format!("{}  {last}", cells.join("  ")).trim_end());
    }
}

/// Why a class gets no more.
fn reason(answered: &Answered<'_>, class: &Class, share: &Share) -> String {
    let named: Vec<String> = share.crosses.iter().take(MOST_NAMED).map(|&link| answered.link(link)).collect();
    let more = share.crosses.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let links = format!("{}{more}", named.join(", "));
    let pays = class.utility.worth().map(price).unwrap_or_default();
    match &share.why {
        Why::Whole => "has all that it may send".into(),
        Why::Price if share.crosses.is_empty() => "pays the price of full links".into(),
        Why::Price => format!("pays the price of {links}"),
        Why::Unreachable => "no path reaches its receivers in time".into(),
        Why::Off(Blocked::Price) => format!("pays at most {pays}, less than {links} cost"),
        Why::Off(Blocked::Room { left }) => {
            format!("one more would have {} at the {pays} that it pays at most", shown_rate(*left))
        }
        Why::Off(Blocked::Others(other)) => {
            let other = &answered.question.classes[*other].name;
            format!("one more would take what `{other}` needs, which pays more")
        }
    }
}

/// The optimum as JSON.
pub(super) fn document(answered: &Answered<'_>) -> Value {
    let Answered { run, question, answer } = answered;
    let of_class = |((class, share), &group): ((&Class, &Share), &usize)| {
        let to: Vec<&str> = class.receivers.iter().map(|&host| answered.place(host)).collect();
        let crosses: Vec<String> = share.crosses.iter().map(|&link| answered.link(link)).collect();
        json!({
            "name": class.name,
            "group": run.groups[group].name,
            "from": answered.place(class.source),
            "to": to,
            "count": class.count,
            "on": share.on,
            "rate_bit_per_s": share.rate,
            "price_per_bit_per_s": share.cost.is_finite().then_some(share.cost),
            "pays_at_most": class.utility.worth(),
            "full_links": crosses,
            "why": kind(&share.why),
            "reason": reason(answered, class, share),
        })
    };
    let link = |link: u32| {
        let own = &question.network.links()[link as usize];
        json!({
            "from": answered.node(own.from),
            "to": answered.node(own.to),
            "rate_bit_per_s": own.rate.map(|rate| rate.bits_per_sec()),
            "carries_bit_per_s": answer.loads[link as usize],
            "price_per_bit_per_s": answer.prices[link as usize],
        })
    };
    let classes = question.classes.iter().zip(&answer.shares).zip(&question.groups);
    json!({
        "lab": run.lab,
        "run": run.id,
        "at_ms": question.at.as_millis_f64(),
        "utility": answer.utility,
        "gap": answer.gap,
        "flows": classes.map(of_class).collect::<Vec<_>>(),
        "full_links": answered.priced().into_iter().map(link).collect::<Vec<_>>(),
    })
}

fn kind(why: &Why) -> &'static str {
    match why {
        Why::Whole => "whole",
        Why::Price => "price",
        Why::Unreachable => "unreachable",
        Why::Off(Blocked::Price) => "off: price",
        Why::Off(Blocked::Room { .. }) => "off: room",
        Why::Off(Blocked::Others(_)) => "off: others",
    }
}
