//! Series of a made-up run.

use super::*;
use crate::metrics::queue::{BACKLOG, DROPPED, LINK_CAPACITY, LINK_THROUGHPUT, QUEUE_DELAY};
use crate::metrics::rate::{GOODPUT, READ_RATE};
use crate::metrics::tcp::{CWND, RETRANSMISSIONS, RTT};
use crate::testing::busy_records;
use crate::types::Recorder;
use crate::{FlowInfo, GroupInfo, LinkInfo, StateSample};
use weir_base::Time;
use weir_fabric::FlowCounters;

fn info() -> RunInfo {
    let flow = |group| FlowInfo { group, ..FlowInfo::default() };
    RunInfo {
        sample: Span::from_millis(100),
        links: vec![LinkInfo { instrumented: true, ..LinkInfo::default() }; 2],
        stations: vec![],
        groups: vec![GroupInfo::default(); 2],
        flows: vec![flow(0), flow(0), flow(1)],
        ..RunInfo::default()
    }
}

/// Points enough for every period.
const ALL: usize = 6000;

/// The series that the tests ask for.
fn asked() -> Vec<(Metric, Subject)> {
    let links = [LINK_THROUGHPUT, DROPPED, LINK_CAPACITY, BACKLOG, QUEUE_DELAY];
    let groups = [GOODPUT, RETRANSMISSIONS, RTT, CWND];
    let links = links.map(|metric| (metric, Subject::Link(1))).into_iter();
    links.chain(groups.map(|metric| (metric, Subject::Group(1)))).collect()
}

/// The state `alpha_percent` of a component.
fn state(set: &SeriesSet<'_>, of: Subject) -> Option<Values> {
    let found = set.states().find(|(known, name, _)| *known == of && *name == "alpha_percent");
    found.map(|(.., values)| values)
}

#[test]
fn every_series_has_a_value_for_each_point_of_the_grid() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, ALL);
    assert_eq!((set.period(), set.count()), (Span::from_millis(100), 50));
    for (metric, of) in asked() {
        assert_eq!(set.get(&metric, of).map(|values| values.len()), Some(50), "{}", metric.name);
        let p99 = set.statistic(&metric, Statistic::P99, of).map(|values| values.len());
        assert_eq!(p99.is_some(), [QUEUE_DELAY, RTT].contains(&metric), "{}", metric.name);
    }
    let mut states: Vec<_> = set.states().map(|(of, name, _)| (of, name)).collect();
    assert!(!states.is_empty() && set.states().all(|(.., values)| values.len() == 50));
    states.dedup();
    assert_eq!(states.len(), set.states().count());
    assert_eq!(set.get(&GOODPUT, Subject::Link(1)), None);
    assert_eq!(set.get(&BACKLOG, Subject::Class(0, Ecn::Ect1)), None);
}

#[test]
fn a_point_has_the_records_of_its_period() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, ALL);
    let at = |metric: &Metric, of, point: usize| set.get(metric, of).unwrap()[point];
    // Period 5: flow 1 reads 10 segments of 1448 bytes in 100 ms, flows 0 and 1 together 15.
    let flows = flow_series(&view, &records, &[1], ALL);
    assert_eq!(flows.get(&GOODPUT, Subject::Flow(1)).unwrap()[4], Some(1.1584));
    assert_eq!(at(&READ_RATE, Subject::Group(0), 4), Some(1.7376));
    assert_eq!(at(&CWND, Subject::Group(0), 4), Some(2.5));
    assert_eq!(at(&BACKLOG, Subject::Link(1), 4), Some(6.0));
    // 5, 15 and 20 ms.
    assert!((at(&QUEUE_DELAY, Subject::Link(0), 4).unwrap() - 40.0 / 3.0).abs() < 1e-5);
    assert_eq!(at(&QUEUE_DELAY, Subject::Class(0, Ecn::Ect1), 4), at(&QUEUE_DELAY, Subject::Link(0), 4));
    assert_eq!(at(&QUEUE_DELAY, Subject::Class(0, Ecn::Ect0), 4), None);
    assert_eq!(state(&set, Subject::QueueState(0)).unwrap()[4], None);
}

#[test]
fn fewer_points_merge_periods_exactly() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let [fine, coarse] = [50, 7].map(|points| series(&view, &records, points));
    assert_eq!((coarse.period(), coarse.count()), (Span::from_millis(800), 7));
    let sum =
        |set: &SeriesSet<'_>, metric: &Metric, of| set.get(metric, of).unwrap().iter().flatten().sum::<f64>();
    for (metric, of) in [(&DROPPED, Subject::Link(0)), (&RETRANSMISSIONS, Subject::Group(0))] {
        assert_eq!(sum(&coarse, metric, of), sum(&fine, metric, of), "{}", metric.name);
    }
    // The last point holds periods 49 and 50: the rate is over 200 ms.
    let flows = flow_series(&view, &records, &[1], 7);
    let last = flows.get(&GOODPUT, Subject::Flow(1)).unwrap()[6].unwrap();
    assert!((last - 198.0 * 1448.0 * 8.0 / 0.2e6).abs() < 1e-9);
}

#[test]
fn flows_have_series_of_their_own_where_they_are_asked_for() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = flow_series(&view, &records, &[0, 2], ALL);
    let known = |flow| set.get(&GOODPUT, Subject::Flow(flow)).is_some();
    assert_eq!([0, 1, 2].map(known), [true, false, true]);
    assert_eq!(state(&set, Subject::ControllerState(2)).unwrap()[4], Some(5.0 / 7.0));
    assert_eq!(state(&set, Subject::ControllerState(1)), None);
}

#[test]
fn a_run_without_records_has_no_points() {
    let (info, records) = (info(), Records::default());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, 0);
    assert_eq!(set.count(), 0);
    assert!(asked().into_iter().all(|(metric, of)| set.get(&metric, of) == Some(vec![])));
}

#[test]
fn goodput_over_time_is_what_arrived_and_not_what_was_read_in_a_burst() {
    let (info, mut records) = (info(), Records::default());
    // 1000 bytes arrive in each of ten periods; the application reads 900 of each from the fifth on, when a gap is filled.
    for period in 1..=10u64 {
        let at = Time::ZERO + Span::from_millis(100 * period);
        records.link(&LinkSample { at, ..LinkSample::default() });
        let read_bytes = [0, 0, 0, 0, 4500, 900, 900, 900, 900, 900][period as usize - 1];
        let counters = FlowCounters { received_bytes: 1000, ..FlowCounters::default() };
        records.flow(&FlowSample { at, counters, read_bytes, ..FlowSample::default() });
    }
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, ALL);
    let of = |metric: &Metric| set.get(metric, Subject::Group(0)).unwrap();
    assert!(of(&GOODPUT).iter().all(|rate| *rate == Some(0.072)), "{:?}", of(&GOODPUT));
    assert_eq!((of(&READ_RATE)[0], of(&READ_RATE)[4]), (Some(0.0), Some(0.36)));
}

#[test]
fn a_counter_of_a_station_has_its_growth_in_each_point() {
    let (info, mut records) = (info(), Records::default());
    for period in 1..=4u64 {
        let at = Time::ZERO + Span::from_millis(100 * period);
        records.link(&LinkSample { at, ..LinkSample::default() });
        for (station, value) in [(0, [10.0, 30.0, 30.0, 31.0]), (1, [1.0, 2.0, 3.0, 4.0])] {
            let (of, value) = (Component::Station(station), value[period as usize - 1]);
            records.state(&StateSample { at, of, name: "sent_bytes", value });
            records.state(&StateSample { at, of, name: "other", value });
        }
    }
    let view = View::after(info.warmup, &info, &records);
    let growth = |points: usize| series(&view, &records, points).grown(|name| name == "sent_bytes");
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Values>();
    let fine = growth(ALL);
    assert_eq!(fine.len(), 2);
    assert_eq!(fine[0], (0, "sent_bytes", some(&[10.0, 20.0, 0.0, 1.0])));
    assert_eq!(fine[1], (1, "sent_bytes", some(&[1.0; 4])));
    assert_eq!(growth(2)[0].2, some(&[30.0, 1.0]));
}
