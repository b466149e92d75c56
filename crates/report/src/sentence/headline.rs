//! The headline of a lab of several cells. It answers the lab's own question: what its groups are judged by, in the cells that vary;
//! then the shares of groups that compete for a link; otherwise the delays of the links, the busiest first.

use super::{actors, at_engine, capital, links};
use crate::absent;
use crate::answer;
use crate::lab::{Group, Lab, Link, Run};
use crate::naming::spelled;
use crate::number::rough_with;
use weir_record::metrics::queue::{QUEUE_DELAY, UTILISATION};

/// Largest number of clauses.
const MOST: usize = 3;
/// Largest number of cells whose values are listed; of more, the least and the greatest are told.
const LISTED: usize = 4;
/// Largest number of groups whose shares are listed for each cell.
const GROUPS: usize = 3;
/// Largest number of levels that name a cell.
const LEVELS: usize = 3;
/// A range of utilisation wider than this, in points, is told cell by cell.
const WIDE: f64 = 5.0;

/// The repeats of a cell that are not invalid.
struct Cell<'a> {
    runs: Vec<&'a Run>,
}

impl<'a> Cell<'a> {
    /// The cells of a lab on one engine, in the order of its tree, without invalid runs; if all runs are invalid, with all of them.
    fn of(lab: &'a Lab, engine: &str) -> Vec<Cell<'a>> {
        let any_sound = lab.runs.iter().any(Run::is_sound);
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for run in lab.runs.iter().filter(|run| run.engine() == engine && (run.is_sound() || !any_sound)) {
            match cells.last_mut() {
                Some(cell) if cell.runs[0].params == run.params => cell.runs.push(run),
                _ => cells.push(Cell { runs: vec![run] }),
            }
        }
        cells
    }

    /// The mean of a value over the repeats that have it.
    fn mean(&self, of: impl Fn(&'a Run) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn groups(&self) -> impl Iterator<Item = Group<'a>> {
        self.runs.iter().flat_map(|run| run.groups())
    }

    fn link(run: &'a Run, name: &str) -> Option<Link<'a>> {
        run.data_links().into_iter().find(|link| link.name() == name)
    }
}

/// A value of each cell, or why it has none.
type Values = Vec<Result<f64, String>>;

/// The cells that a headline is about.
struct Headline<'a> {
    lab: &'a Lab,
    cells: Vec<Cell<'a>>,
    /// The levels whose labels differ.
    varied: Vec<usize>,
}

/// The headline.
pub(super) fn of(lab: &Lab) -> String {
    let ran = |engine: &&str| lab.runs.iter().any(|run| run.engine() == *engine && run.is_sound());
    let engines = lab.engines();
    let engine = engines.iter().copied().find(ran).or(engines.first().copied()).unwrap_or("sim");
    let cells = Cell::of(lab, engine);
    let label = |cell: &Cell<'_>, level: usize| cell.runs[0].params.get(level).cloned();
    let varied = (0..lab.levels.len())
        .filter(|level| cells.iter().any(|cell| label(cell, *level) != label(&cells[0], *level)));
    let varied = varied.collect();
    let headline = Headline { lab, cells, varied };
    let count = headline.cells.len();
    let repeats = headline.cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0);
    let repeats = if repeats > 1 { format!(" of {repeats} repeats") } else { String::new() };
    let cells = if count == 1 { "one cell".into() } else { format!("{count} cells") };
    let clauses = headline.clauses();
    let clauses = if clauses.is_empty() { vec!["nothing was measured".into()] } else { clauses };
    capital(&format!("{} ({cells}{repeats}, {}).", clauses.join("; "), at_engine(engine)))
}

impl<'a> Headline<'a> {
    fn clauses(&self) -> Vec<String> {
        let mut clauses = self.answers();
        clauses.truncate(MOST);
        for more in [self.shares(), self.links()] {
            clauses.extend(more.into_iter().take(MOST.saturating_sub(clauses.len())));
        }
        clauses
    }

    /// What the groups are judged by.
    fn answers(&self) -> Vec<String> {
        let names = self.lab.group_names().into_iter();
        let clause = |name: &str| {
            let is_own = |group: &Group<'_>| *group.summary.name == *name;
            let all = self.cells.iter().flat_map(Cell::groups).filter(is_own).map(|group| group.summary);
            let answer = answer::of(all.collect::<Vec<_>>().iter().copied())?;
            let value = |run: &'a Run| answer.value(run.groups().find(is_own)?.summary);
            let why = |cell: &Cell<'_>| absent::why(&answer.metric, &cell.runs[0].summary, Some(name));
            let told = self.cells.iter().map(|cell| cell.mean(value).ok_or_else(|| why(cell))).collect();
            self.value(&answer.about(name), answer.metric.unit, told)
        };
        names.filter_map(clause).collect()
    }

    /// The groups of a run that compete for a link: those whose rate counts.
    fn rivals(run: &'a Run, link: &str) -> Vec<Group<'a>> {
        let competes =
            |group: &Group<'_>| group.link == Some(link) && answer::of([group.summary].into_iter()).is_none();
        run.groups().filter(competes).collect()
    }

    /// The shares of groups that compete for a link, in each cell.
    fn shares(&self) -> Vec<String> {
        self.link_names().iter().flat_map(|link| self.shares_of(link)).collect()
    }

    fn shares_of(&self, link: &str) -> Vec<String> {
        let rivals = |cell: &Cell<'a>| Self::rivals(cell.runs[0], link);
        let Some(most) = self.cells.iter().map(|cell| rivals(cell).len()).max().filter(|most| *most > 1)
        else {
            return vec![];
        };
        let share = |cell: &Cell<'a>, name: &str| {
            cell.mean(|run| run.groups().find(|group| *group.summary.name == *name)?.share_percent)
        };
        if self.cells.len() > LISTED || most > GROUPS {
            let Some(first) = self.cells.iter().find(|cell| rivals(cell).len() > 1) else { return vec![] };
            let one = |group: Group<'a>| {
                let name = &group.summary.name;
                let told = self.cells.iter().map(|cell| share(cell, name).ok_or_else(|| "nothing".into()));
                self.value(&format!("share of {name} of link {link}"), "%", told.collect())
            };
            return rivals(first).into_iter().take(2).filter_map(one).collect();
        }
        let one = |cell: &Cell<'a>| {
            let groups = rivals(cell);
            let named = groups.iter().zip(actors(&groups));
            let told = named.filter_map(|(group, actor)| {
                Some(format!("{actor} {}", rough_with(share(cell, &group.summary.name)?, "%")))
            });
            told.collect::<Vec<_>>().join(", ")
        };
        let texts: Vec<String> = self.cells.iter().map(one).collect();
        if texts.iter().all(|text| *text == texts[0]) {
            return vec![format!("shares of link {link}: {}", texts[0])];
        }
        let listed: Vec<String> =
            texts.iter().zip(&self.cells).map(|(text, cell)| format!("{text}{}", self.with(cell))).collect();
        vec![format!("shares of link {link}: {}", listed.join("; "))]
    }

    /// The links that the headline is about, the busiest first.
    fn link_names(&self) -> Vec<&'a str> {
        let mut sums: Vec<(&str, f64)> = vec![];
        for link in self.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| links::described(run)) {
            match sums.iter_mut().find(|(name, _)| *name == link.name()) {
                Some((_, sum)) => *sum += link.sent_mbps(),
                None => sums.push((link.name(), link.sent_mbps())),
            }
        }
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        sums.into_iter().take(links::TOLD).map(|(name, _)| name).collect()
    }

    /// Delay and use of each link.
    fn links(&self) -> Vec<String> {
        self.link_names().into_iter().filter_map(|name| self.link(name)).collect()
    }

    fn link(&self, name: &str) -> Option<String> {
        let of = |value: &dyn Fn(Link<'a>) -> Option<f64>| -> Values {
            let mean = |cell: &Cell<'a>| cell.mean(|run| value(Cell::link(run, name)?));
            self.cells.iter().map(|cell| mean(cell).ok_or_else(|| "nothing measured".into())).collect()
        };
        let mut all = self.cells.iter().flat_map(|cell| &cell.runs).filter_map(|run| Cell::link(run, name));
        let mut clauses: Vec<String> = vec![];
        if all.any(|link| link.l4s_and_classic().is_some()) {
            let l4s = of(&|link| link.l4s_and_classic()?.0.number(&QUEUE_DELAY));
            let classic = of(&|link| link.l4s_and_classic()?.1.number(&QUEUE_DELAY));
            clauses.extend(self.value(&format!("queue delay of L4S packets at link {name}"), "ms", l4s));
            clauses.extend(self.value("of classic packets", "ms", classic));
        } else {
            let delay = of(&|link| link.number(&QUEUE_DELAY));
            clauses.extend(self.value(&format!("queue delay at link {name}"), "ms", delay));
        }
        let used = of(&|link| link.number(&UTILISATION));
        let known: Vec<f64> = used.iter().flatten().copied().collect();
        let (low, high) = known.iter().fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        if high - low > WIDE {
            clauses.extend(self.value("used", "%", used));
        } else if !known.is_empty() {
            clauses.push(format!("{} used", spread(low, high)));
        }
        (!clauses.is_empty()).then(|| clauses.join(", "))
    }

    /// A value in words: one if all cells have the same, those of a few cells, or the least and the greatest.
    fn value(&self, what: &str, unit: &str, told: Values) -> Option<String> {
        let written = |value: f64| rough_with(value, unit).trim_end().to_owned();
        let text =
            |one: &Result<f64, String>| one.as_ref().map_or_else(Clone::clone, |value| written(*value));
        let first = text(told.first()?);
        if told.iter().all(|one| text(one) == first) {
            return Some(format!("{what}: {first}"));
        }
        if told.len() <= LISTED {
            let listed = told.iter().zip(&self.cells).map(|(one, cell)| text(one) + &self.with(cell));
            return Some(format!("{what}: {}", listed.collect::<Vec<_>>().join(", ")));
        }
        let known =
            || told.iter().zip(&self.cells).filter_map(|(one, cell)| Some((*one.as_ref().ok()?, cell)));
        let (low, at_low) = known().reduce(|a, b| if b.0 < a.0 { b } else { a })?;
        let (high, at_high) = known().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let place = |cell: &Cell<'a>| {
            let name = self.name(cell);
            if name.is_empty() { name } else { format!(" ({name})") }
        };
        let without: Vec<&String> = told.iter().filter_map(|one| one.as_ref().err()).collect();
        let rest =
            without.first().map(|why| format!(", and {} of {} cells: {why}", without.len(), told.len()));
        Some(format!(
            "{what}: from {}{} to {}{}{}",
            written(low),
            place(at_low),
            written(high),
            place(at_high),
            rest.unwrap_or_default()
        ))
    }

    /// The labels in which a cell differs from others; empty if they are too many for a sentence. Where labels of a level are numbers
    /// without a unit, the level's name stands before them.
    fn name(&self, cell: &Cell<'_>) -> String {
        if self.varied.len() > LEVELS {
            return String::new();
        }
        let label = |level: usize| {
            let is_number = |cell: &Cell<'_>| {
                cell.runs[0].params.get(level).is_some_and(|label| label.parse::<f64>().is_ok())
            };
            let label = spelled(cell.runs[0].params.get(level)?);
            if self.cells.iter().any(is_number) {
                return Some(format!("{} {label}", weir_plan::short_level(&self.lab.levels, level)));
            }
            Some(label)
        };
        self.varied.iter().filter_map(|level| label(*level)).collect::<Vec<_>>().join(", ")
    }

    /// The same after `with`.
    fn with(&self, cell: &Cell<'_>) -> String {
        let name = self.name(cell);
        if name.is_empty() { name } else { format!(" with {name}") }
    }
}

/// Two shares in percent, or one if both have the same text.
fn spread(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|share| rough_with(share, "%"));
    let number = low.trim_end_matches(['%', '\u{a0}']);
    if low == high { high } else { format!("{number}–{high}") }
}
