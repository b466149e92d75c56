//! The clauses of a sentence about links. Each number names its link, and its class if L4S packets are separate.

use super::{EVEN, actors};
use crate::lab::{Group, Link, Run};
use crate::naming::spelled;
use crate::number::rough_with;
use weir_record::Metrics;
use weir_record::metrics::queue::{QUEUE_DELAY, UTILISATION};
use weir_record::metrics::rate::GOODPUT;

/// The AQM "held" its target if the mean delay is within this share of it.
const HELD: f64 = 0.25;
/// A link with a utilisation below this, in percent, was not full; the sentence says so.
const FULL_PERCENT: f64 = 90.0;
/// Largest number of links in a sentence; if more carry data, it is about the one with the longest queue.
pub(super) const TOLD: usize = 3;

/// The clauses about the queues of a run.
pub(super) fn queue_clauses(run: &Run) -> Vec<String> {
    described(run).iter().filter_map(queue_clause).collect()
}

/// The links of a run that its sentence is about.
pub(super) fn described(run: &Run) -> Vec<Link<'_>> {
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
    let described = described(run);
    let of_link = |link: &Link<'_>| {
        let groups = run.groups().filter(|group| group.link == Some(link.name()));
        shares_clause(&groups.collect::<Vec<_>>(), Some(link.name()))
    };
    let mut clauses: Vec<String> = described.iter().filter_map(of_link).collect();
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
        let ended = link.plan.ended_s.map(|end| format!(" (its traffic ended at {})", rough_with(end, "s")));
        let ended = ended.unwrap_or_default();
        Some(format!("{} of link {} stayed unused{ended}", rough_with(100.0 - used, "%"), link.name()))
    };
    described(run).into_iter().filter_map(unused).collect()
}
