//! A metric over time, and distributions: a line for each cell, of its first valid repeat.

use super::tree::{Cell, Tree};
use super::{Content, Curve, Figure, Kind, PlotError, Wanted, asked, axis, listed};
use crate::absent;
use crate::naming::engine_name;
use weir_engine::{FinishedRun, Results, ResultsError};
use weir_record::{Level, METRICS, Metric, Records, SHARES, Subject, View, series, spreads};

/// Largest number of points of a line over time.
const POINTS: usize = 600;
/// Largest number of lines of a plot: twice the number of colours.
const MOST_LINES: usize = 16;

/// The points of a run's line, or why it has none.
type Trace = Result<Vec<(f64, f64)>, String>;

/// The requested plot.
pub(super) fn figure(
    results: &Results,
    wanted: &Wanted,
    metric: &'static Metric,
    tree: &Tree<'_>,
) -> Result<Figure, PlotError> {
    if wanted.along.is_some() {
        return Err(asked("this kind of plot goes along no level", "give --by, or --kind lines"));
    }
    let averaged = tree.averaged(&wanted.mean_over)?;
    let by = wanted.by.as_deref().map(|name| tree.level(name)).transpose()?;
    let free = |level: &usize| !averaged.contains(level);
    let axes = by.map_or_else(|| tree.varied().into_iter().filter(free).collect(), |by| vec![by]);
    tree.nothing_hidden(&axes, &averaged)?;
    let lines = lines(tree, &axes)?;
    let runs: Vec<&FinishedRun> = tree.cells.iter().filter_map(|cell| cell.runs.first().copied()).collect();
    let traces = read(results, wanted, metric, &runs)?;
    let trace = |cell: &Cell<'_>| -> Trace {
        let Some(run) = cell.runs.first() else { return Err("not run".into()) };
        let place = runs.iter().position(|other| other.file.id == run.file.id);
        place.map_or_else(|| Err("not run".into()), |place| traces[place].clone())
    };
    let mut curves = vec![];
    let mut notes = vec![];
    for (name, cells) in &lines {
        let points = match mean(cells.iter().map(|cell| trace(cell)), wanted.kind) {
            Ok(points) => points,
            Err(why) => {
                notes.push(format!("{name}: {why}"));
                vec![]
            }
        };
        curves.push(Curve { name: name.clone(), points, ..Curve::default() });
        let hints = cells.iter().filter(|cell| !cell.hint.is_empty());
        notes.extend(hints.map(|cell| format!("{name}: {}", cell.hint)));
    }
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return Err(nothing(&runs, wanted, metric));
    }
    let of = runs.first().and_then(|run| subject_name(run, metric, wanted.of.as_deref()));
    let of = of.map_or(String::new(), |of| format!(" of {of}"));
    let mut about = tree.about(&averaged);
    let repeats = tree.cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(1);
    if repeats > 1 {
        about.push(format!("the first of {repeats} repeats of each cell"));
    }
    let (x, y, title) = match wanted.kind {
        Kind::Cdf => (
            axis(metric),
            "at or below, %".into(),
            format!("Distribution of {}{of} after the warm-up", metric.title.to_lowercase()),
        ),
        _ => ("time, s".into(), axis(metric), format!("{}{of} over time", metric.title)),
    };
    let content = Content::Lines { curves, ticks: vec![] };
    Ok(Figure { title, about: about.join("; "), x, y, log: wanted.log, content, notes, size: None })
}

/// A line's name, and the cells over which it is the mean.
type Line<'t, 'r> = (String, Vec<&'t Cell<'r>>);

/// The lines: one for each choice on these levels and each engine.
pub(super) fn lines<'t, 'r>(tree: &'t Tree<'r>, axes: &[usize]) -> Result<Vec<Line<'t, 'r>>, PlotError> {
    let engines = tree.cells.iter().any(|cell| cell.engine != tree.cells[0].engine);
    let varied: Vec<usize> = tree.varied().into_iter().filter(|level| axes.contains(level)).collect();
    let mut lines: Vec<Line<'t, 'r>> = vec![];
    for cell in &tree.cells {
        let labels = varied.iter().map(|level| cell.labels[*level].as_str());
        let name: Vec<&str> = labels.chain(engines.then(|| engine_name(cell.engine))).collect();
        let name = if name.is_empty() { "all".into() } else { name.join(", ") };
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cells)) => cells.push(cell),
            None => lines.push((name, vec![cell])),
        }
    }
    if lines.len() > MOST_LINES {
        return Err(asked(
            format!("{} lines are too many for a plot", lines.len()),
            "narrow the tree by --only LEVEL=LABEL, or average over a level by --mean-over LEVEL",
        ));
    }
    Ok(lines)
}

/// The lines of these runs, in their order.
fn read(
    results: &Results,
    wanted: &Wanted,
    metric: &'static Metric,
    runs: &[&FinishedRun],
) -> Result<Vec<Trace>, PlotError> {
    let place = |run: &FinishedRun| runs.iter().position(|other| other.file.id == run.file.id);
    let is_wanted = |number: usize| results.runs.get(number).and_then(place).is_some();
    let made = |_: usize, run: &FinishedRun, records: &Records| {
        let of = subject(run, metric, wanted.of.as_deref());
        let points = of.and_then(|of| points(run, records, metric, of, wanted.kind));
        let trace: Trace =
            points.ok_or_else(|| absent::why(metric, &run.summarise(records, None), wanted.of.as_deref()));
        Ok::<_, ResultsError>((place(run), trace))
    };
    let mut read = results.each(is_wanted, made)?;
    read.sort_by_key(|(place, _)| *place);
    Ok(read.into_iter().map(|(_, trace)| trace).collect())
}

/// The mean of some lines at each of their points: of the values at a time, or of those at a share of a distribution.
fn mean(traces: impl ExactSizeIterator<Item = Trace>, kind: Kind) -> Trace {
    let count = traces.len() as f64;
    let traces: Vec<Vec<(f64, f64)>> = traces.collect::<Result<_, _>>()?;
    let shortest = traces.iter().map(Vec::len).min().unwrap_or(0);
    let at = |point: usize| {
        let sum = traces.iter().map(|trace| trace[point]).fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
        (sum.0 / count, sum.1 / count)
    };
    let aligned = |point: usize| traces.iter().all(|trace| trace[point].0 == traces[0][point].0);
    if kind == Kind::Time && (0..shortest).any(|point| !aligned(point)) {
        return Err("its runs have different lengths, so they have no mean over time".into());
    }
    Ok((0..shortest).map(at).collect())
}

/// The error of a plot without any line.
fn nothing(runs: &[&FinishedRun], wanted: &Wanted, metric: &Metric) -> PlotError {
    let Some(run) = runs.first() else { return asked("there is no run to plot", "run the lab") };
    let links = run.info.links.iter().filter(|link| link.instrumented).map(|link| link.name.as_str());
    let names = listed(links.chain(run.info.groups.iter().map(|group| &*group.name)));
    let of = wanted.of.as_ref().map_or(String::new(), |of| format!(" of `{of}`"));
    let (kind, has): (&str, fn(&Metric) -> bool) = match wanted.kind {
        Kind::Cdf => ("distribution", Metric::has_spread),
        _ => ("series", Metric::has_curve),
    };
    let known = listed(METRICS.iter().filter(|metric| has(metric)).map(|metric| metric.name));
    asked(
        format!("there is no {kind} of `{}`{of}", metric.name),
        format!("metrics with a {kind}: {known}; links and groups for --of: {names}"),
    )
}

/// The subject of a series: the link or the group with this name; without a name the bottleneck, or the first group.
fn subject(run: &FinishedRun, metric: &Metric, name: Option<&str>) -> Option<Subject> {
    let of_links = metric.of.contains(&Level::Link);
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
