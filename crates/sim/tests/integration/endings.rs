//! Every run ends: whenever a group stops, whatever is lost, and when the run is cancelled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_base::{Span, Time};
use weir_engine::{Engine, EngineError, Outcome, Watch};
use weir_plan::{Lab, Run};
use weir_record::{FlowEventKind, FlowSample, MessageFate, Records};
use weir_sim::Simulator;

/// Progress is reported each 16,384 events and at each sample: no run of these tests has nearly as many reports.
const MOST_LOOKS: u64 = 10_000;

fn run(text: &str) -> Run {
    let lab = Lab::from_str(&format!("format = 1\n{text}"), "endings.toml", ".".as_ref(), &[]);
    lab.unwrap_or_else(|error| panic!("{}", error.render(false, 100))).runs().remove(0)
}

/// Simulates a run, which fails as cancelled if it takes too many events.
fn simulate(run: &Run) -> Result<(Records, Outcome), EngineError> {
    let (cancel, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_| {
        if looks.fetch_add(1, Ordering::Relaxed) > MOST_LOOKS {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: &cancel, progress: &progress, capture: None, folder: None };
    Simulator.check(run)?;
    let mut records = Records::default();
    let outcome = Simulator.run(run, &mut records, &watch)?;
    assert!(outcome.audit.balances(), "{:?}", outcome.audit);
    Ok((records, outcome))
}

/// Ten seconds over a path with an RTT of 600 ms, with these keys added to the link, and with this workload, which stops
/// after half a second: before any connection is open.
fn stopped_early(link: &str, workload: &str) -> Records {
    let text = format!(
        "[run]\nduration = '10 s'\nwarmup = '0 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '600 ms'\n{link}\n[traffic.a]\nstop = '500 ms'\nworkload = {workload}"
    );
    simulate(&run(&text)).unwrap_or_else(|error| panic!("{workload} with {link}: {error}")).0
}

const TCP: [&str; 5] = [
    "'bulk'",
    "{ kind = 'transfer', size = '100 kB' }",
    "{ kind = 'http', size = '100 kB' }",
    "{ kind = 'requests', request = '1 kB', response = '100 kB' }",
    "{ kind = 'requests', think = '0 s' }",
];

#[test]
fn a_group_that_stops_before_its_connection_opens_sends_nothing_and_its_run_ends() {
    for workload in TCP {
        for link in ["", "drop = [1]", "drop = [1, 2, 3]", "outage = [{ at = '0 s', for = '2 s' }]"] {
            let records = stopped_early(link, workload);
            let sum = |count: fn(&FlowSample) -> u64| records.flows.iter().map(count).sum::<u64>();
            assert_eq!((sum(|s| s.sent_packets), sum(|s| s.read_bytes)), (0, 0), "{workload} with {link}");
        }
    }
}

#[test]
fn a_client_that_stops_during_an_answer_reads_it_and_sends_no_more_requests() {
    // The connection opens after 600 ms and the headers' time; the answer's last byte arrives after another 600 ms and its
    // slow start: after 2 s.
    let text = "[run]\nduration = '10 s'\nwarmup = '0 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '600 ms'\n[traffic.a]\nstop = '1 s'\n\
         workload = { kind = 'requests', request = '1 kB', response = '50 kB', think = '0 s' }";
    let (records, _) = simulate(&run(text)).unwrap();
    let fates: Vec<_> = records.messages.iter().map(|message| message.fate).collect();
    assert_eq!(fates, [MessageFate::Done]);
    assert!(records.messages[0].at > Time::ZERO + Span::from_secs(1));
}

#[test]
fn frames_whose_packets_are_due_at_the_same_nanosecond_leave_once_each() {
    // Two packets a frame, spread over 1 ns: both at once. Ten frames a second, due at 0 to 900 ms.
    let text = "[run]\nduration = '1 s'\nwarmup = '0 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '10 ms'\n[traffic.media]\n\
         workload = { kind = 'frames', fps = 10, size = '2920 B', pace = '1 ns' }";
    let (records, _) = simulate(&run(text)).unwrap();
    assert_eq!(records.flows.iter().map(|sample| sample.sent_packets).sum::<u64>(), 20);
    let started = records.events.iter().filter(|event| event.kind == FlowEventKind::Started).count();
    assert_eq!(started, 1);
}

#[test]
fn a_cancelled_run_ends_long_before_its_next_sample() {
    // 10 Mbit/s for an hour are three million packets, and the only sample is at the end.
    let text = "[run]\nduration = '3600 s'\nsample = '3600 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '10 ms'\n\
                [traffic.a]\nworkload = 'bulk'";
    let (cancel, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |share: f64| {
        looks.fetch_add(1, Ordering::Relaxed);
        cancel.store(share > 0.01, Ordering::Relaxed);
    };
    let watch = Watch { cancel: &cancel, progress: &progress, capture: None, folder: None };
    let ended = Simulator.run(&run(text), &mut Records::default(), &watch);
    assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    // One percent of the run is 30,000 packets of a few events each.
    assert!((2..30).contains(&looks.into_inner()));
}

#[test]
fn periods_in_which_nothing_happens_to_a_flow_leave_no_rows_and_its_sums_are_whole() {
    let text = "[run]\nduration = '10 s'\nstart_jitter = '0 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n\
                [traffic.a]\nworkload = { kind = 'transfer', size = '100 kB' }\n\
                [traffic.b]\nstart = '5 s'\nworkload = { kind = 'transfer', size = '100 kB' }";
    let (records, _) = simulate(&run(text)).unwrap();
    let (second, empty) = (Span::from_secs(1), FlowSample::default());
    for (flow, begins) in [(0, Time::ZERO), (1, Time::ZERO + second * 5)] {
        let rows: Vec<&FlowSample> = records.flows.iter().filter(|sample| sample.flow == flow).collect();
        assert_eq!(rows.iter().map(|sample| sample.read_bytes).sum::<u64>(), 100_000);
        assert!(rows.iter().all(|sample| begins < sample.at && sample.at <= begins + second), "{rows:?}");
        assert!(rows.iter().all(|s| (s.counters, s.read_bytes) != (empty.counters, 0)), "{rows:?}");
    }
    let periods = records.links.iter().filter(|sample| sample.link == 0).count();
    assert_eq!(periods, 100, "the links tell of every period");
}
