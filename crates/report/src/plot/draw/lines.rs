//! Lines over time, of distributions, and along a level.

use super::super::{Curve, Figure};
use super::axis::axis;
use super::{COLOURS, Drawn, GRID, INK, LETTER, Pen, QUIET, ends, tick, weight};
use crate::number::exact;
use crate::ticks;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Number of round ticks on an axis.
const TICKS: f64 = 6.0;
/// Largest number of ticks of a logarithmic axis.
const LOG_TICKS: usize = 12;

pub(super) fn draw<DB: DrawingBackend>(
    figure: &Figure,
    curves: &[Curve],
    labels: &[f64],
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    // A logarithmic axis is a linear axis of the logarithms, whose labels are the values.
    let place = |x: f64| if figure.log { x.log10() } else { x };
    let xs = || {
        curves
            .iter()
            .flat_map(|curve| &curve.points)
            .map(|(x, _)| place(*x))
            .chain(labels.iter().map(|x| place(*x)))
    };
    let tops = curves.iter().flat_map(|curve| {
        let means = curve.means.iter().flat_map(|mean| {
            mean.each.iter().copied().chain(mean.mean.map(|value| value + mean.half.unwrap_or(0.0)))
        });
        curve.points.iter().map(|(_, y)| *y).chain(means)
    });
    let (x, (low, high)) = (ends(xs(), false), ends(tops, true));
    let top = high + 0.04 * (high - low);
    let wide = f64::from(area.dim_in_pixel().0) / pen.scale - 90.0;
    let across = match (labels, figure.log) {
        ([], false) => ticks::linear(x.0, x.1, TICKS),
        ([], true) => {
            ticks::logarithmic(10f64.powf(x.0), 10f64.powf(x.1), LOG_TICKS).into_iter().map(place).collect()
        }
        (labels, _) => apart(&labels.iter().map(|label| place(*label)).collect::<Vec<_>>(), x, wide),
    };
    let mut chart = ChartBuilder::on(area)
        .margin(pen.px(12.0))
        .x_label_area_size(pen.px(42.0))
        .y_label_area_size(pen.px(62.0))
        .build_cartesian_2d(axis(x.0..x.1, across), axis(low..top, ticks::linear(low, top, TICKS)))?;
    let written = |x: &f64| if figure.log { exact_label(10f64.powf(*x)) } else { tick(*x) };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(pen.stroke(1.0)))
        .axis_style(QUIET.stroke_width(pen.stroke(1.0)))
        .label_style(pen.text(12.0, QUIET))
        .axis_desc_style(pen.text(13.0, INK))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&written)
        .y_label_formatter(&|y| tick(*y))
        .draw()?;
    for (number, curve) in curves.iter().enumerate() {
        let style = COLOURS[number % COLOURS.len()].stroke_width(pen.stroke(weight(number)));
        for stretch in curve.points.split(|(x, y)| !place(*x).is_finite() || !y.is_finite()) {
            let points = stretch.iter().map(|(x, y)| (place(*x), *y));
            chart.draw_series(LineSeries::new(points, style))?;
        }
        for ((x, _), mean) in curve.points.iter().zip(&curve.means) {
            let at = place(*x);
            if mean.each.len() > 1 {
                let repeats =
                    mean.each.iter().map(|value| Circle::new((at, *value), pen.px(1.8), style.filled()));
                chart.draw_series(repeats)?;
            }
            let Some(value) = mean.mean else { continue };
            chart.draw_series([Circle::new((at, value), pen.px(4.0), style.filled())])?;
            if let Some(half) = mean.half {
                let ends = [(at, (value - half).max(low)), (at, value + half)];
                chart.draw_series([PathElement::new(ends, style)])?;
            }
        }
        // A cross at the foot marks a place without a value, whose reason stands below the plot.
        let crosses = curve.gaps.iter().map(|x| {
            EmptyElement::at((place(*x), low))
                + Cross::new((pen.px(6.0 * number as f64), -pen.px(8.0)), pen.px(4.0), style)
        });
        chart.draw_series(crosses)?;
    }
    Ok(())
}

/// A value at a logarithmic axis.
fn exact_label(value: f64) -> String {
    // The logarithm of a round value has lost its last digits.
    let value = crate::number::rounded(value, 6);
    if value < 1e-4 { exact(value) } else { tick(value) }
}

/// Those of some places whose labels do not cover each other.
fn apart(places: &[f64], (low, high): (f64, f64), wide: f64) -> Vec<f64> {
    let mut shown: Vec<f64> = vec![];
    for place in places {
        let room = |other: f64| wide * (place - other).abs() / (high - low);
        if shown.last().is_none_or(|last| room(*last) > 4.0 * LETTER) {
            shown.push(*place);
        }
    }
    shown
}
