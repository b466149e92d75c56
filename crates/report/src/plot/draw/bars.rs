//! Bars, each with its repeats, its interval and its number.

use super::super::{Figure, Mean};
use super::axis::axis;
use super::{COLOURS, Drawn, GRID, INK, LETTER, Pen, QUIET, ends, tick};
use crate::number::exact;
use crate::ticks;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Number of round ticks on the axis.
const TICKS: f64 = 6.0;

pub(super) fn draw<DB: DrawingBackend>(
    figure: &Figure,
    bars: &[(String, Mean)],
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let longest = bars.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let room = (LETTER * longest as f64).clamp(40.0, 380.0) + 16.0;
    let tops = bars.iter().flat_map(|(_, bar)| {
        bar.each.iter().copied().chain(bar.mean.map(|mean| mean + bar.half.unwrap_or(0.0)))
    });
    let (low, high) = ends(tops, true);
    let count = bars.len() as f64;
    let places: Vec<f64> = (0..bars.len()).map(|place| place as f64).collect();
    let mut chart = ChartBuilder::on(area)
        .margin(pen.px(12.0))
        .x_label_area_size(pen.px(42.0))
        .y_label_area_size(pen.px(room))
        .build_cartesian_2d(
            axis(low..high * 1.16, ticks::linear(low, high * 1.16, TICKS)),
            axis(count - 0.5..-0.5, places),
        )?;
    let name =
        |y: &f64| bars.get(y.round().max(0.0) as usize).map_or(String::new(), |(name, _)| name.clone());
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(pen.stroke(1.0)))
        .axis_style(QUIET.stroke_width(pen.stroke(1.0)))
        .label_style(pen.text(12.0, INK))
        .axis_desc_style(pen.text(13.0, INK))
        .x_desc(&figure.x)
        .x_label_formatter(&|x| tick(*x))
        .y_label_formatter(&name)
        .draw()?;
    for (place, (_, bar)) in bars.iter().enumerate() {
        let (at, colour) = (place as f64, COLOURS[place % COLOURS.len()]);
        let Some(mean) = bar.mean else {
            let why = Text::new(bar.why.clone(), (pen.px(8.0), -pen.px(7.0)), pen.text(12.0, QUIET));
            chart.draw_series([EmptyElement::at((low, at)) + why])?;
            continue;
        };
        chart.draw_series([Rectangle::new([(0.0, at - 0.32), (mean, at + 0.32)], colour.filled())])?;
        if bar.each.len() > 1 {
            let repeats =
                bar.each.iter().map(|value| Circle::new((*value, at + 0.2), pen.px(2.2), INK.filled()));
            chart.draw_series(repeats)?;
        }
        if let Some(half) = bar.half {
            let line = [((mean - half).max(low), at), (mean + half, at)];
            chart.draw_series([PathElement::new(line, INK.stroke_width(pen.stroke(2.0)))])?;
        }
        let said = bar.half.map_or(exact(mean), |half| format!("{} ± {}", exact(mean), exact(half)));
        let end = mean.max(0.0) + bar.half.unwrap_or(0.0) + 0.01 * (high - low);
        let label = Text::new(said, (0, -pen.px(7.0)), pen.text(12.0, QUIET));
        chart.draw_series([EmptyElement::at((end, at)) + label])?;
    }
    Ok(())
}
