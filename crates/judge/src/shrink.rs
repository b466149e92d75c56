//! A cell that differs, made as plain as it can be while it still differs in the same measure. Simplifications are tried in a
//! fixed order and one that keeps the difference is kept, until none does or the live runs are spent.

use crate::cell::{Buffer, Cell, Extra, Queue, Workload, round};
use crate::trial::{self, Outcome, Way};
use crate::verdict::{FEWEST_TO_DIFFER, Row, Verdict};
use crate::weir::{Trouble, Weir, write_whole};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Live runs after which no further simplification is tried.
const BUDGET: usize = 30;
/// Length of a short run, in seconds.
const SHORT: u32 = 10;

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shrunk {
    /// The lab in a line.
    pub line: String,
    /// The lab file.
    pub lab: String,
    /// The measure in which it differs; `None` for a failure.
    pub row: Option<Row>,
    /// Live runs that it took.
    pub live: usize,
}

/// What is wrong with a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failing<'a> {
    /// It differs or fails.
    pub(crate) outcome: Outcome,
    /// Why it fails; empty if it differs.
    pub(crate) reason: &'a str,
    /// Its measures.
    pub(crate) rows: &'a [Row],
}

/// Shrinks a cell; its trials are kept in its folder, so that an interrupted shrinking goes on.
///
/// # Errors
/// A file cannot be written, or weir cannot be started.
pub(crate) fn shrink(weir: &Weir, cell: &Cell, fault: Failing<'_>, folder: &Path) -> Result<Shrunk, Trouble> {
    let worst = fault
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Differs)
        .max_by(|a, b| a.excess().total_cmp(&b.excess()));
    let mut best = Shrunk { line: cell.line(), lab: cell.toml(), row: worst.cloned(), live: 0 };
    let (mut cell, mut number) = (cell.clone(), 0);
    let focus = worst.map(|row| row.measure.as_str());
    let mut refused: Vec<Cell> = vec![];
    'next: loop {
        for candidate in simpler(&cell) {
            if refused.contains(&candidate) || best.live >= BUDGET {
                continue;
            }
            number += 1;
            let place = folder.join("shrink").join(format!("step-{number}"));
            let way = Way { most: FEWEST_TO_DIFFER, focus, only_kept: false };
            let trial = trial::attempt(weir, &candidate, &place, vec![], way)?;
            best.live += trial.live.len();
            if trial.outcome != fault.outcome || same_failure(fault.reason, &trial.reason) == Some(false) {
                refused.push(candidate);
                continue;
            }
            eprintln!("    still {}: {}", trial.outcome.name(), candidate.line());
            let row = trial.rows.into_iter().find(|row| row.verdict == Verdict::Differs);
            best = Shrunk { line: candidate.line(), lab: candidate.toml(), row, live: best.live };
            cell = candidate;
            continue 'next;
        }
        break;
    }
    write_whole(&folder.join("shrunk.toml"), &best.lab)?;
    Ok(best)
}

/// Whether two failures are of the same kind, by the engine and the first words of their reasons; `None` without failures.
fn same_failure(before: &str, now: &str) -> Option<bool> {
    let begin = |reason: &str| reason.chars().take(40).collect::<String>();
    (!before.is_empty()).then(|| begin(before) == begin(now))
}

/// The simplifications of a cell, in the order in which they are tried.
fn simpler(cell: &Cell) -> Vec<Cell> {
    let mut found: Vec<Cell> = vec![];
    let mut with = |change: &dyn Fn(&mut Cell)| {
        let mut changed = cell.clone();
        change(&mut changed);
        changed.title = title(&cell.title);
        if (Cell { title: cell.title.clone(), ..changed.clone() }) != *cell && !found.contains(&changed) {
            found.push(changed);
        }
    };
    if cell.groups.len() > 1 {
        with(&|it| it.groups.truncate(1));
        with(&|it| drop(it.groups.remove(0)));
    }
    with(&|it| it.groups.iter_mut().for_each(|group| group.flows = 1));
    with(&|it| it.groups.iter_mut().for_each(|group| group.flows = group.flows.div_ceil(2)));
    if cell.queue.kind != "tail-drop" {
        let buffer = cell.queue.buffer.unwrap_or(Buffer::Bdp(1.0));
        with(&|it| it.queue = Queue::tail_drop(buffer));
        with(&|it| it.queue = Queue { kind: it.queue.kind.clone(), ..default_queue(&it.queue) });
    }
    for place in 0..cell.extras.len() {
        with(&|it| drop(it.extras.remove(place)));
    }
    for group in 0..cell.groups.len() {
        with(&|it| it.groups[group].workload = bulk_of(it.groups[group].workload));
        with(&|it| it.groups[group].start = 0);
        with(&|it| it.groups[group].up = false);
        for place in 0..cell.groups[group].settings.len() {
            with(&|it| drop(it.groups[group].settings.remove(place)));
        }
    }
    with(&|it| round_numbers(it));
    with(&|it| it.duration = it.duration.min(SHORT));
    found
}

fn title(before: &str) -> String {
    let shrunk = ", shrunk";
    if before.ends_with(shrunk) { before.into() } else { format!("{before}{shrunk}") }
}

/// The same discipline with its default parameters, for those that have useful ones.
fn default_queue(queue: &Queue) -> Queue {
    let needs_parameters = matches!(queue.kind.as_str(), "tbf" | "htb" | "step");
    match needs_parameters {
        true => queue.clone(),
        false => Queue { kind: queue.kind.clone(), buffer: None, parameters: vec![] },
    }
}

/// A bulk transfer instead of another stream. Datagrams have no controller, so they stay.
fn bulk_of(workload: Workload) -> Workload {
    if workload.is_stream() { Workload::Bulk } else { workload }
}

/// One significant digit for rate, RTT and buffer.
fn round_numbers(cell: &mut Cell) {
    cell.rate = round(cell.rate, 1);
    cell.rtt = round(cell.rtt, 1);
    cell.queue.buffer = cell.queue.buffer.map(|buffer| match buffer {
        Buffer::Bdp(factor) => Buffer::Bdp(round(factor, 1)),
        Buffer::Packets(count) => Buffer::Packets(round(f64::from(count), 1) as u32),
    });
    for extra in &mut cell.extras {
        match extra {
            Extra::Loss { percent, .. } => *percent = round(*percent, 1),
            Extra::Jitter { up_to, .. } => *up_to = round(*up_to, 1),
            Extra::Policer { rate, .. } | Extra::Up(rate) => *rate = round(*rate, 1),
            Extra::Schedule(steps) => steps.iter_mut().for_each(|(_, rate)| *rate = round(*rate, 1)),
            Extra::Ip6 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;
    use crate::id::Id;

    #[test]
    fn every_simplification_is_another_lab() {
        for number in 1..100 {
            let cell = draw(Id { seed: 5, number });
            let labs: Vec<String> = simpler(&cell).iter().map(Cell::toml).collect();
            assert!(labs.iter().all(|lab| *lab != cell.toml()));
            let mut unique = labs.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), labs.len(), "cell {number}");
        }
    }

    #[test]
    fn simplifications_end_at_one_short_bulk_flow_behind_tail_drop() {
        for number in 1..100 {
            let mut cell = draw(Id { seed: 6, number });
            while let Some(next) = simpler(&cell).into_iter().next() {
                cell = next;
            }
            assert_eq!((cell.groups.len(), cell.groups[0].flows, cell.duration), (1, 1, SHORT));
            assert!(cell.extras.is_empty() && cell.groups[0].settings.is_empty());
            assert_eq!(cell.queue.kind, "tail-drop");
        }
    }
}
