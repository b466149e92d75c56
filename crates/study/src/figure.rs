//! A claim about several cells as a picture: the measured values along a level, over the published ones. It is plain SVG, so
//! that a Markdown page can show it too.

use crate::claim::Expected;
use crate::judge::{Judged, Point};
use crate::words::level_name;
use std::fmt::Write;
use weir_plan::leading_number;
use weir_report::html::escape;

/// Size of the picture, and the margins around the plot, in points.
const SIZE: (f64, f64) = (760.0, 300.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;
/// Fewest cells of a picture; the table shows fewer cells well enough.
const FEWEST: usize = 3;
/// Most lines of a picture; more could not be distinguished.
const MOST_LINES: usize = 10;
/// Most labels below the plot.
const LABELS: usize = 14;
/// Approximate width of a letter, and the distance of a second row of labels from the first.
const LETTER: f64 = 6.2;
const ROW: f64 = 13.0;
/// Okabe and Ito's colours, which colour-blind readers can distinguish, and two greys.
const COLOURS: [&str; MOST_LINES] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a7a00", "#666666",
    "#aaaaaa",
];

/// The cells of a claim in the plane: along the level with the most labels, a line for each label of the other.
struct Plane<'a> {
    along: &'a str,
    /// The other level; empty if there is none.
    other: &'a str,
    labels: Vec<&'a str>,
    lines: Vec<(&'a str, Vec<Option<f64>>)>,
}

impl<'a> Plane<'a> {
    /// Whether the labels are numbers, so that a line between their values has a meaning.
    fn is_ordered(&self) -> bool {
        self.labels.iter().all(|label| leading_number(label).is_some())
    }

    /// `None` if the cells differ on no level or on more than two, or if there are too few cells or too many lines.
    fn of(points: &'a [Point]) -> Option<Plane<'a>> {
        let levels = points.first()?.cell.iter().map(|param| param.level.as_str());
        let mut varying: Vec<(&str, Vec<&str>)> = vec![];
        for level in levels {
            let mut labels: Vec<&str> = vec![];
            for label in points.iter().filter_map(|point| chosen(point, level)) {
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
            if labels.len() > 1 {
                varying.push((level, labels));
            }
        }
        varying.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
        if varying.len() > 2 || points.len() < FEWEST {
            return None;
        }
        let mut varying = varying.into_iter();
        let (along, labels) = varying.next()?;
        let (other, names) = varying.next().unwrap_or(("", vec![""]));
        if names.len() > MOST_LINES {
            return None;
        }
        let value = |name: &str, label: &str| {
            let there = |point: &&Point| {
                chosen(point, along) == Some(label)
                    && (other.is_empty() || chosen(point, other) == Some(name))
            };
            points.iter().find(there).and_then(|point| point.value)
        };
        let line = |name: &'a str| (name, labels.iter().map(|label| value(name, label)).collect());
        Some(Plane { along, other, lines: names.into_iter().map(line).collect(), labels })
    }
}

fn chosen<'a>(point: &'a Point, level: &str) -> Option<&'a str> {
    point.cell.iter().find(|param| param.level == level).map(|param| param.value.as_str())
}

/// The expectation in the plane: a band of values, a band along the level, and a bound.
#[derive(Default)]
struct Bands {
    values: Option<(f64, f64)>,
    places: Option<(f64, f64)>,
    bound: Option<f64>,
}

impl Bands {
    fn of(judged: &Judged, labels: &[&str]) -> Bands {
        let (low, high) = match &judged.claim.expected {
            Expected::Near { value, tolerance } => {
                (value - tolerance.of(*value), value + tolerance.of(*value))
            }
            Expected::Within { at_least, at_most } => {
                (at_least.unwrap_or(f64::NEG_INFINITY), at_most.unwrap_or(f64::INFINITY))
            }
            Expected::Order { .. } => return Bands::default(),
        };
        match &judged.claim.along {
            None => Bands { values: Some((low, high)), ..Bands::default() },
            Some(along) => {
                let numbers: Vec<f64> = labels.iter().filter_map(|label| leading_number(label)).collect();
                Bands {
                    places: Some((place(&numbers, low), place(&numbers, high))),
                    bound: along.above.or(along.below),
                    values: None,
                }
            }
        }
    }
}

/// Position of a number among ascending numbers that are one step apart.
fn place(numbers: &[f64], number: f64) -> f64 {
    let last = numbers.len().saturating_sub(1) as f64;
    match numbers.windows(2).position(|pair| number < pair[1]) {
        Some(at) => (at as f64 + (number - numbers[at]) / (numbers[at + 1] - numbers[at])).max(0.0),
        None => last,
    }
}

/// The picture of a claim, with `title` above it; `None` if its cells do not form a plane.
pub(super) fn figure(judged: &Judged, title: &str) -> Option<String> {
    let plane = Plane::of(&judged.points)?;
    let bands = Bands::of(judged, &plane.labels);
    let measured = plane.lines.iter().flat_map(|(_, values)| values.iter().flatten().copied());
    let finite = |bound: f64| Some(bound).filter(|bound| bound.is_finite());
    let (low, high) = bands.values.unwrap_or((f64::INFINITY, f64::INFINITY));
    let all = measured.chain(finite(low)).chain(finite(high)).chain(bands.bound);
    let (mut least, mut most) =
        all.fold((0.0, 0.0), |(least, most): (f64, f64), v| (least.min(v), most.max(v)));
    let step = step((most - least) / 5.0);
    (least, most) = ((least / step).floor() * step, ((most / step).ceil() * step).max(least + step));
    let frame = Frame { least, most, columns: plane.labels.len() };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\" \
         role=\"img\" aria-label=\"{title}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"13\" font-weight=\"bold\">{title}</text>\n",
        SIZE.0,
        SIZE.1,
        title = escape(title)
    );
    frame.bands(&mut svg, &bands);
    frame.axes(&mut svg, &plane, step);
    for ((_, values), colour) in plane.lines.iter().zip(COLOURS) {
        frame.line(&mut svg, values, plane.is_ordered(), colour);
    }
    if plane.lines.len() > 1 {
        let x = SIZE.0 - RIGHT + 14.0;
        let _ =
            writeln!(svg, "<text x=\"{x}\" y=\"{}\">{}</text>", TOP + 4.0, escape(level_name(plane.other)));
        for (at, ((name, _), colour)) in plane.lines.iter().zip(COLOURS).enumerate() {
            let y = TOP + 22.0 + 18.0 * at as f64;
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {y}h18\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 24.0,
                y + 4.0,
                escape(name)
            );
        }
    }
    Some(svg + "</svg>\n")
}

/// A round step near this size: 1, 2 or 5 times a power of ten.
fn step(rough: f64) -> f64 {
    if rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|round| round * power).find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// A value on an axis with as many decimals as its step has.
fn tick(value: f64, step: f64) -> String {
    let places = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.places$}")
}

/// The positions of values and labels in the picture.
struct Frame {
    least: f64,
    most: f64,
    columns: usize,
}

impl Frame {
    fn x(&self, column: f64) -> f64 {
        let width = SIZE.0 - LEFT - RIGHT;
        LEFT + width * (column + 0.5) / self.columns.max(1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.clamp(self.least, self.most) - self.least) / (self.most - self.least);
        SIZE.1 - BOTTOM - (SIZE.1 - TOP - BOTTOM) * share
    }

    /// Draws the expectation, in grey.
    fn bands(&self, svg: &mut String, bands: &Bands) {
        let (left, right) = (LEFT, SIZE.0 - RIGHT);
        if let Some((low, high)) = bands.values {
            let (top, bottom) = (self.y(high), self.y(low));
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{top:.1}\" width=\"{}\" height=\"{:.1}\" fill=\"#e8e8e8\"/>",
                right - left,
                (bottom - top).max(1.0)
            );
        }
        if let Some((from, to)) = bands.places {
            let (from, to) = (self.x(from), self.x(to));
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\" fill=\"#e8e8e8\"/>",
                (to - from).max(1.0),
                SIZE.1 - TOP - BOTTOM
            );
        }
        if let Some(bound) = bands.bound {
            let y = self.y(bound);
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#888888\" stroke-dasharray=\"4 3\"/>"
            );
        }
    }

    /// Whether names are wider than a column: then every second one is drawn a row lower.
    fn crowded(&self, plane: &Plane<'_>) -> bool {
        let longest = plane.labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        !plane.is_ordered() && longest as f64 * LETTER > self.x(1.0) - self.x(0.0)
    }

    fn axes(&self, svg: &mut String, plane: &Plane<'_>, step: f64) {
        let (right, bottom) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
        let steps = ((self.most - self.least) / step).round() as usize;
        for value in (0..=steps).map(|n| self.least + step * n as f64) {
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<path d=\"M{} {y:.1}H{LEFT}\" stroke=\"#333333\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 4.0,
                LEFT - 8.0,
                y + 4.0,
                tick(value, step)
            );
        }
        let rows = self.crowded(plane);
        let every = plane.labels.len().div_ceil(LABELS);
        for (column, label) in plane.labels.iter().enumerate().filter(|(column, _)| column % every == 0) {
            // The unit is written once, below the axis.
            let short = label.split(' ').next().unwrap_or(label);
            let shown = if leading_number(label).is_some() { short } else { *label };
            let lower = if rows && column % 2 == 1 { ROW } else { 0.0 };
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.x(column as f64),
                bottom + 17.0 + lower,
                escape(shown)
            );
        }
        let unit = plane.labels.first().and_then(|label| label.split_once(' ')).map_or("", |(_, unit)| unit);
        let unit = if plane.labels.iter().all(|label| label.ends_with(unit)) { unit } else { "" };
        let level = plane.along;
        let below = if unit.is_empty() { level.to_owned() } else { format!("{level}, {unit}") };
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#333333\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            bottom + 36.0 + if rows { ROW / 2.0 } else { 0.0 },
            escape(&below)
        );
    }

    /// Draws the measured values, with a line through them if the labels are numbers; a missing value leaves a gap.
    fn line(&self, svg: &mut String, values: &[Option<f64>], joined: bool, colour: &str) {
        let (mut path, mut dots, mut pen) = (String::new(), String::new(), 'M');
        for (column, value) in values.iter().enumerate() {
            let Some(value) = value else {
                pen = 'M';
                continue;
            };
            let (x, y) = (self.x(column as f64), self.y(*value));
            let _ = write!(path, "{pen}{x:.1} {y:.1}");
            let _ = write!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
            pen = 'L';
        }
        let path = if joined { path.as_str() } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/><g fill=\"{colour}\">{dots}</g>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (rough, expected) in [(0.0, 1.0), (0.3, 0.5), (1.1, 2.0), (6.0, 10.0), (20.0, 20.0)] {
            assert!((step(rough) - expected).abs() < 1e-12, "{rough}");
        }
    }

    #[test]
    fn a_tick_has_the_decimals_of_its_step() {
        assert_eq!(
            [tick(0.0, 0.5), tick(1.5, 0.5), tick(0.06, 0.02), tick(40.0, 20.0)],
            ["0.0", "1.5", "0.06", "40"]
        );
    }

    #[test]
    fn a_level_is_named_by_its_last_parts() {
        assert_eq!(
            ["traffic.udp.workload.rate", "dumbbell.rtt", "aqm"].map(level_name),
            ["workload.rate", "dumbbell.rtt", "aqm"]
        );
    }

    #[test]
    fn a_number_lies_between_its_neighbours() {
        let numbers = [70.0, 80.0, 100.0];
        assert_eq!([60.0, 75.0, 90.0, 120.0].map(|number| place(&numbers, number)), [0.0, 0.5, 1.5, 2.0]);
    }

    #[test]
    fn names_that_are_longer_than_a_column_stand_in_two_rows() {
        let rows = |labels: Vec<&str>| {
            let frame = Frame { least: 0.0, most: 1.0, columns: labels.len() };
            let plane = Plane { along: "control", other: "", labels, lines: vec![] };
            let mut svg = String::new();
            frame.axes(&mut svg, &plane, 1.0);
            let heights = ["269", "282"].map(|y| svg.matches(&format!("y=\"{y}\"")).count());
            (heights[0], heights[1])
        };
        // 526 points for the columns: names of eight letters take 50.
        assert_eq!(rows(vec!["westwood"; 4]), (4, 0));
        assert_eq!(rows(vec!["westwood"; 11]), (6, 5));
        assert_eq!(rows(vec!["100000 ms"; 11]), (11, 0), "a scale needs no name");
    }
}
