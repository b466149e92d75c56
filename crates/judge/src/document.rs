//! `docs/judge.md`: how many cells agree, the list of all that differ with their causes, what they have in common, the bounds,
//! and the seeds.

use crate::causes::Causes;
use crate::cell::{plain, round};
use crate::id::Id;
use crate::measure::MEASURES;
use crate::session::{Judged, State};
use crate::tree::{Example, leaves};
use crate::trial::{MOST_LIVE, Outcome};
use crate::verdict::{FEWEST, Row, Verdict};
use crate::weir::{MANY_SEEDS, SEEDS};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What a difference without a cause is called.
const NO_CAUSE: &str = "**none yet**";

/// The judged cells of all sessions.
fn cells(states: &[State]) -> Vec<(Id, &Judged)> {
    let mut cells = vec![];
    for state in states {
        let id = |number: &u64| Id { seed: state.seed, number: *number };
        cells.extend(state.cells.iter().map(|(number, judged)| (id(number), judged)));
    }
    cells
}

/// The cells that differ or fail in a measure for which no cause is known.
pub fn unexplained(states: &[State], causes: &Causes) -> Vec<Id> {
    let open = |(id, judged): &(Id, &Judged)| {
        judged.outcome.is_fault()
            && differences(judged).iter().any(|name| causes.of_difference(*id, name).is_none())
    };
    cells(states).iter().filter(|cell| open(cell)).map(|(id, _)| *id).collect()
}

/// The measures in which a cell differs; `failure` for one that fails.
fn differences(judged: &Judged) -> Vec<&str> {
    let rows = judged.rows.iter().filter(|row| row.verdict == Verdict::Differs);
    let names: Vec<&str> = rows.map(|row| row.measure.as_str()).collect();
    if judged.outcome == Outcome::Failed { vec!["failure"] } else { names }
}

/// The whole document.
pub fn document(states: &[State], causes: &Causes, version: &str) -> String {
    let cells = cells(states);
    let mut text = String::new();
    opening(&mut text, states, &cells, causes, version);
    differing(&mut text, &cells, causes);
    common(&mut text, &cells);
    known_causes(&mut text, causes);
    paused(&mut text, &cells);
    shrunk(&mut text, &cells);
    undecided(&mut text, &cells);
    bounds(&mut text);
    text
}

/// Writing to a String cannot fail.
fn line(text: &mut String, line: impl std::fmt::Display) {
    let _ = writeln!(text, "{line}");
}

fn opening(text: &mut String, states: &[State], cells: &[(Id, &Judged)], causes: &Causes, version: &str) {
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    cells.iter().for_each(|(_, judged)| *counts.entry(judged.outcome).or_default() += 1);
    let count = |outcome| counts.get(&outcome).copied().unwrap_or(0);
    let valid = cells.len() - count(Outcome::Invalid);
    let open = unexplained(states, causes).len();
    let share = |part: usize| 100.0 * part as f64 / valid.max(1) as f64;
    line(text, "# The kernel as judge, at random\n");
    line(
        text,
        "`make judge SEED=n CELLS=k` draws labs at random over the space that both engines run, runs them on both, and writes this page.",
    );
    line(text, "The live kernel is the judge of what TCP does.\n");
    let (agree, paused) = (count(Outcome::Agree), count(Outcome::AgreePaused));
    let more = match paused {
        0 => String::new(),
        _ => format!(
            ", and {paused} more once simulated hosts pause when those of the live runs did ({:.0} % together)",
            share(agree + paused)
        ),
    };
    line(
        text,
        format_args!(
            "**{agree} of {valid} cells agree ({:.0} %){more}.** {}\n",
            share(agree),
            match (count(Outcome::Differs) + count(Outcome::Failed), open) {
                (0, _) => "None differs.".to_owned(),
                (differ, 0) => format!("Of {differ} that differ, none is without a cause that stands here."),
                (differ, open) => format!("Of {differ} that differ, {open} have no known cause yet."),
            }
        ),
    );
    line(text, "| outcome | cells | share of valid cells |\n|---|---|---|");
    for outcome in
        [Outcome::Agree, Outcome::AgreePaused, Outcome::CannotTell, Outcome::Differs, Outcome::Failed]
    {
        line(
            text,
            format_args!("| {} | {} | {:.0} % |", outcome.name(), count(outcome), share(count(outcome))),
        );
    }
    line(text, format_args!("| {} | {} | |\n", Outcome::Invalid.name(), count(Outcome::Invalid)));
    let builds: BTreeSet<&str> = cells.iter().map(|(_, judged)| judged.build.as_str()).collect();
    let builds: Vec<&str> = builds.into_iter().collect();
    for state in states {
        let runs: usize = state.cells.values().map(|judged| judged.live).sum();
        let kernels: Vec<&str> = state.kernels.iter().map(String::as_str).collect();
        line(
            text,
            format_args!(
                "- Seed {}: {} cells, {runs} valid live runs, judged until {}, Linux {}.",
                state.seed,
                state.cells.len(),
                state.date,
                kernels.join(" and ")
            ),
        );
    }
    line(
        text,
        format_args!(
            "- {version}, build {}; {SEEDS} simulated runs a cell, {MANY_SEEDS} where these do not decide; {FEWEST} to {MOST_LIVE} live ones.",
            builds.join(", ")
        ),
    );
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "none".into(), |value| plain(round(value, 3)))
}

fn interval(row: &Row) -> String {
    let ends = |(low, high): (f64, f64)| format!("{} to {}", signed(low), signed(high));
    row.interval.map_or_else(String::new, ends)
}

fn signed(value: f64) -> String {
    let text = plain(round(value, 3));
    if value > 0.0 { format!("+{text}") } else { text }
}

fn differing(text: &mut String, cells: &[(Id, &Judged)], causes: &Causes) {
    line(text, "\n## What differs\n");
    if !cells.iter().any(|(_, judged)| judged.outcome.is_fault()) {
        line(text, "Nothing.");
        return;
    }
    line(
        text,
        "| cell | lab | measure | live | simulated | live − simulated (95 %) | bound | cause |\n|---|---|---|---|---|---|---|---|",
    );
    for (id, judged) in cells.iter().filter(|(_, judged)| judged.outcome.is_fault()) {
        let cause = |measure: &str| {
            causes
                .of_difference(*id, measure)
                .map_or_else(|| NO_CAUSE.into(), |number| format!("[{number}](#causes)"))
        };
        if judged.outcome == Outcome::Failed {
            let reason = judged.reason.replace('|', "/");
            line(
                text,
                format_args!("| {id} | {} | fails: {reason} | | | | | {} |", judged.line, cause("failure")),
            );
        }
        for row in judged.rows.iter().filter(|row| row.verdict == Verdict::Differs) {
            line(
                text,
                format_args!(
                    "| {id} | {} | {} | {} | {} | {} | {} to {} | {} |",
                    judged.line,
                    row.name(),
                    number(row.live),
                    number(row.sim),
                    interval(row),
                    signed(row.bound.0),
                    signed(row.bound.1),
                    cause(&row.measure)
                ),
            );
        }
    }
}

fn common(text: &mut String, cells: &[(Id, &Judged)]) {
    let judged = cells.iter().filter(|(_, judged)| judged.outcome != Outcome::Invalid);
    let examples: Vec<Example> = judged
        .map(|(_, judged)| Example { keys: judged.keys.clone(), differs: judged.outcome.is_fault() })
        .collect();
    if !examples.iter().any(|example| example.differs) {
        return;
    }
    line(text, "\n## What they have in common\n");
    line(text, "A decision tree over the cells' keys, three deep, with at least five cells in a leaf:\n");
    line(text, "| cells that | differ |\n|---|---|");
    for leaf in leaves(&examples) {
        let rule = if leaf.rule.is_empty() { "are judged".into() } else { leaf.rule.join("; ") };
        line(text, format_args!("| {rule} | {} of {} |", leaf.differ, leaf.cells));
    }
}

fn known_causes(text: &mut String, causes: &Causes) {
    if causes.cause.is_empty() {
        return;
    }
    line(text, "\n## Causes\n\nThey stand in `docs/judge-causes.toml`.\n");
    for (place, cause) in causes.cause.iter().enumerate() {
        let cells = cause.cells.join(", ");
        line(
            text,
            format_args!(
                "{}. {} (cells {cells}). Evidence: {}",
                place + 1,
                cause.cause.trim(),
                cause.evidence.trim()
            ),
        );
    }
}

fn paused(text: &mut String, cells: &[(Id, &Judged)]) {
    let all: Vec<_> = cells.iter().filter(|(_, judged)| judged.outcome == Outcome::AgreePaused).collect();
    if all.is_empty() {
        return;
    }
    line(text, "\n## What pauses of the live hosts explain\n");
    line(
        text,
        "Other work keeps the applications of a live run from their processor, at times and for as long as the run records. With the same",
    );
    line(
        text,
        "pauses (`run.host_pauses`) all measures of these cells agree; here are those that did not without them.\n",
    );
    line(text, "| cell | lab | measure | live | simulated | with pauses |\n|---|---|---|---|---|---|");
    for (id, judged) in all {
        for row in judged.rows.iter().filter(|row| row.verdict != Verdict::Agree) {
            let same = |paused: &&Row| (&paused.measure, &paused.of) == (&row.measure, &row.of);
            let with = judged.paused.iter().find(same).and_then(|paused| paused.sim);
            let (lab, name) = (&judged.line, row.name());
            let [live, sim, with] = [row.live, row.sim, with].map(number);
            line(text, format_args!("| {id} | {lab} | {name} | {live} | {sim} | {with} |"));
        }
    }
}

fn shrunk(text: &mut String, cells: &[(Id, &Judged)]) {
    let small: Vec<_> = cells
        .iter()
        .filter(|(_, judged)| judged.outcome.is_fault())
        .filter_map(|(id, judged)| Some((id, judged.shrunk.as_ref()?)))
        .collect();
    if small.is_empty() {
        return;
    }
    line(text, "\n## The smallest labs that still differ\n");
    line(
        text,
        "Each cell that differs was made as plain as it can be while the same measure differs by four live runs.",
    );
    for (id, shrunk) in small {
        let row = shrunk.row.as_ref().map_or_else(String::new, |row| {
            format!(" {}: live {}, simulated {}.", row.name(), number(row.live), number(row.sim))
        });
        let file = format!("results/judge/seed-{}/cell-{}/shrunk.toml", id.seed, id.number);
        line(
            text,
            format_args!(
                "\n**{id}** (`{file}`, {} live runs).{row}\n\n```toml\n{}```",
                shrunk.live, shrunk.lab
            ),
        );
    }
}

fn undecided(text: &mut String, cells: &[(Id, &Judged)]) {
    let of = |outcome| cells.iter().filter(move |(_, judged)| judged.outcome == outcome);
    if of(Outcome::CannotTell).next().is_some() {
        line(
            text,
            "\n## What live runs cannot tell\n\n| cell | lab | measures | live runs |\n|---|---|---|---|",
        );
    }
    for (id, judged) in of(Outcome::CannotTell) {
        let rows = judged.rows.iter().filter(|row| row.verdict == Verdict::CannotTell);
        let names: Vec<String> = rows
            .map(|row| {
                let (low, high) = row.bound;
                format!("{} ({}; bound {} to {})", row.name(), interval(row), signed(low), signed(high))
            })
            .collect();
        line(text, format_args!("| {id} | {} | {} | {} |", judged.line, names.join(", "), judged.live));
    }
    if of(Outcome::Invalid).next().is_some() {
        line(text, "\n## What this machine cannot run\n\n| cell | lab | reason |\n|---|---|---|");
    }
    for (id, judged) in of(Outcome::Invalid) {
        line(text, format_args!("| {id} | {} | {} |", judged.line, judged.reason));
    }
}

fn bounds(text: &mut String) {
    line(text, "\n## Measures and bounds\n");
    line(
        text,
        "A measure *agrees* if the whole 95 % interval of live minus simulated lies within its bound, the wider part of it. It *differs* if the",
    );
    line(
        text,
        "whole 99 % interval lies outside, after at least four live runs. A cell agrees if all its measures do, and differs if one does.",
    );
    line(
        text,
        "A live run and the simulated run of its seed draw the same start times, losses and flows. Where their values correlate (one-sided",
    );
    line(
        text,
        "test at 1 %), the line through the pairs estimates the live mean at the mean of all simulated runs. Where web traffic or on/off",
    );
    line(text, "sources are drawn, the two are compared in pairs in any case.\n");
    line(
        text,
        "Utilisation may also be lower live by the share of the RTT by which the live network's packets came late, which the runs record.",
    );
    line(
        text,
        "A cell that does not agree is simulated again with the pauses of its live runs, if they have recorded any.\n",
    );
    line(text, "| measure | bound | reason |\n|---|---|---|");
    for measure in MEASURES {
        line(text, format_args!("| {} | {} | {} |", measure.name, measure.bound_in_words(), measure.why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Value;

    fn judged(outcome: Outcome, verdict: Verdict) -> Judged {
        let row = Row {
            measure: "drops".into(),
            of: "down".into(),
            live: Some(0.06),
            sim: Some(9.1234),
            interval: Some((-9.2, -8.9)),
            bound: (-0.2, 0.2),
            verdict,
        };
        Judged {
            build: "abc".into(),
            line: "200 Mbit/s: bbr".into(),
            keys: vec![("rate".into(), Value::Number(200.0))],
            outcome,
            reason: String::new(),
            live: 4,
            rows: vec![row],
            paused: vec![],
            shrunk: None,
        }
    }

    fn state() -> State {
        let cells = [
            (1, judged(Outcome::Agree, Verdict::Agree)),
            (2, judged(Outcome::Differs, Verdict::Differs)),
            (3, judged(Outcome::Invalid, Verdict::CannotTell)),
        ];
        State { seed: 4, kernels: ["6.18".into()].into(), date: "2026-11-24".into(), cells: cells.into() }
    }

    #[test]
    fn a_difference_without_a_cause_is_said_and_one_with_a_cause_points_to_it() {
        let text = document(&[state()], &Causes::default(), "weir 0.1.0");
        assert!(
            text.contains("**1 of 2 cells agree (50 %).** Of 1 that differ, 1 have no known cause yet."),
            "{text}"
        );
        let row = "| 4-2 | 200 Mbit/s: bbr | drops of down | 0.06 | 9.12 | -9.2 to -8.9 | -0.2 to +0.2 | **none yet** |";
        assert!(text.contains(row), "{text}");
        assert_eq!(unexplained(&[state()], &Causes::default()), [Id { seed: 4, number: 2 }]);

        let cause = crate::causes::Cause {
            cells: vec!["4-2".into()],
            measures: vec![],
            cause: "Noise.".into(),
            evidence: "Ten runs.".into(),
        };
        let causes = Causes { cause: vec![cause] };
        let text = document(&[state()], &causes, "weir 0.1.0");
        assert!(text.contains("none is without a cause") && text.contains("| [1](#causes) |"), "{text}");
        assert!(text.contains("1. Noise. (cells 4-2). Evidence: Ten runs."), "{text}");
        assert_eq!(unexplained(&[state()], &causes), []);
    }

    #[test]
    fn cells_that_agree_with_the_pauses_of_their_live_runs_are_counted_and_shown_apart() {
        let mut state = state();
        let cell = state.cells.get_mut(&2).unwrap();
        cell.outcome = Outcome::AgreePaused;
        cell.paused = vec![Row { sim: Some(0.07), verdict: Verdict::Agree, ..cell.rows[0].clone() }];
        let text = document(&[state], &Causes::default(), "weir 0.1.0");
        let counted = "**1 of 2 cells agree (50 %), and 1 more once simulated hosts pause when those of the live runs did (100 % together).** None differs.";
        assert!(text.contains(counted), "{text}");
        assert!(text.contains("| 4-2 | 200 Mbit/s: bbr | drops of down | 0.06 | 9.12 | 0.07 |"), "{text}");
    }
}
