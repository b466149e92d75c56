//! Means over repeats: as bars, as lines along a level, and as a heat map over two levels.

use super::place::places;
use super::tree::{Cell, Tree};
use super::{Content, Curve, Figure, Kind, Mean, PlotError, Wanted, asked, axis, listed};
use crate::absent;
use crate::naming::engine_name;
use std::collections::HashMap;
use weir_engine::Results;
use weir_record::compare::Estimate;
use weir_record::{Level, Metric, Metrics, RunSummary, Summary, Value};

/// The requested plot.
pub(super) fn figure(
    results: &Results,
    wanted: &Wanted,
    metric: &'static Metric,
    tree: &Tree<'_>,
) -> Result<Figure, PlotError> {
    let averaged = tree.averaged(&wanted.mean_over)?;
    let (by, along) = axes(wanted, tree, &averaged)?;
    let taken: Vec<usize> = by.into_iter().chain(along).collect();
    tree.nothing_hidden(&taken, &averaged)?;
    let summary = results.summary(None)?;
    let means = Means::new(&summary, metric, wanted.of.as_deref(), tree)?;
    let mut figure = Figure {
        title: format!("{}{}, mean", metric.title, means.subject()),
        about: means.about(&averaged).join("; "),
        ..Figure::default()
    };
    match (wanted.kind, along) {
        (Kind::Bars, _) => means.bars(&mut figure, by),
        (Kind::Lines, Some(along)) => means.lines(&mut figure, along, by, wanted.log)?,
        (_, Some(along)) => means.heat(&mut figure, along, by),
        (_, None) => {
            let help = "give --along LEVEL, or --kind bars";
            return Err(asked("lines and heat maps need a level that varies", help));
        }
    }
    let hints = means.cells.iter().filter(|cell| !cell.hint.is_empty());
    figure.notes.extend(hints.map(|cell| format!("{}: {}", cell.labels.join(", "), cell.hint)));
    Ok(figure)
}

/// The levels of the colours, bars or rows, and of the horizontal axis or the columns: those that the request names, else the
/// first ones that vary.
fn axes(
    wanted: &Wanted,
    tree: &Tree<'_>,
    averaged: &[usize],
) -> Result<(Option<usize>, Option<usize>), PlotError> {
    let free = |taken: Option<usize>| {
        tree.varied().into_iter().find(|level| Some(*level) != taken && !averaged.contains(level))
    };
    let named = |name: &Option<String>| name.as_deref().map(|name| tree.level(name)).transpose();
    let (by, along) = (named(&wanted.by)?, named(&wanted.along)?);
    Ok(match (wanted.kind, by, along) {
        (Kind::Bars, by, along) => (by.or(along).or_else(|| free(None)), None),
        (_, Some(by), along) => (Some(by), along.or_else(|| free(Some(by)))),
        (_, None, Some(along)) => (free(Some(along)), Some(along)),
        (_, None, None) => match (free(None), free(free(None))) {
            // With a single level that varies, there is one line or row.
            (first, None) => (None, first),
            (first, second) => (first, second),
        },
    })
}

/// A metric of every run that is plotted.
pub(super) struct Means<'a> {
    metric: &'static Metric,
    /// The link or the group, if the metric is not that of the run.
    name: Option<String>,
    /// What the run's own value describes, if that is a link.
    bottleneck: Option<String>,
    pub(super) cells: Vec<&'a Cell<'a>>,
    /// The summaries of runs, by their ids.
    runs: HashMap<&'a str, &'a RunSummary>,
    tree: &'a Tree<'a>,
    /// Whether another engine ran, too.
    is_one_of_two: bool,
}

impl<'a> Means<'a> {
    pub(super) fn new(
        summary: &'a Summary,
        metric: &'static Metric,
        name: Option<&str>,
        tree: &'a Tree<'a>,
    ) -> Result<Means<'a>, PlotError> {
        // Engines are never averaged: if both ran, the simulator is shown.
        let engine =
            tree.cells.iter().map(|cell| cell.engine).find(|engine| *engine == "sim").unwrap_or("live");
        let cells: Vec<&Cell<'_>> = tree.cells.iter().filter(|cell| cell.engine == engine).collect();
        let is_one_of_two = cells.len() < tree.cells.len();
        let first = cells.iter().find_map(|cell| cell.runs.first());
        let bottleneck = first.and_then(|run| {
            let link = run.info.links.get(run.info.bottleneck? as usize)?;
            metric.of.contains(&Level::Link).then(|| link.name.clone())
        });
        let name = name.map(String::from);
        let runs = summary.runs.iter().map(|run| (run.id.as_str(), run)).collect();
        let mut means = Means { metric, name, bottleneck, cells, runs, tree, is_one_of_two };
        means.name = means.subject_for()?;
        Ok(means)
    }

    /// The link or the group of the metric: the one that was asked for, or the only one that has values.
    fn subject_for(&self) -> Result<Option<String>, PlotError> {
        let runs = || self.cells.iter().flat_map(|cell| self.summaries(cell)).map(|(_, run)| run);
        let has = |name: Option<&str>| runs().any(|run| value(run, self.metric, name).is_some());
        if has(self.name.as_deref()) {
            return Ok(self.name.clone());
        }
        let mut names: Vec<String> = vec![];
        for run in runs() {
            let links = run.queues.iter().map(|queue| queue.link.as_str());
            for name in links.chain(run.groups.iter().map(|group| &*group.name)) {
                if names.iter().all(|known| known != name) {
                    names.push(name.into());
                }
            }
        }
        names.retain(|name| has(Some(name)));
        match (&self.name, names.as_slice()) {
            (None, [only]) => Ok(Some(only.clone())),
            (_, []) => Err(asked(
                format!("these runs have no values of `{}`", self.metric.name),
                "`weir describe METRIC` shows what a metric describes",
            )),
            (name, names) => Err(asked(
                match name {
                    Some(of) => format!("`{}` has no values for `{of}`", self.metric.name),
                    None => format!("`{}` is not a metric of the whole run", self.metric.name),
                },
                format!("give --of {}", listed(names.iter().map(String::as_str))),
            )),
        }
    }

    /// The runs of a cell, each with the number of its repeat.
    pub(super) fn summaries(&self, cell: &Cell<'_>) -> Vec<(u32, &'a RunSummary)> {
        let found = cell.runs.iter().filter_map(|run| self.runs.get(run.file.id.as_str()));
        found.map(|run| (run.repeat, *run)).collect()
    }

    /// The value of a run.
    pub(super) fn value(&self, run: &RunSummary) -> Option<f64> {
        value(run, self.metric, self.name.as_deref())
    }

    /// Why a run has none.
    pub(super) fn why(&self, run: &RunSummary) -> String {
        absent::why(self.metric, run, self.name.as_deref())
    }

    /// The metric's subject, for a title.
    pub(super) fn subject(&self) -> String {
        let name = self.name.as_ref().or(self.bottleneck.as_ref());
        name.map_or(String::new(), |name| format!(" of {name}"))
    }

    /// What is fixed, averaged and repeated, for the line below the title.
    pub(super) fn about(&self, averaged: &[usize]) -> Vec<String> {
        let mut about = self.tree.about(averaged);
        let repeats = self.cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0);
        if repeats > 1 {
            about.push(format!("{repeats} repeats, with the 95 % interval of their mean"));
        }
        if self.is_one_of_two {
            about.extend(self.cells.first().map(|cell| engine_name(cell.engine).to_owned()));
        }
        about
    }

    /// The mean over the cells with these labels. A mean over several cells is the mean of their means; its interval is that of the
    /// repeats' means over the cells.
    fn mean(&self, chosen: &[(Option<usize>, &str)]) -> Mean {
        let fits = |cell: &&&Cell<'_>| {
            chosen.iter().all(|(level, label)| level.is_none_or(|level| cell.labels[level] == *label))
        };
        let cells: Vec<(Vec<(u32, f64)>, String)> =
            self.cells.iter().filter(fits).map(|cell| self.of_cell(cell)).collect();
        let mut why: Vec<&str> = vec![];
        cells.iter().map(|(_, why)| why.as_str()).filter(|text| !text.is_empty()).for_each(|text| {
            if !why.contains(&text) {
                why.push(text);
            }
        });
        let why = if cells.is_empty() { "not in the lab".to_owned() } else { why.join("; ") };
        if cells.is_empty() || cells.iter().any(|(values, _)| values.is_empty()) {
            return Mean { why, ..Mean::default() };
        }
        let count = cells.len() as f64;
        let mean = cells.iter().map(|(values, _)| average(values)).sum::<f64>() / count;
        let of_repeat = |repeat: u32| -> Option<f64> {
            let one = |values: &[(u32, f64)]| {
                values.iter().find(|(other, _)| *other == repeat).map(|(_, value)| *value)
            };
            cells.iter().map(|(values, _)| one(values)).sum::<Option<f64>>().map(|sum| sum / count)
        };
        let each: Vec<f64> = cells[0].0.iter().filter_map(|(repeat, _)| of_repeat(*repeat)).collect();
        let same = cells.iter().all(|(values, _)| values.len() == each.len());
        let interval = Estimate::of(&each).filter(|_| same).and_then(|estimate| estimate.interval);
        Mean { mean: Some(mean), half: interval.map(|(low, high)| (high - low) / 2.0), each, why }
    }

    /// The values of a cell's repeats, and why repeats have none.
    fn of_cell(&self, cell: &Cell<'_>) -> (Vec<(u32, f64)>, String) {
        let (mut values, mut without) = (vec![], vec![]);
        let runs = self.summaries(cell);
        for (repeat, run) in &runs {
            match self.value(run) {
                Some(value) => values.push((*repeat, value)),
                None => without.push(self.why(run)),
            }
        }
        let why = match (runs.len(), without.first()) {
            (0, _) => "not run".into(),
            (_, None) => String::new(),
            (all, Some(why)) if without.len() == all => why.clone(),
            (all, Some(why)) => format!("{} of {all} runs {why}", without.len()),
        };
        (values, why)
    }

    fn bars(&self, figure: &mut Figure, by: Option<usize>) {
        let name = |label: &String| if label.is_empty() { "all".to_owned() } else { label.clone() };
        let labels = self.tree.labels(by);
        let bars = labels.iter().map(|label| (name(label), self.mean(&[(by, label)])));
        let bars: Vec<(String, Mean)> = bars.collect();
        // A bar without a value has the reason in its place; only a part of the repeats needs a note.
        figure.notes = bars
            .iter()
            .filter(|(_, bar)| bar.mean.is_some())
            .filter_map(|(name, bar)| bar.note(name))
            .collect();
        figure.x = axis(self.metric);
        figure.content = Content::Bars(bars);
    }

    fn heat(&self, figure: &mut Figure, along: usize, by: Option<usize>) {
        let (columns, rows) = (self.tree.labels(Some(along)), self.tree.labels(by));
        let mut values: Vec<Vec<Mean>> = vec![];
        for row in &rows {
            let means = columns.iter().map(|column| self.mean(&[(by, row), (Some(along), column)]));
            values.push(means.collect());
        }
        for (row, means) in rows.iter().zip(&values) {
            let named = columns.iter().zip(means);
            figure.notes.extend(named.filter_map(|(column, mean)| mean.note(&joined(row, column))));
        }
        figure.x = self.tree.short(along).into();
        figure.y = by.map_or(String::new(), |by| self.tree.short(by).into());
        figure.content = Content::Heat { rows, columns, values, value: axis(self.metric) };
    }

    fn lines(
        &self,
        figure: &mut Figure,
        along: usize,
        by: Option<usize>,
        log: bool,
    ) -> Result<(), PlotError> {
        let columns = self.tree.labels(Some(along));
        let x = self.tree.short(along);
        let Some((at, unit)) = places(&columns) else {
            return Err(asked(
                format!("the labels of `{x}` are not numbers of one unit, so lines cannot follow them"),
                "give --along a level of rates, times, loads or sizes, or --kind bars or heat",
            ));
        };
        if log && at.iter().any(|place| *place <= 0.0) {
            let help = "leave --log out, or keep only labels above zero with --only";
            return Err(asked(format!("a label of `{x}` is 0, which no logarithmic axis has"), help));
        }
        let mut order: Vec<usize> = (0..at.len()).collect();
        order.sort_by(|a, b| at[*a].total_cmp(&at[*b]));
        let mut curves = vec![];
        for row in self.tree.labels(by) {
            let name = if row.is_empty() { self.metric.title.to_owned() } else { row.clone() };
            let mut curve = Curve { name, ..Curve::default() };
            for &place in &order {
                let mean = self.mean(&[(by, &row), (Some(along), &columns[place])]);
                figure.notes.extend(mean.note(&joined(&row, &columns[place])));
                // Where there is no value, the line is interrupted.
                curve.points.push((at[place], mean.mean.unwrap_or(f64::NAN)));
                curve.gaps.extend(mean.mean.is_none().then_some(at[place]));
                curve.means.push(mean);
            }
            curves.push(curve);
        }
        figure.x = if unit.is_empty() { x.into() } else { format!("{x}, {unit}") };
        figure.y = axis(self.metric);
        figure.log = log;
        figure.content = Content::Lines { curves, ticks: order.into_iter().map(|place| at[place]).collect() };
        Ok(())
    }
}

fn average(values: &[(u32, f64)]) -> f64 {
    values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64
}

fn joined(row: &str, column: &str) -> String {
    [row, column].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The value of a metric of a run, or of its link or group with this name; the mean of a distribution.
fn value(run: &RunSummary, metric: &Metric, name: Option<&str>) -> Option<f64> {
    let metrics: &Metrics = match name {
        None => &run.metrics,
        Some(name) => {
            let queue = run.queues.iter().find(|queue| queue.link == name).map(|queue| &queue.metrics);
            let group = run.groups.iter().find(|group| *group.name == *name).map(|group| &group.metrics);
            let both = [queue, group].into_iter().flatten();
            both.into_iter().find(|metrics| metrics.value(metric) != Value::Undefined)?
        }
    };
    metrics.number(metric)
}
