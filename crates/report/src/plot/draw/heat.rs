//! A heat map with its colour scale.

use super::super::{Figure, Mean};
use super::axis::axis;
use super::{Drawn, INK, LETTER, Pen, QUIET, ends, tick};
use crate::number::exact;
use crate::ticks;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Width of the colour scale with its labels.
const SCALE: f64 = 110.0;
/// Number of steps in which the scale is drawn.
const STEPS: u32 = 48;
/// Number of round ticks at the scale.
const TICKS: f64 = 5.0;

/// A table of values.
pub(super) struct Map<'f> {
    pub(super) rows: &'f [String],
    pub(super) columns: &'f [String],
    pub(super) values: &'f [Vec<Mean>],
    /// The metric with its unit.
    pub(super) value: &'f str,
}

pub(super) fn draw<DB: DrawingBackend>(
    figure: &Figure,
    map: &Map<'_>,
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let range = ends(map.values.iter().flatten().filter_map(|value| value.mean), true);
    let width = area.dim_in_pixel().0 as i32;
    let (squares, scale) = area.split_horizontally(width - pen.px(SCALE));
    self::squares(figure, map, range, pen, &squares)?;
    colours(map.value, range, pen, &scale)
}

/// The colour of a value as a part of the range.
fn shade(part: f64) -> RGBColor {
    let mixed = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part) as u8;
    RGBColor(mixed(240, 23), mixed(244, 87), mixed(248, 143))
}

fn squares<DB: DrawingBackend>(
    figure: &Figure,
    map: &Map<'_>,
    (low, high): (f64, f64),
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let longest = map.rows.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let room = (LETTER * longest as f64).clamp(40.0, 380.0) + 36.0;
    let places = |names: &[String]| (0..names.len()).map(|place| place as f64).collect::<Vec<f64>>();
    let mut chart = ChartBuilder::on(area)
        .margin(pen.px(12.0))
        .x_label_area_size(pen.px(42.0))
        .y_label_area_size(pen.px(room))
        .build_cartesian_2d(
            axis(-0.5..map.columns.len() as f64 - 0.5, places(map.columns)),
            axis(map.rows.len() as f64 - 0.5..-0.5, places(map.rows)),
        )?;
    let name =
        |names: &[String], at: f64| names.get(at.round().max(0.0) as usize).cloned().unwrap_or_default();
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(QUIET.stroke_width(pen.stroke(1.0)))
        .label_style(pen.text(12.0, INK))
        .axis_desc_style(pen.text(13.0, INK))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&|x| name(map.columns, *x))
        .y_label_formatter(&|y| name(map.rows, *y))
        .draw()?;
    for (row, values) in map.values.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let (x, y) = (column as f64, row as f64);
            let part = value.mean.map(|mean| (mean - low) / (high - low));
            let colour = part.map_or(WHITE, shade);
            let square = [(x - 0.49, y - 0.48), (x + 0.49, y + 0.48)];
            chart.draw_series([Rectangle::new(square, colour.filled())])?;
            // A value of only some of the repeats has a mark; the note below the map says which.
            let mark = if value.why.is_empty() { "" } else { "*" };
            let said = value.mean.map_or("–".into(), |mean| exact(mean) + mark);
            let left = -(LETTER * said.chars().count() as f64 / 2.0);
            let style = pen.text(12.0, if part > Some(0.5) { WHITE } else { INK });
            let text = Text::new(said, (pen.px(left), -pen.px(6.0)), style);
            chart.draw_series([EmptyElement::at((x, y)) + text])?;
        }
    }
    Ok(())
}

/// The scale of colours, with the metric's name along it.
fn colours<DB: DrawingBackend>(
    value: &str,
    (low, high): (f64, f64),
    pen: Pen,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(pen.px(12.0))
        .margin_bottom(pen.px(54.0))
        .margin_right(pen.px(12.0))
        .y_label_area_size(pen.px(72.0))
        .build_cartesian_2d(0.0..1.0, axis(low..high, ticks::linear(low, high, TICKS)))?;
    let step = (high - low) / f64::from(STEPS);
    let bands = (0..STEPS).map(|number| {
        let (part, from) = (f64::from(number) / f64::from(STEPS - 1), low + step * f64::from(number));
        Rectangle::new([(0.0, from), (1.0, from + step)], shade(part).filled())
    });
    chart.draw_series(bands)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_x_axis()
        .axis_style(QUIET.stroke_width(pen.stroke(1.0)))
        .label_style(pen.text(12.0, QUIET))
        .axis_desc_style(pen.text(12.0, INK))
        .y_desc(value)
        .y_label_formatter(&|y| tick(*y))
        .draw()?;
    Ok(())
}
