//! Properties of links beyond rate and delay, on whole runs: every packet is accounted for once, and TCP works.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_engine::{Engine, Outcome, Watch};
use weir_plan::{Lab, Run};
use weir_record::{PacketEvent, Records};
use weir_sim::Simulator;

fn labs() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs"))
}

fn run(link: &str, traffic: &str) -> Run {
    let text = format!(
        "format = 1\n[run]\nduration = \"10 s\"\nstart_jitter = \"0 s\"\nhost_jitter = \"0 s\"\npackets = true\n\
         [dumbbell]\nrtt = \"20 ms\"\n{link}\n[traffic.a]\n{traffic}\n"
    );
    let lab = Lab::from_str(&text, "links.toml", labs(), &[]).unwrap_or_else(|error| panic!("{error}"));
    lab.runs().remove(0)
}

fn go(run: &Run) -> (Records, Outcome) {
    Simulator.check(run).unwrap();
    let mut records = Records::default();
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    let outcome = Simulator.run(run, &mut records, &watch).unwrap();
    assert!(outcome.audit.balances() && outcome.invalid.is_empty(), "{outcome:?}");
    (records, outcome)
}

fn read_bytes(records: &Records) -> u64 {
    records.flows.iter().map(|sample| sample.read_bytes).sum()
}

fn packets(records: &Records, fate: PacketEvent) -> u64 {
    records.packets.iter().filter(|packet| packet.fate == fate).count() as u64
}

#[test]
fn every_packet_of_a_saturated_trace_leaves_at_its_line_of_the_file() {
    let file = std::fs::read_to_string(labs().join("traces/cellular.down")).unwrap();
    let lines: Vec<u64> = file.lines().map(|line| line.parse().unwrap()).collect();
    // More than the trace's highest rate, so that a packet always waits from 8 ms on, when the second packet has
    // come.
    let link = "rate = { trace = \"traces/cellular.down\" }\nqueue = { kind = \"tail-drop\", limit = \"1000000 packets\" }";
    let (records, _) =
        go(&run(link, "workload = { kind = \"udp\", rate = \"100 Mbit/s\", packet = \"1500 B\" }"));
    let sent: Vec<u64> = records
        .packets
        .iter()
        .filter(|packet| packet.link == 0 && packet.fate == PacketEvent::Sent)
        .map(|packet| packet.at.as_nanos() / 1_000)
        .collect();
    let expected: Vec<u64> =
        lines.iter().filter(|ms| (10..10_000).contains(*ms)).map(|ms| ms * 1_000).collect();
    let first = sent.iter().position(|at| *at >= 10_000).unwrap();
    let last = sent.iter().position(|at| *at >= 10_000_000).unwrap_or(sent.len());
    assert!(expected.len() > 4_000);
    assert_eq!(sent[first..last], expected);
    // The packets sent use the whole capacity of the trace, except at the start.
    let (bytes, capacity) =
        records.links.iter().filter(|sample| sample.link == 0).fold((0, 0), |sum, sample| {
            (sum.0 + sample.sent_bytes.iter().sum::<u64>(), sum.1 + sample.capacity.get())
        });
    assert!(bytes <= capacity && capacity - bytes < 20 * 1504, "{bytes} {capacity}");
}

#[test]
fn a_transfer_arrives_whole_whatever_happens_on_the_way() {
    let transfer = "workload = { kind = \"transfer\", size = \"1 MB\" }";
    for link in [
        "loss = { mean = \"3 %\", burst = 3 }",
        "jitter = { up_to = \"10 ms\", reorder = true }",
        "jitter = { distribution = \"pareto\", mean = \"2 ms\", up_to = \"50 ms\" }",
        "duplicate = { down = \"10 %\", up = \"10 %\" }",
        "corrupt = { down = \"3 %\", up = \"3 %\" }",
        "outage = [{ at = \"100 ms\", for = \"1500 ms\" }]",
        "wifi = { stations = 1, walk = \"100 ms\" }",
        "duplicate = 0.1\ncorrupt = 0.05\nloss = 0.01\njitter = { up_to = \"3 ms\", reorder = true }",
    ] {
        let (records, outcome) = go(&run(&format!("rate = \"10 Mbit/s\"\n{link}"), transfer));
        assert_eq!(read_bytes(&records), 1_000_000, "{link}");
        let audit = outcome.audit;
        let sums = |count: fn(&weir_record::LinkSample) -> u64| records.links.iter().map(count).sum::<u64>();
        assert_eq!((audit.duplicated, audit.lost), (sums(|s| s.duplicated), sums(|s| s.lost)), "{link}");
        assert_eq!(audit.duplicated, packets(&records, PacketEvent::Duplicated));
        assert_eq!(sums(|s| s.corrupted), packets(&records, PacketEvent::Corrupted));
        assert!(audit.corrupted <= sums(|s| s.corrupted));
        assert_eq!(audit.duplicated > 0, link.contains("duplicate"));
        assert_eq!(audit.corrupted > 0, link.contains("corrupt"));
    }
}

#[test]
fn damaged_segments_are_retransmitted_and_the_tap_does_not_count_them() {
    let (records, outcome) = go(&run(
        "rate = \"10 Mbit/s\"\ncorrupt = \"2 %\"",
        "workload = { kind = \"transfer\", size = \"1 MB\" }",
    ));
    let flows = |count: fn(&weir_record::FlowSample) -> u64| records.flows.iter().map(count).sum::<u64>();
    assert!(outcome.audit.corrupted > 5, "{:?}", outcome.audit);
    assert_eq!(flows(|s| s.sent_packets) - flows(|s| s.received_packets), outcome.audit.corrupted);
}

#[test]
fn the_same_seed_gives_the_same_records_and_disabled_impairments_change_nothing() {
    let link = "rate = \"10 Mbit/s\"\nloss = 0.02\n";
    let all = "jitter = { up_to = \"3 ms\", reorder = true }\nduplicate = 0.05\ncorrupt = 0.01\nwifi = { stations = 1 }";
    let records = |text: &str| go(&run(&format!("{link}{text}"), "cc = \"cubic\"")).0;
    assert!(records(all) == records(all));
    let off = "jitter = \"0 s\"\nduplicate = 0\ncorrupt = 0\nschedule = [{ at = \"3 s\", duplicate = 0 }]";
    assert!(records("") == records(off));
}

#[test]
fn a_run_without_its_trace_is_refused() {
    let run = run("rate = { trace = \"traces/cellular.down\" }", "");
    let read: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    assert_eq!(read, run);
    let error = Simulator.check(&read).unwrap_err().to_string();
    assert_eq!(error, "the trace cellular.down is not loaded");
}

#[test]
fn drops_are_counted_by_their_reason() {
    let drops = |queue: &str, traffic: &str| {
        let (records, _) = go(&run(&format!("rate = \"5 Mbit/s\"\nqueue = {queue}"), traffic));
        let sum = |of: &dyn Fn(&weir_record::LinkSample) -> u64| records.links.iter().map(of).sum::<u64>();
        let by: [u64; 3] = std::array::from_fn(|reason| sum(&|it| it.dropped_for[reason]));
        assert_eq!(by.iter().sum::<u64>(), sum(&|it| it.dropped.iter().sum()), "each drop has one reason");
        by.map(|drops| drops > 0)
    };
    let short = "{ kind = \"tail-drop\", limit = \"10 packets\" }";
    assert_eq!(drops(short, "cc = \"cubic\""), [true, false, false]);
    assert_eq!(drops("\"pie\"", "cc = \"cubic\""), [false, true, false]);
    // ECN-capable packets at twice the link's rate.
    let flood = "workload = { kind = \"udp\", rate = \"10 Mbit/s\", packet = \"1500 B\", ecn = \"ect1\" }";
    assert_eq!(drops("\"dualpi2\"", flood), [false, false, true]);
}
