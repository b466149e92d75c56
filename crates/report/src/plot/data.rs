//! The data of a plot, from a result: the runs, the metric with its subject, and the values.

use super::{Content, Curve, Figure, Kind, Mean, PlotError, Wanted};
use crate::sentence::engine_name;
use weir_engine::{FinishedRun, Results, ResultsError};
use weir_record::compare::Estimate;
use weir_record::{
    METRICS, Metric, Metrics, Records, RunSummary, SHARES, Subject, Summary, Value, View, metric, series,
    spreads,
};

/// Largest number of points of a line over time.
const POINTS: usize = 600;
/// Largest number of lines of a plot: twice the number of colours.
const MOST_LINES: usize = 16;

fn asked(message: impl Into<String>, help: impl Into<String>) -> PlotError {
    PlotError::Asked { message: message.into(), help: help.into() }
}

/// The names of a list, for a sentence.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// The requested plot.
pub(super) fn figure(results: &Results, wanted: &Wanted) -> Result<Figure, PlotError> {
    let known = metric(&wanted.metric).ok_or_else(|| {
        let near = METRICS.iter().filter(|known| known.name.contains(wanted.metric.trim_matches('_')));
        let near = listed(near.map(|metric| metric.name).take(6));
        let all = "`weir list metrics` prints all";
        let help = if near.is_empty() { all.into() } else { format!("similar names: {near}; {all}") };
        asked(format!("no metric is called `{}`", wanted.metric), help)
    })?;
    let levels = Levels::new(results);
    let runs = levels.chosen(results, &wanted.only)?;
    let varied = levels.varied(&runs);
    let level = |name: &Option<String>, taken: Option<usize>| match name {
        Some(name) => levels.named(name).map(Some),
        None => Ok(varied.iter().copied().find(|level| Some(*level) != taken)),
    };
    match wanted.kind {
        Kind::Time | Kind::Cdf => {
            over_cells(results, wanted, known, &levels, &runs, level(&wanted.by, None)?)
        }
        Kind::Bars | Kind::Lines | Kind::Heat => {
            let summary = results.summary(None)?;
            let by = level(&wanted.by, None)?;
            let means = Means::new(&summary, known, wanted, &runs)?;
            let title = format!("{}{}, mean", known.title, means.of);
            let unit = if known.unit.is_empty() { String::new() } else { format!(", {}", known.unit) };
            let value = format!("{}{unit}", known.title.to_lowercase());
            if wanted.kind == Kind::Bars {
                let bars = levels.labels(&runs, by).into_iter();
                let bars = bars.filter_map(|label| Some((label.1, means.mean(&levels, &[(by, &label.0)])?)));
                let content = Content::Bars(bars.collect());
                return Ok(Figure { title, x: value, y: String::new(), log: false, content });
            }
            let along = match (wanted.along.is_some(), wanted.by.is_some()) {
                (false, false) => varied.iter().copied().find(|level| Some(*level) != by),
                _ => level(&wanted.along, by)?,
            };
            let along = along.ok_or_else(|| {
                asked("lines and heat maps need two levels that vary", "give --along LEVEL, or --kind bars")
            })?;
            let by = by.filter(|by| *by != along);
            means.over_levels(wanted.kind, &levels, &runs, along, by, (title, value))
        }
    }
}

/// The levels of a result's tree.
struct Levels {
    names: Vec<String>,
}

impl Levels {
    fn new(results: &Results) -> Levels {
        let first = results.runs.first();
        let names = first.map(|run| run.info.params.iter().map(|param| param.level.clone()).collect());
        Levels { names: names.unwrap_or_default() }
    }

    /// A level by its name, or by the last part of it.
    fn named(&self, name: &str) -> Result<usize, PlotError> {
        let names = || self.names.iter().map(String::as_str);
        let named = weir_plan::level_named(names(), name);
        names().position(|known| Some(known) == named).ok_or_else(|| {
            asked(
                format!("`{name}` is not a level of this tree"),
                format!("the levels are {}", listed(names())),
            )
        })
    }

    /// The label of a run on a level.
    fn label<'r>(&self, run: &'r FinishedRun, level: usize) -> &'r str {
        run.info.params.get(level).map_or("", |param| param.value.as_str())
    }

    /// The runs that `only` keeps, without invalid ones in cells that have others.
    fn chosen<'r>(
        &self,
        results: &'r Results,
        only: &[(String, String)],
    ) -> Result<Vec<&'r FinishedRun>, PlotError> {
        let mut runs: Vec<&FinishedRun> = results.runs.iter().collect();
        for (name, label) in only {
            let level = self.named(name)?;
            let labels = self.labels(&runs, Some(level));
            if labels.iter().all(|(known, _)| known != label) {
                return Err(asked(
                    format!("`{label}` is not a label of `{name}`"),
                    format!("its labels are {}", listed(labels.iter().map(|(known, _)| known.as_str()))),
                ));
            }
            // With several labels of a level, runs with any of them are kept.
            let kept = |run: &&FinishedRun| {
                let own = self.label(run, level);
                only.iter().any(|(other, label)| other == name && label == own)
            };
            runs.retain(kept);
        }
        if runs.is_empty() {
            return Err(asked("there is no run to plot", "run the lab, or leave --only out"));
        }
        let same = |a: &FinishedRun, b: &FinishedRun| {
            a.info.params == b.info.params && a.file.engine == b.file.engine
        };
        let sound: Vec<&FinishedRun> =
            runs.iter().copied().filter(|run| run.file.outcome.invalid.is_empty()).collect();
        runs.retain(|run| run.file.outcome.invalid.is_empty() || sound.iter().all(|other| !same(run, other)));
        Ok(runs)
    }

    /// The levels on which these runs differ.
    fn varied(&self, runs: &[&FinishedRun]) -> Vec<usize> {
        let differs =
            |level: &usize| runs.iter().any(|run| self.label(run, *level) != self.label(runs[0], *level));
        (0..self.names.len()).filter(differs).collect()
    }

    /// The labels of a level in the order of the tree, each with its name in a plot; without a level, one empty label that all
    /// runs have.
    fn labels(&self, runs: &[&FinishedRun], level: Option<usize>) -> Vec<(String, String)> {
        let mut labels: Vec<(String, String)> = vec![];
        for run in runs {
            let label = level.map_or("", |level| self.label(run, level)).to_owned();
            let called = if label.is_empty() { "all".to_owned() } else { label.clone() };
            if labels.iter().all(|(known, _)| *known != label) {
                labels.push((label, called));
            }
        }
        labels
    }
}

/// A metric of every run that is plotted.
struct Means<'a> {
    runs: Vec<(&'a FinishedRun, &'a RunSummary)>,
    metric: &'static Metric,
    name: Option<String>,
    /// The metric's subject and the engine, for the title.
    of: String,
}

impl<'a> Means<'a> {
    fn new(
        summary: &'a Summary,
        metric: &'static Metric,
        wanted: &Wanted,
        runs: &[&'a FinishedRun],
    ) -> Result<Means<'a>, PlotError> {
        let engines: Vec<&str> = ["sim", "live"]
            .into_iter()
            .filter(|engine| runs.iter().any(|run| run.file.engine == *engine))
            .collect();
        // Engines are never averaged: if both ran, the simulator is shown.
        let engine = engines.first().copied().unwrap_or("sim");
        let both = |run: &'a FinishedRun| {
            summary.runs.iter().find(|other| other.id == run.file.id).map(|other| (run, other))
        };
        let runs = runs.iter().copied().filter(|run| run.file.engine == engine).filter_map(both);
        let mut means = Means { runs: runs.collect(), metric, name: wanted.of.clone(), of: String::new() };
        let has = |name: &Option<String>| {
            means.runs.iter().any(|(_, run)| value(run, metric, name.as_deref()).is_some())
        };
        if !has(&means.name) {
            let named = |run: &RunSummary| -> Vec<String> {
                let queues = run.queues.iter().map(|queue| queue.link.clone());
                queues.chain(run.groups.iter().map(|group| group.name.to_string())).collect()
            };
            let mut names: Vec<String> = means.runs.iter().flat_map(|(_, run)| named(run)).collect();
            let mut seen = std::collections::HashSet::new();
            names.retain(|name| seen.insert(name.clone()) && has(&Some(name.clone())));
            match (wanted.of.is_none(), names.as_slice()) {
                (true, [only]) => means.name = Some(only.clone()),
                (_, []) => {
                    return Err(asked(
                        format!("these runs have no values of `{}`", metric.name),
                        "`weir describe METRIC` shows what a metric describes",
                    ));
                }
                _ => {
                    return Err(asked(
                        match &wanted.of {
                            Some(of) => format!("`{}` has no values for `{of}`", metric.name),
                            None => format!("`{}` is not a metric of the whole run", metric.name),
                        },
                        format!("give --of {}", listed(names.iter().map(String::as_str))),
                    ));
                }
            }
        }
        let bottleneck = means.runs.first().and_then(|(run, _)| {
            let link = run.info.links.get(run.info.bottleneck? as usize)?;
            metric.of.contains(&weir_record::Level::Link).then(|| link.name.clone())
        });
        means.of = match means.name.clone().or(bottleneck) {
            Some(name) => format!(" of {name}"),
            None => String::new(),
        };
        if engines.len() > 1 {
            means.of += &format!(", {}", engine_name(engine));
        }
        Ok(means)
    }

    /// The mean over the runs with these labels; `None` if no run has a value.
    fn mean(&self, levels: &Levels, chosen: &[(Option<usize>, &str)]) -> Option<Mean> {
        let fits = |run: &FinishedRun| {
            chosen.iter().all(|(level, label)| level.is_none_or(|level| levels.label(run, level) == *label))
        };
        let members: Vec<&(&FinishedRun, &RunSummary)> =
            self.runs.iter().filter(|(run, _)| fits(run)).collect();
        let values: Vec<f64> =
            members.iter().filter_map(|(_, run)| value(run, self.metric, self.name.as_deref())).collect();
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)?;
        // A mean over several cells has no meaningful interval.
        let one = members.iter().all(|(run, _)| run.info.params == members[0].0.info.params);
        let half = Estimate::of(&values).filter(|_| one).and_then(|estimate| estimate.interval);
        let half = half.map(|(low, high)| (high - low) / 2.0);
        Some(Mean { mean, half })
    }

    fn over_levels(
        &self,
        kind: Kind,
        levels: &Levels,
        runs: &[&FinishedRun],
        along: usize,
        by: Option<usize>,
        (title, value): (String, String),
    ) -> Result<Figure, PlotError> {
        let columns = levels.labels(runs, Some(along));
        let rows = levels.labels(runs, by);
        let at = |row: &str, column: &str| self.mean(levels, &[(by, row), (Some(along), column)]);
        let x = levels.names[along].clone();
        if kind == Kind::Heat {
            let row = |(row, _): &(String, String)| {
                columns.iter().map(|(column, _)| at(row, column).map(|mean| mean.mean)).collect()
            };
            let content = Content::Heat {
                values: rows.iter().map(row).collect(),
                rows: rows.iter().map(|(_, name)| name.clone()).collect(),
                columns: columns.iter().map(|(_, name)| name.clone()).collect(),
            };
            let y = by.map_or(String::new(), |by| levels.names[by].clone());
            return Ok(Figure { title, x, y, log: false, content });
        }
        let places: Option<Vec<(f64, &'static str)>> =
            columns.iter().map(|(label, _)| leading_number(label)).collect();
        let Some(places) = places.filter(|places| places.len() > 1) else {
            return Err(asked(
                format!("the labels of `{x}` are not numbers of one unit, so lines cannot follow them"),
                "give --along a level of rates, times, loads or sizes, or --kind bars or heat",
            ));
        };
        let unit = places[0].1;
        let curve = |(row, name): &(String, String)| {
            let mut points: Vec<((f64, f64), Option<f64>)> = vec![];
            for ((column, _), (place, _)) in columns.iter().zip(&places) {
                points.extend(at(row, column).map(|Mean { mean, half }| ((*place, mean), half)));
            }
            points.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            let (points, intervals) = points.into_iter().unzip();
            Curve { name: name.clone(), points, intervals }
        };
        let curves: Vec<Curve> = rows.iter().map(curve).collect();
        let low = places.iter().map(|(place, _)| *place).fold(f64::INFINITY, f64::min);
        let high = places.iter().map(|(place, _)| *place).fold(0.0, f64::max);
        // Values above zero that are far apart have a logarithmic axis, as on the pages.
        let log = low > 0.0 && high / low > 8.0;
        let x = if unit.is_empty() { x } else { format!("{x}, {unit}") };
        Ok(Figure { title, x, y: value, log, content: Content::Lines(curves) })
    }
}

/// The value of a metric of a run, or of its link or group with this name; the mean of a distribution.
fn value(run: &RunSummary, metric: &Metric, name: Option<&str>) -> Option<f64> {
    let metrics: &Metrics = match name {
        None => &run.metrics,
        Some(name) => {
            let queue = run.queues.iter().find(|queue| queue.link == name).map(|queue| &queue.metrics);
            let group = run.groups.iter().find(|group| *group.name == *name).map(|group| &group.metrics);
            let both = [queue, group].into_iter().flatten();
            both.into_iter().find(|metrics| metrics.get(metric.name) != Value::Undefined)?
        }
    };
    match metrics.get(metric.name) {
        Value::Undefined => None,
        Value::Count(count) => Some(count as f64),
        Value::Number(number) => Some(number),
        Value::Distribution(distribution) => Some(distribution.mean),
    }
}

/// Units of labels: each with its size in the unit of the axis, and that unit.
const UNITS: [(&str, f64, &str); 17] = [
    ("bit/s", 1e-6, "Mbit/s"),
    ("kbit/s", 1e-3, "Mbit/s"),
    ("Mbit/s", 1.0, "Mbit/s"),
    ("Gbit/s", 1e3, "Mbit/s"),
    ("ns", 1e-6, "ms"),
    ("us", 1e-3, "ms"),
    ("ms", 1.0, "ms"),
    ("s", 1e3, "ms"),
    ("B", 1e-3, "kB"),
    ("kB", 1.0, "kB"),
    ("MB", 1e3, "kB"),
    ("KiB", 1.024, "kB"),
    ("bdp", 1.0, "bdp"),
    ("packets", 1.0, "packets"),
    ("flows", 1.0, "flows"),
    ("%", 1.0, "%"),
    ("", 1.0, ""),
];

/// The number of a label in the unit of the axis, with that unit. `None` if the label is not a number with a known unit.
fn leading_number(label: &str) -> Option<(f64, &'static str)> {
    let label = label.trim();
    let end = label.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(label.len());
    let (digits, unit) = label.split_at(end);
    let (_, factor, unit) = UNITS.iter().find(|(known, ..)| *known == unit.trim())?;
    Some((digits.parse::<f64>().ok()? * factor, unit))
}

/// The first run of each cell, over time or as a distribution.
fn over_cells(
    results: &Results,
    wanted: &Wanted,
    metric: &'static Metric,
    levels: &Levels,
    runs: &[&FinishedRun],
    by: Option<usize>,
) -> Result<Figure, PlotError> {
    let mut cells: Vec<&FinishedRun> = vec![];
    let same = |a: &FinishedRun, b: &FinishedRun| {
        let label = by.is_none_or(|by| levels.label(a, by) == levels.label(b, by));
        a.file.engine == b.file.engine
            && if wanted.by.is_some() { label } else { a.info.params == b.info.params }
    };
    for run in runs {
        if cells.iter().all(|known| !same(known, run)) {
            cells.push(run);
        }
    }
    if cells.len() > MOST_LINES {
        return Err(asked(
            format!("{} lines are too many for a plot", cells.len()),
            "narrow the tree by --only LEVEL=LABEL, or give --by LEVEL",
        ));
    }
    let name = |run: &FinishedRun| {
        let varied = levels.varied(&cells);
        let mut parts: Vec<&str> = varied.iter().map(|level| levels.label(run, *level)).collect();
        if cells.iter().any(|other| other.file.engine != run.file.engine) {
            parts.push(engine_name(&run.file.engine));
        }
        if parts.is_empty() { run.info.lab.clone() } else { parts.join(", ") }
    };
    let place = |run: &FinishedRun| results.runs.iter().position(|other| other.file.id == run.file.id);
    let places: Vec<usize> = cells.iter().filter_map(|run| place(run)).collect();
    let made = |_: usize, run: &FinishedRun, records: &Records| {
        let of = subject(run, metric, wanted.of.as_deref());
        Ok::<_, ResultsError>((name(run), of.and_then(|of| points(run, records, metric, of, wanted.kind))))
    };
    let read = results.each(|place| places.contains(&place), made)?;
    let curves: Vec<Curve> = read
        .into_iter()
        .filter_map(|(name, points)| Some(Curve { name, points: points?, intervals: vec![] }))
        .collect();
    if curves.is_empty() {
        let links =
            cells[0].info.links.iter().filter(|link| link.instrumented).map(|link| link.name.as_str());
        let names = listed(links.chain(cells[0].info.groups.iter().map(|group| &*group.name)));
        let of = wanted.of.as_ref().map_or(String::new(), |of| format!(" of `{of}`"));
        let (kind, has): (&str, fn(&Metric) -> bool) = match wanted.kind {
            Kind::Cdf => ("distribution", Metric::has_spread),
            _ => ("series", Metric::has_curve),
        };
        let known = listed(METRICS.iter().filter(|metric| has(metric)).map(|metric| metric.name));
        return Err(asked(
            format!("there is no {kind} of `{}`{of}", metric.name),
            format!("metrics with a {kind}: {known}; links and groups for --of: {names}"),
        ));
    }
    let of = cells.first().and_then(|run| subject_name(run, metric, wanted.of.as_deref()));
    let of = of.map_or(String::new(), |of| format!(" of {of}"));
    let value = format!("{}, {}", metric.title.to_lowercase(), metric.unit);
    let repeats = cells.iter().any(|cell| cell.info.repeat > 1) || runs.len() > cells.len();
    let note = if repeats { ", one run of each" } else { "" };
    Ok(match wanted.kind {
        Kind::Cdf => Figure {
            title: format!("Distribution of {}{of} after the warm-up{note}", metric.title.to_lowercase()),
            x: value,
            y: "at or below, %".into(),
            log: wanted.log,
            content: Content::Lines(curves),
        },
        _ => Figure {
            title: format!("{}{of} over time{note}", metric.title),
            x: "time, s".into(),
            y: value,
            log: false,
            content: Content::Lines(curves),
        },
    })
}

/// The subject of a series: the link or the group with this name; without a name the bottleneck, or the first group.
fn subject(run: &FinishedRun, metric: &Metric, name: Option<&str>) -> Option<Subject> {
    let of_links = metric.of.contains(&weir_record::Level::Link);
    let place = |place: usize| u32::try_from(place).ok();
    match name {
        Some(name) => {
            let link = run.info.links.iter().position(|link| link.name == name && of_links);
            let group = run.info.groups.iter().position(|group| *group.name == *name);
            let link = link.and_then(place).map(Subject::Link);
            link.or_else(|| group.and_then(place).map(Subject::Group))
        }
        None if of_links => run.info.bottleneck.map(Subject::Link),
        None => Some(Subject::Group(0)),
    }
}

fn subject_name<'r>(run: &'r FinishedRun, metric: &Metric, name: Option<&str>) -> Option<&'r str> {
    match subject(run, metric, name)? {
        Subject::Link(link) => Some(run.info.links.get(link as usize)?.name.as_str()),
        Subject::Group(group) => Some(&*run.info.groups.get(group as usize)?.name),
        _ => None,
    }
}

/// The points of a run's line.
fn points(
    run: &FinishedRun,
    records: &Records,
    metric: &Metric,
    of: Subject,
    kind: Kind,
) -> Option<Vec<(f64, f64)>> {
    let view = View::after(run.info.warmup, &run.info, records);
    if kind == Kind::Cdf {
        let all = spreads(&view);
        let spread = all.into_iter().find(|spread| spread.name == metric.name && spread.of == of)?;
        return Some(
            spread.values.into_iter().zip(SHARES).map(|(value, share)| (value, 100.0 * share)).collect(),
        );
    }
    let set = series(&view, records, POINTS);
    let values = set.get(metric, of)?;
    let time = |point: usize| set.period().as_secs_f64() * (point + 1) as f64;
    Some(values.iter().enumerate().map(|(i, value)| (time(i), value.unwrap_or(f64::NAN))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_a_number_and_a_unit_has_a_place_and_others_have_none() {
        assert_eq!(leading_number("1.5 Gbit/s"), Some((1500.0, "Mbit/s")));
        assert_eq!(leading_number("40 ms"), Some((40.0, "ms")));
        assert_eq!(leading_number("7"), Some((7.0, "")));
        for label in ["pie", "4 apples", "", "tail-drop limit=2 bdp", "1.2.3 ms"] {
            assert_eq!(leading_number(label), None, "{label}");
        }
    }
}
