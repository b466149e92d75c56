//! Facts about applications that a person can work out by hand: requests, frames, flows drawn at random.

use std::sync::atomic::AtomicBool;
use weir_base::{Span, Time};
use weir_engine::{Engine, EngineError, Outcome, ResultFolder, Results, Watch};
use weir_plan::{Lab, Run};
use weir_record::{
    FlowEventKind, MessageFate, MessageKind, Metrics, ParquetRecorder, Recorder, Records, RunSummary, Value,
};
use weir_sim::Simulator;

fn lab(text: &str) -> Lab {
    let text = format!("format = 1\n{text}");
    Lab::from_str(&text, "truth.toml", ".".as_ref(), &[])
        .unwrap_or_else(|e| panic!("{}", e.render(false, 100)))
}

fn simulate(run: &Run, recorder: &mut dyn Recorder) -> Outcome {
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    Simulator.check(run).unwrap();
    let outcome = Simulator.run(run, recorder, &watch).unwrap();
    assert!(outcome.audit.balances(), "{:?}", outcome.audit);
    outcome
}

fn records(text: &str) -> (Run, Records) {
    let run = lab(text).runs().remove(0);
    let mut records = Records::default();
    simulate(&run, &mut records);
    assert!(records.messages.is_sorted_by_key(|message| message.at));
    (run, records)
}

/// Reads the results through a result folder, as a user does.
fn summary(text: &str) -> RunSummary {
    let folder = tempfile::tempdir().unwrap();
    let lab = lab(text);
    let out = ResultFolder::open(&folder.path().join("out"), lab.source(), "test").unwrap();
    for run in lab.runs() {
        let mut recorder = ParquetRecorder::create(&out.begin("sim", &run).unwrap()).unwrap();
        let outcome = simulate(&run, &mut recorder);
        recorder.finish().unwrap();
        out.commit(&out.describe("sim", run.into(), outcome)).unwrap();
    }
    Results::open(out.path()).unwrap().summary(None).unwrap().runs.remove(0)
}

fn number(metrics: &Metrics, name: &str) -> f64 {
    metrics.get(name).scalar().unwrap_or_else(|| panic!("no {name} in {metrics:?}"))
}

/// Ten seconds at 10 Mbit/s and 100 ms, without noise, and this traffic.
fn quiet(traffic: &str) -> String {
    format!(
        "[run]\nduration = '10 s'\nwarmup = '0 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '100 ms'\n{traffic}"
    )
}

#[test]
fn a_transaction_lasts_from_the_handshake_to_the_answer_to_the_last_fin() {
    // From the SYN's arrival: SYN-ACK up (60 bytes), ACK (52) and the only segment (1500) down; an ACK and the receiver's FIN up,
    // the answer to it down (52 each). Two round trips, and 48, 41.6, 1200 and three times 41.6 microseconds at 10 Mbit/s.
    let run = summary(&quiet("[traffic.page]\nworkload = { kind = 'transfer', size = '1448 B' }"));
    let took = number(&run.flows[0].metrics, "transaction_time_s");
    assert!((took - 0.2014144).abs() < 1e-6, "{took}");
}

#[test]
fn a_resource_is_requested_once_and_its_transaction_begins_with_the_clients_syn() {
    // From the client's SYN: the SYN up and the SYN-ACK down (60 bytes each), the acknowledgement (52 bytes) and the request (52 + 34) up,
    // the only segment (1500, of which 81 are the answer's header and 1367 its body) down; the client's FIN up, the server's, which
    // acknowledges it, down (52 each). Three round trips, and twice 48, 41.6, 68.8, 1200 and twice 41.6 microseconds at 10 Mbit/s.
    let run = summary(&quiet("[traffic.page]\nworkload = { kind = 'http', size = '1367 B' }"));
    let took = number(&run.flows[0].metrics, "transaction_time_s");
    assert!((took - 0.3014896).abs() < 1e-6, "{took}");
}

#[test]
fn the_short_end_of_an_answer_does_not_wait_for_the_rest() {
    // 1448 and 52 bytes leave together, for no other short segment is out (Minshall's variant of Nagle's rule): the handshake's
    // ACK (52) and the request (152) before them, then 1500 and 104 bytes.
    let (_, records) = records(&quiet(
        "[traffic.ask]\nworkload = { kind = 'requests', request = '100 B', response = '1500 B' }",
    ));
    let took = records.messages[0].took.unwrap().as_nanos();
    assert_eq!(took, 100_000_000 + 41_600 + 121_600 + 1_200_000 + 83_200);
}

#[test]
fn a_request_takes_a_round_trip_and_its_serialisation() {
    // 400 bytes up and one segment of 1448 down on an open connection: 452 and 1500 bytes at 10 Mbit/s are 0.3616 and 1.2 ms.
    let (_, records) = records(&quiet(
        "[traffic.ask]\nworkload = { kind = 'requests', request = '400 B', response = '1448 B', think = '1 s', \
         think_times = 'fixed' }",
    ));
    // The connection opens after 100 ms and the headers' time; then comes one request each 1 s plus the time of the last one: nine or ten
    // in 10 s.
    assert_eq!(records.messages.len(), 9);
    for (number, message) in (0..).zip(&records.messages) {
        assert_eq!(
            (message.kind, message.fate, message.number),
            (MessageKind::Request, MessageFate::Done, number)
        );
        // The handshake's acknowledgement, 52 bytes, goes before the first request over the same link.
        let acknowledgement = if number == 0 { 41_600 } else { 0 };
        let took = message.took.unwrap().as_nanos();
        assert_eq!(took, 100_000_000 + acknowledgement + 361_600 + 1_200_000);
    }
    // The flows count the answers.
    let read: u64 = records.flows.iter().map(|sample| sample.read_bytes).sum();
    assert_eq!(read, 9 * 1448);
    let opened = records.events.iter().filter(|event| event.kind == FlowEventKind::Started).count();
    assert_eq!(opened, 1, "one connection for all");
}

#[test]
fn requests_larger_than_any_buffer_are_answered_whole() {
    let (_, records) = records(&quiet(
        "[traffic.ask]\nsend_buffer = '64 KiB'\nreceive_buffer = '64 KiB'\n\
         workload = { kind = 'requests', request = '300 kB', response = '500 kB', think = '0 s' }",
    ));
    let read: u64 = records.flows.iter().map(|sample| sample.read_bytes).sum();
    let whole = records.messages.len() as u64;
    assert!(whole >= 2, "{whole}");
    assert!(read >= whole * 500_000 && read < (whole + 1) * 500_000, "{read} bytes in {whole} answers");
}

#[test]
fn a_stopped_client_sends_no_more_requests() {
    let (_, records) = records(&quiet(
        "[traffic.ask]\nstop = '3 s'\n\
         workload = { kind = 'requests', request = '100 B', response = '10 kB', think = '20 ms' }",
    ));
    let last = records.messages.last().unwrap().at;
    assert!(
        last > Time::ZERO + Span::from_millis(2700) && last < Time::ZERO + Span::from_millis(3300),
        "{last:?}"
    );
    let after = records.flows.iter().filter(|sample| sample.at > Time::ZERO + Span::from_secs(4));
    assert_eq!(after.map(|sample| sample.sent_packets + sample.received_packets).sum::<u64>(), 0);
}

#[test]
fn a_frame_takes_the_paths_delay_and_the_serialisation_of_all_its_packets() {
    // 2920 bytes are two packets of 1500: 50 ms and twice 1.2 ms.
    let text = quiet(
        "[traffic.media]\nworkload = { kind = 'frames', fps = 50, size = '2920 B', deadline = '60 ms' }",
    );
    let (_, records) = records(&text);
    // Frames are due at 0, 20 ms, ...; the last one with its deadline within the 10 s is due at 9.94 s: number 497.
    assert_eq!(records.messages.len(), 498);
    for (number, message) in (0..).zip(&records.messages) {
        assert_eq!(
            (message.kind, message.fate, message.number),
            (MessageKind::Frame, MessageFate::Done, number)
        );
        assert_eq!(message.took.unwrap().as_nanos(), 52_400_000);
    }
    let run = summary(&text);
    assert_eq!(number(&run.groups[0].metrics, "frames_on_time_percent"), 100.0);
    assert_eq!(number(&run.flows[0].metrics, "frame_delay_ms"), 52.4);
    assert_eq!(run.groups[0].metrics.get("request_time_ms"), Value::Undefined);
}

#[test]
fn a_frame_with_a_dropped_packet_is_lost_and_a_frame_after_its_deadline_is_late() {
    // Packet 4 is the second one of frame 1. From 5 s on the path takes 20 ms longer than before: 72.4 ms.
    let (_, records) = records(&quiet(
        "drop = [4]\nschedule = [{ at = '5005 ms', delay = '70 ms' }]\n\
         [traffic.media]\nworkload = { kind = 'frames', fps = 50, size = '2920 B', deadline = '60 ms' }",
    ));
    let of = |fate| records.messages.iter().filter(move |message| message.fate == fate);
    let lost: Vec<_> = of(MessageFate::Lost).collect();
    assert_eq!(lost.iter().map(|message| message.number).collect::<Vec<_>>(), [1, 497]);
    assert!(lost.iter().all(|message| message.took.is_none()));
    // The frame is given up at the end of the first sample period that ends at least a second after its deadline at 80 ms.
    assert_eq!(lost[0].at, Time::ZERO + Span::from_millis(1100));
    // Frames 251 (due at 5.02 s) to 496 (its 72.4 ms end before 10 s, its deadline too); frame 497, due at 9.94 s, has its deadline at the
    // end and is incomplete then.
    let late: Vec<_> = of(MessageFate::Late).map(|message| message.number).collect();
    assert_eq!((late[0], *late.last().unwrap()), (251, 496));
    assert!(of(MessageFate::Late).all(|message| message.took.unwrap().as_nanos() == 72_400_000));
}

#[test]
fn web_flows_arrive_at_the_times_and_with_the_sizes_that_the_plan_has_drawn() {
    let text = quiet(
        "[traffic.web]\nworkload = { kind = 'web', rate = 20, size = { shape = 1.2, mean = '10 kB', cap = '100 kB' } }",
    );
    let (run, records) = records(&text);
    let expected = run.flows.len();
    assert!((140..260).contains(&expected), "200 expected: {expected}");
    let mut read = vec![0; expected];
    records.flows.iter().for_each(|sample| read[sample.flow as usize] += sample.read_bytes);
    let mut complete = 0;
    for event in &records.events {
        let flow = &run.flows[event.flow as usize];
        match event.kind {
            FlowEventKind::Started => assert_eq!(event.at, Time::ZERO + flow.start),
            FlowEventKind::Completed => {
                complete += 1;
                assert_eq!(read[event.flow as usize], flow.size.unwrap().get(), "{}", flow.name);
            }
            _ => {}
        }
    }
    assert!(complete > expected - 20, "{complete} of {expected}");
    // Records only where something happened: far fewer than a hundred periods for each flow.
    assert!(records.flows.len() < expected * 20, "{} for {expected} flows", records.flows.len());
    assert!(records.states.iter().all(|state| !matches!(state.of, weir_record::Component::Controller(_))));
    let run = summary(&text);
    assert_eq!(run.groups[0].flows, expected);
    assert!(run.flows.is_empty(), "of short flows the group tells");
    let times = run.groups[0].metrics.get("completion_time_s");
    let times = times.distribution().unwrap();
    // A round trip for the handshake and half of one for the data at least.
    assert!(
        times.count == complete as u64 && times.p1 > 0.15 && times.p50 < 1.0 && times.p99 > times.p50,
        "{times:?}"
    );
}

#[test]
fn the_same_seed_draws_the_same_flows_and_another_seed_draws_others() {
    let flows = |seed: u64| {
        let text =
            quiet("[traffic.web]\nworkload = 'web'").replace("[run]", &format!("[run]\nseed = {seed}"));
        lab(&text).runs().remove(0).flows
    };
    assert_eq!(flows(1), flows(1));
    assert_ne!(flows(1), flows(2));
}

#[test]
fn on_off_traffic_sends_while_it_is_on() {
    // 100 packets a second for half a second, then none for half a second: 50 a second.
    let (_, records) = records(&quiet(
        "[traffic.noise]\nworkload = { kind = 'onoff', rate = '1.2 Mbit/s', on = '500 ms', off = '500 ms', \
         times = 'fixed', ecn = 'ect1' }",
    ));
    let sent: u64 = records.flows.iter().map(|sample| sample.sent_packets).sum();
    assert_eq!(sent, 500);
    let arrived: u64 =
        records.links.iter().filter(|sample| sample.link == 0).map(|sample| sample.arrived[1]).sum();
    assert_eq!(arrived, 500, "all of them as ECT(1)");
    let quiet: u64 = records
        .flows
        .iter()
        .filter(|sample| (600..=1000).contains(&(sample.at.since(Time::ZERO).as_millis() % 1000)))
        .map(|sample| sample.sent_packets)
        .sum();
    assert_eq!(quiet, 0);
}

#[test]
fn a_command_is_refused_before_anything_runs() {
    let run = lab(&quiet("[traffic.real]\nworkload = { kind = 'command', run = 'true' }")).runs().remove(0);
    let Err(EngineError::Unable { what, help }) = Simulator.check(&run) else { panic!("it was taken") };
    assert!(what.contains("group real runs a command") && help.contains("--on live"), "{what} {help}");
}
