//! The plots of a made-up run.

use super::*;
use weir_base::{Bytes, Ecn, Histogram, Span, Time};
use weir_record::{
    Component, DelaySample, FlowInfo, FlowSample, GroupInfo, LinkCounters, LinkInfo, LinkSample, Recorder,
    StateSample, TransportSample,
};

/// Two groups of two flows, one link, ten periods of 100 ms.
fn run() -> (RunInfo, Records) {
    let group = |name: &str| GroupInfo { name: name.into(), ..GroupInfo::default() };
    let flow = |name: &str, group| FlowInfo { name: name.into(), group, ..FlowInfo::default() };
    let info = RunInfo {
        duration: Span::from_secs(1),
        sample: Span::from_millis(100),
        bottleneck: Some(0),
        links: vec![LinkInfo { name: "forward".into(), instrumented: true, ..LinkInfo::default() }],
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
            counters: LinkCounters {
                arrived,
                dropped,
                capacity: Bytes::new(125_000),
                ..LinkCounters::default()
            },
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

/// The plots of a run after its warm-up.
fn plots(info: &RunInfo, records: &Records, runs: usize) -> RunSeries {
    charts(info, &View::after(info.warmup, info, records), records, runs)
}

/// The values of a line, rounded to the digits of a page.
fn values(series: &RunSeries, key: &str, name: &str) -> Vec<Option<f64>> {
    let mut charts = series.charts.iter().chain(series.flows.iter().flat_map(|flows| &flows.charts));
    let chart = charts.find(|chart| chart.key == key).unwrap();
    let line = chart.lines.iter().find(|line| line.name == name).unwrap();
    line.values.iter().map(|value| value.map(crate::number::significant)).collect()
}

#[test]
fn a_page_shows_what_the_records_hold() {
    let (info, records) = run();
    let series = plots(&info, &records, 1);
    assert_eq!((series.period_s, series.count), (0.1, 10));
    // 12,500 and 25,000 bytes in 100 ms: 1 and 2 Mbit/s.
    assert_eq!(values(&series, "goodput", "a"), [Some(3.0); 10]);
    assert_eq!(values(&series, "flow-goodput", "b-2"), [Some(4.0); 10]);
    assert_eq!(values(&series, "delay", "link forward, mean"), [Some(10.4); 10]);
    assert_eq!(values(&series, "flow-window", "b-1"), [Some(2.0); 10]);
    assert_eq!(values(&series, "fates", "link forward, dropped")[..2], [Some(10.0), Some(0.0)]);
    assert_eq!(values(&series, "queue-drop_probability", "link forward"), [Some(0.25); 10]);
    // One packet of a hundred waits 50 ms, the others 10 ms: the median is 10, the last share 50, within a bucket of 1/64.
    let delay = &series.charts.iter().find(|chart| chart.key == "delay").unwrap().spreads[0];
    let at = |share: f64| delay.values[series.shares.iter().position(|known| *known == share).unwrap()];
    assert_eq!((delay.name.as_str(), delay.count), ("link forward", 1000));
    assert!((at(0.5) - 10.0).abs() < 0.16 && (at(1.0) - 50.0).abs() < 0.8, "{delay:?}");
}

#[test]
fn events_that_did_not_happen_have_no_line_and_unmeasured_quantities_no_plot() {
    let (info, records) = run();
    let series = plots(&info, &records, 1);
    let keys: Vec<&str> = series.charts.iter().map(|chart| chart.key.as_str()).collect();
    assert_eq!(keys, ["goodput", "delay", "window", "fates", "backlog", "queue-drop_probability"]);
    assert_eq!(series.charts[3].lines.len(), 1, "nothing was marked, nothing lost by the link");
    assert_eq!(plots(&info, &Records::default(), 1).charts, []);
}

#[test]
fn a_thousand_flows_have_series_of_their_own_and_a_dozen_in_a_lab_of_many_runs() {
    let (mut info, mut records) = run();
    info.flows = (0..1000)
        .map(|number| FlowInfo {
            name: format!("{number}").into(),
            group: u32::from(number >= 990),
            ..FlowInfo::default()
        })
        .collect();
    let at = Time::from_nanos(100_000_000);
    (0..1000).for_each(|flow| records.flow(&FlowSample { at, flow, read_bytes: 1, ..FlowSample::default() }));
    for (runs, drawn) in [(1, 1000), (1000, 12)] {
        let flows = plots(&info, &records, runs).flows.unwrap();
        assert_eq!((flows.charts[0].key.as_str(), flows.charts[0].lines.len()), ("flow-goodput", drawn));
    }
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
    assert_eq!(plots(&info, &records, 1).count, 500);
    assert_eq!(plots(&info, &records, 1000).count, 200);
}
