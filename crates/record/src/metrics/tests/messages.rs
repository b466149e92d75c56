//! Requests, frames, commands, and flows that have no rows of their own.

use super::*;

#[test]
fn requests_and_frames_are_counted_in_the_window_and_shown_only_if_there_are_any() {
    use crate::types::{Message, MessageFate, MessageKind};
    let (info, mut records) = (run(), records());
    let mut message = |millis, flow, kind, number, fate, took: Option<u64>| {
        let took = took.map(Span::from_millis);
        records.message(&Message { at: at(millis), flow, kind, number, fate, took });
    };
    // One request ends in the warm-up, four after it: 10, 20, 30 and 40 ms.
    for (number, took) in [(0, 500), (1, 10), (2, 20), (3, 30), (4, 40)] {
        let fate = MessageFate::Done;
        message(150 + 100 * number, (number % 2) as u32, MessageKind::Request, number, fate, Some(took));
    }
    // Of five frames three are on time, one is late, one is lost.
    for (number, took) in [(0, 20), (1, 30), (2, 40)] {
        message(600 + number, 2, MessageKind::Frame, number, MessageFate::Done, Some(took));
    }
    message(700, 2, MessageKind::Frame, 3, MessageFate::Late, Some(150));
    message(800, 2, MessageKind::Frame, 4, MessageFate::Lost, None);
    let view = View::after(info.warmup, &info, &records);
    let (a, b) = (view.of_group(0), view.of_group(1));
    assert!(near(a.get("request_time_ms"), 25.0));
    assert_eq!(a.get("request_time_ms").distribution().unwrap().count, 4);
    // The group is active for the whole window of 0.8 s.
    assert!(near(a.get("requests_per_s"), 5.0));
    assert!(near(view.of_flow(1).get("request_time_ms"), 20.0), "10 and 30 ms");
    assert!(near(b.get("frame_delay_ms"), 60.0));
    assert!(near(b.get("frames_on_time_percent"), 60.0));
    assert!(near(b.get("frames_lost_percent"), 20.0));
    let named = |metrics: &Metrics, name: &str| metrics.iter().any(|(other, _)| other == name);
    assert!(!named(&a, "frame_delay_ms") && !named(&b, "request_time_ms") && !named(&b, "requests_per_s"));
}

#[test]
fn bytes_that_a_command_reads_are_unknown_and_random_flows_have_no_rows() {
    let (mut info, records) = (run(), records());
    info.groups[0].random_arrivals = true;
    info.groups[1].transport = "command".into();
    let summary = RunSummary::new(&info, &records, None);
    assert_eq!(summary.flows.iter().map(|flow| &*flow.name).collect::<Vec<_>>(), ["b"]);
    let command = &summary.groups[1].metrics;
    assert_eq!(command.get("goodput_mbps"), Value::Undefined);
    assert_ne!(command.get("throughput_mbps"), Value::Undefined);
}

#[test]
fn retransmissions_of_a_command_are_those_of_its_tcp_connections() {
    let (mut info, mut records) = (run(), records());
    info.groups[1].transport = "command".into();
    // From 500 ms on, one packet of 20 each 100 ms.
    let command = RunSummary::new(&info, &records, None).groups.remove(1).metrics;
    assert_eq!(command.get("retransmissions"), Value::Count(5));
    assert!(near(command.get("retransmission_percent"), 5.0));
    // Packets of which no TCP header tells.
    for sample in records.flows.iter_mut().filter(|sample| sample.flow == 2) {
        (sample.counters.retransmitted, sample.counters.rtt_count) = (0, 0);
    }
    let summary = RunSummary::new(&info, &records, None);
    let command = &summary.groups[1].metrics;
    assert_eq!(command.get("retransmissions"), Value::Undefined);
    assert_eq!(command.get("retransmission_percent"), Value::Undefined);
    // The run's are those of the other group: 2 and 1 of 40 and 20 packets, in eight periods.
    assert_eq!(summary.metrics.get("retransmissions"), Value::Count(24));
    assert!(near(summary.metrics.get("retransmission_percent"), 5.0));
    // A transport that never retransmits has none, and knows it.
    info.groups[1].transport = "udp".into();
    let summary = RunSummary::new(&info, &records, None);
    assert_eq!(summary.groups[1].metrics.get("retransmissions"), Value::Count(0));
}
