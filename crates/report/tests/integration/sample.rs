//! A small made-up lab for tests of the pages: two rates, three queues, two pairs of controllers, two repeats, two
//! engines. Its numbers are formulas of the cell, so that every run of a test sees the same; none was measured.

use std::sync::Arc;
use weir_base::Ecn;
use weir_record::compare::{Bound, Comparison, Estimate};
use weir_record::metrics::aqm::AQM_DROP;
use weir_record::metrics::queue::{
    ARRIVED, DROP_PROBABILITY, DROPPED, DROPPED_FULL, LINK_CAPACITY, MARK_PROBABILITY, MARKED, QUEUE_DELAY,
    UTILISATION,
};
use weir_record::metrics::rate::{GOODPUT, JAIN, RATE_RATIO, READ, WINDOW_RATIO};
use weir_record::metrics::tcp::{CWND, RETRANSMISSION_PERCENT, RETRANSMISSIONS, RTT, RTT_BASE, RTT_MEAN};
use weir_record::{
    ClassSummary, Distribution, FlowSummary, GroupSummary, Metric, Metrics, PairSummary, Param, QueueSummary,
    RunSummary, Value,
};
use weir_report::charts::{Chart, Event, FlowSeries, Ink, Line, RunSeries, Spread};
use weir_report::lab::{Lab, LinkPlan, Run};

const QUEUES: [(&str, &str, f64, Option<f64>); 3] = [
    ("tail-drop 1 bdp", "tail-drop", 14.0, None),
    ("tail-drop 2 bdp", "tail-drop", 31.0, None),
    ("pie", "pie", 14.6, Some(15.0)),
];

/// A lab of all cells with this number of repeats, on these engines.
pub(crate) fn lab(engines: &[&str], repeats: u32) -> Lab {
    let mut lab = Lab {
        name: "agreement".into(),
        version: "0.1.0".into(),
        levels: vec!["rate".into(), "queue".into(), "cc".into()],
        ..Lab::default()
    };
    for (r, rate) in [10.0, 100.0].into_iter().enumerate() {
        for (q, queue) in QUEUES.iter().enumerate() {
            for (c, pair) in [("newreno", "newreno"), ("newreno", "cubic")].into_iter().enumerate() {
                let params =
                    vec![format!("{rate} Mbit/s"), queue.0.to_string(), format!("{} v {}", pair.0, pair.1)];
                for repeat in 1..=repeats {
                    for (e, engine) in engines.iter().enumerate() {
                        let wobble = wave(r * 7 + q * 5 + c * 3 + repeat as usize + 11 * e);
                        lab.runs.push(one(engine, &params, (rate, queue, pair), repeat, wobble));
                    }
                }
                if engines.len() > 1 {
                    let compared = lab.agreement.get_or_insert_default();
                    compared.rows.extend(verdicts(&params, r + q + c));
                }
            }
        }
    }
    if let Some(run) = lab.runs.iter_mut().rev().find(|run| run.engine() == "live") {
        Arc::make_mut(&mut run.summary).invalid =
            vec!["lateness p99 was 412 µs, above its bound of 200 µs".into()];
        run.warnings = vec!["normal scheduling: SCHED_FIFO was refused".into()];
    }
    lab
}

/// A lab of `count` runs on one level, for the index of a large tree.
pub(crate) fn large(count: usize) -> Lab {
    let mut lab = lab(&["sim"], 1);
    lab.levels.insert(0, "cell".into());
    let params = lab.runs[0].params.clone();
    let cell = |i: usize| {
        let queue = ("tail-drop 1 bdp", "tail-drop", 10.0 + 20.0 * wave(i), None);
        let mut run = one("sim", &params, (10.0, &queue, ("newreno", "newreno")), 1, 0.5);
        (run.id, run.number) = (format!("cell-{i}"), i);
        run.params.insert(0, format!("{i}"));
        run
    };
    lab.runs = (0..count).map(cell).collect();
    lab
}

/// A number in `[0, 1]` that looks random but is a fixed function of its argument.
pub(crate) fn wave(i: usize) -> f64 {
    (i as f64 * 12.9898).sin().mul_add(0.5, 0.5)
}

fn spread(mean: f64) -> Distribution {
    Distribution {
        count: 24_000,
        mean,
        p1: mean * 0.2,
        p25: mean * 0.7,
        p50: mean * 0.97,
        p75: mean * 1.25,
        p99: mean * 2.1,
    }
}

type Cell<'a> = (f64, &'a (&'a str, &'a str, f64, Option<f64>), (&'a str, &'a str));

fn one(engine: &str, params: &[String], (rate, queue, pair): Cell<'_>, repeat: u32, wobble: f64) -> Run {
    let delay = spread(queue.2 * (0.96 + 0.08 * wobble));
    let used = 99.4 - 2.0 * wobble;
    let first = if pair.0 == pair.1 { 48.0 } else { 34.0 } + 3.0 * wobble;
    let arrived = (rate * 30.0 * 83.0) as u64;
    let number = |metric: Metric, number: f64| (metric, Value::Number(number));
    let count = |metric: Metric, count: u64| (metric, Value::Count(count));
    let times = |metric: Metric, times: Distribution| (metric, Value::Distribution(times));
    let of_class = |class: Ecn, part: f64| {
        let (dropped, marked) = (class == Ecn::NotEct, class == Ecn::Ect0);
        let mut values = vec![
            number(UTILISATION, used * part),
            times(QUEUE_DELAY, delay),
            number(DROP_PROBABILITY, if dropped { 100.0 / 170.0 / part } else { 0.0 }),
            count(ARRIVED, (arrived as f64 * part) as u64),
            count(DROPPED, if dropped { arrived / 170 } else { 0 }),
            count(MARKED, if marked { arrived / 140 } else { 0 }),
        ];
        values.extend(marked.then_some(number(MARK_PROBABILITY, 100.0 / 140.0)));
        ClassSummary { class, metrics: metrics(values) }
    };
    let group = |name: &str, controller: &str, share: f64| GroupSummary {
        name: name.into(),
        controller: Some(controller.into()),
        transport: "tcp".into(),
        flows: 2,
        completes: false,
        metrics: metrics([
            number(GOODPUT, rate * share / 100.0),
            // Of 25 s.
            number(READ, rate * share / 100.0 * 25.0 / 8e-6),
            times(RTT, spread(20.0 + delay.mean)),
            number(RTT_BASE, 20.0),
            number(CWND, rate * share * 0.02 + 4.0),
            count(RETRANSMISSIONS, arrived / 300),
            number(RETRANSMISSION_PERCENT, 0.62),
        ]),
    };
    let flows = (0..4).map(|i| {
        let goodput = rate * (if i < 2 { first } else { 95.0 - first }) / 200.0;
        let rtt = number(RTT_MEAN, 20.0 + delay.mean);
        flow(i / 2, i % 2, [number(GOODPUT, goodput), rtt, count(RETRANSMISSIONS, arrived / 600)])
    });
    let marks = queue.1 == "pie";
    let mut forward = vec![
        number(UTILISATION, used),
        times(QUEUE_DELAY, delay),
        number(DROP_PROBABILITY, 100.0 / 170.0),
        count(ARRIVED, arrived),
        count(DROPPED, arrived / 170),
        count(DROPPED_FULL, arrived / 170),
        count(MARKED, if marks { arrived / 140 } else { 0 }),
        number(LINK_CAPACITY, rate),
    ];
    forward.extend(marks.then_some(number(MARK_PROBABILITY, 100.0 / 140.0)));
    forward.extend(queue.3.map(|_| times(AQM_DROP, spread(0.6))));
    let back = [number(UTILISATION, 2.4), times(QUEUE_DELAY, spread(0.04)), count(ARRIVED, arrived / 2)];
    let classes = [(Ecn::NotEct, 0.4), (Ecn::Ect0, 0.6)].map(|(class, part)| of_class(class, part));
    let link = |link: &str, queue: &str, metrics, carries: &[&str], classes| QueueSummary {
        link: link.into(),
        queue: queue.into(),
        carries: carries.iter().map(|group| (*group).into()).collect(),
        metrics,
        classes,
    };
    let ratios = [number(RATE_RATIO, first / (95.0 - first)), number(WINDOW_RATIO, first / (94.0 - first))];
    let summary = RunSummary {
        engine: engine.into(),
        repeat,
        seed: 7 + u64::from(repeat),
        duration_s: 30.0,
        warmup_s: 5.0,
        metrics: metrics([number(JAIN, 0.97 - 0.1 * wobble)]),
        queues: vec![
            link("forward", queue.1, metrics(forward), &["a", "b"], classes.into()),
            link("back", "tail-drop", metrics(back), &[], vec![]),
        ],
        groups: vec![group("a", pair.0, first), group("b", pair.1, 95.0 - first)],
        pairs: vec![PairSummary { group: "a".into(), to: "b".into(), metrics: metrics(ratios) }],
        flows: flows.collect(),
        ..RunSummary::default()
    };
    let plan = LinkPlan { rate_mbps: Some(rate), ..LinkPlan::default() };
    Run {
        id: format!("{}-{repeat}", params.join("-").replace([' ', '/'], "")),
        summary: Arc::new(summary),
        params: params.to_vec(),
        bottleneck: Some(0),
        planned: vec![LinkPlan { target_ms: queue.3, ..plan }, plan],
        ..Run::default()
    }
}

pub(crate) fn metrics(values: impl IntoIterator<Item = (Metric, Value)>) -> Metrics {
    values.into_iter().map(|(metric, value)| (metric.name, value)).collect()
}

/// A flow of the group `a` or `b`.
pub(crate) fn flow(
    group: usize,
    number: usize,
    values: impl IntoIterator<Item = (Metric, Value)>,
) -> FlowSummary {
    let group = ["a", "b"][group].to_string();
    let (name, transport) = (format!("{group}-{}", number + 1).into(), "tcp".into());
    FlowSummary { name, group: group.into(), controller: None, transport, metrics: metrics(values) }
}

fn verdicts(params: &[String], place: usize) -> Vec<Comparison> {
    let levels = ["rate", "queue", "cc"].map(String::from);
    let cell: Vec<Param> =
        levels.into_iter().zip(params).map(|(level, value)| Param { level, value: value.clone() }).collect();
    let row = |metric: &str, group: Option<&str>, reference: f64, differences: &[f64], bound| {
        let difference = Estimate::of(differences).unwrap();
        let (Bound::Absolute(width) | Bound::Relative(width)) = bound;
        let other = match bound {
            Bound::Absolute(_) => reference + difference.mean,
            Bound::Relative(_) => reference * (1.0 + difference.mean),
        };
        Comparison {
            cell: Some(cell.clone()),
            metric: metric.into(),
            group: group.map(String::from),
            window: None,
            reference: Some(reference),
            other: Some(other),
            difference: Some(difference),
            bound,
            verdict: difference.verdict(width),
        }
    };
    let delay = if place == 4 { [0.33, 0.331] } else { [0.03, 0.031] };
    vec![
        row("utilisation_percent", None, 98.6, &[-0.3, -0.31], Bound::Absolute(2.0)),
        row(QUEUE_DELAY.name, None, 14.6, &delay, Bound::Relative(0.15)),
        row("goodput_share_percent", Some("a"), 49.1, &[8.9, 9.5], Bound::Absolute(10.0)),
    ]
}

/// A distribution whose values rise linearly from 0 to twice the mean.
fn spread_of(name: &str, mean: f64) -> Spread {
    let values = (0..=100).map(|percent| 0.02 * mean * f64::from(percent)).collect();
    Spread { name: name.into(), ink: Ink::Plain(0), count: 1000, values, limit: None }
}

/// Number of plots on a run's page: one for each chart, and one more for its distribution.
pub(crate) fn plots(run: &Run) -> usize {
    let series = series(run);
    let flows = series.flows.iter().flat_map(|flows| &flows.charts);
    series.charts.iter().chain(flows).map(|chart| 1 + usize::from(!chart.spreads.is_empty())).sum()
}

/// Series for a run: sawtooth windows, with matching rates and delays.
pub(crate) fn series(run: &Run) -> RunSeries {
    let count = 300;
    let late = if run.engine() == "live" { 9.0 } else { 0.0 };
    let saw =
        move |i: usize, length: f64, from: f64| from + (1.0 - from) * (((i as f64 + late) / length) % 1.0);
    let line = |name: &str, ink: Ink, values: &dyn Fn(usize) -> f64| Line {
        name: name.into(),
        ink,
        thin: false,
        hidden: false,
        bound: false,
        values: (0..count).map(|i| Some(values(i))).collect(),
    };
    let rate = run.planned[0].rate_mbps.unwrap();
    let delay = run.summary.queues[0].metrics.number(&QUEUE_DELAY).unwrap();
    let chart = |key: &str, title: &str, unit: &str, lines: Vec<Line>| Chart {
        key: key.into(),
        title: title.into(),
        unit: unit.into(),
        lines,
        ..Chart::default()
    };
    let flow = line("a-1", Ink::Group(0), &|i| rate * 0.25 * saw(i, 40.0, 0.6));
    let mut tail = line("link forward, p99", Ink::Plain(0), &|i| delay * (1.1 + 0.6 * saw(i, 57.0, 0.5)));
    tail.thin = true;
    let mut gap = line("b-1", Ink::Group(1), &|i| 30.0 * saw(i, 63.0, 0.7));
    gap.values[120..150].fill(None);
    RunSeries {
        period_s: 0.1,
        count,
        shares: (0..=100).map(|percent| f64::from(percent) / 100.0).collect(),
        flows: Some(FlowSeries {
            period_s: 0.1,
            count,
            charts: vec![
                chart("flow-goodput", "Goodput", "Mbit/s", vec![flow]),
                chart(
                    "flow-window",
                    "Congestion window",
                    "segments",
                    vec![line("a-1", Ink::Group(0), &|i| 22.0 * saw(i, 40.0, 0.5)), gap],
                ),
            ],
        }),
        overlay: None,
        events: vec![Event { at_s: 12.0, what: "link forward: 5 Mbit/s".into() }],
        charts: vec![
            chart(
                "goodput",
                "Goodput",
                "Mbit/s",
                vec![
                    line("a", Ink::Group(0), &|i| rate * 0.5 * saw(i, 40.0, 0.6)),
                    line("b", Ink::Group(1), &|i| rate * (0.94 - 0.5 * saw(i, 40.0, 0.6))),
                ],
            ),
            Chart {
                spreads: vec![spread_of("link forward", delay)],
                ..chart(
                    "delay",
                    "Queue delay",
                    "ms",
                    vec![
                        line("link forward, mean", Ink::Plain(0), &|i| delay * saw(i, 57.0, 0.5) * 1.2),
                        tail,
                    ],
                )
            },
            chart(
                "fate",
                "Marks and drops",
                "packets/s",
                vec![
                    line("marked", Ink::Plain(0), &|i| if i % 40 == 0 { 40.0 } else { 0.0 }),
                    line("dropped", Ink::Plain(1), &|i| if i % 57 == 0 { 90.0 } else { 0.0 }),
                ],
            ),
        ],
    }
}
