//! Metrics over the seconds of a window: the worst second, and the time until values settle. Seconds are counted from the
//! window's begin, and a value of a second is the mean over the sample periods that end in it; a rest of less than a second
//! is left out.

use super::reduction::Queue;
use super::value::{Value, mbps, percent, ratio};
use super::view::Sum;
use super::window::Window;
use super::{Domain, Flows, Level, Metric, Reduction};
use weir_base::Span;

/// Greatest distance of settled one-second means from their final value, as a share of that value, unless a named window
/// sets another.
pub const SETTLING_TOLERANCE: f64 = 0.1;

/// Smallest number of seconds for a final value, which is the mean of their last third.
const FEWEST_SECONDS: usize = 3;

/// The means of a window's seconds; `None` for a second without a measurement.
type Means = Vec<Option<f64>>;

/// The mean of some times, in milliseconds.
fn millis((count, sum): Sum) -> Option<f64> {
    ratio(sum as f64 / 1e6, count as f64)
}

impl Queue<'_> {
    /// Mean queue delay of each second, in milliseconds.
    fn delay_by_second(&self) -> Means {
        let of_class = |second: &[Sum; 4]| match self.class {
            Some(class) => second[class as usize],
            None => second.iter().fold((0, 0), |(count, sum), (c, s)| (count + c, sum + s)),
        };
        self.link().seconds.iter().map(|second| millis(of_class(second))).collect()
    }
}

impl Flows<'_> {
    /// Goodput of each second, in Mbit/s; all `None` if it is unknown how much the applications read.
    fn goodput_by_second(&self) -> &Means {
        self.goodputs_by_second.get_or_init(|| self.means_of_goodput())
    }

    fn means_of_goodput(&self) -> Means {
        let mut bytes = vec![0; self.view.seconds.len()];
        for (second, read) in self.each().flat_map(|flow| &flow.seconds) {
            if let Some(bytes) = bytes.get_mut(*second) {
                *bytes += read;
            }
        }
        let known = self.read();
        let seconds = self.view.seconds.iter().zip(bytes);
        seconds.map(|(second, bytes)| mbps(bytes, second.length()).filter(|_| known)).collect()
    }

    /// Goodput of each second that lies wholly within the flows' active time, in Mbit/s.
    fn active_goodput_by_second(&self) -> impl Iterator<Item = Option<f64>> {
        let life = self.life();
        let whole =
            move |second: &Window| life.is_some_and(|(from, to)| from <= second.from && second.to <= to);
        let seconds = self.view.seconds.iter().zip(self.goodput_by_second());
        seconds.filter(move |(second, _)| whole(second)).map(|(_, goodput)| *goodput)
    }

    /// Mean RTT of each second, in milliseconds.
    fn rtt_by_second(&self) -> Means {
        let mut sums = vec![Sum::default(); self.view.seconds.len()];
        for group in self.groups() {
            let Some(seconds) = self.view.rtt_seconds.get(group as usize) else { continue };
            for (sum, second) in sums.iter_mut().zip(seconds) {
                *sum = (sum.0 + second.0, sum.1 + second.1);
            }
        }
        sums.into_iter().map(millis).collect()
    }

    /// Share of frames on time in each second, in percent.
    fn frames_by_second(&self) -> Means {
        let mut sums = vec![(0, 0); self.view.seconds.len()];
        for (second, on_time, frames) in self.messages().flat_map(|messages| &messages.seconds) {
            if let Some(sum) = sums.get_mut(*second) {
                *sum = (sum.0 + on_time, sum.1 + frames);
            }
        }
        sums.into_iter().map(|(on_time, frames)| percent(on_time, frames)).collect()
    }
}

/// The least of the means.
fn least(means: impl IntoIterator<Item = Option<f64>>) -> Value {
    Value::from(means.into_iter().flatten().reduce(f64::min))
}

/// The greatest of the means.
fn greatest(means: Means) -> Value {
    Value::from(means.into_iter().flatten().reduce(f64::max))
}

/// Index of the first second from which on all means are within the tolerance, a share, of the mean of the last third.
/// `None` if the last one is not, or if there are too few. Seconds without a mean are ignored.
fn settled(means: &[Option<f64>], tolerance: f64) -> Option<usize> {
    let aim = last_third(means)?;
    let far = |mean: &Option<f64>| mean.is_some_and(|mean| (mean - aim).abs() > tolerance * aim.abs());
    let first = means.iter().rposition(far).map_or(0, |second| second + 1);
    (first < means.len()).then_some(first)
}

/// Least length of the periods over which goodput is measured to find its recovery.
const STRETCH: Span = Span::from_millis(100);

/// The mean of the last third of the values, rounded up; `None` below [`FEWEST_SECONDS`] values.
fn last_third(means: &[Option<f64>]) -> Option<f64> {
    let last = &means[means.len() - means.len().div_ceil(FEWEST_SECONDS)..];
    let (sum, count) = last.iter().flatten().fold((0.0, 0.0), |(sum, count), mean| (sum + mean, count + 1.0));
    ratio(sum, count).filter(|_| means.len() >= FEWEST_SECONDS)
}

impl Flows<'_> {
    /// Time from the begin of a named window until goodput has recovered, in seconds. `None` in other windows, or if it has not.
    fn recovery(&self) -> Option<f64> {
        let view = self.view;
        let aim = last_third(self.goodput_by_second()).filter(|_| view.is_part && self.read())?;
        let mut periods: Vec<_> = self.each().flat_map(|flow| flow.periods.iter().copied()).collect();
        periods.sort_unstable();
        let sample = view.info.sample.as_nanos().max(1);
        let stretch = Span::from_nanos(STRETCH.as_nanos().div_ceil(sample) * sample);
        let is_back = |place: &usize| {
            let until = periods[*place].0 + stretch;
            let bytes = periods[*place..].iter().take_while(|(_, end, _)| *end <= until);
            mbps(bytes.map(|(.., bytes)| bytes).sum(), stretch)
                .is_some_and(|rate| rate >= (1.0 - view.tolerance) * aim)
        };
        let first = (0..periods.len()).find(is_back)?;
        Some(periods[first].0.since(view.window.from).as_secs_f64())
    }
}

impl super::View<'_> {
    /// The time from the window's begin until the means settle, in seconds.
    fn settling_time(&self, means: &[Option<f64>]) -> Value {
        let first = settled(means, self.tolerance).and_then(|second| self.seconds.get(second));
        Value::from(first.map(|second| second.from.since(self.window.from).as_secs_f64()))
    }
}

family! {
    GOODPUT_FIRST {
        name: "goodput_first_second_mbps",
        title: "Goodput, first second",
        unit: "Mbit/s",
        of: &[Level::Group, Level::Flow],
        definition: "Goodput in the first second of the window in which the flows were active throughout; seconds are counted from the window's begin.",
        source: "F. Alali 2016 (cross-layer thesis), section 3.3.2: the start apart from what follows",
        reduction: Reduction::Flows(|f| Value::from(f.active_goodput_by_second().next().flatten())),
    }

    GOODPUT_WORST {
        name: "goodput_worst_second_mbps",
        title: "Goodput, worst second",
        unit: "Mbit/s",
        of: &[Level::Run, Level::Group, Level::Flow],
        definition: "Lowest goodput in one second of the window in which the flows were active throughout; seconds are counted from the window's begin.",
        source: "weir",
        reduction: Reduction::Flows(|f| least(f.active_goodput_by_second())),
    }

    QUEUE_DELAY_WORST {
        name: "queue_delay_worst_second_ms",
        title: "Queue delay, worst second",
        unit: "ms",
        of: &[Level::Run, Level::Link, Level::Class],
        definition: "Highest mean queue delay in one second of the window; seconds are counted from the window's begin, and those in which no packet was sent are left out.",
        source: "weir; counted at the queue",
        reduction: Reduction::Queue(|q| greatest(q.delay_by_second())),
    }

    RTT_WORST {
        name: "rtt_worst_second_ms",
        title: "Round-trip time, worst second",
        unit: "ms",
        of: &[Level::Run, Level::Group],
        definition: "Highest mean round-trip time (see rtt_ms) in one second of the window; seconds are counted from the window's begin.",
        source: "weir; host-edge tap",
        reduction: Reduction::Flows(|f| greatest(f.rtt_by_second())),
    }

    FRAMES_WORST {
        name: "frames_on_time_worst_second_percent",
        title: "Frames on time, worst second",
        unit: "%",
        of: &[Level::Group, Level::Flow],
        definition: "Lowest share of frames on time in one second of the window, of frames whose outcome became known in it; seconds are counted from the window's begin.",
        source: "weir",
        domain: Domain::Percent,
        reduction: Reduction::Messages(|f| least(f.frames_by_second())),
    }

    SETTLING {
        name: "settling_time_s",
        title: "Settling time of goodput",
        unit: "s",
        of: &[Level::Run, Level::Group, Level::Flow],
        definition: "Time from the window's begin to the first second from which on the goodput of every second stays within a tolerance of its final value: the mean over the last third of the window's seconds, rounded up. The tolerance is 10 % of that value unless the window has its own. Undefined for fewer than three seconds, and if the last second is not within the tolerance.",
        source: "control theory's settling time, on one-second means",
        reduction: Reduction::Flows(|f| f.view.settling_time(f.goodput_by_second())),
    }

    RECOVERY {
        name: "recovery_time_s",
        title: "Recovery time of goodput",
        unit: "s",
        of: &[Level::Group, Level::Flow],
        definition: "Time from the window's begin, at which an outage ends or the path changes, to the first interval of at least a tenth of a second, in whole sample periods, whose goodput is at most a tolerance below its final value: the mean over the last third of the window's seconds, rounded up. The tolerance is 10 % of that value unless the window has its own. Undefined for fewer than three seconds, and if there is no such interval.",
        source: "weir",
        reduction: Reduction::InPart(|f| Value::from(f.recovery())),
    }

    QUEUE_DELAY_SETTLING {
        name: "queue_delay_settling_time_s",
        title: "Settling time of queue delay",
        unit: "s",
        of: &[Level::Run, Level::Link, Level::Class],
        definition: "The same as settling_time_s, for the mean queue delay of each second.",
        source: "control theory's settling time, on one-second means",
        reduction: Reduction::Queue(|q| q.view.settling_time(&q.delay_by_second())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{FlowInfo, GroupInfo, LinkInfo, RunInfo, WindowInfo};
    use crate::testing::histogram;
    use crate::types::{
        DelaySample, FlowSample, LinkSample, Message, MessageFate, MessageKind, Recorder, RttSample,
    };
    use crate::{Records, RunSummary};
    use weir_base::{Ecn, Span, Time};

    fn some(means: &[f64]) -> Means {
        means.iter().copied().map(Some).collect()
    }

    #[test]
    fn means_settle_when_they_stay_near_the_mean_of_their_last_third() {
        // Last third: 9, 10 and 11, mean 10. Within 10 %: from 9 to 11. The second of 8 is the last outside.
        let means = some(&[2.0, 9.5, 6.0, 8.0, 10.5, 9.5, 9.0, 10.0, 11.0]);
        assert_eq!(settled(&means, 0.1), Some(4));
        // Within 25 %: from 7.5 to 12.5; the second of 6 is the last outside.
        assert_eq!(settled(&means, 0.25), Some(3));
        // Within 5 %: the last second, 11, is outside.
        assert_eq!(settled(&means, 0.05), None);
        assert_eq!(settled(&some(&[5.0, 5.0, 5.0]), 0.1), Some(0));
    }

    #[test]
    fn too_few_seconds_do_not_settle_and_seconds_without_a_mean_are_ignored() {
        assert_eq!(settled(&some(&[5.0, 5.0]), 0.1), None);
        assert_eq!(settled(&[], 0.1), None);
        assert_eq!(settled(&[None, None, None], 0.1), None);
        // Four seconds: the last third, rounded up, is two of them, of which one has a mean.
        assert_eq!(settled(&[Some(9.0), None, Some(5.0), None], 0.1), Some(1));
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Nine seconds in periods of 500 ms. From 2 s on, the flow reads 100,000 bytes in each period of the first second, 200,000
    /// in those of the next, and so on up to 400,000; packets wait 80, 40, 20, 10, 10 and 10 ms. Before 2 s, both are far greater.
    fn run() -> (RunInfo, Records) {
        let part = |name: &str, from, to, tolerance| WindowInfo {
            name: name.into(),
            from: Span::from_millis(from),
            to: Span::from_millis(to),
            tolerance,
            phase: false,
        };
        let info = RunInfo {
            duration: Span::from_secs(9),
            sample: Span::from_millis(500),
            bottleneck: Some(0),
            windows: vec![part("step", 1_900, 8_300, 0.1), part("loose", 2_000, 8_000, 0.3)],
            links: vec![LinkInfo { name: "link".into(), instrumented: true, ..LinkInfo::default() }],
            groups: vec![GroupInfo { name: "a".into(), ..GroupInfo::default() }],
            flows: vec![FlowInfo { name: "a".into(), ..FlowInfo::default() }],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        for period in 1..=18u64 {
            let now = at(500 * period);
            let second = (period - 1) / 2;
            let (read, wait) = match second {
                0 | 1 => (900_000, 500),
                _ => (100_000 * (second - 1).min(4), (160 >> (second - 1)).max(10)),
            };
            records.link(&LinkSample { at: now, ..LinkSample::default() });
            records.delay(&DelaySample { at: now, link: 0, class: Ecn::NotEct, delay: histogram(&[wait]) });
            records.flow(&FlowSample { at: now, read_bytes: read, ..FlowSample::default() });
            records.rtt(&RttSample { at: now, group: 0, rtt: histogram(&[wait + 20]) });
            for frame in 0..4 {
                let fate = if frame < second.min(4) { MessageFate::Done } else { MessageFate::Late };
                let (at, took) = (now, Some(Span::from_millis(5)));
                records.message(&Message {
                    at,
                    flow: 0,
                    kind: MessageKind::Frame,
                    number: frame,
                    took,
                    fate,
                });
            }
        }
        (info, records)
    }

    #[test]
    fn a_window_has_the_metrics_of_the_periods_that_lie_wholly_in_it() {
        let (info, records) = run();
        let summary = RunSummary::new(&info, &records, None);
        let step = &summary.windows[0];
        // 1.9 s to 8.3 s holds the periods from 2 s to 8 s.
        assert_eq!((step.name.as_str(), step.from_s, step.to_s), ("step", 2.0, 8.0));
        // Twice 100,000 + 200,000 + 300,000 + three times 400,000 bytes, over 6 s.
        assert_eq!(step.metrics.get("goodput_mbps"), Value::Number(4.8));
        // The whole run has four more periods of 900,000 bytes, and a second with two of 400,000: 8 Mbyte in 9 s.
        assert_eq!(summary.metrics.get("goodput_mbps"), Value::Number(7.11111));
        // (80 + 40 + 20 + 10 + 10 + 10) / 6.
        assert_eq!(step.queues[0].metrics.get("queue_delay_ms").scalar(), Some(28.3333));
        let part = summary.part(Some("step")).unwrap();
        assert_eq!(part.groups[0].metrics.get("goodput_mbps"), Value::Number(4.8));
        assert!(summary.part(Some("other")).is_none());
        assert_eq!(summary.part(None).unwrap().metrics, &summary.metrics);
    }

    #[test]
    fn the_worst_second_and_the_settling_time_are_those_of_the_window() {
        let (info, records) = run();
        let summary = RunSummary::new(&info, &records, None);
        let [step, loose] = [&summary.windows[0], &summary.windows[1]];
        let of = |window: &crate::WindowSummary, name: &str| window.groups[0].metrics.get(name);
        // 200,000 bytes in the window's first second.
        assert_eq!(of(step, "goodput_worst_second_mbps"), Value::Number(1.6));
        assert_eq!(of(step, "goodput_first_second_mbps"), Value::Number(1.6));
        assert_eq!(of(step, "rtt_worst_second_ms"), Value::Number(100.0));
        // From 2 s on, two, three and then four of four frames are on time.
        assert_eq!(of(step, "frames_on_time_worst_second_percent"), Value::Number(50.0));
        assert_eq!(step.metrics.get("queue_delay_worst_second_ms"), Value::Number(80.0));
        // 1.6, 3.2, 4.8, 6.4, 6.4 and 6.4 Mbit/s: the last third is 6.4; within 10 % of it from the fourth second on, within
        // 30 % (4.48) from the third.
        assert_eq!(of(step, "settling_time_s"), Value::Number(3.0));
        assert_eq!(of(loose, "settling_time_s"), Value::Number(2.0));
        assert_eq!(step.queues[0].metrics.get("queue_delay_settling_time_s"), Value::Number(3.0));
    }

    #[test]
    fn a_second_in_which_flows_are_not_active_throughout_is_not_their_worst() {
        let (mut info, records) = run();
        info.flows[0].start = Span::from_millis(2_500);
        let summary = RunSummary::new(&info, &records, None);
        // 400,000 bytes in the second from 3 s to 4 s.
        assert_eq!(summary.windows[0].flows[0].metrics.get("goodput_worst_second_mbps"), Value::Number(3.2));
    }

    #[test]
    fn fairness_of_the_run_is_that_of_the_flows_that_cross_its_bottleneck() {
        let (mut info, mut records) = run();
        info.groups.push(GroupInfo { name: "elsewhere".into(), ..GroupInfo::default() });
        info.flows.push(FlowInfo { name: "b".into(), group: 1, ..FlowInfo::default() });
        let second = |sample: &FlowSample| FlowSample { flow: 1, read_bytes: 0, ..sample.clone() };
        let silent: Vec<FlowSample> = records.flows.iter().map(second).collect();
        records.flows.extend(silent);
        let jain = |info: &RunInfo| RunSummary::new(info, &records, None).metrics.get("jain_index");
        // One of two flows has all the goodput.
        assert_eq!(jain(&info), Value::Number(0.5));
        info.links[0].groups = vec![0];
        assert_eq!(jain(&info), Value::Number(1.0));
    }

    #[test]
    fn a_second_of_uneven_periods_is_as_long_as_they_are() {
        let bounds = [0, 300, 600, 900, 1200, 1500, 1800, 2100].map(at);
        let window = crate::Window { from: at(0), to: at(2100) };
        let seconds = window.seconds(&bounds);
        let lengths: Vec<_> = seconds.iter().map(|second| second.length()).collect();
        // Three periods end in the first second and three in the second; the seventh is a rest.
        assert_eq!(lengths, [Span::from_millis(900), Span::from_millis(900)]);
        assert_eq!([900, 901, 1200, 2000].map(|end| window.second(at(end))), [0, 0, 1, 1]);
    }
}
