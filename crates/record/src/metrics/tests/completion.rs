//! Completion times, and what they are relative to.

use super::*;

#[test]
fn completion_runs_from_start_to_the_last_byte_read() {
    let (info, records) = (run(), records());
    let view = View::after(info.warmup, &info, &records);
    assert_near(&view.of_flow(2), "completion_time_s", 0.39);
    assert_near(&view.of_group(1), "completion_time_s", 0.39);
    assert_eq!(view.of_group(1).get("completed_flows"), Value::Count(1));
    // The shortest possible time is 30 ms for one and a half round trips and 100 ms for 125,000 bytes.
    assert_near(&view.of_group(1), "slowdown", 3.0);
    // 10 ms for the first byte, where data does not wait for a handshake.
    let mut without = info.clone();
    without.groups[1].handshake = false;
    let view = View::after(info.warmup, &without, &records);
    assert_near(&view.of_group(1), "slowdown", 0.39 / 0.11);
    assert_eq!(view.of_flow(0).get("completion_time_s"), Value::Undefined);
    let late = View::after(Span::from_millis(900), &info, &records);
    assert_eq!(late.of_group(1).get("completed_flows"), Value::Count(0));
    assert_near(&late.of_flow(2), "completion_time_s", 0.39);
}

#[test]
fn a_slowdown_is_relative_to_the_groups_own_path() {
    // Flow 2 takes 390 ms for 125,000 bytes. At 1 Mbit/s they need a second: the run's bottleneck does not matter.
    let (mut info, mut records) = (run(), records());
    info.groups[1].route.rate = Some(Rate::from_mbit_per_sec(1));
    let summary = RunSummary::new(&info, &records, None);
    // 20 ms for the handshake, 10 ms of propagation delay, and 1 s.
    assert_near(&summary.groups[1].metrics, "slowdown", 0.39 / 1.03);
    let faults = &summary.invalid;
    assert!(faults.iter().any(|fault| fault.contains("slowdown is 0.378641")), "{faults:?}");
    // Without a known rate of the route there is no such bound.
    info.groups[1].route.rate = None;
    assert_eq!(RunSummary::new(&info, &records, None).groups[1].metrics.get("slowdown"), Value::Undefined);
    // A run without errors is not invalid.
    records.links.iter_mut().for_each(|link| link.counters.marked[2] = 5);
    info.groups.iter_mut().for_each(|group| group.route.rate = Some(Rate::from_mbit_per_sec(10)));
    assert_eq!(RunSummary::new(&info, &records, None).invalid, [""; 0]);
}

/// Flow 0 reads its last 50,000 bytes in the window's first period, which the link carries in 40 ms.
#[test]
fn a_flow_that_ends_before_the_path_could_carry_what_it_reads_has_no_goodput() {
    let info = run();
    for (end, goodput) in [(239, None), (241, Some(0.4 / 0.041)), (290, Some(0.4 / 0.09))] {
        let mut records = records();
        records.flows.retain(|sample| sample.flow != 0 || sample.at <= at(300));
        records.flows.iter_mut().for_each(|sample| sample.counters.last_data = None);
        records.event(&FlowEvent { at: at(end), flow: 0, kind: FlowEventKind::Completed });
        let view = View::after(info.warmup, &info, &records);
        let flow = view.of_flow(0);
        match goodput {
            Some(goodput) => assert_near(&flow, "goodput_mbps", goodput),
            None => assert_eq!(flow.get("goodput_mbps"), Value::Undefined),
        }
        assert_eq!(flow.get("throughput_mbps") == Value::Undefined, end < 290, "54,000 bytes arrive");
        // The other flow of the group goes on, so that the group's time is long enough.
        let both = view.of_group(0);
        assert_near(&both, "goodput_mbps", (0.4 + 8.0 * 0.2) / 0.8);
        let spread = both.get("flow_goodput_mbps");
        assert_eq!(spread.distribution().unwrap().count, 1 + u64::from(goodput.is_some()));
    }
    // Without a warm-up it has all of its time.
    let view = View::after(Span::ZERO, &info, &records());
    assert!(view.of_flow(0).get("goodput_mbps") != Value::Undefined);
}
