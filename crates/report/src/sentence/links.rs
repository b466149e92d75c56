//! The clauses of a sentence about links. Each number names its link, and its class if L4S packets are separate.

use super::{EVEN, actors, at_engine, capital, spelled};
use crate::lab::{Group, Lab, Link, Run};
use crate::number::{rough, rough_with};
use weir_record::Metrics;
use weir_record::metrics::queue::{QUEUE_DELAY, UTILISATION};
use weir_record::metrics::rate::GOODPUT;

/// The AQM "held" its target if the mean delay is within this share of it.
const HELD: f64 = 0.25;
/// A link with a utilisation below this, in percent, was not full; the sentence says so.
const FULL_PERCENT: f64 = 90.0;
/// Largest number of links in a sentence; if more carry data, it is about the one with the longest queue.
const TOLD: usize = 3;

/// The clauses about the queues of a run.
pub(super) fn queue_clauses(run: &Run) -> Vec<String> {
    told(run).iter().filter_map(queue_clause).collect()
}

/// The links of a run that its sentence is about.
fn told(run: &Run) -> Vec<Link<'_>> {
    let links = run.data_links();
    if links.len() <= TOLD {
        return links;
    }
    let delay = |link: &Link<'_>| link.number(&QUEUE_DELAY).unwrap_or(0.0);
    links.into_iter().max_by(|a, b| delay(a).total_cmp(&delay(b))).into_iter().collect()
}

fn queue_clause(link: &Link<'_>) -> Option<String> {
    let delay = link.queue.metrics.distribution(&QUEUE_DELAY)?;
    let (queue, name) = (spelled(&link.queue.queue), link.name());
    if let Some((l4s, classic)) = link.l4s_and_classic() {
        let mean = |class: &Metrics| {
            class.number(&QUEUE_DELAY).map_or_else(|| "nothing".into(), |delay| rough_with(delay, "ms"))
        };
        return Some(format!(
            "in {queue} at link {name}, L4S packets waited {} and classic packets {}",
            mean(l4s),
            mean(classic)
        ));
    }
    let mean = rough_with(delay.mean, "ms");
    Some(match link.plan.target_ms {
        Some(target) if (delay.mean - target).abs() <= HELD * target => {
            let aim = rough_with(target, "ms");
            match aim == mean {
                true => format!("{queue} at link {name} held a delay of {mean}"),
                false => format!("{queue} at link {name} held a delay of {mean} (its target is {aim})"),
            }
        }
        Some(target) if delay.mean > target => format!(
            "{queue} at link {name} had a delay of {mean}, above its target of {}",
            rough_with(target, "ms")
        ),
        Some(target) => format!(
            "the queue delay at link {name} was {mean}, below {queue}’s target of {}",
            rough_with(target, "ms")
        ),
        None => format!(
            "{queue} at link {name} had a queue delay of {mean} (p99 {})",
            rough_with(delay.p99, "ms")
        ),
    })
}

/// The groups' shares of each link in the sentence, and the goodput of groups whose data crosses no link with a rate.
pub(super) fn shares(run: &Run) -> Vec<String> {
    let told = told(run);
    let of_link = |link: &Link<'_>| {
        let groups = run.groups().filter(|group| group.link == Some(link.name()));
        shares_clause(&groups.collect::<Vec<_>>(), Some(link.name()))
    };
    let mut clauses: Vec<String> = told.iter().filter_map(of_link).collect();
    let rest: Vec<Group<'_>> = run.groups().filter(|group| group.link.is_none()).collect();
    clauses.extend(shares_clause(&rest, None));
    clauses
}

fn shares_clause(groups: &[Group<'_>], link: Option<&str>) -> Option<String> {
    let names = actors(groups);
    let mut shares: Vec<(String, f64)> = groups
        .iter()
        .zip(names)
        .filter_map(|(group, name)| {
            let value = if link.is_some() { group.share_percent } else { group.number(&GOODPUT) };
            Some((name, value?))
        })
        .collect();
    let unit = if link.is_some() { "%" } else { "Mbit/s" };
    let of_link = link.map_or(String::new(), |link| format!(" of link {link}"));
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let written = |share: f64| rough_with(share, unit);
    match shares.as_slice() {
        [] => None,
        all if all.iter().all(|(_, share)| *share <= 0.0) => {
            let at = link.map_or(String::new(), |link| format!(" over link {link}"));
            Some(format!("no application received anything{at}"))
        }
        [(name, share)] => Some(format!("{name} took {}{of_link}", written(*share))),
        [(a, more), (b, less)] if *less > 0.0 && more / less <= EVEN => {
            let (more, less) = (written(*more), written(*less));
            let each = match more == less {
                true => format!("{more}{of_link} each"),
                false => format!("{more} and {less}{of_link}"),
            };
            Some(format!("{a} and {b} shared evenly ({each})"))
        }
        [(a, most), rest @ ..] if rest.len() <= 2 => {
            let rest: Vec<String> =
                rest.iter().map(|(name, share)| format!("{name} {}", written(*share))).collect();
            Some(format!("{a} took {}{of_link}, {}", written(*most), rest.join(", ")))
        }
        [(a, most), .., (z, least)] => Some(format!(
            "of {} groups, {a} took the most ({}{of_link}) and {z} the least ({})",
            shares.len(),
            written(*most),
            written(*least)
        )),
    }
}

/// The unused part of the links that were not full.
pub(super) fn unused(run: &Run) -> Vec<String> {
    let unused = |link: Link<'_>| {
        let used = link.number(&UTILISATION).filter(|used| *used < FULL_PERCENT)?;
        Some(format!("{} of link {} stayed unused", rough_with(100.0 - used, "%"), link.name()))
    };
    told(run).into_iter().filter_map(unused).collect()
}

/// The repeats of a cell on one engine that are not invalid.
struct Cell<'a> {
    runs: Vec<&'a Run>,
}

impl<'a> Cell<'a> {
    /// The cells of a lab in the order of its tree, without invalid runs; if all runs of the lab are invalid, with all of them.
    fn of(lab: &'a Lab) -> Vec<Cell<'a>> {
        let any_sound = lab.runs.iter().any(Run::is_sound);
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for run in lab.runs.iter().filter(|run| run.is_sound() || !any_sound) {
            let same =
                |cell: &Cell<'_>| cell.runs[0].params == run.params && cell.runs[0].engine() == run.engine();
            // The repeats of a cell are together, those of both engines mixed.
            match cells.iter_mut().rev().take(2).find(|cell| same(cell)) {
                Some(cell) => cell.runs.push(run),
                None => cells.push(Cell { runs: vec![run] }),
            }
        }
        cells
    }

    /// The mean of a value of the link with this name, over the repeats.
    fn mean(&self, link: &str, of: impl Fn(Link<'_>) -> Option<f64>) -> Option<f64> {
        let links = self.runs.iter().flat_map(|run| run.data_links()).filter(|other| other.name() == link);
        let values: Vec<f64> = links.filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The sentence of a lab of several cells: the lowest and the highest values at each link that carries data.
pub(super) fn span(lab: &Lab) -> String {
    let cells = Cell::of(lab);
    let ran = |engine: &&str| cells.iter().any(|cell| cell.runs[0].engine() == *engine);
    let engines: Vec<String> = lab.engines().into_iter().filter(ran).map(at_engine).collect();
    // A cell that ran on both engines is one cell of the tree.
    let mut choices: Vec<&[String]> = cells.iter().map(|cell| cell.runs[0].params.as_slice()).collect();
    choices.sort_unstable();
    choices.dedup();
    let (count, most) = (choices.len(), cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0));
    let repeats = if most > 1 { format!(" of {most} repeats") } else { String::new() };
    let cells_word = if count == 1 { "cell" } else { "cells" };
    let over = format!("over {count} {cells_word}{repeats} {},", engines.join(" and "));
    let mut names: Vec<&str> = Vec::new();
    for link in cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| told(run)) {
        if !names.contains(&link.name()) {
            names.push(link.name());
        }
    }
    names.truncate(TOLD);
    let mut clauses: Vec<String> = Vec::new();
    for name in names {
        clauses.extend(span_of_link(lab, &cells, name));
    }
    match clauses.as_slice() {
        [] => capital(&format!("{over} no queue was measured.")),
        [only] => capital(&format!("{over} {only}.")),
        [rest @ .., last] => capital(&format!("{over} {}, and {last}.", rest.join(", "))),
    }
}

fn span_of_link(lab: &Lab, cells: &[Cell<'_>], name: &str) -> Vec<String> {
    let mut clauses = Vec::new();
    let classes = cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| run.data_links());
    let apart = classes.filter(|link| link.name() == name).any(|link| link.l4s_and_classic().is_some());
    let mut told = |what: &str, of: &dyn Fn(Link<'_>) -> Option<f64>| {
        if let Some(((low, at_low), (high, at_high))) = range(cells, |cell| cell.mean(name, of)) {
            let at = |value: f64, cell: &Cell<'_>| format!("{}{}", rough_with(value, "ms"), place(lab, cell));
            clauses.push(match rough(low) == rough(high) {
                true => format!("{what} at link {name} averaged {}", rough_with(low, "ms")),
                false => {
                    format!(
                        "{what} at link {name} averaged between {} and {}",
                        at(low, at_low),
                        at(high, at_high)
                    )
                }
            });
        }
    };
    if apart {
        told("the queue delay of L4S packets", &|link| link.l4s_and_classic()?.0.number(&QUEUE_DELAY));
        told("that of classic packets", &|link| link.l4s_and_classic()?.1.number(&QUEUE_DELAY));
    } else {
        told("the queue delay", &|link| link.number(&QUEUE_DELAY));
    }
    let used = range(cells, |cell| cell.mean(name, |link| link.number(&UTILISATION)));
    clauses.extend(used.map(|(low, high)| format!("link {name} was {} utilised", spread(low.0, high.0))));
    clauses
}

/// Two shares in percent, or one if both have the same text.
fn spread(low: f64, high: f64) -> String {
    match (rough(low), rough_with(high, "%")) {
        (low, written) if low == rough(high) => written,
        (low, written) => format!("{low}–{written}"),
    }
}

/// The choices of a cell in brackets, if the tree has one or two levels; otherwise empty.
fn place(lab: &Lab, cell: &Cell<'_>) -> String {
    let chosen: Vec<String> = cell.runs[0].params.iter().map(|value| spelled(value)).collect();
    if (1..=2).contains(&lab.levels.len()) { format!(" ({})", chosen.join(", ")) } else { String::new() }
}

/// A value, and the cell that has it.
type Found<'c, 'a> = (f64, &'c Cell<'a>);

/// The cells with the least and with the greatest value; `None` if no cell has a value.
fn range<'c, 'a>(
    cells: &'c [Cell<'a>],
    value: impl Fn(&Cell<'a>) -> Option<f64>,
) -> Option<(Found<'c, 'a>, Found<'c, 'a>)> {
    let values: Vec<(f64, &Cell<'a>)> = cells.iter().filter_map(|cell| Some((value(cell)?, cell))).collect();
    let low = values.iter().copied().reduce(|a, b| if b.0 < a.0 { b } else { a })?;
    let high = values.iter().copied().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some((low, high))
}
