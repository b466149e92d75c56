//! Two metrics against each other, as `[[plot]]` in a lab asks: for each cell its repeats as small points, their median, and
//! an ellipse in which that median lies with 95 % confidence. The ellipse is that of a bivariate normal whose mean and
//! covariance are those of the medians of bootstrap resamples (Efron 1979). Pairs are resampled, so that the two values of a
//! run stay together.

use crate::compact::compact;
use crate::html::{GROUP_COLOURS, escape};
use crate::lab::{Panel, Scatter};
use crate::ticks;
use std::fmt::Write;
use weir_base::Random;
use weir_plan::{Axis, Lab};
use weir_record::{RunSummary, Statistic, Summary, ValueSelector, metric};

/// Number of resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// Smallest number of repeats for which a region is drawn.
pub(crate) const FEWEST: usize = 5;
/// 95th percentile of chi-squared with two degrees of freedom.
const CHI_SQUARED: f64 = 5.991;
/// Number of corners of a drawn ellipse: enough to look round.
const CORNERS: u32 = 64;

/// Width and height of a plot, and its margins for the axes' texts: left, right, top and bottom.
const SIZE: (f64, f64) = (360.0, 250.0);
const MARGIN: (f64, f64, f64, f64) = (52.0, 10.0, 10.0, 40.0);
/// Approximate number of ticks on an axis.
const TICKS: f64 = 5.0;

/// The data of the lab's plots.
pub(crate) fn scatters(lab: &Lab, summary: &Summary) -> Vec<Scatter> {
    let levels = lab.tree().levels;
    let engines = {
        let mut engines: Vec<&str> = summary.runs.iter().map(|run| run.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        engines.len()
    };
    let scatter = |plot: &weir_plan::Plot| {
        let labels = levels.iter().find(|(level, _)| *level == plot.colour);
        let labels = labels.map(|(_, labels)| labels.clone()).unwrap_or_default();
        let mut panels: Vec<Panel> = vec![];
        for run in summary.runs.iter().filter(|run| run.invalid.is_empty()) {
            let label = run.params.iter().find(|param| param.level == plot.colour).map(|param| &param.value);
            let Some(label) = labels.iter().position(|other| Some(other) == label) else { continue };
            let Some(point) = value(&plot.x, run).zip(value(&plot.y, run)) else { continue };
            let mut place: Vec<&str> = run
                .params
                .iter()
                .filter(|param| param.level != plot.colour)
                .map(|param| param.value.as_str())
                .collect();
            if engines > 1 {
                place.push(&run.engine);
            }
            let place = place.join(" · ");
            let at = panels.iter().position(|panel| panel.place == place).unwrap_or_else(|| {
                panels.push(Panel { place, clouds: vec![vec![]; labels.len()] });
                panels.len() - 1
            });
            panels[at].clouds[label].push(point);
        }
        let axes = [axis(&plot.x), axis(&plot.y)];
        let title = plot.title.clone().unwrap_or_else(|| format!("{} against {}", axes[1], axes[0]));
        Scatter { title, axes, labels, panels }
    };
    lab.plots().iter().map(scatter).collect()
}

fn value(axis: &Axis, run: &RunSummary) -> Option<f64> {
    let taken = ValueSelector { of: axis.of.as_slice(), class: None, window: axis.window.as_deref() };
    run.value(&axis.metric, taken, Statistic::Mean)
}

/// Title of an axis.
fn axis(axis: &Axis) -> String {
    let (title, unit) = metric(&axis.metric).map_or((axis.metric.as_str(), ""), |m| (m.title, m.unit));
    let of = axis.of.as_ref().map_or(String::new(), |of| format!(" of {of}"));
    let window = axis.window.as_ref().map_or(String::new(), |window| format!(" in {window}"));
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    format!("{title}{of}{window}{unit}")
}

/// A section with all plots of one kind.
pub(crate) fn section(scatter: &Scatter) -> String {
    let mut html = format!("<section class=\"scatter\"><h2>{}</h2>\n", escape(&scatter.title));
    let swatches: String = scatter.labels.iter().enumerate().map(|(label, name)| key(label, name)).collect();
    let _ = writeln!(html, "<p class=\"legend\">{swatches}</p>");
    html += "<p class=\"quiet\">Small points are runs, large ones the medians of a cell's repeats. An ellipse is the 95 % confidence \
             region of a median (bootstrap of the pairs). From the ninth label on, marks are square.</p>\n<div \
             class=\"panels\">\n";
    for panel in &scatter.panels {
        let _ = writeln!(
            html,
            "<figure>{}<figcaption>{}</figcaption></figure>",
            drawing(scatter, panel),
            escape(&panel.place)
        );
    }
    html + "</div></section>\n"
}

/// A label beside the mark of its medians.
fn key(label: usize, name: &str) -> String {
    let shape = if is_round(label) { " round" } else { "" };
    format!("<span class=\"swatch{shape} g{}\">{}</span>", label % GROUP_COLOURS, escape(name))
}

/// Whether a label's marks are round: the first of each colour.
fn is_round(label: usize) -> bool {
    label < GROUP_COLOURS
}

/// Maps values to positions on the drawing.
struct Scale {
    from: f64,
    to: f64,
    /// The positions of `from` and `to`.
    at: (f64, f64),
}

impl Scale {
    /// A scale that includes all these values, with a little room at both ends.
    fn of(values: impl Iterator<Item = f64>, at: (f64, f64)) -> Scale {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let room = if high > low { 0.06 * (high - low) } else { 0.05 * high.abs().max(1.0) };
        Scale { from: low - room, to: high + room, at }
    }

    fn place(&self, value: f64) -> f64 {
        self.at.0 + (value - self.from) / (self.to - self.from) * (self.at.1 - self.at.0)
    }

    fn ticks(&self) -> Vec<f64> {
        ticks::linear(self.from, self.to, TICKS)
    }
}

fn drawing(scatter: &Scatter, panel: &Panel) -> String {
    let (left, right, top, bottom) = MARGIN;
    let (width, height) = SIZE;
    let regions: Vec<Option<Region>> = panel.clouds.iter().map(|cloud| Region::of(cloud)).collect();
    let rims = || regions.iter().flatten().filter_map(Region::rim).flatten();
    let all = || panel.clouds.iter().flatten().copied().chain(rims());
    let x = Scale::of(all().map(|point| point.0), (left, width - right));
    let y = Scale::of(all().map(|point| point.1), (height - bottom, top));
    let said = format!("{}: {} against {}", panel.place, scatter.axes[1], scatter.axes[0]);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        escape(&said)
    );
    for tick in x.ticks() {
        let (at, foot) = (x.place(tick), height - bottom);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{foot}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            foot + 14.0,
            compact(Some(tick))
        );
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            width - right,
            left - 6.0,
            at + 4.0,
            compact(Some(tick))
        );
    }
    let (middle, foot) = ((left + width - right) / 2.0, height - 6.0);
    let _ = write!(
        svg,
        "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">{}</text><text transform=\"translate(12 {}) rotate(-90)\" \
         text-anchor=\"middle\">{}</text>",
        escape(&scatter.axes[0]),
        (top + height - bottom) / 2.0,
        escape(&scatter.axes[1])
    );
    for (label, (cloud, region)) in panel.clouds.iter().zip(&regions).enumerate() {
        if let Some(region) = region {
            svg += &cloud_drawing(label, &scatter.labels[label], cloud, region, &x, &y);
        }
    }
    svg + "</svg>"
}

/// A cell's runs, their median and its region.
fn cloud_drawing(
    label: usize,
    name: &str,
    cloud: &[(f64, f64)],
    region: &Region,
    x: &Scale,
    y: &Scale,
) -> String {
    let mut svg = format!("<g class=\"g{}\"><title>{}</title>", label % GROUP_COLOURS, escape(name));
    if let Some(outline) = region.outline(x, y) {
        let _ = write!(svg, "<path class=\"region\" d=\"{outline}\"/>");
    }
    for point in cloud {
        let _ = write!(
            svg,
            "<circle class=\"run\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.6\"/>",
            x.place(point.0),
            y.place(point.1)
        );
    }
    let (at, up) = (x.place(region.median.0), y.place(region.median.1));
    let _ = match is_round(label) {
        true => write!(svg, "<circle class=\"median\" cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"4.5\"/>"),
        false => write!(
            svg,
            "<rect class=\"median\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"/>",
            at - 4.0,
            up - 4.0
        ),
    };
    svg + "</g>"
}

/// The median of some points, and the normal distribution of its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Region {
    pub(crate) median: (f64, f64),
    /// Mean and covariances (xx, xy, yy) of the medians of resamples; `None` for fewer than [`FEWEST`] points.
    spread: Option<((f64, f64), [f64; 3])>,
}

impl Region {
    /// The region of some points; `None` without any.
    pub(crate) fn of(points: &[(f64, f64)]) -> Option<Region> {
        let median = medians(points)?;
        let spread = (points.len() >= FEWEST).then(|| {
            let mut random = Random::stream(0, "bootstrap of medians");
            let mut resample = || -> (f64, f64) {
                let drawn: Vec<(f64, f64)> =
                    points.iter().map(|_| points[random.below(points.len() as u64) as usize]).collect();
                medians(&drawn).unwrap_or(median)
            };
            let drawn: Vec<(f64, f64)> = (0..RESAMPLES).map(|_| resample()).collect();
            let mean = |of: &dyn Fn(&(f64, f64)) -> f64| drawn.iter().map(of).sum::<f64>() / RESAMPLES as f64;
            let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
            let covariances = [
                mean(&|point| (point.0 - x) * (point.0 - x)),
                mean(&|point| (point.0 - x) * (point.1 - y)),
                mean(&|point| (point.1 - y) * (point.1 - y)),
            ];
            ((x, y), covariances)
        });
        Some(Region { median, spread })
    }

    /// The corners of the ellipse: a circle mapped by the Cholesky factor of the covariances.
    pub(crate) fn rim(&self) -> Option<impl Iterator<Item = (f64, f64)>> {
        let ((mean_x, mean_y), [xx, xy, yy]) = self.spread?;
        let across = xx.max(0.0).sqrt();
        let along = if across > 0.0 { xy / across } else { 0.0 };
        let rest = (yy - along * along).max(0.0).sqrt();
        let radius = CHI_SQUARED.sqrt();
        Some((0..CORNERS).map(move |corner| {
            let (sine, cosine) = (f64::from(corner) * std::f64::consts::TAU / f64::from(CORNERS)).sin_cos();
            (mean_x + radius * across * cosine, mean_y + radius * (along * cosine + rest * sine))
        }))
    }

    /// The ellipse on the drawing, as an SVG path.
    fn outline(&self, x: &Scale, y: &Scale) -> Option<String> {
        let mut path = String::new();
        for (at, up) in self.rim()? {
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if path.is_empty() { "M" } else { "L" },
                x.place(at),
                y.place(up)
            );
        }
        Some(path + "Z")
    }
}

/// The medians of both coordinates; `None` without points.
fn medians(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = points.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let low = values.len().checked_sub(1)? / 2;
        Some((values[low] + values[values.len() / 2]) / 2.0)
    };
    median(|point| point.0).zip(median(|point| point.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_lies_around_the_median_and_shrinks_with_repeats() {
        let points = |count: usize| -> Vec<(f64, f64)> {
            (0..count).map(|i| ((i % 10) as f64, 2.0 * (i % 10) as f64)).collect()
        };
        let few = Region::of(&points(10)).unwrap();
        assert_eq!(few.median, (4.5, 9.0));
        let ((x, y), [xx, xy, yy]) = few.spread.unwrap();
        assert!((x - 4.5).abs() < 0.5 && (y - 2.0 * x).abs() < 1e-9);
        // y is twice x in every run, so it is in every resample.
        assert!((xy - 2.0 * xx).abs() < 1e-9 && (yy - 4.0 * xx).abs() < 1e-9);
        let many = Region::of(&points(100)).unwrap().spread.unwrap().1[0];
        assert!(many < xx / 4.0, "{many} of {xx}");
        assert_eq!(Region::of(&points(4)).unwrap().spread, None);
        assert_eq!(Region::of(&[]), None);
    }

    #[test]
    fn ticks_are_round_and_within() {
        let ticks = |from, to| Scale { from, to, at: (0.0, 1.0) }.ticks();
        assert_eq!(ticks(0.3, 10.1), [2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(812.0, 931.0), [850.0, 900.0]);
    }

    #[test]
    fn a_region_lies_within_the_axes_and_its_edge_is_two_and_a_half_deviations_away() {
        let region = Region { median: (10.0, 5.0), spread: Some(((10.0, 5.0), [4.0, 0.0, 1.0])) };
        // The root of 5.991 is 2.448: two deviations of 2 to the right, one of 1 up.
        let rim: Vec<(f64, f64)> = region.rim().unwrap().collect();
        assert!((rim[0].0 - 14.895).abs() < 1e-3 && (rim[16].1 - 7.448).abs() < 1e-3);
        let scale = Scale::of(rim.iter().map(|point| point.0), (0.0, 100.0));
        assert!(rim.iter().all(|point| (0.0..=100.0).contains(&scale.place(point.0))));
    }

    #[test]
    fn the_ninth_label_has_the_first_ones_colour_and_a_mark_with_corners() {
        assert_eq!(key(0, "a"), "<span class=\"swatch round g0\">a</span>");
        assert_eq!(key(GROUP_COLOURS, "b"), "<span class=\"swatch g0\">b</span>");
    }

    #[test]
    fn a_plot_is_drawn_as_it_was() {
        // Six runs on a slope and six that are all the same.
        let slope = (0..6).map(|i| (800.0 + 20.0 * f64::from(i), 4.0 + 0.5 * f64::from(i))).collect();
        let panel = Panel { place: "50 ms".into(), clouds: vec![slope, vec![(923.0, 8.4); 6]] };
        let axes = ["throughput, KiB/s".into(), "time, s".into()];
        let labels = ["Nice", "NewReno"].map(String::from).to_vec();
        let scatter = Scatter { title: "Time against throughput".into(), axes, labels, panels: vec![panel] };
        insta::assert_snapshot!(section(&scatter).replace("><", ">\n<").replace('L', "\nL"));
    }

    #[test]
    fn a_panel_has_a_mark_for_each_cell_and_a_point_for_each_run() {
        let cloud = |at: f64| (0..6).map(|i| (at + f64::from(i), at)).collect::<Vec<_>>();
        let panel = Panel { place: "50 ms".into(), clouds: vec![cloud(1.0), vec![], cloud(9.0)] };
        let scatter = Scatter {
            title: "<time>".into(),
            axes: ["x".into(), "y".into()],
            labels: ["a", "b", "c"].map(String::from).to_vec(),
            panels: vec![panel],
        };
        let html = section(&scatter);
        let count = |what: &str| html.matches(what).count();
        assert_eq!(
            (count("class=\"run\""), count("class=\"median\""), count("class=\"region\"")),
            (12, 2, 2)
        );
        assert!(html.contains("&lt;time&gt;") && !html.contains("NaN"));
    }
}
