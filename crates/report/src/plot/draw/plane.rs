//! A delay over the throughput: points, and ellipses around their medians.

use super::super::Figure;
use super::axis::axis;
use super::{COLOURS, Drawn, GRID, INK, Pen, QUIET, ends, tick, weight};
use crate::scatter::Region;
use crate::ticks;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Number of round ticks on an axis.
const TICKS: f64 = 6.0;

pub(super) fn draw<DB: DrawingBackend>(
    figure: &Figure,
    clouds: &[(String, Vec<(f64, f64)>)],
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let regions: Vec<Option<Region>> = clouds.iter().map(|(_, points)| Region::of(points)).collect();
    let rims = || regions.iter().flatten().filter_map(Region::rim).flatten();
    let all = || clouds.iter().flat_map(|(_, points)| points.iter().copied()).chain(rims());
    let (x, y) = (ends(all().map(|(x, _)| x), true), ends(all().map(|(_, y)| y), true));
    let wider = |(low, high): (f64, f64)| (low.min(0.0), high + 0.05 * (high - low));
    let (x, y) = (wider(x), wider(y));
    let mut chart = ChartBuilder::on(area)
        .margin(pen.px(12.0))
        .x_label_area_size(pen.px(42.0))
        .y_label_area_size(pen.px(62.0))
        .build_cartesian_2d(
            axis(x.0..x.1, ticks::linear(x.0, x.1, TICKS)),
            axis(y.0..y.1, ticks::linear(y.0, y.1, TICKS)),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(pen.stroke(1.0)))
        .axis_style(QUIET.stroke_width(pen.stroke(1.0)))
        .label_style(pen.text(12.0, QUIET))
        .axis_desc_style(pen.text(13.0, INK))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&|x| tick(*x))
        .y_label_formatter(&|y| tick(*y))
        .draw()?;
    for (number, ((_, points), region)) in clouds.iter().zip(&regions).enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        if let Some(rim) = region.as_ref().and_then(Region::rim) {
            let rim: Vec<(f64, f64)> = rim.collect();
            chart.draw_series([Polygon::new(rim.clone(), colour.mix(0.18).filled())])?;
            let closed = rim.iter().chain(rim.first()).copied();
            chart.draw_series(LineSeries::new(closed, colour.stroke_width(pen.stroke(weight(number)))))?;
        }
        chart.draw_series(points.iter().map(|point| Circle::new(*point, pen.px(2.2), colour.filled())))?;
        if let Some(region) = region {
            chart.draw_series([Circle::new(region.median, pen.px(5.0), colour.filled())])?;
        }
    }
    Ok(())
}
