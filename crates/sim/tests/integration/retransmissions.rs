//! Retransmissions of every transport, where each packet that a script drops is retransmitted once or never.

use crate::simulate::{number, simulate};
use std::sync::atomic::AtomicBool;
use weir_engine::{Engine, Watch};
use weir_plan::Lab;
use weir_record::{Records, RunSummary, Value};
use weir_sim::Simulator;

/// A path of 10 Mbit/s on which three packets in a row are dropped in the middle of a stream, and this traffic.
fn with_three_drops(traffic: &str) -> RunSummary {
    let points: String = [("west", "left"), ("east", "right")]
        .map(|(name, at)| {
            format!(
                "[stations.{name}]\nat = \"{at}\"\nlinks = [\"down\", \"up\"]\nkind = \"aggregation-point\"\n\
                 application = [{{ id = 1 }}]\n"
            )
        })
        .concat();
    let lab = format!(
        "[run]\nduration = \"20 s\"\nwarmup = \"0 s\"\n\
         [dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\nqueue = {{ kind = \"tail-drop\", limit = \"1 MB\" }}\n\
         drop = [60, 61, 62]\n{points}{traffic}"
    );
    let run = simulate(&lab).remove(0);
    let down = run.queues.iter().find(|queue| queue.link == "down").unwrap();
    assert_eq!(number(down.metrics.get("link_lost_packets")), 3.0);
    run
}

fn retransmissions(run: &RunSummary, group: &str) -> Value {
    run.groups.iter().find(|of| *of.name == *group).unwrap().metrics.get("retransmissions")
}

#[test]
fn each_lost_packet_of_a_reliable_transport_is_retransmitted_once() {
    let transfer = "workload = { kind = \"transfer\", size = \"300 kB\" }\n";
    for transport in ["\"tcp\"", "{ kind = \"rudp\", application = 1 }", "{ kind = \"sliq\" }"] {
        let congestion = if transport.contains("rudp") { "" } else { "cc = \"newreno\"\n" };
        let run = with_three_drops(&format!("[traffic.a]\n{congestion}transport = {transport}\n{transfer}"));
        assert_eq!(retransmissions(&run, "a"), Value::Count(3), "{transport}");
        assert_eq!(run.metrics.get("retransmissions"), Value::Count(3), "{transport}");
        assert_eq!(run.flows[0].metrics.get("retransmissions"), Value::Count(3), "{transport}");
        // 300 kB are 208 to 211 packets; transports other than TCP send some more that carry no data.
        let share = number(run.metrics.get("retransmission_percent"));
        assert!((1.1..=3.0 / 2.11 + 1e-4).contains(&share), "{transport}: {share}");
    }
}

#[test]
fn transports_that_never_retransmit_have_none() {
    for transport in ["tfrc", "rap"] {
        let run = with_three_drops(&format!("[traffic.a]\ntransport = \"{transport}\"\n"));
        assert_eq!(retransmissions(&run, "a"), Value::Count(0), "{transport}");
    }
    let run = with_three_drops("[traffic.a]\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\" }\n");
    assert_eq!(retransmissions(&run, "a"), Value::Count(0));
}

/// Two streams of one connection, of which the second begins when the first has ended.
#[test]
fn streams_of_one_connection_have_their_own() {
    let stream = |name: &str, start: &str| {
        format!(
            "[traffic.{name}]\ncc = \"newreno\"\nstart = \"{start}\"\n\
             transport = {{ kind = \"sliq\", connection = \"c\" }}\n\
             workload = {{ kind = \"transfer\", size = \"300 kB\" }}\n"
        )
    };
    let run = with_three_drops(&(stream("a", "0 s") + &stream("b", "10 s")));
    assert_eq!(["a", "b"].map(|group| retransmissions(&run, group)), [Value::Count(3), Value::Count(0)]);
}

#[test]
fn those_of_flows_whose_connections_are_gone_are_kept() {
    let run = with_three_drops(
        "[traffic.web]\ntransport = { kind = \"rudp\", application = 1 }\n\
         workload = { kind = \"web\", load = \"1 Mbit/s\", size = { shape = 1.2, mean = \"30 kB\", cap = \"100 kB\" } }\n",
    );
    assert_eq!(retransmissions(&run, "web"), Value::Count(3));
}

/// Packets wait for their host's jitter before they leave, up to five periods.
#[test]
fn no_more_retransmissions_are_counted_than_packets_that_left() {
    for transport in ["{ kind = 'sliq' }", "{ kind = 'rudp', application = 1, rate = '1 Mbit/s' }"] {
        for seed in 1..6 {
            let lab = format!(
                "format = 1\n[run]\nseed = {seed}\nduration = '6 s'\nsample = '10 ms'\nhost_jitter = '50 ms'\n\
                 [dumbbell]\nrate = '1 Mbit/s'\nrtt = '40 ms'\nloss = '40 %'\n[traffic.a]\ntransport = {transport}\n"
            );
            let run = Lab::from_str(&lab, "jitter.toml", ".".as_ref(), &[]).unwrap().runs().remove(0);
            let mut records = Records::default();
            let watch =
                Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
            Simulator.run(&run, &mut records, &watch).unwrap();
            let resent: u64 = records.flows.iter().map(|sample| sample.retransmitted).sum();
            assert!(resent > 5, "{transport}: {resent}");
            assert!(
                records.flows.iter().all(|sample| sample.retransmitted <= sample.sent_packets),
                "{transport}"
            );
        }
    }
}
