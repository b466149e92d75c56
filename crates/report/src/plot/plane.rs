//! A delay over the throughput: for each cell its repeats as points, and an ellipse in which their median lies with 95 % confidence.
//! Down and to the right is better.

use super::means::Means;
use super::traces::lines;
use super::tree::Tree;
use super::{Content, Figure, PlotError, Wanted, asked, axis, named};
use crate::scatter::FEWEST;
use weir_engine::Results;
use weir_record::Metric;
use weir_record::metrics::queue::QUEUE_DELAY;
use weir_record::metrics::tcp::RTT;

/// The requested plot; `across` is the metric of the horizontal axis.
pub(super) fn figure(
    results: &Results,
    wanted: &Wanted,
    across: &'static Metric,
    tree: &Tree<'_>,
) -> Result<Figure, PlotError> {
    if wanted.along.is_some() {
        return Err(asked("this kind of plot goes along no level", "give --by LEVEL"));
    }
    let of = wanted.of.as_deref();
    // Packets of a group have a round trip; those of the run have the wait at the bottleneck.
    let usual = if of.is_some() { RTT.name } else { QUEUE_DELAY.name };
    let up = named(wanted.metric.as_deref().unwrap_or(usual))?;
    let averaged = tree.averaged(&wanted.mean_over)?;
    if !averaged.is_empty() {
        return Err(asked(
            "an ellipse is that of one cell, so there is no mean over a level",
            "fix the level with --only",
        ));
    }
    let by = wanted.by.as_deref().map(|name| tree.level(name)).transpose()?;
    let axes = by.map_or_else(|| tree.varied(), |by| vec![by]);
    tree.nothing_hidden(&axes, &[])?;
    let summary = results.summary(None)?;
    let [x, y] = [Means::new(&summary, across, of, tree)?, Means::new(&summary, up, of, tree)?];
    let (mut clouds, mut notes) = (vec![], vec![]);
    for (name, cells) in lines(tree, &axes)? {
        let runs = cells.iter().flat_map(|cell| y.summaries(cell));
        let (mut points, mut why) = (vec![], None);
        for (_, run) in runs {
            match (x.value(run), y.value(run)) {
                (Some(across), Some(up)) => points.push((across, up)),
                (None, _) => why = Some(x.why(run)),
                (_, None) => why = Some(y.why(run)),
            }
        }
        let why = why.or_else(|| points.is_empty().then(|| "not run".into()));
        notes.extend(why.map(|why| format!("{name}: {why}")));
        notes.extend(
            cells.iter().filter(|cell| !cell.hint.is_empty()).map(|cell| format!("{name}: {}", cell.hint)),
        );
        clouds.push((name, points));
    }
    let most = clouds.iter().map(|(_, points)| points.len()).max().unwrap_or(0);
    if most < FEWEST {
        notes.push(format!(
            "Fewer than {FEWEST} repeats have no ellipse: give the lab repeats = {FEWEST} or more."
        ));
    }
    let mut about = tree.about(&[]);
    about.push("a point is a run; an ellipse holds the median with 95 % confidence".into());
    Ok(Figure {
        title: format!("{}{} over throughput", up.title, y.subject()),
        about: about.join("; "),
        x: axis(across) + &x.subject(),
        y: axis(up),
        content: Content::Plane(clouds),
        notes,
        ..Figure::default()
    })
}
