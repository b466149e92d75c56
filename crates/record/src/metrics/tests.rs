//! Each metric against numbers worked out by hand, on one small run.
//!
//! A link of 10 Mbit/s (125,000 bytes per 100 ms), ten periods; group `a` with flows 0 and 1 from the start, group `b`
//! with flow 2 from 500 ms on. The warm-up is 200 ms unless said: the window is 0.2 s to 1 s, eight periods.

use super::*;
use crate::info::{FlowInfo, GroupInfo, LinkInfo, RouteInfo, RunInfo, WindowInfo};
use crate::testing::histogram;
use crate::types::{
    Component, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Recorder, RttSample,
    StateSample, TransportSample,
};
use crate::{Records, RunSummary, SeriesSet, Subject, flow_series, series};
use weir_base::{Bytes, Rate, Span, Time};
use weir_fabric::{FlowCounters, LinkCounters};

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn run() -> RunInfo {
    let group = |name: &str| GroupInfo {
        name: name.into(),
        controller: Some("cubic".into()),
        transport: "tcp".into(),
        handshake: true,
        workload: "bulk".into(),
        rtt: Span::from_millis(20),
        route: RouteInfo {
            rate: Some(Rate::from_mbit_per_sec(10)),
            there: Span::from_millis(10),
            back: Span::from_millis(10),
            duplicates: false,
            ceiling: Some(Rate::from_bits_per_sec(9_600_000)),
            together: Some(Rate::from_mbit_per_sec(10)),
        },
        ..GroupInfo::default()
    };
    let flow = |name: &str, group, start| FlowInfo {
        name: name.into(),
        group,
        start: Span::from_millis(start),
        stop: None,
    };
    let link = |name: &str, instrumented| LinkInfo {
        name: name.into(),
        rate: Some(Rate::from_mbit_per_sec(10)),
        delay: Span::from_millis(10),
        queue: "pie".into(),
        instrumented,
        groups: vec![],
    };
    RunInfo {
        id: "run".into(),
        lab: "lab".into(),
        engine: "sim".into(),
        seed: 7,
        repeat: 1,
        duration: Span::from_secs(1),
        warmup: Span::from_millis(200),
        sample: Span::from_millis(100),
        bottleneck: Some(1),
        links: vec![link("access", false), link("bottleneck", true)],
        groups: vec![group("a"), group("b")],
        flows: vec![flow("a-1", 0, 0), flow("a-2", 0, 0), flow("b", 1, 500)],
        ..RunInfo::default()
    }
}

/// In each period the link sends 100,000 bytes of not-ECT and 12,500 of ECT(0); flow 0 reads 50,000 bytes, flow 1 and
/// (from 500 ms on) flow 2 half of that. The first two periods differ, so that a test fails if they are counted.
fn records() -> Records {
    let mut records = Records::default();
    for period in 1..=10u64 {
        let now = at(100 * period);
        let early = u64::from(period <= 2);
        records.link(&LinkSample {
            at: now,
            link: 1,
            backlog_packets: 10 + period as u32,
            backlog_bytes: Bytes::new(15_000),
            counters: LinkCounters {
                arrived: [80 + 20 * early, 0, 20, 0],
                dropped: [4, 0, 1, 0],
                marked: [0, 0, 5, 0],
                sent: [76, 0, 19, 0],
                sent_bytes: [100_000, 0, 12_500, 0],
                lost: 1,
                forwarded: 99,
                duplicated: 2,
                corrupted: 3,
                busy: Span::from_millis(90),
                capacity: Bytes::new(125_000),
                dropped_for: [2, 1, 2],
            },
        });
        let delay = if early > 0 { histogram(&[1000]) } else { histogram(&[10, 20, 30]) };
        records.delay(&DelaySample { at: now, link: 1, class: Ecn::NotEct, delay });
        records.delay(&DelaySample { at: now, link: 1, class: Ecn::Ect0, delay: histogram(&[4]) });
        let of = Component::Queue(1);
        let overload = f64::from(u8::from([5, 6, 8].contains(&period)));
        records.state(&StateSample { at: now, of, name: "base_probability", value: period as f64 / 100.0 });
        records.state(&StateSample { at: now, of, name: "overload", value: overload });
        for flow in 0..3u32 {
            if flow == 2 && period <= 5 {
                continue;
            }
            let share = if flow == 0 { 2 } else { 1 };
            records.flow(&FlowSample {
                at: now,
                flow,
                read_bytes: 25_000 * share,
                counters: FlowCounters {
                    sent_packets: 20 * share,
                    sent_bytes: 30_000 * share,
                    retransmitted: share,
                    refused: 0,
                    received_packets: 18 * share,
                    received_bytes: 27_000 * share,
                    received_ce: 9,
                    first_packet: Some(at(100 * period - 90 + u64::from(flow))),
                    last_arrival: Some(at(100 * period - 20)),
                    last_data: Some(at(100 * period - 20)),
                    rtt_count: 10,
                    rtt_sum: 10 * 30_000_000,
                    rtt_min: Span::from_millis(20 + period),
                    rtt_max: Span::from_millis(40 + period),
                },
            });
            records.transport(&TransportSample {
                at: now,
                flow,
                cwnd: if flow == 0 { period as f64 } else { 4.0 },
                timeouts: (flow < 2).then_some(period / 2),
                spurious: (flow < 1).then_some(period),
                ..TransportSample::default()
            });
        }
        records.rtt(&RttSample { at: now, group: 0, rtt: histogram(&[20 + 10 * early, 40 + 10 * early]) });
    }
    let event = |millis, flow, kind| FlowEvent { at: at(millis), flow, kind };
    records.event(&event(0, 1, FlowEventKind::Started));
    records.event(&event(510, 2, FlowEventKind::Started));
    records.event(&event(900, 2, FlowEventKind::Completed));
    records
}

fn near(value: Value, expected: f64) -> bool {
    value.scalar().is_some_and(|v| (v - expected).abs() <= expected.abs() * 1e-5)
}

#[track_caller]
fn assert_near(metrics: &Metrics, name: &str, expected: f64) {
    assert!(metric(name).is_some(), "{name} is not in the registry");
    assert!(near(metrics.get(name), expected), "{name}: {:?}, expected {expected}", metrics.get(name));
}

#[test]
fn a_link_is_counted_after_the_warm_up() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    assert_eq!(view.window(), Window { from: at(200), to: at(1000) });
    let link = view.of_link(1, None);
    assert_near(&link, "utilisation_percent", 90.0);
    assert_near(&link, "drop_probability_percent", 5.0);
    assert_near(&link, "mark_probability_percent", 25.0);
    assert_eq!(link.get("arrived_packets"), Value::Count(800));
    assert_eq!(link.get("dropped_packets"), Value::Count(40));
    let reasons = ["dropped_full_packets", "dropped_signal_packets", "dropped_overload_packets"];
    assert_eq!(
        reasons.map(|name| link.get(name)),
        [16, 8, 16].map(Value::Count),
        "together they are all drops"
    );
    assert_eq!(link.get("marked_packets"), Value::Count(40));
    assert_eq!(link.get("link_lost_packets"), Value::Count(8));
    assert_eq!(link.get("link_duplicated_packets"), Value::Count(16));
    assert_eq!(link.get("link_corrupted_packets"), Value::Count(24));
    assert_near(&link, "link_loss_percent", 1.0);
    // 112,500 bytes in 100 ms.
    assert_near(&link, "link_throughput_mbps", 9.0);
    // 13 to 20 packets.
    assert_near(&link, "backlog_packets", 16.5);
    assert_eq!(view.of_run().get("utilisation_percent"), link.get("utilisation_percent"));
}

#[test]
fn classes_are_counted_separately() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    assert_eq!(view.classes(1).collect::<Vec<_>>(), [Ecn::NotEct, Ecn::Ect0]);
    let [not_ect, ect0] = [Ecn::NotEct, Ecn::Ect0].map(|class| view.of_link(1, Some(class)));
    assert_near(&not_ect, "drop_probability_percent", 5.0);
    assert_eq!(not_ect.get("mark_probability_percent"), Value::Undefined);
    assert_near(&ect0, "drop_probability_percent", 5.0);
    assert_near(&ect0, "mark_probability_percent", 25.0);
    assert_near(&not_ect, "link_throughput_mbps", 8.0);
    assert_near(&ect0, "link_throughput_mbps", 1.0);
    assert_near(&not_ect, "queue_delay_ms", 20.0);
    assert_near(&ect0, "queue_delay_ms", 4.0);
    // 100,000 and 12,500 of 125,000 bytes.
    assert_near(&not_ect, "utilisation_percent", 80.0);
    assert_near(&ect0, "utilisation_percent", 10.0);
}

#[test]
fn queue_delay_has_an_exact_mean_and_near_percentiles() {
    let (info, records) = (run(), records());
    let delay = View::after(info.warmup, &info, &records).of_link(1, None).get("queue_delay_ms");
    let delay = *delay.distribution().unwrap();
    // Eight times 4, 10, 20 and 30 ms.
    assert_eq!((delay.count, delay.mean), (32, 16.0));
    for (percentile, expected) in [(delay.p1, 4.0), (delay.p25, 4.0), (delay.p50, 10.0), (delay.p75, 20.0)] {
        assert!((percentile - expected).abs() <= expected * 0.008, "{percentile} for {expected}");
    }
}

#[test]
fn an_unsteady_queue_has_a_deviation() {
    let (info, records) = (run(), records());
    let deviation = |warmup, class| {
        let view = View::after(warmup, &info, &records);
        view.of_link(1, class).get("queue_delay_deviation_ms").scalar().unwrap()
    };
    assert_eq!(deviation(info.warmup, None), 0.0);
    // 1000 ms in two periods, then 20 ms in eight: mean 216, so (2 x 784^2 + 8 x 196^2) / 10 = 392^2.
    assert!((deviation(Span::ZERO, Some(Ecn::NotEct)) - 392.0).abs() < 1e-3);
    // With the 4 ms of the other class 502 ms, then 16 ms: mean 113.2, (2 x 388.8^2 + 8 x 97.2^2) / 10 = 194.4^2.
    assert!((deviation(Span::ZERO, None) - 194.4).abs() < 1e-3);
}

#[test]
fn a_queues_own_state_is_taken_over_the_samples() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    let link = view.of_link(1, None);
    // 3 to 10 %.
    let base = *link.get("aqm_base_probability_percent").distribution().unwrap();
    assert_eq!((base.count, base.mean, base.p1, base.p99), (8, 6.5, 3.0, 10.0));
    // In overload at the ends of periods 5, 6 and 8, of periods 3 to 10: in, out, in, out within 800 ms.
    assert_near(&link, "overload_percent", 37.5);
    assert_near(&link, "overload_toggles_per_s", 5.0);
    assert_eq!(view.of_run().get("overload_percent"), link.get("overload_percent"));
    let told = |metrics: &Metrics, name: &str| metrics.iter().any(|(other, _)| other == name);
    assert!(!told(&link, "aqm_drop_probability_percent"), "it told nothing of drops");
    assert!(!told(&view.of_link(0, None), "overload_percent"), "that queue told nothing");
}

#[test]
fn flows_count_from_their_own_start_to_their_completion() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    // 50,000 bytes in 100 ms.
    assert_near(&view.of_flow(0), "goodput_mbps", 4.0);
    assert_near(&view.of_flow(0), "throughput_mbps", 4.32);
    assert_near(&view.of_flow(0), "throughput_kib_per_s", 54_000.0 / 1024.0 / 0.1);
    // 5 x 25,000 bytes between 510 and 900 ms.
    assert_near(&view.of_flow(2), "goodput_mbps", 1.0 / 0.39);
    // Eight periods of 75,000 bytes.
    assert_near(&view.of_group(0), "goodput_mbps", 6.0);
    // The ceiling is 9.6 Mbit/s.
    assert_near(&view.of_group(0), "goodput_ceiling_ratio", 0.625);
    // 600,000 and 125,000 bytes over 800 ms.
    assert_near(&view.of_run(), "goodput_mbps", 7.25);
    assert_near(&view.of_group(0), "goodput_share_percent", 100.0 * 600.0 / 725.0);
    assert_near(&view.of_flow(2), "goodput_share_percent", 100.0 * 125.0 / 725.0);
}

#[test]
fn fairness_and_ratios_follow_from_goodputs_and_windows() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    // 4 and 2 Mbit/s: 6^2 / (2 x 20).
    assert_near(&view.of_group(0), "jain_index", 0.9);
    let b = 1.0 / 0.39;
    assert_near(&view.of_run(), "jain_index", (6.0 + b) * (6.0 + b) / (3.0 * (20.0 + b * b)));
    assert_near(&view.of_pair(0, 1), "rate_ratio", 3.0 / b);
    let spread = view.of_group(0).get("flow_goodput_mbps");
    let spread = *spread.distribution().unwrap();
    assert_eq!((spread.count, spread.mean, spread.p25, spread.p75), (2, 3.0, 2.0, 4.0));
    // Windows 3 to 10 and always 4 in group a; always 4 in group b.
    assert_near(&view.of_flow(0), "cwnd_segments", 6.5);
    assert_near(&view.of_group(0), "cwnd_segments", 5.25);
    assert_near(&view.of_pair(0, 1), "window_ratio", 5.25 / 4.0);
}

#[test]
fn a_congestion_window_counts_for_the_time_that_it_lasted() {
    let (info, mut records) = (run(), records());
    records.transport.retain(|sample| sample.flow == 0 && [300, 400, 1000].map(at).contains(&sample.at));
    let view = View::after(info.warmup, &info, &records);
    // 3 for 100 ms, 4 for 100 ms, 10 for 600 ms.
    assert_near(&view.of_flow(0), "cwnd_segments", 6.7 / 0.8);
    assert_eq!(view.of_flow(1).get("cwnd_segments"), Value::Undefined);
}

#[test]
fn retransmissions_round_trips_and_timeouts_are_those_of_the_window() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    let flow = view.of_flow(0);
    assert_eq!(flow.get("retransmissions"), Value::Count(16));
    assert_near(&flow, "retransmission_percent", 5.0);
    assert_near(&flow, "ce_received_percent", 25.0);
    assert_near(&flow, "rtt_mean_ms", 30.0);
    assert_near(&flow, "rtt_min_ms", 23.0);
    assert_near(&flow, "rtt_max_ms", 50.0);
    // 5 at the end, 1 at the window's begin.
    assert_eq!(flow.get("timeouts"), Value::Count(4));
    assert_eq!(view.of_group(0).get("timeouts"), Value::Count(8));
    assert_eq!(view.of_group(1).get("timeouts"), Value::Undefined);
    // 10 at the end, 2 at the window's begin; only the first flow is told of them.
    assert_eq!(view.of_group(0).get("spurious_retransmissions"), Value::Count(8));
    assert_eq!(view.of_flow(1).get("spurious_retransmissions"), Value::Undefined);
    assert_near(&view.of_group(0), "rtt_ms", 30.0);
    // As many RTTs of 20 ms as of 40 ms.
    let deviation = view.of_group(0).get("rtt_deviation_ms").scalar().unwrap();
    assert!((deviation - 10.0).abs() < 0.3, "{deviation}");
    assert_eq!(view.of_group(1).get("rtt_ms"), Value::Undefined);
    assert_near(&view.of_run(), "rtt_ms", 30.0);
    assert_near(&view.of_group(0), "rtt_above_base_ms", 10.0);
}

#[test]
fn a_transaction_runs_from_the_first_packet_to_the_last_data_at_the_receiver() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    // Flow 2: its first packet arrives at 512 ms, its last at 980 ms.
    assert_near(&view.of_flow(2), "transaction_time_s", 0.468);
    assert_near(&view.of_group(1), "transaction_time_s", 0.468);
    assert_eq!(view.of_flow(0).get("transaction_time_s"), Value::Undefined, "it has not completed");
}

#[test]
fn warm_up_can_be_changed_and_keeps_to_whole_periods() {
    let (info, records) = (run(), records());
    let window = |millis| View::after(Span::from_millis(millis), &info, &records).window();
    assert_eq!(window(0), Window { from: at(0), to: at(1000) });
    assert_eq!(window(201), Window { from: at(300), to: at(1000) });
    assert_eq!(window(5000), Window { from: at(1000), to: at(1000) });
    let all = View::after(Span::ZERO, &info, &records).of_link(1, None);
    assert_eq!(all.get("arrived_packets"), Value::Count(1040));
    let none = View::after(Span::from_secs(5), &info, &records);
    assert!(none.of_run().iter().all(|(_, value)| matches!(value, Value::Undefined | Value::Count(0))));
}

#[test]
fn a_flow_without_a_row_was_idle_in_that_period() {
    let info = run();
    let idle = |sample: &FlowSample| sample.flow == 1 && (at(400)..at(800)).contains(&sample.at);
    let (mut zeros, mut absent) = (records(), records());
    for sample in zeros.flows.iter_mut().filter(|sample| idle(sample)) {
        *sample = FlowSample { at: sample.at, flow: sample.flow, ..FlowSample::default() };
    }
    absent.flows.retain(|sample| !idle(sample));
    assert_eq!((zeros.flows.len(), absent.flows.len()), (25, 21));
    assert_eq!(RunSummary::new(&info, &absent, None), RunSummary::new(&info, &zeros, None));
    let part = WindowInfo { name: "part".into(), to: info.duration, ..WindowInfo::default() };
    let [zero, none] =
        [&zeros, &absent].map(|records| View::within(&part, &info, records).flows[1].periods.clone());
    assert_eq!(none, zero, "the periods in which it read something begin where they did");
    let asked = [rate::GOODPUT, rate::THROUGHPUT, tcp::RETRANSMISSIONS, tcp::RTT, tcp::RTT_MEAN, tcp::CWND];
    let of = |set: SeriesSet<'_>, of: Subject| asked.map(|metric| set.get(&metric, of));
    let views = [&zeros, &absent].map(|records| (View::after(info.warmup, &info, records), records));
    for flow in 0..3 {
        let [zero, none] = views
            .each_ref()
            .map(|(view, records)| of(flow_series(view, records, &[flow], 10), Subject::Flow(flow)));
        assert_eq!(none, zero);
    }
    for group in 0..2 {
        let [zero, none] =
            views.each_ref().map(|(view, records)| of(series(view, records, 10), Subject::Group(group)));
        assert_eq!(none, zero);
    }
}

#[test]
fn metrics_without_records_are_undefined_and_cause_no_panic() {
    let info = run();
    let summary = RunSummary::new(&info, &Records::default(), None);
    assert_eq!(summary.metrics.get("goodput_mbps"), Value::Undefined);
    assert_eq!(summary.queues[0].metrics.get("utilisation_percent"), Value::Undefined);
    let empty = RunSummary::new(&RunInfo::default(), &records(), None);
    assert!(empty.flows.is_empty() && empty.queues.is_empty());
}

#[test]
fn the_summary_has_the_values_of_the_design() {
    let (info, records) = (run(), records());
    let summary = RunSummary::new(&info, &records, None);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["flows"][2]["name"], "b");
    assert_eq!(json["flows"][0]["controller"], "cubic");
    assert_eq!(json["flows"][0]["transport"], "tcp");
    assert_eq!(json["flows"][0]["goodput_mbps"], 4.0);
    assert_eq!(json["queues"][0]["link"], "bottleneck");
    assert_eq!(json["queues"][0]["classes"][1]["class"], "ect0");
    assert_eq!(json["queues"][0]["queue_delay_ms"]["mean"], 16.0);
    assert_eq!(json["metrics"]["utilisation_percent"], 90.0);
    assert_eq!(json["pairs"][0]["to"], "b");
    assert_eq!(serde_json::from_value::<RunSummary>(json).unwrap(), summary);
}

#[test]
fn every_metric_has_a_unique_name_and_a_definition() {
    let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), METRICS.len());
    for metric in METRICS {
        assert!(metric.definition.ends_with('.') && !metric.source.is_empty(), "{}", metric.name);
        assert!(!metric.title.is_empty() && !metric.of.is_empty(), "{}", metric.name);
        let suffix = match metric.unit {
            "%" => "_percent",
            "ms" => "_ms",
            "s" => "_s",
            "Mbit/s" => "_mbps",
            "KiB/s" => "_kib_per_s",
            _ => "",
        };
        assert!(metric.name.ends_with(suffix), "{} is in {}", metric.name, metric.unit);
    }
}

#[test]
fn data_that_arrive_after_a_stop_extend_the_active_time() {
    // Flow 1 stops at 500 ms and its last packet arrives at 980 ms: 8 periods of 25,000 bytes in 780 ms, not in 300.
    let (mut info, records) = (run(), records());
    info.flows[1].stop = Some(Span::from_millis(500));
    let view = View::after(info.warmup, &info, &records);
    assert_near(&view.of_flow(1), "goodput_mbps", 8.0 * 25_000.0 * 8.0 / 0.78 / 1e6);
}

#[test]
fn data_that_arrive_after_the_last_read_count_with_their_time() {
    // Flow 2 completes at 900 ms and its last packet, which it has already, arrives at 980 ms: 27,000 bytes in each of 5
    // periods from 510 ms on.
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    assert_near(&view.of_flow(2), "throughput_mbps", 5.0 * 27_000.0 * 8.0 / 0.47 / 1e6);
    assert_near(&view.of_flow(2), "goodput_mbps", 5.0 * 25_000.0 * 8.0 / 0.39 / 1e6);
}

#[test]
fn a_value_outside_its_domain_is_reported_with_its_metric_and_subject() {
    // Group a reads 75,000 bytes each 100 ms: 6 Mbit/s over a route that carries 4. It began with the run, 200 ms before the
    // window of 800 ms, so data that waited before the window may be read in it: 4 x 1.25.
    let (mut info, mut records) = (run(), records());
    info.groups[0].route.together = Some(Rate::from_mbit_per_sec(4));
    records.links.iter_mut().for_each(|link| link.counters.lost = 0);
    let invalid = RunSummary::new(&info, &records, None).invalid;
    assert_eq!(
        invalid,
        [
            "an error in weir itself, please report it: group a: goodput_mbps is 6, outside its range (from 0 to the rate \
             that the flows' path can carry)",
            "an error in weir itself, please report it: group a: throughput_mbps is 6.48, outside its range (from 0 to the \
             rate that the flows' path can carry)",
        ]
    );
    // Over the whole run 4 Mbit/s for a second are enough for what is read in 400 ms; in the first 300 ms they are not.
    let begin = WindowInfo { name: "begin".into(), to: Span::from_millis(300), ..WindowInfo::default() };
    info.windows = vec![begin];
    let invalid = RunSummary::new(&info, &records, Some(Span::from_millis(600))).invalid;
    let told = "an error in weir itself, please report it: window begin: group a: goodput_mbps is 6";
    assert!(invalid.len() == 2 && invalid[0].starts_with(told), "{invalid:?}");
    info.groups[0].route.duplicates = true;
    assert_eq!(RunSummary::new(&info, &records, None).invalid, [""; 0], "then it is not known");
}

#[test]
fn every_metric_has_a_domain_that_its_unit_allows() {
    for metric in METRICS {
        assert_eq!(metric.unit == "%", metric.domain == Domain::Percent, "{}", metric.name);
    }
}

mod completion;
mod merging;
mod messages;
mod yardsticks;
