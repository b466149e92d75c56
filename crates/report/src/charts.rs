//! The plots of a run's page: which series of the record stand together, under which heading, in which colours.

use crate::model::{Chart, Ink, Line, RunSeries};
use weir_base::{CODEPOINTS, Ecn};
use weir_record::{Records, RunInfo, Series, SeriesLimits, SeriesSet, Subject, series};

/// Most points of a series: about what a screen can show.
const POINTS: usize = 600;
/// Most points in a lab of many runs, so that its report stays small.
const POINTS_OF_MANY: usize = 200;
/// From how many runs on a lab has many.
const MANY_RUNS: usize = 200;
/// Links beside the bottleneck that can be switched on in a plot: more than anyone looks at one by one.
const OTHER_LINKS: usize = 20;
/// Links that carry data and have lines that are on from the start, as many as there are colours for.
const DATA_LINKS: usize = 4;
/// How far above the highest goodput a capacity may be to be drawn from the start.
const FAR: f64 = 3.0;
/// Of what a link sent, the part that a class has at least to have a line of its own.
const CLASS_SHARE: f64 = 0.01;
/// Flows that are drawn one by one, over all groups.
const FLOWS: usize = 12;

/// The plots of one run, of a lab that has `runs` of them.
pub(crate) fn charts(info: &RunInfo, records: &Records, runs: usize) -> RunSeries {
    let points = if runs > MANY_RUNS { POINTS_OF_MANY } else { POINTS };
    let flows_per_group = (FLOWS / info.groups.len().max(1)).max(1);
    let set = series(info, records, SeriesLimits { points, flows_per_group });
    let source = Source { info, set: &set };
    let charts = [
        source.goodput(),
        source.delay(),
        source.of_groups("completion", "Completion time of short flows, mean", "s", "completion_time_s"),
        source.of_groups("requests", "Request time, mean", "ms", "request_time_ms"),
        source.of_groups("frames", "Frame delay, mean", "ms", "frame_delay_ms"),
        source.of_groups("on-time", "Frames on time", "%", "frames_on_time_percent"),
        source.window(),
        source.fates(),
        source.rtt(),
        source.sent_again(),
        source.backlog(),
    ];
    // A plot of nothing is left out.
    let charts = charts.into_iter().chain(source.states()).filter(|chart| !chart.lines.is_empty());
    RunSeries {
        period_s: set.period.as_secs_f64(),
        count: set.count,
        charts: charts.collect(),
        events: vec![],
    }
}

struct Source<'a> {
    info: &'a RunInfo,
    set: &'a SeriesSet,
}

fn chart(key: &str, title: &str, unit: &str, lines: Vec<Option<Line>>) -> Chart {
    let lines = lines.into_iter().flatten().collect();
    Chart { key: key.into(), title: title.into(), unit: unit.into(), note: None, lines }
}

impl Line {
    fn thin(mut self) -> Line {
        self.thin = true;
        self
    }
    fn hidden(mut self) -> Line {
        self.hidden = true;
        self
    }
    /// The greatest value.
    fn most(&self) -> f64 {
        self.values.iter().flatten().copied().fold(0.0, f64::max)
    }
    fn bound(mut self) -> Line {
        self.bound = true;
        self
    }
    /// With every value changed.
    fn map(mut self, change: impl Fn(f64) -> f64) -> Line {
        self.values.iter_mut().for_each(|value| *value = value.map(&change));
        self
    }
    /// Whether it has a value other than zero.
    fn happened(&self) -> bool {
        self.values.iter().flatten().any(|value| *value != 0.0)
    }
}

impl Source<'_> {
    /// A series as a line; none when nothing was measured.
    fn line(&self, series: &str, of: Subject, name: &str, ink: Ink) -> Option<Line> {
        let values = self.set.get(series, of)?.to_vec();
        let measured = values.iter().any(Option::is_some);
        measured.then(|| Line { name: name.into(), ink, thin: false, hidden: false, bound: false, values })
    }

    /// The same series of every group.
    fn groups(&self, series: &str) -> Vec<Option<Line>> {
        let groups = self.info.groups.iter().enumerate();
        groups
            .map(|(i, group)| self.line(series, Subject::Group(i as u32), &group.name, Ink::Group(i)))
            .collect()
    }

    /// A plot of one series of every group that has it.
    fn of_groups(&self, key: &str, title: &str, unit: &str, series: &str) -> Chart {
        chart(key, title, unit, self.groups(series))
    }

    /// The same series of the flows that the record singles out.
    fn flows(&self, series: &str) -> Vec<Option<Line>> {
        let flows = self.info.flows.iter().enumerate();
        let one = |(i, flow): (usize, &weir_record::FlowInfo)| {
            self.line(series, Subject::Flow(i as u32), &flow.name, Ink::Group(flow.group as usize))
        };
        flows.map(one).collect()
    }

    /// Says how many flows are drawn, when it is not all.
    fn of_some_flows(&self, chart: Chart) -> Chart {
        let singled = |of: &Series| matches!(of.of, Subject::Flow(_)) && of.name == "goodput_mbps";
        let drawn = self.set.series.iter().filter(|series| singled(series)).count();
        // Of drawn flows nobody looks at single ones.
        let drawn_by_seed = |flow: &&weir_record::FlowInfo| {
            self.info.groups.get(flow.group as usize).is_some_and(|group| group.drawn)
        };
        let all = self.info.flows.iter().filter(|flow| !drawn_by_seed(flow)).count();
        let note = (drawn < all).then(|| format!("{drawn} of {all} flows are drawn one by one"));
        Chart { note, ..chart }
    }

    fn bottleneck(&self) -> Option<(Subject, &str)> {
        let link = self.info.bottleneck?;
        Some((Subject::Link(link), self.info.links.get(link as usize)?.name.as_str()))
    }

    /// The measured links that carry data, the bottleneck first; where that is not known, the bottleneck alone.
    fn data_links(&self) -> Vec<(u32, &str)> {
        let links = (0..).zip(&self.info.links);
        let carry = links.filter(|(_, link)| link.measured && !link.groups.is_empty());
        let mut links: Vec<(u32, &str)> = carry.map(|(index, link)| (index, link.name.as_str())).collect();
        if let (true, Some((Subject::Link(link), name))) = (links.is_empty(), self.bottleneck()) {
            links.push((link, name));
        }
        links.sort_by_key(|(index, _)| Some(*index) != self.info.bottleneck);
        links.truncate(DATA_LINKS);
        links
    }

    /// The codepoints at a link that are to be told apart: where L4S packets and others sent data over it, those.
    fn classes(&self, link: u32) -> Vec<Ecn> {
        let sent = |class: Ecn| {
            let of = Subject::Class(link, class);
            let throughput = |series: &&Series| series.name == "link_throughput_mbps" && series.of == of;
            let values = self.set.series.iter().find(throughput).map(|series| series.values.iter().flatten());
            values.map_or(0.0, |values| values.sum::<f64>())
        };
        let all: f64 = CODEPOINTS.into_iter().map(sent).sum();
        let told =
            CODEPOINTS.into_iter().filter(|&class| class != Ecn::Ce && sent(class) >= CLASS_SHARE * all);
        let told: Vec<Ecn> = told.collect();
        if all > 0.0 && told.len() > 1 && told.contains(&Ecn::Ect1) { told } else { vec![] }
    }

    /// The same series of the measured links that carry no data, to be switched on.
    fn other_links(&self, series: &str, what: &str) -> Vec<Option<Line>> {
        let told = self.data_links();
        let links = (0..).zip(&self.info.links);
        let others =
            links.filter(|(index, link)| link.measured && told.iter().all(|(other, _)| other != index));
        let line = |(index, link): (u32, &weir_record::LinkInfo)| {
            let name = format!("{}{what}", link.name);
            self.line(series, Subject::Link(index), &name, Ink::Plain(3)).map(Line::thin).map(Line::hidden)
        };
        others.take(OTHER_LINKS).map(line).collect()
    }

    /// A group's goodput; what the links that carry data could have sent, and did; and the flows where groups have several.
    fn goodput(&self) -> Chart {
        let mut lines = self.groups("goodput_mbps");
        let most = lines.iter().flatten().map(Line::most).fold(0.0, f64::max);
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let (of, ink) = (Subject::Link(link), Ink::Plain(place));
            let capacity = self.line("link_capacity_mbps", of, &format!("capacity of link {name}"), ink);
            // A capacity far above what anyone got would flatten everything else.
            let far = |line: &Line| line.most() > FAR * most;
            let capacity = capacity.map(Line::thin).map(Line::bound);
            lines.push(capacity.map(|line| if far(&line) { line.hidden() } else { line }));
            let carried = self.line("link_throughput_mbps", of, &format!("carried by link {name}"), ink);
            lines.push(carried.map(Line::thin).map(Line::hidden));
        }
        if self.info.flows.len() > self.info.groups.len() {
            lines.extend(
                self.flows("goodput_mbps").into_iter().map(|line| line.map(Line::thin).map(Line::hidden)),
            );
        }
        self.of_some_flows(chart("goodput", "Goodput", "Mbit/s", lines))
    }

    /// The queues of the links that carry data: mean and 99th percentile, L4S packets apart where there are any; those of the
    /// other measured links are there to be switched on.
    fn delay(&self) -> Chart {
        let mut lines = vec![];
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let classes = self.classes(link);
            for class in &classes {
                let line = |series: &str, what: &str| {
                    let name = format!("link {name}, {}, {what}", class_words(*class));
                    self.line(series, Subject::Class(link, *class), &name, Ink::Class(*class as usize))
                };
                lines.push(line("queue_delay_ms", "mean"));
                lines.push(line("queue_delay_p99_ms", "p99").map(Line::thin).map(Line::hidden));
            }
            let line = |series: &str, what: &str| {
                let name = format!("link {name}, {what}");
                let line = self.line(series, Subject::Link(link), &name, Ink::Plain(place));
                if classes.is_empty() { line } else { line.map(Line::hidden) }
            };
            lines.push(line("queue_delay_ms", "mean"));
            lines.push(line("queue_delay_p99_ms", "p99").map(Line::thin));
        }
        lines.extend(self.other_links("queue_delay_ms", ", mean"));
        chart("delay", "Queue delay", "ms", lines)
    }

    /// Congestion windows as the transports tell them.
    fn window(&self) -> Chart {
        self.of_some_flows(chart("window", "Congestion window", "segments", self.flows("cwnd_segments")))
    }

    /// A line of counts a point as one of counts a second.
    fn per_second(&self, line: Line) -> Line {
        let period = self.set.period.as_secs_f64();
        line.map(|count| if period > 0.0 { count / period } else { 0.0 })
    }

    /// What the links that carry data did to packets beside sending them.
    fn fates(&self) -> Chart {
        let mut lines = vec![];
        for (place, (link, name)) in self.data_links().into_iter().enumerate() {
            let line = |series: &str, what: &str, ink| {
                self.line(series, Subject::Link(link), &format!("link {name}, {what}"), Ink::Plain(ink))
            };
            lines.push(line("dropped_packets", "dropped", place));
            lines.push(line("marked_packets", "marked", place + 2).filter(Line::happened));
            lines.push(line("link_lost_packets", "lost by the link", place + 3).filter(Line::happened));
        }
        let lines = lines.into_iter().map(|line| line.map(|line| self.per_second(line)));
        chart("fates", "Marks and drops", "packets/s", lines.collect())
    }

    /// Round trips: each group's mean, its 99th percentile to be switched on.
    fn rtt(&self) -> Chart {
        let mut lines = self.groups("rtt_ms");
        lines.extend(self.groups("rtt_p99_ms").into_iter().map(|line| {
            let line = line?.thin().hidden();
            Some(Line { name: format!("{} p99", line.name), ..line })
        }));
        chart("rtt", "Round-trip time, mean", "ms", lines)
    }

    fn sent_again(&self) -> Chart {
        let lines: Vec<Option<Line>> = self
            .groups("retransmissions")
            .into_iter()
            .map(|line| line.map(|line| self.per_second(line)))
            .collect();
        let any = lines.iter().flatten().any(Line::happened);
        chart("again", "Sent again", "segments/s", if any { lines } else { Vec::new() })
    }

    fn backlog(&self) -> Chart {
        let links = self.data_links().into_iter().enumerate();
        let line = |(place, (link, name)): (usize, (u32, &str))| {
            self.line("backlog_packets", Subject::Link(link), &format!("link {name}"), Ink::Plain(place))
        };
        let mut lines: Vec<Option<Line>> = links.map(line).collect();
        lines.extend(self.other_links("backlog_packets", ""));
        chart("backlog", "Backlog", "packets", lines)
    }

    /// Internal states, a plot for each name: the queues' of links that carry data, then the controllers'.
    fn states(&self) -> Vec<Chart> {
        let links = self.data_links();
        let mut charts: Vec<Chart> = Vec::new();
        for series in &self.set.series {
            let (whose, label, ink) = match series.of {
                Subject::QueueState(link) => {
                    let Some(place) = links.iter().position(|(told, _)| *told == link) else { continue };
                    ("queue", Some(format!("link {}", links[place].1)), Ink::Plain(place))
                }
                Subject::ControllerState(flow) => {
                    let flow = self.info.flows.get(flow as usize);
                    (
                        "controllers",
                        flow.map(|flow| flow.name.clone()),
                        Ink::Group(flow.map_or(0, |flow| flow.group as usize)),
                    )
                }
                Subject::StationState(station) => (
                    "stations",
                    self.info.stations.get(station as usize).map(|station| station.name.clone()),
                    Ink::Plain(station as usize),
                ),
                _ => continue,
            };
            let Some(line) = label.and_then(|label| self.line(&series.name, series.of, &label, ink)) else {
                continue;
            };
            let key = format!("{whose}-{}", series.name);
            match charts.iter_mut().find(|chart| chart.key == key) {
                Some(chart) => chart.lines.push(line),
                None => {
                    let (title, unit) = titled(&series.name);
                    let of = match whose {
                        "queue" => "Queue",
                        "stations" => "Stations",
                        _ => "Controllers",
                    };
                    charts.push(chart(&key, &format!("{of}: {title}"), unit, vec![Some(line)]));
                }
            }
        }
        charts
    }
}

/// A class where L4S packets are apart.
fn class_words(class: Ecn) -> &'static str {
    match class {
        Ecn::Ect1 => "L4S",
        Ecn::Ect0 => "classic ECT(0)",
        Ecn::NotEct => "classic Not-ECT",
        Ecn::Ce => "CE",
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
    let plain = if name.ends_with("probability") { "of 1" } else { "plain number" };
    let (words, unit) = ending.unwrap_or((name, plain));
    (words.replace('_', " "), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Ecn, Histogram, Span, Time};
    use weir_record::{
        Component, DelaySample, FlowInfo, FlowSample, GroupInfo, LinkInfo, LinkSample, Recorder, StateSample,
        TransportSample,
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
            stations: vec![],
            groups: vec![group("a"), group("b")],
            flows: vec![flow("a-1", 0), flow("a-2", 0), flow("b-1", 1), flow("b-2", 1)],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        for period in 1..=10u64 {
            let at = Time::from_nanos(period * 100_000_000);
            let (arrived, dropped) = ([100, 0, 0, 0], [period % 2, 0, 0, 0]);
            records.link(&LinkSample {
                at,
                arrived,
                dropped,
                capacity: Bytes::new(125_000),
                ..LinkSample::default()
            });
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
    fn a_page_shows_what_the_records_hold() {
        let (info, records) = run();
        let series = charts(&info, &records, 1);
        assert_eq!((series.period_s, series.count), (0.1, 10));
        // 12,500 and 25,000 bytes in 100 ms: 1 and 2 Mbit/s.
        assert_eq!(values(&series, "goodput", "a"), [Some(3.0); 10]);
        assert_eq!(values(&series, "goodput", "b-2"), [Some(4.0); 10]);
        assert_eq!(values(&series, "delay", "link forward, mean"), [Some(10.4); 10]);
        assert_eq!(values(&series, "window", "b-1"), [Some(2.0); 10]);
        assert_eq!(values(&series, "fates", "link forward, dropped")[..2], [Some(10.0), Some(0.0)]);
        assert_eq!(values(&series, "queue-drop_probability", "link forward"), [Some(0.25); 10]);
    }

    #[test]
    fn what_did_not_happen_has_no_line_and_what_was_not_measured_no_plot() {
        let (info, records) = run();
        let series = charts(&info, &records, 1);
        let keys: Vec<&str> = series.charts.iter().map(|chart| chart.key.as_str()).collect();
        assert_eq!(keys, ["goodput", "delay", "window", "fates", "backlog", "queue-drop_probability"]);
        assert_eq!(series.charts[3].lines.len(), 1, "nothing was marked, nothing lost by the link");
        assert_eq!(charts(&info, &Records::default(), 1).charts, []);
    }

    #[test]
    fn of_many_flows_some_are_drawn_and_the_plot_says_how_many() {
        let (mut info, mut records) = run();
        info.flows = (0..1000)
            .map(|number| FlowInfo {
                name: format!("{number}"),
                group: u32::from(number >= 990),
                ..FlowInfo::default()
            })
            .collect();
        let at = Time::from_nanos(100_000_000);
        (0..1000)
            .for_each(|flow| records.flow(&FlowSample { at, flow, read_bytes: 1, ..FlowSample::default() }));
        let series = charts(&info, &records, 1);
        assert_eq!(series.charts[0].note.as_deref(), Some("12 of 1000 flows are drawn one by one"));
        assert_eq!(values(&series, "goodput", "990").len(), 10);
    }

    #[test]
    fn a_lab_of_many_runs_has_fewer_points() {
        let (mut info, mut records) = run();
        info.duration = Span::from_secs(100);
        records.flow(&FlowSample {
            at: Time::from_nanos(100_000_000_000),
            read_bytes: 1,
            ..FlowSample::default()
        });
        assert_eq!(charts(&info, &records, 1).count, 500);
        assert_eq!(charts(&info, &records, 1000).count, 200);
    }

    #[test]
    fn a_state_is_titled_by_its_name_and_unit() {
        assert_eq!(titled("burst_allowance_ms"), ("burst allowance".into(), "ms"));
        assert_eq!(titled("drop_probability"), ("drop probability".into(), "of 1"));
    }
}
