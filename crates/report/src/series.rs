//! A run's series from its records: counters and histograms put on one grid of times, a few hundred points whatever the
//! run's length. Rates are sums over a point's time; delays and RTTs are those of all packets in it; windows and internal
//! states are means of the samples in it.

use crate::model::{Chart, Ink, Line, RunSeries};
use weir_base::{CODEPOINTS, Histogram, Span, Time};
use weir_record::{Component, LinkSample, Records, RunInfo};

/// Most points of a series: about what a screen can show.
const POINTS: u64 = 600;
/// Most points in a lab of many runs, so that its report stays small.
const POINTS_OF_MANY: u64 = 200;
/// From how many runs on a lab has many.
const MANY_RUNS: usize = 200;
/// Flows that are drawn one by one.
const FLOWS: usize = 12;
/// Distinct codepoints below this share of a link's packets get no line.
const CLASS_SHARE: f64 = 0.01;

/// The series of one run, of a lab that has `runs` of them.
pub(crate) fn series(info: &RunInfo, records: &Records, runs: usize) -> RunSeries {
    let grid = Grid::new(info, if runs > MANY_RUNS { POINTS_OF_MANY } else { POINTS });
    let source = Source { info, records, grid, flows: drawn_flows(info) };
    let charts = [
        source.goodput(),
        source.delay(),
        source.window(),
        source.fates(),
        source.rtt(),
        source.sent_again(),
        source.backlog(),
    ];
    let charts = charts.into_iter().chain(source.states());
    // A chart in which nothing was measured is left out; so is a line.
    let filled = charts.filter_map(|mut chart| {
        chart.lines.retain(|line| line.values.iter().any(Option::is_some));
        (!chart.lines.is_empty()).then_some(chart)
    });
    RunSeries { period_s: source.grid.step.as_secs_f64(), count: source.grid.count, charts: filled.collect() }
}

/// Points of equal length, each some whole sample periods.
#[derive(Debug, Clone, Copy)]
struct Grid {
    step: Span,
    count: usize,
}

impl Grid {
    fn new(info: &RunInfo, points: u64) -> Grid {
        let sample = info.sample.as_nanos().max(1);
        let periods = info.duration.as_nanos().div_ceil(sample).max(1);
        let step = sample * periods.div_ceil(points);
        Grid { step: Span::from_nanos(step), count: info.duration.as_nanos().div_ceil(step).max(1) as usize }
    }

    /// The point that a sample taken at `at` belongs to; a sample at a boundary ends its point.
    fn point(&self, at: Time) -> Option<usize> {
        let point = at.as_nanos().saturating_sub(1) / self.step.as_nanos();
        usize::try_from(point).ok().filter(|point| *point < self.count)
    }

    /// Adds up what `samples` give, as a rate per second times `scale`; points without a sample have none.
    fn rates(&self, samples: impl Iterator<Item = (Time, u64)>, scale: f64) -> Vec<Option<f64>> {
        let mut sums: Vec<Option<u64>> = vec![None; self.count];
        for (at, amount) in samples {
            if let Some(point) = self.point(at) {
                *sums[point].get_or_insert(0) += amount;
            }
        }
        let scale = scale / self.step.as_secs_f64();
        sums.into_iter().map(|sum| sum.map(|sum| sum as f64 * scale)).collect()
    }

    /// The mean of what `samples` give in each point.
    fn means(&self, samples: impl Iterator<Item = (Time, f64)>) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0u32); self.count];
        for (at, value) in samples {
            if let Some(point) = self.point(at) {
                sums[point] = (sums[point].0 + value, sums[point].1 + 1);
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
    }

    /// One histogram for each point.
    fn histograms<'a>(
        &self,
        samples: impl Iterator<Item = (Time, &'a weir_record::PackedHistogram)>,
    ) -> Vec<Histogram> {
        let mut all = vec![Histogram::new(); self.count];
        for (at, packed) in samples {
            if let Some(point) = self.point(at) {
                packed.add_to(&mut all[point]);
            }
        }
        all
    }
}

/// The flows that are drawn one by one: the first of each group in turn, in their order.
fn drawn_flows(info: &RunInfo) -> Vec<usize> {
    let mut rank = vec![0usize; info.groups.len()];
    let mut ranked: Vec<(usize, usize)> = Vec::with_capacity(info.flows.len());
    for (number, flow) in info.flows.iter().enumerate() {
        if let Some(rank) = rank.get_mut(flow.group as usize) {
            ranked.push((*rank, number));
            *rank += 1;
        }
    }
    ranked.sort_unstable();
    let mut flows: Vec<usize> = ranked.into_iter().take(FLOWS).map(|(_, number)| number).collect();
    flows.sort_unstable();
    flows
}

struct Source<'a> {
    info: &'a RunInfo,
    records: &'a Records,
    grid: Grid,
    flows: Vec<usize>,
}

fn chart(key: &str, title: &str, unit: &str, lines: Vec<Line>) -> Chart {
    Chart { key: key.into(), title: title.into(), unit: unit.into(), note: None, lines }
}

fn line(name: impl Into<String>, ink: Ink, values: Vec<Option<f64>>) -> Line {
    Line { name: name.into(), ink, thin: false, hidden: false, values }
}

impl Line {
    fn thin(mut self) -> Line {
        self.thin = true;
        self
    }
    fn hidden(mut self, hidden: bool) -> Line {
        self.hidden = hidden;
        self
    }
}

fn percentile(histograms: &[Histogram], p: f64) -> Vec<Option<f64>> {
    histograms.iter().map(|histogram| histogram.percentile(p).map(Span::as_millis_f64)).collect()
}

fn mean(histograms: &[Histogram]) -> Vec<Option<f64>> {
    histograms.iter().map(|histogram| histogram.mean().map(Span::as_millis_f64)).collect()
}

impl Source<'_> {
    /// Says how many flows are drawn, when it is not all.
    fn of_some_flows(&self, chart: Chart) -> Chart {
        let all = self.info.flows.len();
        let note = (self.flows.len() < all).then(|| format!("{} of {all} flows are drawn", self.flows.len()));
        Chart { note, ..chart }
    }

    fn group_of(&self, flow: usize) -> usize {
        self.info.flows[flow].group as usize
    }

    fn ink_of(&self, flow: usize) -> Ink {
        Ink::Group(self.group_of(flow))
    }

    /// A group's goodput, and that of its flows where there are several.
    fn goodput(&self) -> Chart {
        let read = |belongs: &dyn Fn(usize) -> bool| {
            let samples = self.records.flows.iter().filter(|sample| belongs(sample.flow as usize));
            self.grid.rates(samples.map(|sample| (sample.at, sample.read_bytes)), 8e-6)
        };
        let known = |flow: usize| flow < self.info.flows.len();
        let mut lines: Vec<Line> = (0..self.info.groups.len())
            .map(|group| {
                let values = read(&|flow| known(flow) && self.group_of(flow) == group);
                line(self.info.groups[group].name.clone(), Ink::Group(group), values)
            })
            .collect();
        let single = self.info.flows.len() == self.info.groups.len();
        for &flow in self.flows.iter().filter(|_| !single) {
            let name = self.info.flows[flow].name.clone();
            lines.push(line(name, self.ink_of(flow), read(&|other| other == flow)).thin().hidden(true));
        }
        if let Some((link, name)) = self.bottleneck() {
            let capacity = self.links(link).map(|sample| (sample.at, sample.capacity.get()));
            let values = self.grid.rates(capacity, 8e-6);
            lines.push(line(format!("rate of {name}"), Ink::Plain(1), values).thin());
        }
        self.of_some_flows(chart("goodput", "Goodput", "Mbit/s", lines))
    }

    fn bottleneck(&self) -> Option<(u32, &str)> {
        let link = self.info.bottleneck?;
        Some((link, self.info.links.get(link as usize)?.name.as_str()))
    }

    fn links(&self, link: u32) -> impl Iterator<Item = &LinkSample> {
        self.records.links.iter().filter(move |sample| sample.link == link)
    }

    /// The bottleneck's queue: mean and 99th percentile, and the means of classes where there are several; the means of
    /// the other measured links are there to be switched on.
    fn delay(&self) -> Chart {
        let mut lines = Vec::new();
        let of = |link: u32, class: Option<weir_base::Ecn>| {
            let samples = self.records.delays.iter();
            let samples =
                samples.filter(move |s| s.link == link && class.is_none_or(|class| s.class == class));
            self.grid.histograms(samples.map(|sample| (sample.at, &sample.delay)))
        };
        if let Some((link, _)) = self.bottleneck() {
            let all = of(link, None);
            lines.push(line("mean", Ink::Plain(0), mean(&all)));
            lines.push(line("p99", Ink::Plain(0), percentile(&all, 0.99)).thin());
            let total: u64 = all.iter().map(Histogram::count).sum();
            let classes: Vec<_> = CODEPOINTS.iter().map(|class| (*class, of(link, Some(*class)))).collect();
            let large = |histograms: &[Histogram]| {
                histograms.iter().map(Histogram::count).sum::<u64>() as f64 > CLASS_SHARE * total as f64
            };
            let classes: Vec<_> = classes.into_iter().filter(|(_, histograms)| large(histograms)).collect();
            if classes.len() > 1 {
                for (class, histograms) in classes {
                    let name = crate::pages::class_name(class.name());
                    lines.push(
                        line(format!("mean of {name}"), Ink::Class(class as usize), mean(&histograms))
                            .hidden(true),
                    );
                }
            }
        }
        for (index, link) in self.info.links.iter().enumerate() {
            let index = index as u32;
            if link.measured && Some(index) != self.info.bottleneck {
                lines.push(
                    line(format!("mean at {}", link.name), Ink::Plain(2), mean(&of(index, None)))
                        .thin()
                        .hidden(true),
                );
            }
        }
        chart("delay", "Queue delay", "ms", lines)
    }

    /// Congestion windows as the transports tell them.
    fn window(&self) -> Chart {
        let lines = self.flows.iter().map(|&flow| {
            let samples = self.records.transport.iter().filter(|sample| sample.flow as usize == flow);
            let values = self.grid.means(samples.map(|sample| (sample.at, sample.cwnd)));
            line(self.info.flows[flow].name.clone(), self.ink_of(flow), values)
        });
        self.of_some_flows(chart("window", "Congestion window", "segments", lines.collect()))
    }

    /// What the bottleneck did to packets beside sending them.
    fn fates(&self) -> Chart {
        let Some((link, _)) = self.bottleneck() else { return chart("fates", "", "", Vec::new()) };
        let rate = |count: &dyn Fn(&LinkSample) -> u64| {
            self.grid.rates(self.links(link).map(|sample| (sample.at, count(sample))), 1.0)
        };
        let dropped = line("dropped", Ink::Plain(1), rate(&|sample| sample.dropped.iter().sum()));
        let mut lines = vec![dropped];
        let others: [(&str, usize, fn(&LinkSample) -> u64); 2] = [
            ("marked", 0, |sample| sample.marked.iter().sum()),
            ("lost by the link", 3, |sample| sample.lost),
        ];
        for (name, ink, count) in others {
            if self.links(link).any(|sample| count(sample) > 0) {
                lines.push(line(name, Ink::Plain(ink), rate(&count)));
            }
        }
        chart("fates", "Marks and drops", "packets/s", lines)
    }

    fn rtt(&self) -> Chart {
        let lines = (0..self.info.groups.len()).map(|group| {
            let samples = self.records.rtts.iter().filter(|sample| sample.group as usize == group);
            let histograms = self.grid.histograms(samples.map(|sample| (sample.at, &sample.rtt)));
            line(self.info.groups[group].name.clone(), Ink::Group(group), mean(&histograms))
        });
        chart("rtt", "Round-trip time, mean", "ms", lines.collect())
    }

    fn sent_again(&self) -> Chart {
        if self.records.flows.iter().all(|sample| sample.retransmitted == 0) {
            return chart("again", "", "", Vec::new());
        }
        let lines = (0..self.info.groups.len()).map(|group| {
            let belongs = |flow: u32| {
                self.info.flows.get(flow as usize).is_some_and(|flow| flow.group as usize == group)
            };
            let samples = self.records.flows.iter().filter(|sample| belongs(sample.flow));
            let values = self.grid.rates(samples.map(|sample| (sample.at, sample.retransmitted)), 1.0);
            line(self.info.groups[group].name.clone(), Ink::Group(group), values)
        });
        chart("again", "Sent again", "segments/s", lines.collect())
    }

    fn backlog(&self) -> Chart {
        let Some((link, name)) = self.bottleneck() else { return chart("backlog", "", "", Vec::new()) };
        let samples = self.links(link).map(|sample| (sample.at, f64::from(sample.backlog_packets)));
        chart("backlog", "Backlog", "packets", vec![line(name, Ink::Plain(0), self.grid.means(samples))])
    }

    /// Internal states, a chart for each name: the bottleneck queue's, then the controllers'.
    fn states(&self) -> Vec<Chart> {
        let mut found: Vec<(Component, &str)> = Vec::new();
        for sample in &self.records.states {
            let drawn = match sample.of {
                Component::Queue(link) => Some(link) == self.info.bottleneck,
                Component::Controller(flow) => self.flows.contains(&(flow as usize)),
            };
            if drawn && !found.contains(&(sample.of, &sample.name)) {
                found.push((sample.of, &sample.name));
            }
        }
        found.sort_by_key(|(of, _)| *of);
        let mut charts: Vec<Chart> = Vec::new();
        for (of, name) in found {
            let samples =
                self.records.states.iter().filter(|sample| sample.of == of && *sample.name == *name);
            let values = self.grid.means(samples.map(|sample| (sample.at, sample.value)));
            let (whose, label, ink) = match of {
                Component::Queue(link) => {
                    ("queue", self.info.links[link as usize].name.clone(), Ink::Plain(0))
                }
                Component::Controller(flow) => {
                    ("controller", self.info.flows[flow as usize].name.clone(), self.ink_of(flow as usize))
                }
            };
            let key = format!("{whose}-{name}");
            let (title, unit) = titled(name);
            let place = charts.iter().position(|chart| chart.key == key).unwrap_or_else(|| {
                charts.push(chart(&key, &format!("Inside the {whose}: {title}"), unit, Vec::new()));
                charts.len() - 1
            });
            charts[place].lines.push(line(label, ink, values));
        }
        charts
    }
}

/// What a state's name says: its words, and the unit that it ends in.
fn titled(name: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 8] = [
        ("_ms", "ms"),
        ("_us", "µs"),
        ("_s", "s"),
        ("_percent", "%"),
        ("_mbps", "Mbit/s"),
        ("_segments", "segments"),
        ("_packets", "packets"),
        ("_bytes", "bytes"),
    ];
    let ending = UNITS.iter().find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, *unit)));
    let (words, unit) =
        ending.unwrap_or((name, if name.ends_with("probability") { "of 1" } else { "plain number" }));
    (words.replace('_', " "), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Ecn};
    use weir_record::{
        DelaySample, FlowInfo, FlowSample, GroupInfo, LinkInfo, Recorder, StateSample, TransportSample,
    };

    /// Two groups of two flows, one link, ten periods of 100 ms.
    fn run() -> (RunInfo, Records) {
        let group = |name: &str| GroupInfo { name: name.into(), ..GroupInfo::default() };
        let flow = |name: &str, group| FlowInfo { name: name.into(), group, ..FlowInfo::default() };
        let info = RunInfo {
            duration: Span::from_secs(1),
            sample: Span::from_millis(100),
            bottleneck: Some(0),
            links: vec![LinkInfo { name: "forward".into(), measured: true, ..LinkInfo::default() }],
            groups: vec![group("a"), group("b")],
            flows: vec![flow("a-1", 0), flow("a-2", 0), flow("b-1", 1), flow("b-2", 1)],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        for period in 1..=10u64 {
            let at = Time::from_nanos(period * 100_000_000);
            let dropped = [period % 2, 0, 0, 0];
            records.link(&LinkSample { at, dropped, capacity: Bytes::new(125_000), ..LinkSample::default() });
            let mut delay = Histogram::new();
            (0..99).for_each(|_| delay.record(Span::from_millis(10)));
            delay.record(Span::from_millis(50));
            records.delay(&DelaySample { at, link: 0, class: Ecn::NotEct, delay });
            for flow in 0..4u32 {
                let read_bytes = 12_500 * u64::from(flow + 1);
                records.flow(&FlowSample { at, flow, read_bytes, ..FlowSample::default() });
                records.transport(&TransportSample {
                    at,
                    flow,
                    cwnd: f64::from(flow),
                    ..TransportSample::default()
                });
            }
            let of = Component::Queue(0);
            records.state(&StateSample { at, of, name: "drop_probability", value: 0.25 });
        }
        (info, records)
    }

    /// The values of a line, with the digits that a page is given.
    fn values(series: &RunSeries, key: &str, name: &str) -> Vec<Option<f64>> {
        let chart = series.charts.iter().find(|chart| chart.key == key).unwrap();
        let line = chart.lines.iter().find(|line| line.name == name).unwrap();
        line.values.iter().map(|value| value.map(crate::number::significant)).collect()
    }

    #[test]
    fn rates_and_delays_are_those_of_the_records() {
        let (info, records) = run();
        let series = series(&info, &records, 1);
        assert_eq!((series.period_s, series.count), (0.1, 10));
        // 12,500 and 25,000 bytes in 100 ms: 1 and 2 Mbit/s.
        assert_eq!(values(&series, "goodput", "a"), [Some(3.0); 10]);
        assert_eq!(values(&series, "goodput", "b-2"), [Some(4.0); 10]);
        assert_eq!(values(&series, "goodput", "rate of forward"), [Some(10.0); 10]);
        assert_eq!(values(&series, "delay", "mean"), [Some(10.4); 10]);
        let p99 = values(&series, "delay", "p99")[0].unwrap();
        assert!((p99 - 10.0).abs() < 0.1, "{p99}");
        assert_eq!(values(&series, "window", "b-1"), [Some(2.0); 10]);
        assert_eq!(values(&series, "fates", "dropped")[..2], [Some(10.0), Some(0.0)]);
        assert_eq!(values(&series, "queue-drop_probability", "forward"), [Some(0.25); 10]);
    }

    #[test]
    fn a_long_run_keeps_its_sums_in_fewer_points() {
        let (mut info, mut records) = run();
        info.duration = Span::from_secs(1000);
        records.flow(&FlowSample {
            at: Time::from_nanos(1_000_000_000_000),
            read_bytes: 125_000_000,
            ..FlowSample::default()
        });
        let series = series(&info, &records, 1000);
        assert_eq!((series.period_s, series.count), (5.0, 200));
        // 10 periods of 37,500 bytes in 5 s; then 125 MB in the last point; nothing was measured between.
        let goodput = values(&series, "goodput", "a");
        assert_eq!((goodput[0], goodput[1], goodput[199]), (Some(0.6), None, Some(200.0)));
    }

    #[test]
    fn of_many_flows_each_group_is_drawn() {
        let (mut info, _) = run();
        info.flows = (0..1000)
            .map(|number| FlowInfo {
                name: format!("{number}"),
                group: u32::from(number >= 990),
                ..FlowInfo::default()
            })
            .collect();
        let drawn = drawn_flows(&info);
        assert_eq!(drawn.len(), FLOWS);
        assert_eq!(drawn.iter().filter(|flow| **flow >= 990).count(), FLOWS / 2);
    }

    #[test]
    fn what_was_not_measured_has_no_chart() {
        let (info, _) = run();
        assert_eq!(series(&info, &Records::default(), 1).charts, []);
    }

    #[test]
    fn a_state_is_titled_by_its_name_and_unit() {
        assert_eq!(titled("burst_allowance_ms"), ("burst allowance".into(), "ms"));
        assert_eq!(titled("drop_probability"), ("drop probability".into(), "of 1"));
    }
}
