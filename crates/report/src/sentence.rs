//! The plain sentence at the top of every page, computed from the numbers. A sentence says only what the numbers show: that
//! a run is invalid comes first, values that were not measured are left out, and words of judgement ("held", "evenly") have
//! their bounds here.

mod headline;
mod links;

use crate::lab::{Group, Lab, Run};
use crate::naming::{engine_name, spelled};
use crate::number::rough_with;
use crate::verdict;
use weir_record::GroupSummary;
use weir_record::compare::{Comparison, Verdict};
use weir_record::metrics::queue::QUEUE_DELAY;

/// Two shares whose ratio is at most this are "even".
const EVEN: f64 = 1.1;

/// An engine's name with its preposition, for a sentence.
fn at_engine(engine: &str) -> String {
    let name = engine_name(engine);
    if engine == "sim" { format!("in the {name}") } else { format!("on {name}") }
}

/// The sentence of a run.
pub fn run(run: &Run) -> String {
    format!("{}{}", invalid(run), capital(&run_plainly(run)))
}

/// The sentence of a run, without the words that it is invalid: first what its traffic is judged by.
fn run_plainly(run: &Run) -> String {
    let mut clauses = crate::waits::clauses(run);
    clauses.extend(links::queue_clauses(run));
    clauses.extend(links::shares(run));
    clauses.extend(crate::limited::clauses(run));
    clauses.extend(links::unused(run));
    if clauses.is_empty() {
        return "nothing was measured in this run.".into();
    }
    format!("{}.", clauses.join("; "))
}

fn invalid(run: &Run) -> String {
    match run.summary.invalid.as_slice() {
        [] => String::new(),
        [reason] => {
            format!("Invalid, so its numbers are not reliable ({}): ", reason.trim_end_matches('.'))
        }
        reasons => format!("Invalid for {} reasons, so its numbers are not reliable: ", reasons.len()),
    }
}

/// The names of groups in a sentence: their controllers if no other group has the same, otherwise their own names.
fn actors(groups: &[Group<'_>]) -> Vec<String> {
    let same = |a: &GroupSummary, b: &GroupSummary| a.controller == b.controller;
    let alone = |group: &GroupSummary| {
        group.controller.is_some() && groups.iter().filter(|other| same(other.summary, group)).count() == 1
    };
    let one = |group: &GroupSummary| match &group.controller {
        Some(controller) if alone(group) => match group.flows {
            0 | 1 => spelled(controller),
            flows => format!("{} ({flows} flows)", spelled(controller)),
        },
        Some(controller) => format!("{} ({})", group.name, spelled(controller)),
        None => group.name.to_string(),
    };
    groups.iter().map(|group| one(group.summary)).collect()
}

/// The sentence of a lab.
pub fn lab(lab: &Lab) -> String {
    match lab.runs.as_slice() {
        [] => "No run of this lab is finished.".into(),
        [only] => run(only),
        [a, b] if a.id == b.id => both(a, b),
        runs => format!("{}{}", invalid_of(runs), headline::of(lab)),
    }
}

/// The sentence of two engines' runs of one cell and repeat.
pub fn both(first: &Run, second: &Run) -> String {
    let one = |run: &Run| {
        let hint = if run.is_sound() { "" } else { " (invalid, so not reliable)" };
        format!("{}{hint}: {}", capital(&at_engine(run.engine())), run_plainly(run))
    };
    format!("{} {}", one(first), one(second))
}

fn invalid_of(runs: &[Run]) -> String {
    match runs.iter().filter(|run| !run.is_sound()).count() {
        0 => String::new(),
        1 => format!("One of {} runs is invalid, and marked so. ", runs.len()),
        all if all == runs.len() => {
            format!("All {all} runs are invalid: their numbers are not reliable. ")
        }
        some => format!("{some} of {} runs are invalid, and marked so. ", runs.len()),
    }
}

/// The sentence of a comparison: the level on which the queue delay depended most, and the delay for each of its labels.
pub fn comparison(lab: &Lab) -> String {
    let Some(engine) = lab.engines().first().map(|engine| engine.to_string()) else { return self::lab(lab) };
    let sound = |run: &&Run| run.engine() == engine && run.is_sound();
    let runs: Vec<&Run> = lab.runs.iter().filter(sound).collect();
    let mut effects: Vec<(f64, &str, Means)> = (0..lab.levels.len())
        .filter_map(|level| {
            let means = means_by(&runs, level);
            let (low, high) = (means.first()?.1, means.last()?.1);
            (means.len() > 1).then(|| (high / low.max(1e-3), lab.levels[level].as_str(), means))
        })
        .collect();
    effects.sort_by(|a, b| b.0.total_cmp(&a.0));
    let Some((ratio, level, means)) = effects.into_iter().next() else { return self::lab(lab) };
    let said = |(value, mean): &(String, f64)| format!("{} with {}", rough_with(*mean, "ms"), spelled(value));
    let values = match means.as_slice() {
        few if few.len() <= 4 => few.iter().map(said).collect::<Vec<_>>().join("; "),
        [low, .., high] => format!("from {} to {}", said(low), said(high)),
        _ => String::new(),
    };
    let means = if runs.len() > means.len() { Some("means over all other levels".to_string()) } else { None };
    let place = (lab.engines().len() > 1).then(|| at_engine(&engine));
    let how: Vec<String> = means.into_iter().chain(place).collect();
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    let text = if ratio < EVEN {
        format!("Queue delay hardly depended on any level, most on {level}: {values}{how}.")
    } else {
        format!("Queue delay depended most on {level}: {values}{how}.")
    };
    format!("{}{text}", invalid_of(&lab.runs))
}

/// A mean for each value of a level, smallest first.
type Means = Vec<(String, f64)>;

/// Mean queue delay for each value of a level.
fn means_by(runs: &[&Run], level: usize) -> Means {
    let mut sums: Vec<(String, f64, u32)> = Vec::new();
    for run in runs {
        let delay = run.bottleneck().and_then(|link| link.number(&QUEUE_DELAY));
        let (Some(value), Some(delay)) = (run.params.get(level), delay) else { continue };
        match sums.iter_mut().find(|(known, _, _)| known == value) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + delay, *count + 1),
            None => sums.push((value.clone(), delay, 1)),
        }
    }
    let mut means: Means =
        sums.into_iter().map(|(value, sum, count)| (value, sum / f64::from(count))).collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    means
}

/// The sentence on the agreement of two results, over some rows of their comparison; `names` are those of the reference and
/// of the other.
pub fn agreement<'a>(rows: impl IntoIterator<Item = &'a Comparison>, names: [&str; 2]) -> String {
    let rows: Vec<&Comparison> = rows.into_iter().collect();
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (agree, differ, open) = (count(Verdict::Agree), count(Verdict::Differ), count(Verdict::CannotTell));
    if rows.is_empty() {
        return "Nothing could be compared: a comparison needs valid runs of the same cells in both results."
            .into();
    }
    if agree == rows.len() {
        return match agree {
            1 => "The two agree on the one measure that was compared.".into(),
            _ => format!("The two agree on all {agree} measures."),
        };
    }
    let mut text = format!("The two agree on {agree} of {} measures", rows.len());
    if differ > 0 {
        text += &format!(" and differ on {differ}");
        let differing = rows.iter().filter(|row| row.verdict == Verdict::Differ);
        if let Some(row) = differing.max_by(|a, b| verdict::excess(a).total_cmp(&verdict::excess(b))) {
            let most = if differ > 1 { "most on " } else { "" };
            let (reference, other) = (verdict::mean(row, row.reference), verdict::mean(row, row.other));
            let [first, second] = names;
            text += &format!(" ({most}{}: {first} {reference}, {second} {other})", verdict::measure(row));
        }
    }
    if open > 0 {
        text += &format!("; for {open} the repeats do not suffice");
    }
    text + "."
}

/// The text with its first letter as a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
