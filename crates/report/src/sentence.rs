//! The one plain sentence that every page opens with, computed from the numbers. A sentence says only what the numbers
//! show: spoiled runs say so first, what was not measured is left out, and words of judgement ("held", "evenly") have
//! their bound here.

use crate::model::{GroupNumbers, Lab, LinkNumbers, RunNumbers};
use crate::number::{rough, rough_with};
use crate::verdict;
use weir_record::compare::{Comparison, Verdict};

/// A mean delay within this share of the target is one that the AQM "held".
const HELD: f64 = 0.25;
/// Shares within this ratio of each other are "even".
const EVEN: f64 = 1.1;
/// A link below this use, in percent, was not full, and the sentence says so.
const FULL_PERCENT: f64 = 90.0;

/// The spelling that the literature uses for an algorithm; one that is not listed is written as in the lab file.
pub fn spelled(kind: &str) -> String {
    const SPELLINGS: [(&str, &str); 24] = [
        ("apple-ledbat", "Apple LEDBAT"),
        ("bbr", "BBR"),
        ("cdg", "CDG"),
        ("codel", "CoDel"),
        ("ctcp", "Circuit TCP"),
        ("cubic", "CUBIC"),
        ("dctcp", "DCTCP"),
        ("dualpi2", "DualPI2"),
        ("fq-codel", "FQ-CoDel"),
        ("htcp", "H-TCP"),
        ("ledbat", "LEDBAT"),
        ("ledbat-plus-plus", "LEDBAT++"),
        ("newreno", "NewReno"),
        ("pi2", "PI2"),
        ("pie", "PIE"),
        ("prague", "Prague"),
        ("red", "RED"),
        ("reno", "Reno"),
        ("tail-drop", "tail drop"),
        ("udp", "UDP"),
        ("vegas", "Vegas"),
        ("westwood", "Westwood+"),
        ("westwood-lp", "Westwood-LP"),
        ("yield", "Yield"),
    ];
    // What follows the kind (a limit, a parameter) stays as it is.
    let (kind, rest) = kind.split_once(' ').map_or((kind, ""), |(kind, rest)| (kind, rest));
    let name = SPELLINGS.iter().find(|(known, _)| *known == kind).map_or(kind, |(_, name)| name);
    if rest.is_empty() { name.into() } else { format!("{name} {rest}") }
}

/// How an engine is called in a sentence.
pub fn engine_name(engine: &str) -> &str {
    match engine {
        "sim" => "simulator",
        "live" => "live Linux",
        other => other,
    }
}

/// Where an engine runs, in a sentence.
fn at_engine(engine: &str) -> String {
    let name = engine_name(engine);
    if engine == "sim" { format!("in the {name}") } else { format!("on {name}") }
}

/// What happened in a run.
pub fn run(run: &RunNumbers) -> String {
    format!("{}{}", spoiled(run), capital(&run_plainly(run)))
}

/// What happened in a run, without saying that it was spoiled.
fn run_plainly(run: &RunNumbers) -> String {
    let link = run.bottleneck();
    let named = run.bottleneck_named();
    let the_link = named.clone().unwrap_or_else(|| "the link".into());
    let mut clauses: Vec<String> = Vec::new();
    clauses.extend(link.and_then(queue_clause).map(|clause| match &named {
        Some(link) => format!("at {link} {clause}"),
        None => clause,
    }));
    let of_link = link.is_some_and(|link| link.rate_mbps.is_some()).then_some(the_link.as_str());
    clauses.extend(groups_clause(&run.groups, of_link));
    clauses.extend(crate::waits::clauses(&run.groups));
    if let Some(used) = link.and_then(|link| link.utilisation_percent).filter(|used| *used < FULL_PERCENT) {
        clauses.push(format!("{} of {the_link} stayed unused", rough_with(100.0 - used, "%")));
    }
    if clauses.is_empty() {
        return "nothing was measured in this run.".into();
    }
    format!("{}.", clauses.join("; "))
}

fn spoiled(run: &RunNumbers) -> String {
    match run.spoiled.as_slice() {
        [] => String::new(),
        [reason] => {
            format!("Spoiled, so its numbers are no more than a hint ({}): ", reason.trim_end_matches('.'))
        }
        reasons => format!("Spoiled in {} ways, so its numbers are no more than a hint: ", reasons.len()),
    }
}

fn queue_clause(link: &LinkNumbers) -> Option<String> {
    let delay = link.delay_ms?;
    let queue = spelled(&link.queue);
    let mean = rough_with(delay.mean, "ms");
    Some(match link.target_ms {
        Some(target) if (delay.mean - target).abs() <= HELD * target => {
            let aim = rough_with(target, "ms");
            if aim == mean {
                format!("{queue} held {mean}")
            } else {
                format!("{queue} held {mean} (its target is {aim})")
            }
        }
        Some(target) if delay.mean > target => {
            format!("{queue} let the queue stand at {mean}, above its target of {}", rough_with(target, "ms"))
        }
        Some(target) => {
            format!("the queue stayed at {mean}, below {queue}’s target of {}", rough_with(target, "ms"))
        }
        None => format!("behind {queue} the queue stood at {mean} (p99 {})", rough_with(delay.p99, "ms")),
    })
}

fn groups_clause(groups: &[GroupNumbers], of_link: Option<&str>) -> Option<String> {
    let names = actors(groups);
    let mut shares: Vec<(String, f64)> = groups
        .iter()
        .zip(names)
        .filter_map(|(group, name)| {
            let value = if of_link.is_some() { group.share_percent } else { group.goodput_mbps };
            Some((name, value?))
        })
        .collect();
    let unit = if of_link.is_some() { "%" } else { "Mbit/s" };
    let of_link = of_link.map_or(String::new(), |link| format!(" of {link}"));
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let written = |share: f64| rough_with(share, unit);
    match shares.as_slice() {
        [] => None,
        all if all.iter().all(|(_, share)| *share <= 0.0) => Some("no application received anything".into()),
        [(name, share)] => Some(format!("{name} took {}{of_link}", written(*share))),
        [(a, more), (b, less)] if *less > 0.0 && more / less <= EVEN => {
            let (more, less) = (written(*more), written(*less));
            let each = if more == less {
                format!("{more}{of_link} each")
            } else {
                format!("{more} and {less}{of_link}")
            };
            Some(format!("{a} and {b} shared evenly ({each})"))
        }
        [(a, most), rest @ ..] if rest.len() <= 2 => {
            let rest: Vec<String> =
                rest.iter().map(|(name, share)| format!("{name} {}", written(*share))).collect();
            Some(format!("{a} took {}{of_link}, {}", written(*most), rest.join(", ")))
        }
        [(a, most), .., (z, least)] => Some(format!(
            "of {} groups {a} took most ({}{of_link}) and {z} least ({})",
            shares.len(),
            written(*most),
            written(*least)
        )),
    }
}

/// How the groups of a run are told apart in a sentence: by controller where that says it, by name otherwise.
fn actors(groups: &[GroupNumbers]) -> Vec<String> {
    let alone = |group: &GroupNumbers| {
        group.controller.is_some()
            && groups.iter().filter(|other| other.controller == group.controller).count() == 1
    };
    let one = |group: &GroupNumbers| match &group.controller {
        Some(controller) if alone(group) => match group.flows {
            0 | 1 => spelled(controller),
            flows => format!("{} ({flows} flows)", spelled(controller)),
        },
        Some(controller) => format!("{} ({})", group.name, spelled(controller)),
        None => group.name.clone(),
    };
    groups.iter().map(one).collect()
}

/// What happened in a lab.
pub fn lab(lab: &Lab) -> String {
    match lab.runs.as_slice() {
        [] => "No run of this lab is finished.".into(),
        [only] => run(only),
        [a, b] if a.id == b.id => both(a, b),
        runs => format!("{}{}", spoiled_of(runs), span_of(lab)),
    }
}

/// What two engines found in one cell and repeat.
pub fn both(first: &RunNumbers, second: &RunNumbers) -> String {
    let one = |run: &RunNumbers| {
        let hint = if run.spoiled.is_empty() { "" } else { " (spoiled, no more than a hint)" };
        format!("{}{hint}: {}", capital(&at_engine(&run.engine)), run_plainly(run))
    };
    format!("{} {}", one(first), one(second))
}

fn spoiled_of(runs: &[RunNumbers]) -> String {
    match runs.iter().filter(|run| !run.spoiled.is_empty()).count() {
        0 => String::new(),
        1 => format!("One of {} runs is spoiled, and marked so. ", runs.len()),
        all if all == runs.len() => {
            format!("All {all} runs are spoiled: their numbers are no more than a hint. ")
        }
        some => format!("{some} of {} runs are spoiled, and marked so. ", runs.len()),
    }
}

fn span_of(lab: &Lab) -> String {
    let sound: Vec<&RunNumbers> = {
        let sound: Vec<&RunNumbers> = lab.runs.iter().filter(|run| run.spoiled.is_empty()).collect();
        if sound.is_empty() { lab.runs.iter().collect() } else { sound }
    };
    let ran = |engine: &&str| sound.iter().any(|run| run.engine == *engine);
    let engines: Vec<String> = lab.engines().into_iter().filter(ran).map(at_engine).collect();
    let over = format!("over {} runs {}", sound.len(), engines.join(" and "));
    let delay = |run: &RunNumbers| run.bottleneck().and_then(|link| link.delay_ms).map(|delay| delay.mean);
    let used = |run: &RunNumbers| run.bottleneck().and_then(|link| link.utilisation_percent);
    let (at_link, the_link) = bottleneck_of(&sound);
    let uses =
        range(&sound, used).map(|(low, high)| format!("{the_link} was used to {}", spread(low.0, high.0)));
    let queue = range(&sound, delay).map(|(low, high)| {
        let at = |found: Found<'_>| format!("{}{}", rough_with(found.0, "ms"), place(lab, found.1));
        format!("the queue{at_link} averaged between {} and {}", at(low), at(high))
    });
    let clauses: Vec<String> = [queue, uses, first_share(&sound)].into_iter().flatten().collect();
    match clauses.as_slice() {
        [] => capital(&format!("{over} no queue was measured.")),
        [only] => capital(&format!("{over} {only}.")),
        [rest @ .., last] => capital(&format!("{over} {}, and {last}.", rest.join(", "))),
    }
}

/// Where the queue is that is told of, and what its link is called: by name where runs have several and all mean the same.
fn bottleneck_of(runs: &[&RunNumbers]) -> (String, String) {
    let mut names = runs.iter().map(|run| run.bottleneck_named());
    match names.next().flatten() {
        None => (String::new(), "the link".into()),
        Some(first) if names.all(|name| name.as_ref() == Some(&first)) => {
            (format!(" at {first}"), "it".into())
        }
        Some(_) => (" at each run’s bottleneck".into(), "it".into()),
    }
}

/// What the first of two groups took, where all runs have the same two under the same controllers.
fn first_share(runs: &[&RunNumbers]) -> Option<String> {
    let names = actors(&runs.first()?.groups);
    if names.len() != 2 || runs.iter().any(|run| actors(&run.groups) != names) {
        return None;
    }
    let shares = || runs.iter().map(|run| run.groups[0].share_percent);
    let low = shares().min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))??;
    let high = shares().max_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))??;
    Some(format!("{} took {} of it", names[0], spread(low, high)))
}

/// Two shares in percent, or one where both are written the same.
fn spread(low: f64, high: f64) -> String {
    match (rough(low), rough_with(high, "%")) {
        (_, high_written) if rough(low) == rough(high) => high_written,
        (low, high) => format!("{low}–{high}"),
    }
}

/// What a run chose, where that is short enough to say in passing.
fn place(lab: &Lab, run: &RunNumbers) -> String {
    if lab.levels.len() == 1 { format!(" ({})", run.params.join(", ")) } else { String::new() }
}

type Found<'a> = (f64, &'a RunNumbers);

fn range<'a>(
    runs: &[&'a RunNumbers],
    value: impl Fn(&RunNumbers) -> Option<f64>,
) -> Option<(Found<'a>, Found<'a>)> {
    let values: Vec<Found<'a>> = runs.iter().filter_map(|run| Some((value(run)?, *run))).collect();
    let low = values.iter().copied().reduce(|a, b| if b.0 < a.0 { b } else { a })?;
    let high = values.iter().copied().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some((low, high))
}

/// Which level of the tree the queue delay depended on most, and how.
pub fn comparison(lab: &Lab) -> String {
    let Some(engine) = lab.engines().first().map(|engine| engine.to_string()) else { return self::lab(lab) };
    let sound = |run: &&RunNumbers| run.engine == engine && run.spoiled.is_empty();
    let runs: Vec<&RunNumbers> = lab.runs.iter().filter(sound).collect();
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
    let means = if runs.len() > means.len() { Some("means over everything else".to_string()) } else { None };
    let place = (lab.engines().len() > 1).then(|| at_engine(&engine));
    let how: Vec<String> = means.into_iter().chain(place).collect();
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    let text = if ratio < EVEN {
        format!("Queue delay hardly depended on what was varied, most on {level}: {values}{how}.")
    } else {
        format!("Queue delay depended most on {level}: {values}{how}.")
    };
    format!("{}{text}", spoiled_of(&lab.runs))
}

/// A mean for each value of a level, smallest first.
type Means = Vec<(String, f64)>;

/// Mean queue delay for each value of a level.
fn means_by(runs: &[&RunNumbers], level: usize) -> Means {
    let mut sums: Vec<(String, f64, u32)> = Vec::new();
    for run in runs {
        let delay = run.bottleneck().and_then(|link| link.delay_ms);
        let (Some(value), Some(delay)) = (run.params.get(level), delay) else { continue };
        match sums.iter_mut().find(|(known, _, _)| known == value) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + delay.mean, *count + 1),
            None => sums.push((value.clone(), delay.mean, 1)),
        }
    }
    let mut means: Means =
        sums.into_iter().map(|(value, sum, count)| (value, sum / f64::from(count))).collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    means
}

/// How far two results agree, over some rows of their comparison; `names` are the reference's and the other's.
pub fn agreement<'a>(rows: impl IntoIterator<Item = &'a Comparison>, names: [&str; 2]) -> String {
    let rows: Vec<&Comparison> = rows.into_iter().collect();
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (agree, differ, open) = (count(Verdict::Agree), count(Verdict::Differ), count(Verdict::CannotTell));
    if rows.is_empty() {
        return "Nothing could be compared: that needs the same cells in both, and runs that are not spoiled.".into();
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
        text += &format!("; on {open} the repeats cannot tell");
    }
    text + "."
}

/// The text with its first letter as a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::Distribution;
    use weir_record::compare::{Bound, Estimate};

    fn group(name: &str, controller: &str, share: f64) -> GroupNumbers {
        GroupNumbers {
            name: name.into(),
            controller: (!controller.is_empty()).then(|| controller.into()),
            flows: 1,
            share_percent: Some(share),
            goodput_mbps: Some(share / 10.0),
            ..GroupNumbers::default()
        }
    }

    fn link(queue: &str, target: Option<f64>, mean: f64, used: f64) -> LinkNumbers {
        LinkNumbers {
            queue: queue.into(),
            target_ms: target,
            rate_mbps: Some(10.0),
            utilisation_percent: Some(used),
            delay_ms: Some(Distribution {
                count: 1000,
                mean,
                p1: 0.0,
                p25: mean,
                p50: mean,
                p75: mean,
                p99: mean * 2.0,
            }),
            ..LinkNumbers::default()
        }
    }

    fn cell(queue: &str, mean: f64, params: &[&str]) -> RunNumbers {
        RunNumbers {
            id: params.join("-"),
            engine: "sim".into(),
            params: params.iter().map(|value| value.to_string()).collect(),
            bottleneck: Some(0),
            links: vec![link(queue, (queue == "pie").then_some(15.0), mean, 99.0)],
            groups: vec![group("a", "cubic", 62.0), group("b", "newreno", 34.0)],
            ..RunNumbers::default()
        }
    }

    /// No-break spaces read as plain ones.
    fn plain(text: String) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_run_says_who_held_what_and_who_took_how_much() {
        assert_eq!(
            plain(run(&cell("pie", 15.2, &[]))),
            "PIE held 15 ms; CUBIC took 62 % of the link, NewReno 34 %."
        );
    }

    #[test]
    fn a_target_that_was_missed_is_not_said_to_be_held() {
        let above = plain(run(&cell("pie", 31.0, &[])));
        assert!(above.starts_with("PIE let the queue stand at 31 ms, above its target of 15 ms;"), "{above}");
        let below = plain(run(&cell("pie", 4.0, &[])));
        assert!(below.starts_with("The queue stayed at 4 ms, below PIE’s target of 15 ms;"), "{below}");
        let near = plain(run(&cell("pie", 17.0, &[])));
        assert!(near.starts_with("PIE held 17 ms (its target is 15 ms);"), "{near}");
    }

    #[test]
    fn a_spoiled_run_says_so_first() {
        let mut spoilt = cell("tail-drop", 38.0, &[]);
        spoilt.spoiled = vec!["lateness p99 was 2.1 ms.".into()];
        let text = plain(run(&spoilt));
        let start =
            "Spoiled, so its numbers are no more than a hint (lateness p99 was 2.1 ms): Behind tail drop";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn even_shares_are_called_even_and_an_unused_link_is_told() {
        let mut run = cell("tail-drop", 38.0, &[]);
        run.groups = vec![group("a", "cubic", 35.0), group("b", "newreno", 36.0)];
        run.links[0].utilisation_percent = Some(72.0);
        assert_eq!(
            plain(super::run(&run)),
            "Behind tail drop the queue stood at 38 ms (p99 76 ms); NewReno and CUBIC shared evenly (36 % and 35 % of the \
             link); 28 % of the link stayed unused."
        );
    }

    #[test]
    fn groups_with_the_same_controller_go_by_their_names() {
        let mut run = cell("pie", 15.0, &[]);
        run.groups = vec![group("near", "cubic", 80.0), group("far", "cubic", 15.0), group("voice", "", 1.0)];
        let text = plain(super::run(&run));
        assert!(text.ends_with("near (CUBIC) took 80 % of the link, far (CUBIC) 15 %, voice 1 %."), "{text}");
    }

    #[test]
    fn of_several_links_one_is_named_and_only_who_crosses_it_is_told() {
        let mut run = cell("pie", 15.0, &[]);
        let named = |name: &str| LinkNumbers { name: name.into(), ..link("pie", Some(15.0), 15.0, 80.0) };
        run.links = ["hop1", "hop1-up", "hop2", "hop2-up"].map(named).into();
        run.groups = vec![group("long", "newreno", 30.0), group("near", "newreno", 50.0)];
        run.groups.push(GroupNumbers { share_percent: None, ..group("elsewhere", "newreno", 0.0) });
        assert_eq!(
            plain(super::run(&run)),
            "At link hop1 PIE held 15 ms; near (NewReno) took 50 % of link hop1, long (NewReno) 30 %; 20 % of link hop1 \
             stayed unused."
        );
        assert_eq!(super::bottleneck_of(&[&run, &run]), (" at link hop1".into(), "it".into()));
        let other = RunNumbers { bottleneck: Some(2), ..run.clone() };
        assert_eq!(super::bottleneck_of(&[&run, &other]).0, " at each run’s bottleneck");
    }

    #[test]
    fn a_run_without_numbers_claims_nothing() {
        assert_eq!(run(&RunNumbers::default()), "Nothing was measured in this run.");
        let mut silent = cell("pie", 15.0, &[]);
        silent.links.clear();
        silent.groups = vec![group("a", "cubic", 0.0)];
        assert_eq!(run(&silent), "No application received anything.");
    }

    #[test]
    fn a_lab_names_its_extremes_and_counts_its_spoiled_runs() {
        let mut lab = Lab { levels: vec!["queue".into()], ..Lab::default() };
        lab.runs = vec![
            cell("pie", 15.0, &["pie"]),
            cell("tail-drop", 48.0, &["tail-drop"]),
            cell("x", 99.0, &["x"]),
        ];
        lab.runs[2].spoiled = vec!["stalls".into()];
        assert_eq!(
            plain(super::lab(&lab)),
            "One of 3 runs is spoiled, and marked so. Over 2 runs in the simulator the queue averaged between 15 ms \
             (pie) and 48 ms (tail-drop), the link was used to 99 %, and CUBIC took 62 % of it."
        );
    }

    #[test]
    fn a_comparison_names_the_level_that_mattered_most() {
        let mut lab = Lab { levels: vec!["queue".into(), "rate".into()], ..Lab::default() };
        lab.runs = vec![
            cell("pie", 14.0, &["pie", "10"]),
            cell("pie", 16.0, &["pie", "100"]),
            cell("tail-drop", 44.0, &["tail-drop", "10"]),
            cell("tail-drop", 40.0, &["tail-drop", "100"]),
        ];
        assert_eq!(
            plain(comparison(&lab)),
            "Queue delay depended most on queue: 15 ms with PIE; 42 ms with tail drop (means over everything else)."
        );
    }

    #[test]
    fn cannot_tell_is_never_counted_as_agreeing() {
        let row = |verdict, difference| Comparison {
            cell: None,
            metric: "queue_delay_ms".into(),
            group: None,
            window: None,
            reference: Some(15.0),
            other: Some(15.0 + difference),
            difference: Estimate::of(&[difference / 15.0]),
            bound: Bound::Relative(0.15),
            verdict,
        };
        let two = [row(Verdict::Agree, 0.1), row(Verdict::Agree, 0.2)];
        assert_eq!(agreement(&two, ["live", "sim"]), "The two agree on all 2 measures.");
        let mixed = [row(Verdict::Agree, 0.1), row(Verdict::Differ, 4.0), row(Verdict::CannotTell, 2.0)];
        assert_eq!(
            plain(agreement(&mixed, ["live", "sim"])),
            "The two agree on 1 of 3 measures and differ on 1 (queue delay: live 15 ms, sim 19 ms); on 1 the repeats cannot \
             tell."
        );
    }
}
