//! Series of a made-up run.

use super::*;
use crate::testing::busy_records;
use crate::{FlowInfo, GroupInfo, LinkInfo};

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
fn asked() -> Vec<(&'static str, Subject)> {
    let of_links = ["link_throughput_mbps", "dropped_packets", "link_capacity_mbps", "backlog_packets"];
    let of_links = of_links.into_iter().chain(["queue_delay_ms", "queue_delay_p99_ms"]);
    let of_groups = ["goodput_mbps", "retransmissions", "rtt_ms", "rtt_p99_ms", "cwnd_segments"];
    let links = of_links.map(|name| (name, Subject::Link(1)));
    links.chain(of_groups.map(|name| (name, Subject::Group(1)))).collect()
}

#[test]
fn every_series_has_a_value_for_each_point_of_the_grid() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, ALL);
    assert_eq!((set.period(), set.count()), (Span::from_millis(100), 50));
    for (name, of) in asked() {
        assert_eq!(set.get(name, of).map(|values| values.len()), Some(50), "{name}");
    }
    let mut states: Vec<_> = set.states().map(|(of, name, _)| (of, name)).collect();
    assert!(!states.is_empty() && set.states().all(|(.., values)| values.len() == 50));
    states.dedup();
    assert_eq!(states.len(), set.states().count());
    assert_eq!(set.get("goodput_mbps", Subject::Link(1)), None);
    assert_eq!(set.get("backlog_packets", Subject::Class(0, Ecn::Ect1)), None);
}

#[test]
fn a_point_has_the_records_of_its_period() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, ALL);
    let at = |name, of, point: usize| set.get(name, of).unwrap()[point];
    // Period 5: flow 1 reads 10 segments of 1448 bytes in 100 ms, flows 0 and 1 together 15.
    let flows = flow_series(&view, &records, &[1], ALL);
    assert_eq!(flows.get("goodput_mbps", Subject::Flow(1)).unwrap()[4], Some(1.1584));
    assert_eq!(at("goodput_mbps", Subject::Group(0), 4), Some(1.7376));
    assert_eq!(at("cwnd_segments", Subject::Group(0), 4), Some(2.5));
    assert_eq!(at("backlog_packets", Subject::Link(1), 4), Some(6.0));
    // 5, 15 and 20 ms.
    assert!((at("queue_delay_ms", Subject::Link(0), 4).unwrap() - 40.0 / 3.0).abs() < 1e-5);
    assert_eq!(
        at("queue_delay_ms", Subject::Class(0, Ecn::Ect1), 4),
        at("queue_delay_ms", Subject::Link(0), 4)
    );
    assert_eq!(at("queue_delay_ms", Subject::Class(0, Ecn::Ect0), 4), None);
    assert_eq!(at("alpha_percent", Subject::QueueState(0), 4), None);
}

#[test]
fn fewer_points_merge_periods_exactly() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let [fine, coarse] = [50, 7].map(|points| series(&view, &records, points));
    assert_eq!((coarse.period(), coarse.count()), (Span::from_millis(800), 7));
    let sum = |set: &SeriesSet<'_>, name, of| set.get(name, of).unwrap().iter().flatten().sum::<f64>();
    for (name, of) in [("dropped_packets", Subject::Link(0)), ("retransmissions", Subject::Group(0))] {
        assert_eq!(sum(&coarse, name, of), sum(&fine, name, of), "{name}");
    }
    // The last point holds periods 49 and 50: the rate is over 200 ms.
    let flows = flow_series(&view, &records, &[0], 7);
    let last = flows.get("goodput_mbps", Subject::Flow(0)).unwrap()[6].unwrap();
    assert!((last - 99.0 * 1448.0 * 8.0 / 0.2e6).abs() < 1e-9);
}

#[test]
fn flows_have_series_of_their_own_where_they_are_asked_for() {
    let (info, records) = (info(), busy_records());
    let view = View::after(info.warmup, &info, &records);
    let set = flow_series(&view, &records, &[0, 2], ALL);
    let known = |flow| set.get("goodput_mbps", Subject::Flow(flow)).is_some();
    assert_eq!([0, 1, 2].map(known), [true, false, true]);
    assert_eq!(set.get("alpha_percent", Subject::ControllerState(2)).unwrap()[4], Some(5.0 / 7.0));
    assert_eq!(set.get("alpha_percent", Subject::ControllerState(1)), None);
}

#[test]
fn a_run_without_records_has_no_points() {
    let (info, records) = (info(), Records::default());
    let view = View::after(info.warmup, &info, &records);
    let set = series(&view, &records, 0);
    assert_eq!(set.count(), 0);
    assert!(asked().into_iter().all(|(name, of)| set.get(name, of) == Some(vec![])));
}
