//! The drawing of a figure, the same for both formats.

use super::{Content, Curve, Figure, Mean, PlotError};
use crate::number::exact;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, RGBColor, register_font};

/// Width and height of the drawing in pixels; a PNG has twice as many each way.
const SIZE: (u32, u32) = (900, 480);
/// Height of a row of the legend.
const ROW: i32 = 22;
/// Approximate width of a letter in the legend.
const LETTER: f64 = 7.4;
/// The family of the text. The viewer of an SVG chooses the font; the layout has the widths of DejaVu Sans.
const FAMILY: &str = "sans-serif";
const INK: RGBColor = RGBColor(29, 33, 37);
const QUIET: RGBColor = RGBColor(92, 99, 107);
const GRID: RGBColor = RGBColor(233, 230, 224);
/// The colours of the pages' groups.
const COLOURS: [RGBColor; 8] = [
    RGBColor(28, 102, 176),
    RGBColor(196, 80, 27),
    RGBColor(10, 122, 92),
    RGBColor(161, 48, 127),
    RGBColor(165, 138, 0),
    RGBColor(22, 147, 173),
    RGBColor(179, 38, 59),
    RGBColor(92, 95, 102),
];

type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// The figure as SVG.
pub(super) fn svg(figure: &Figure) -> Result<String, PlotError> {
    letters()?;
    let mut text = String::new();
    draw(figure, 1, SVGBackend::with_string(&mut text, SIZE).into_drawing_area()).map_err(failed)?;
    Ok(text)
}

/// The figure as PNG: pixels of 24 bits, twice as many each way.
pub(super) fn png(figure: &Figure) -> Result<Vec<u8>, PlotError> {
    letters()?;
    let (width, height) = (2 * SIZE.0, 2 * SIZE.1);
    let mut pixels = vec![0; (3 * width * height) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    draw(figure, 2, area).map_err(failed)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

fn letters() -> Result<(), PlotError> {
    register_font(FAMILY, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| PlotError::Drawing("the font cannot be read".into()))
}

/// Draws with everything `scale` times as large.
fn draw<DB: DrawingBackend>(figure: &Figure, scale: i32, area: DrawingArea<DB, Shift>) -> Drawn<DB> {
    area.fill(&WHITE)?;
    let names: Vec<&str> = match &figure.content {
        Content::Lines(curves) => curves.iter().map(|curve| curve.name.as_str()).collect(),
        _ => vec![],
    };
    let (width, height) = area.dim_in_pixel();
    let places = legend(&names, f64::from(width) / f64::from(scale) - 40.0);
    let rows = places.last().map_or(0, |(_, row)| row + 1);
    let (above, below) = area.split_vertically(height as i32 - scale * (ROW * rows + 6));
    let text = |size: i32, colour: RGBColor| (FAMILY, scale * size).into_font().color(&colour);
    let above = above.titled(&figure.title, text(17, INK))?;
    match &figure.content {
        Content::Lines(curves) => lines(figure, curves, scale, &above)?,
        Content::Bars(bars) => bars_along(figure, bars, scale, &above)?,
        Content::Heat { rows, columns, values } => heat(figure, rows, columns, values, scale, &above)?,
    }
    for ((place, (name, (x, row))), colour) in names.iter().zip(&places).enumerate().zip(0..) {
        let (x, y) = (scale * (20 + *x as i32), scale * (ROW * row + 8));
        let colour = COLOURS[colour % COLOURS.len()];
        let key = [(x, y), (x + scale * 18, y)];
        below.draw(&PathElement::new(key, colour.stroke_width(dash(place) * scale as u32)))?;
        below.draw(&Text::new((*name).to_owned(), (x + scale * 24, y - scale * 7), text(13, INK)))?;
    }
    area.present()
}

/// The width of a line: lines that repeat a colour are thicker.
fn dash(place: usize) -> u32 {
    if place < COLOURS.len() { 2 } else { 4 }
}

/// For each name of the legend, its horizontal position and its row.
fn legend(names: &[&str], width: f64) -> Vec<(f64, i32)> {
    let (mut x, mut row) = (0.0, 0);
    let mut places = vec![];
    for name in names {
        let wide = 44.0 + LETTER * name.chars().count() as f64;
        if x > 0.0 && x + wide > width {
            (x, row) = (0.0, row + 1);
        }
        places.push((x, row));
        x += wide;
    }
    places
}

/// A number at an axis.
fn tick(value: f64) -> String {
    let size = value.abs();
    match () {
        () if size >= 1e6 => format!("{}M", (value / 1e4).round() / 1e2),
        () if size >= 1e4 => format!("{}k", (value / 10.0).round() / 1e2),
        () if size >= 1e-4 => format!("{}", (value * 1e6).round() / 1e6),
        () if size < 1e-12 => "0".into(),
        () => exact(value),
    }
}

/// The ends of an axis for these values; it includes 0 if `from_zero` is set.
fn ends(values: impl Iterator<Item = f64>, from_zero: bool) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    if !low.is_finite() {
        return (0.0, 1.0);
    }
    if from_zero {
        low = low.min(0.0);
    }
    if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) }
}

fn lines<DB: DrawingBackend>(
    figure: &Figure,
    curves: &[Curve],
    scale: i32,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    // A logarithmic axis is a linear axis of the logarithms, whose labels are the values.
    let place = |x: f64| if figure.log { x.log10() } else { x };
    let xs = || curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| place(*x));
    let tops = curves.iter().flat_map(|curve| {
        let half = |i: usize| curve.intervals.get(i).copied().flatten().unwrap_or(0.0);
        curve.points.iter().enumerate().map(move |(i, (_, y))| y + half(i))
    });
    let (x, (low, high)) = (ends(xs(), false), ends(tops, true));
    let text = |size: i32, colour: RGBColor| (FAMILY, scale * size).into_font().color(&colour);
    let mut chart = ChartBuilder::on(area)
        .margin(scale * 12)
        .x_label_area_size(scale * 42)
        .y_label_area_size(scale * 62)
        .build_cartesian_2d(x.0..x.1, low..high + 0.04 * (high - low))?;
    let written = |x: &f64| if figure.log { exact(10f64.powf(*x)) } else { tick(*x) };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(scale as u32))
        .axis_style(QUIET.stroke_width(scale as u32))
        .label_style(text(12, QUIET))
        .axis_desc_style(text(13, INK))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&written)
        .y_label_formatter(&|y| tick(*y))
        .draw()?;
    for (number, curve) in curves.iter().enumerate() {
        let style = COLOURS[number % COLOURS.len()].stroke_width(dash(number) * scale as u32);
        for stretch in curve.points.split(|(x, y)| !place(*x).is_finite() || !y.is_finite()) {
            let points = stretch.iter().map(|(x, y)| (place(*x), *y));
            chart.draw_series(LineSeries::new(points, style))?;
        }
        let means = curve.points.iter().zip(&curve.intervals);
        for ((x, y), half) in means {
            let at = (place(*x), *y);
            chart.draw_series([Circle::new(at, 4 * scale, style.filled())])?;
            if let Some(half) = half {
                let ends = [(at.0, (y - half).max(low)), (at.0, y + half)];
                chart.draw_series([PathElement::new(ends, style)])?;
            }
        }
    }
    Ok(())
}

fn bars_along<DB: DrawingBackend>(
    figure: &Figure,
    bars: &[(String, Mean)],
    scale: i32,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let longest = bars.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let room = (LETTER * longest as f64).clamp(40.0, 380.0) as i32 + 16;
    let (low, high) = ends(bars.iter().map(|(_, bar)| bar.mean + bar.half.unwrap_or(0.0)), true);
    let text = |size: i32, colour: RGBColor| (FAMILY, scale * size).into_font().color(&colour);
    let count = bars.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(scale * 12)
        .x_label_area_size(scale * 42)
        .y_label_area_size(scale * room)
        .build_cartesian_2d(low..high * 1.12, count - 0.5..-0.5)?;
    let name = |y: &f64| match bars.get(y.round().max(0.0) as usize) {
        Some((name, _)) if (y - y.round()).abs() < 1e-6 => name.clone(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(scale as u32))
        .axis_style(QUIET.stroke_width(scale as u32))
        .label_style(text(12, INK))
        .axis_desc_style(text(13, INK))
        .x_desc(&figure.x)
        .x_label_formatter(&|x| tick(*x))
        .y_labels(2 * bars.len())
        .y_label_formatter(&name)
        .draw()?;
    for (place, (_, Mean { mean, half })) in bars.iter().enumerate() {
        let (at, colour) = (place as f64, COLOURS[place % COLOURS.len()]);
        chart.draw_series([Rectangle::new([(0.0, at - 0.32), (*mean, at + 0.32)], colour.filled())])?;
        if let Some(half) = half {
            let line = [((mean - half).max(low), at), (mean + half, at)];
            chart.draw_series([PathElement::new(line, INK.stroke_width(2 * scale as u32))])?;
        }
        let said = half.map_or(exact(*mean), |half| format!("{} ± {}", exact(*mean), exact(half)));
        let end = mean + half.unwrap_or(0.0) + 0.01 * (high - low);
        let label = EmptyElement::at((end, at)) + Text::new(said, (0, -7 * scale), text(12, QUIET));
        chart.draw_series([label])?;
    }
    Ok(())
}

fn heat<DB: DrawingBackend>(
    figure: &Figure,
    rows: &[String],
    columns: &[String],
    values: &[Vec<Option<f64>>],
    scale: i32,
    area: &DrawingArea<DB, Shift>,
) -> Drawn<DB> {
    let longest = rows.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let room = (LETTER * longest as f64).clamp(40.0, 380.0) as i32 + 36;
    let (low, high) = ends(values.iter().flatten().flatten().copied(), true);
    let text = |size: i32, colour: RGBColor| (FAMILY, scale * size).into_font().color(&colour);
    let mut chart = ChartBuilder::on(area)
        .margin(scale * 12)
        .x_label_area_size(scale * 42)
        .y_label_area_size(scale * room)
        .build_cartesian_2d(-0.5..columns.len() as f64 - 0.5, rows.len() as f64 - 0.5..-0.5)?;
    let name = |names: &[String], at: f64| match names.get(at.round().max(0.0) as usize) {
        Some(name) if (at - at.round()).abs() < 1e-6 => name.clone(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(QUIET.stroke_width(scale as u32))
        .label_style(text(12, INK))
        .axis_desc_style(text(13, INK))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_labels(2 * columns.len())
        .y_labels(2 * rows.len())
        .x_label_formatter(&|x| name(columns, *x))
        .y_label_formatter(&|y| name(rows, *y))
        .draw()?;
    for (row, values) in values.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let (x, y) = (column as f64, row as f64);
            let part = value.map_or(0.0, |value| (value - low) / (high - low));
            let mixed = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part) as u8;
            let colour = RGBColor(mixed(240, 23), mixed(244, 87), mixed(248, 143));
            let square = [(x - 0.49, y - 0.48), (x + 0.49, y + 0.48)];
            chart.draw_series([Rectangle::new(square, colour.filled())])?;
            let said = value.map_or("–".into(), exact);
            let left = -(LETTER * said.chars().count() as f64 / 2.0) as i32 * scale;
            let style = text(12, if part > 0.5 { WHITE } else { INK });
            chart.draw_series([EmptyElement::at((x, y)) + Text::new(said, (left, -6 * scale), style)])?;
        }
    }
    Ok(())
}
