//! Where a pair of trajectories parts, in words for the page and the terminal.

use super::{FlowPair, Found, LinkPackets, Parted, Trajectories};
use crate::charts::titled;
use crate::compact::compact;
use crate::fit::wrapped;
use crate::number::number;
use weir_record::trajectory::Tolerance;
use weir_record::trajectory::packets::{Packet, PacketParting, Packets, Sent};

/// The transport's quantities with the words and the unit that a reader knows.
const QUANTITIES: [(&str, &str, &str); 6] = [
    ("cwnd_segments", "congestion window", "segments"),
    ("ssthresh_segments", "slow-start threshold", "segments"),
    ("in_flight_segments", "data in flight", "segments"),
    ("srtt_ms", "smoothed RTT", "ms"),
    ("pacing_rate_mbps", "pacing rate", "Mbit/s"),
    ("delivery_rate_mbps", "delivery rate", "Mbit/s"),
];

/// A quantity's name in words, and its unit.
pub(crate) fn quantity(name: &str) -> (String, &'static str) {
    match QUANTITIES.iter().find(|(known, ..)| *known == name) {
        Some((_, words, unit)) => ((*words).into(), unit),
        None => {
            let (words, unit) = titled(name);
            (format!("controller: {words}"), unit)
        }
    }
}

/// A bound in words.
pub(crate) fn tolerance(of: Tolerance, unit: &str) -> String {
    let share = compact(Some(100.0 * of.share));
    match of.least > 0.0 {
        true => format!("{share} % or {}", with_unit(&compact(Some(of.least)), unit)),
        false => format!("{share} %"),
    }
}

/// A number with its unit; `plain number` and the like are no units.
fn with_unit(number: &str, unit: &str) -> String {
    let is_unit = !matches!(unit, "plain number" | "0 or 1" | "of 1");
    if is_unit { format!("{number} {unit}") } else { number.into() }
}

/// What is said of a pair, in sentences.
pub(crate) fn said(pair: &FlowPair, names: [&str; 2]) -> Vec<String> {
    let mut said = vec![];
    if pair.invalid {
        said.push("No repeat of this cell has two valid runs, so this one has an invalid run.".into());
    }
    said.extend(pair.links.iter().map(|link| packets(link, names)));
    said.push(samples(pair, names));
    if !pair.to_capture.is_empty() {
        said.push(format!(
            "The first packet that differs is found in captures of both runs (weir run LAB --pcap {}).",
            pair.to_capture.join(",")
        ));
    }
    said
}

/// What the captures of a link show.
fn packets(of: &LinkPackets, names: [&str; 2]) -> String {
    let link = &of.link;
    match &of.found {
        Found::Unread(reason) => format!("A capture of link {link} cannot be read: {reason}."),
        Found::Packets(Packets::Same { count, acknowledgements }) => {
            let what = if *acknowledgements { "acknowledgements" } else { "data packets" };
            format!("At link {link} the first {count} {what} are the same in both.")
        }
        Found::Packets(Packets::Differ(parting)) => {
            let kind = match parting.sides[0].packet {
                Packet::Data { .. } => "data packet",
                Packet::Acknowledgement { .. } => "acknowledgement",
            };
            let sides = names.iter().zip(&parting.sides).map(|(name, side)| sent(name, side));
            let sides: Vec<String> = sides.collect();
            format!(
                "At link {link} {kind} {} is the first that differs{}: {}.",
                parting.place,
                kind_of(parting, names),
                sides.join("; ")
            )
        }
    }
}

/// Seconds since the flow's start, to the microsecond.
fn seconds(after_s: f64) -> String {
    format!("{after_s:.6} s").replace('-', "\u{2212}")
}

/// What left in one of the two.
fn sent(name: &str, side: &Sent) -> String {
    let what = match &side.packet {
        Packet::Data { from, to, again, skipped } => {
            let again = if *again { " again" } else { "" };
            let skipped = match skipped {
                0 => String::new(),
                bytes => format!(", {bytes} bytes after the highest before it"),
            };
            format!("bytes {from} to {to}{again}{skipped}")
        }
        Packet::Acknowledgement { number, sack } if sack.is_empty() => {
            format!("{number}, without SACK blocks")
        }
        Packet::Acknowledgement { number, sack } => {
            let blocks: Vec<String> = sack.iter().map(|(from, to)| format!("{from} to {to}")).collect();
            format!("{number}, SACK {}", blocks.join(" and "))
        }
    };
    format!("{name} sent {what} at {}", seconds(side.after_s))
}

/// What kind of difference it is, where that can be said.
fn kind_of(parting: &PacketParting, names: [&str; 2]) -> String {
    let [reference, other] = [&parting.sides[0].packet, &parting.sides[1].packet];
    match (reference, other) {
        (Packet::Data { again: true, .. }, Packet::Data { again: false, .. }) => {
            format!(" (a retransmission in {} only)", names[0])
        }
        (Packet::Data { again: false, .. }, Packet::Data { again: true, .. }) => {
            format!(" (a retransmission in {} only)", names[1])
        }
        (Packet::Data { from: a, .. }, Packet::Data { from: b, .. }) if a == b => " (another length)".into(),
        (Packet::Data { again: false, from: a, .. }, Packet::Data { from: b, .. }) => {
            let lacking = names[usize::from(a < b)];
            format!(" (in {lacking} a packet was dropped before the link, or sent later)")
        }
        (Packet::Acknowledgement { number: a, .. }, Packet::Acknowledgement { number: b, .. }) => {
            if a == b {
                " (other SACK blocks)".into()
            } else {
                String::new()
            }
        }
        _ => String::new(),
    }
}

/// The quantity whose samples part first.
fn samples(pair: &FlowPair, names: [&str; 2]) -> String {
    let Some(first) = pair.parts.iter().min_by(|a, b| a.at.after_s.total_cmp(&b.at.after_s)) else {
        return "No quantity differs by more than its bound in three samples one after the other.".into();
    };
    let later = pair.parts.len() - 1;
    let later = match later {
        0 => String::new(),
        1 => " One more quantity parts, there or later.".into(),
        count => format!(" {count} more quantities part, there or later."),
    };
    format!("In the samples the {} parts first, {}{later}", quantity(&first.quantity).0, parted(first, names))
}

/// Where a quantity parts, as the end of a sentence.
pub(crate) fn parted(of: &Parted, names: [&str; 2]) -> String {
    let unit = quantity(&of.quantity).1;
    let value = |value: Option<f64>| value.map_or_else(|| "none".into(), number);
    format!(
        "from {} s on: {} {}, {} {} (bound: {}).",
        compact(Some(of.at.after_s)),
        names[0],
        value(of.at.values[0]),
        names[1],
        with_unit(&value(of.at.values[1]), unit),
        tolerance(of.tolerance, unit)
    )
}

impl FlowPair {
    /// Its name: the labels of its cell, its group and its repeat.
    pub(crate) fn name(&self) -> String {
        let mut parts: Vec<&str> = self.cell.iter().map(|param| param.value.as_str()).collect();
        parts.push(&self.group);
        format!("{}, repeat {}", parts.join(" · "), self.repeat)
    }
}

impl Trajectories {
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.names[0], &self.names[1]]
    }

    /// Where each pair parts, for the terminal; empty without pairs.
    pub fn partings(&self, width: usize) -> String {
        if self.pairs.is_empty() {
            return String::new();
        }
        let [reference, other] = self.names();
        let head = format!("Single flows of {reference} and {other}, by the time since the flow's start:");
        let mut text = format!("\n{}", wrapped(&head, width));
        for pair in &self.pairs {
            text += &wrapped(&pair.name(), width);
            for sentence in said(pair, self.names()) {
                let lines = wrapped(&sentence, width.saturating_sub(2).max(30));
                text.extend(lines.lines().map(|line| format!("  {line}\n")));
            }
        }
        if self.further > 0 {
            text += &wrapped(&format!("and {} further flows", self.further), width);
        }
        text
    }
}
