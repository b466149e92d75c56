//! Facts about one bottleneck that a person can work out by hand, checked against the simulator.

use crate::simulate::{distribution, number, simulate, simulate_lab};
use weir_record::{RunSummary, Value};

const ONE_FLOW: &str = "
[run]
duration = '60 s'
warmup = '10 s'
[dumbbell]
rate = '50 Mbit/s'
rtt = '50 ms'
queue = { kind = 'tail-drop', limit = 'LIMIT packets' }
[traffic.flow]
cc = 'newreno'
[vary]
'traffic.flow.cc' = ['newreno', 'cubic']
";

#[test]
fn a_full_bdp_of_buffer_keeps_a_reno_flow_at_full_rate_and_its_rtt_between_once_and_twice_the_base() {
    // 200 packets of 1500 bytes are 48 ms at 50 Mbit/s.
    let runs = simulate(&ONE_FLOW.replace("LIMIT", "200"));
    let reno = &runs[0];
    assert!(number(reno.metrics.get("utilisation_percent")) > 99.0, "{:?}", reno.metrics);
    let rtt = distribution(reno.groups[0].metrics.get("rtt_ms"));
    assert!(rtt.p1 >= 50.0 && rtt.p99 <= 100.5, "{rtt:?}");
    assert!(rtt.p99 > 95.0, "the buffer fills: {rtt:?}");
}

#[test]
fn a_quarter_of_the_bdp_leaves_the_link_idle_at_times_and_cubic_less_so_than_reno() {
    let runs = simulate(&ONE_FLOW.replace("LIMIT", "50"));
    let of = |run: &RunSummary| number(run.metrics.get("utilisation_percent"));
    let (reno, cubic) = (of(&runs[0]), of(&runs[1]));
    assert!(reno < 97.0 && reno > 75.0, "reno {reno}");
    assert!(cubic > reno, "cubic {cubic}, reno {reno}");
}

#[test]
fn pie_holds_its_target() {
    let lab = "
[run]
duration = '60 s'
warmup = '10 s'
[dumbbell]
rate = '20 Mbit/s'
rtt = '40 ms'
queue = 'pie'
[traffic.flow]
cc = 'newreno'
flows = 4
";
    let run = &simulate(lab)[0];
    let delay = distribution(run.metrics.get("queue_delay_ms"));
    assert!((12.0..18.0).contains(&delay.mean), "{delay:?}");
}

#[test]
fn serialisation_of_1500_bytes_takes_six_milliseconds_at_2_mbit_per_second() {
    // Two packets at once every 20 ms: the first does not wait, the second waits 6 ms.
    let lab = "
[run]
duration = '10 s'
warmup = '0 s'
start_jitter = '0 s'
host_jitter = '0 s'
[dumbbell]
rate = '2 Mbit/s'
rtt = '20 ms'
[traffic.a]
workload = { kind = 'udp', rate = '600 kbit/s', packet = '1500 B' }
[traffic.b]
workload = { kind = 'udp', rate = '600 kbit/s', packet = '1500 B' }
";
    let run = &simulate(lab)[0];
    let delay = distribution(run.metrics.get("queue_delay_ms"));
    assert!((delay.mean - 3.0).abs() < 1e-6, "{delay:?}");
    assert!((number(run.metrics.get("utilisation_percent")) - 60.0).abs() < 0.2, "{:?}", run.metrics);
}

#[test]
fn a_transfer_takes_its_round_trips_and_its_serialisation() {
    // 10 segments of 1448 bytes fit the initial window: one RTT for the handshake, then half an RTT and ten times 1.2 ms.
    let lab = "
[run]
duration = '5 s'
warmup = '0 s'
start_jitter = '0 s'
host_jitter = '0 s'
[dumbbell]
rate = '10 Mbit/s'
rtt = '100 ms'
[traffic.one]
workload = { kind = 'transfer', size = '14480 B' }
";
    let run = &simulate(lab)[0];
    let seconds = match run.flows[0].metrics.get("completion_time_s") {
        Value::Number(seconds) => seconds,
        Value::Distribution(d) => d.mean,
        other => panic!("{other:?}"),
    };
    assert!((0.150 + 0.012..0.150 + 0.014).contains(&seconds), "{seconds} s");
}

#[test]
fn hosts_send_nothing_while_they_pause() {
    // The handshake's first packet waits for 40 ms; the acknowledgement of the data, in the second pause, is not waited for.
    let of = |pauses: &str| {
        let lab = format!(
            "[run]\nduration = '5 s'\nwarmup = '0 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n{pauses}\n\
             [dumbbell]\nrate = '10 Mbit/s'\nrtt = '100 ms'\n\
             [traffic.one]\nworkload = {{ kind = 'transfer', size = '14480 B' }}\n"
        );
        number(simulate(&lab)[0].flows[0].metrics.get("completion_time_s"))
    };
    let paused = of("host_pauses = [{ at = '190 ms', for = '20 ms' }, { at = '0 s', for = '40 ms' }]");
    assert!((paused - of("") - 0.040).abs() < 1e-6, "{paused} s, {} s without pauses", of(""));
}

#[test]
fn ipv6_takes_twenty_bytes_more_of_each_packet() {
    let runs = simulate(
        "[run]\nduration = '20 s'\nwarmup = '5 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n\
         queue = { kind = 'tail-drop', limit = '100 packets' }\n[traffic.flow]\ncc = 'newreno'\n\
         [vary.ip]\nfour = { 'traffic.flow.ip' = 4 }\nsix = { 'traffic.flow.ip' = 6 }\n",
    );
    for (run, payload) in runs.iter().zip([1448.0, 1428.0]) {
        let goodput = number(run.groups[0].metrics.get("goodput_mbps"));
        // The link is full; about one packet in some hundreds was retransmitted.
        assert!((goodput - 10.0 * payload / 1500.0).abs() < 0.05, "{goodput} with {payload}");
    }
}

#[test]
fn datagrams_over_ipv6_carry_their_length_less_48_bytes() {
    let runs = simulate(
        "[run]\nduration = '3 s'\nwarmup = '1 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n\
         [traffic.load]\nip = 6\nworkload = { kind = 'udp', rate = '1.2 Mbit/s', packet = '1500 B' }\n",
    );
    // 100 a second.
    assert!((number(runs[0].groups[0].metrics.get("goodput_mbps")) - 1452.0 * 8e-4).abs() < 0.01);
}

#[test]
fn groups_in_a_graph_load_only_the_links_of_their_paths() {
    let runs = simulate(
        "[run]\nduration = '3 s'\nwarmup = '1 s'\nstart_jitter = '0 s'\n\
         [graph]\nrouters = ['a', 'b']\n[graph.links]\n\
         near = { from = 'a', to = 'b', rate = '10 Mbit/s', delay = '5 ms' }\n\
         far = { from = 'a', to = 'b', rate = '5 Mbit/s', delay = '50 ms' }\n\
         [traffic.x]\nfrom = 'a'\nto = 'b'\nworkload = { kind = 'udp', rate = '1 Mbit/s' }\n\
         [traffic.y]\nfrom = 'a'\nto = 'b'\nvia = ['far']\nworkload = { kind = 'udp', rate = '2 Mbit/s' }\n\
         [traffic.z]\nfrom = 'b'\nto = 'a'\nvia = ['far']\nworkload = { kind = 'udp', rate = '3 Mbit/s' }\n",
    );
    let carried: Vec<(&str, f64)> = runs[0]
        .queues
        .iter()
        .map(|queue| (queue.link.as_str(), number(queue.metrics.get("link_throughput_mbps"))))
        .collect();
    for ((link, carried), (expected, mbps)) in
        carried.into_iter().zip([("near", 1.0), ("near-up", 0.0), ("far", 2.0), ("far-up", 3.0)])
    {
        assert_eq!(link, expected);
        assert!((carried - mbps).abs() < 0.02, "{link}: {carried}");
    }
}

#[test]
fn a_group_over_three_lossy_links_gets_the_rate_of_the_square_root_law() {
    // The lab derives the shares and claims them.
    let lab = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/senders/parking-lot.toml");
    let runs = simulate_lab(&weir_plan::Lab::load(&lab, &[]).unwrap());
    let mean = |group: usize| {
        let share = |run: &RunSummary| number(run.groups[group].metrics.get("goodput_share_percent"));
        runs.iter().map(share).sum::<f64>() / runs.len() as f64
    };
    for (group, claimed) in [16.1, 28.0, 28.0, 28.0].into_iter().enumerate() {
        let found = mean(group);
        assert!((found - claimed).abs() < 0.1 * claimed, "group {group}: {found} %, not {claimed} %");
    }
}
