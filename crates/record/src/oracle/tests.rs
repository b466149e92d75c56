use super::*;
use crate::info::{FlowInfo, GroupInfo, LinkInfo, Premises, RouteInfo};
use crate::types::{FlowSample, LinkSample, TransportSample};
use weir_base::{Bytes, Rate};
use weir_fabric::{FlowCounters, LinkCounters};

/// A run of 10 s with one flow over a link of 100 Mbit/s and 40 ms, on which all oracles hold.
fn info() -> RunInfo {
    let there = Span::from_millis(20);
    let rate = Some(Rate::from_bits_per_sec(100_000_000));
    let route = RouteInfo { rate, there, back: there, ..RouteInfo::default() };
    RunInfo {
        duration: Span::from_secs(10),
        sample: Span::from_millis(100),
        bottleneck: Some(0),
        links: vec![LinkInfo { name: "down".into(), rate, ..LinkInfo::default() }],
        groups: vec![GroupInfo {
            name: "bbr".into(),
            route,
            sharing: Some(Sharing::Single),
            ..GroupInfo::default()
        }],
        flows: vec![FlowInfo { name: "bbr".into(), ..FlowInfo::default() }],
        premises: Premises { orderly: true, spaced: true, counted: true, fills: true },
        ..RunInfo::default()
    }
}

/// A hundred periods in each of which the link sends this share of its capacity, and the flow retransmits what the link drops.
fn records(used: impl Fn(u64) -> f64) -> Records {
    let mut records = Records::default();
    for period in 1..=100 {
        let at = at(period);
        let sent = (1_250_000.0 * used(period)) as u64;
        records.links.push(LinkSample {
            at,
            counters: LinkCounters {
                sent_bytes: [sent, 0, 0, 0],
                dropped: [10, 0, 0, 0],
                capacity: Bytes::new(1_250_000),
                ..LinkCounters::default()
            },
            ..LinkSample::default()
        });
        let counters = FlowCounters { sent_packets: sent / 1500, retransmitted: 10, ..Default::default() };
        records.flows.push(FlowSample { at, counters, ..FlowSample::default() });
        records.transport.push(TransportSample { at, timeouts: Some(0), ..TransportSample::default() });
    }
    records
}

fn at(period: u64) -> Time {
    Time::ZERO + Span::from_millis(100 * period)
}

/// Adds a state of the controller in these periods.
fn add(records: &mut Records, name: &str, value: impl Fn(u64) -> f64) {
    let states = (1..=100).map(|period| StateSample {
        at: at(period),
        of: Component::Controller(0),
        name: name.into(),
        value: value(period),
    });
    records.states.extend(states);
    records.states.sort_by_key(|state| state.at);
}

fn tripped(info: &RunInfo, records: &Records) -> Vec<Trip> {
    trips(&View::after(Span::ZERO, info, records), records)
}

#[test]
fn a_flow_that_uses_its_link_trips_nothing() {
    assert_eq!(tripped(&info(), &records(|_| 0.95)), []);
}

#[test]
fn an_estimate_of_more_than_the_rate_trips_after_ten_round_trips_but_not_before() {
    let mut short = records(|_| 0.95);
    add(&mut short, "bandwidth_mbps", |period| if (20..=23).contains(&period) { 180.0 } else { 110.0 });
    assert_eq!(
        tripped(&info(), &short),
        [],
        "400 ms are ten round trips; from the first to the last are 300 ms"
    );
    let mut long = records(|_| 0.95);
    add(&mut long, "bandwidth_mbps", |period| if (20..=40).contains(&period) { 130.0 } else { 110.0 });
    assert_eq!(tripped(&info(), &long), [Trip::Estimate { group: "bbr".into(), times: 1.3, for_s: 2.0 }]);
    let jittery = RunInfo { premises: Premises::default(), ..info() };
    assert_eq!(tripped(&jittery, &long), [], "jitter deceives any estimate");
    let mut limited = info();
    limited.groups[0].sharing = None;
    assert_eq!(tripped(&limited, &long), [], "a burst after a pause deceives it too");
}

#[test]
fn an_unused_link_trips_in_the_second_half_and_only_if_its_flow_must_use_it() {
    let idle = records(|_| 0.45);
    let trip = tripped(&info(), &idle);
    let [Trip::Unused { used_percent, .. }] = &trip[..] else { panic!("{trip:?}") };
    assert!((used_percent - 45.0).abs() < 0.1, "{used_percent}");
    assert_eq!(tripped(&info(), &records(|period| if period > 50 { 0.85 } else { 0.3 })), []);
    let counted = Premises { fills: false, ..info().premises };
    assert_eq!(tripped(&RunInfo { premises: counted, ..info() }, &idle), []);
}

#[test]
fn retransmissions_trip_if_losses_and_timeouts_do_not_explain_them() {
    let mut records = records(|_| 0.95);
    // 1,000 packets are dropped, and 1 % of the 79,000 that are sent is spared.
    records.flows[50].counters.retransmitted = 1_200;
    assert_eq!(tripped(&info(), &records), []);
    records.flows[50].counters.retransmitted = 1_500;
    assert_eq!(tripped(&info(), &records), [Trip::Retransmissions { retransmitted: 2_490, lost: 1_000 }]);
    records.transport[99].timeouts = Some(100);
    assert_eq!(tripped(&info(), &records), []);
}

#[test]
fn a_flow_in_startup_trips_after_thirty_of_its_round_trips() {
    let of = |last: u64| {
        let mut records = records(|_| 0.95);
        add(&mut records, "full_pipe", |period| f64::from(u8::from(period > last)));
        add(&mut records, "rounds", |period| 2.0 * period as f64);
        records
    };
    assert_eq!(tripped(&info(), &of(15)), []);
    assert_eq!(tripped(&info(), &of(30)), [Trip::Startup { group: "bbr".into(), round_trips: 60.0 }]);
    let mut limited = info();
    limited.groups[0].sharing = None;
    assert_eq!(tripped(&limited, &of(30)), [], "its application limits it");
}
