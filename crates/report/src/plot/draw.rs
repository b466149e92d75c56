//! The drawing of a figure, the same for both formats: title, content, legend and notes.

mod axis;
mod bars;
mod heat;
mod lines;
mod plane;

use super::{Content, Figure, PlotError};
use crate::fit::wrapped;
use crate::number::exact;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, RGBColor, register_font};

/// Usual width and height of the drawing in pixels; a PNG of the usual size has twice as many each way.
const SIZE: (u32, u32) = (900, 480);
/// Height of a row of the legend.
const ROW: f64 = 22.0;
/// Height of a line of the text below the title and the legend.
const LINE: f64 = 18.0;
/// Approximate width of a letter in the legend.
const LETTER: f64 = 7.4;
/// Largest number of notes; the last line says how many others there are.
const NOTES: usize = 6;
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

/// Lengths and texts at the size of the drawing: everything grows with it, so that a slide reads as a paper does.
#[derive(Debug, Clone, Copy)]
struct Pen {
    scale: f64,
}

impl Pen {
    /// A length in pixels of the usual size.
    fn px(self, length: f64) -> i32 {
        (self.scale * length).round() as i32
    }

    /// The width of a stroke.
    fn stroke(self, width: f64) -> u32 {
        self.px(width).max(1) as u32
    }

    fn text(self, size: f64, colour: RGBColor) -> TextStyle<'static> {
        (FAMILY, self.px(size)).into_font().color(&colour)
    }
}

/// The figure as SVG.
pub(super) fn svg(figure: &Figure) -> Result<String, PlotError> {
    letters()?;
    let mut text = String::new();
    let size = figure.size.unwrap_or(SIZE);
    draw(figure, pen(size), SVGBackend::with_string(&mut text, size).into_drawing_area()).map_err(failed)?;
    Ok(text)
}

/// The figure as PNG: pixels of 24 bits, of the usual size twice as many each way.
pub(super) fn png(figure: &Figure) -> Result<Vec<u8>, PlotError> {
    letters()?;
    let (width, height) = figure.size.unwrap_or((2 * SIZE.0, 2 * SIZE.1));
    let mut pixels = vec![0; (3 * width * height) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    draw(figure, pen((width, height)), area).map_err(failed)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

/// The pen for a drawing of this size.
fn pen((width, height): (u32, u32)) -> Pen {
    let [across, up] =
        [(width, SIZE.0), (height, SIZE.1)].map(|(own, usual)| f64::from(own) / f64::from(usual));
    Pen { scale: across.min(up) }
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

fn letters() -> Result<(), PlotError> {
    register_font(FAMILY, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| PlotError::Drawing("the font cannot be read".into()))
}

fn draw<DB: DrawingBackend>(figure: &Figure, pen: Pen, area: DrawingArea<DB, Shift>) -> Drawn<DB> {
    area.fill(&WHITE)?;
    let names: Vec<(&str, bool)> = match &figure.content {
        Content::Lines { curves, .. } => {
            curves.iter().map(|curve| (curve.name.as_str(), !curve.points.is_empty())).collect()
        }
        Content::Plane(clouds) => {
            clouds.iter().map(|(name, points)| (name.as_str(), !points.is_empty())).collect()
        }
        _ => vec![],
    };
    let (width, height) = area.dim_in_pixel();
    let room = f64::from(width) / pen.scale - 40.0;
    let texts: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let places = legend(&texts, room);
    let rows = places.last().map_or(0, |(_, row)| row + 1);
    let notes = notes(figure, room);
    let foot = ROW * f64::from(rows) + LINE * notes.len() as f64 + 6.0;
    let (above, below) = area.split_vertically(height as i32 - pen.px(foot));
    let mut above = above.titled(&figure.title, pen.text(17.0, INK))?;
    for line in lines_of(&figure.about, room) {
        above = above.titled(&line, pen.text(12.0, QUIET))?;
    }
    match &figure.content {
        Content::Lines { curves, ticks } => lines::draw(figure, curves, ticks, pen, &above)?,
        Content::Bars(bars) => bars::draw(figure, bars, pen, &above)?,
        Content::Heat { rows, columns, values, value } => {
            heat::draw(figure, &heat::Map { rows, columns, values, value }, pen, &above)?;
        }
        Content::Plane(clouds) => plane::draw(figure, clouds, pen, &above)?,
    }
    for (place, ((name, is_there), (x, row))) in names.iter().zip(&places).enumerate() {
        let (x, y) = (20.0 + x, ROW * f64::from(*row) + 8.0);
        let colour = COLOURS[place % COLOURS.len()];
        let key = [(pen.px(x), pen.px(y)), (pen.px(x + 18.0), pen.px(y))];
        let ink = if *is_there { INK } else { QUIET };
        below.draw(&PathElement::new(key, colour.stroke_width(pen.stroke(weight(place)))))?;
        below.draw(&Text::new(
            (*name).to_owned(),
            (pen.px(x + 24.0), pen.px(y - 7.0)),
            pen.text(13.0, ink),
        ))?;
    }
    for (line, note) in (0i32..).zip(&notes) {
        let y = ROW * f64::from(rows) + LINE * f64::from(line);
        below.draw(&Text::new(note.clone(), (pen.px(20.0), pen.px(y)), pen.text(12.0, QUIET)))?;
    }
    area.present()
}

/// The width of a line: lines that repeat a colour are thicker.
fn weight(place: usize) -> f64 {
    if place < COLOURS.len() { 2.0 } else { 4.0 }
}

/// A text in lines that fit into a width; none if it is empty.
fn lines_of(text: &str, room: f64) -> Vec<String> {
    let lines = wrapped(text, (room / (0.92 * LETTER)) as usize);
    lines.lines().filter(|line| !line.is_empty()).map(String::from).collect()
}

/// The notes below the legend, in lines.
fn notes(figure: &Figure, room: f64) -> Vec<String> {
    let shown = if figure.notes.len() > NOTES { NOTES - 1 } else { figure.notes.len() };
    let mut lines: Vec<String> = figure.notes[..shown].iter().flat_map(|note| lines_of(note, room)).collect();
    if shown < figure.notes.len() {
        lines.push(format!("and {} more such cells", figure.notes.len() - shown));
    }
    lines
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
