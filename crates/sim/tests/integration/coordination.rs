//! Aggregation points in simulated labs: their measurements agree with the taps' and the links' counts, and flows
//! follow them.

use crate::simulate::{number, simulate};
use weir_record::{FlowSummary, RunSummary};

/// Two sites 50 ms apart, with random loss in the forward direction, and this traffic.
fn sites(application: &str, traffic: &str) -> RunSummary {
    let point = |name: &str, at: &str| {
        format!(
            "[stations.{name}]\nat = \"{at}\"\nlinks = [\"down\", \"up\"]\nkind = \"aggregation-point\"\n\
             application = [{{ id = 1{application} }}]\n"
        )
    };
    let lab = format!(
        "[run]\nduration = \"60 s\"\nwarmup = \"0 s\"\n\
         [dumbbell]\nrate = \"100 Mbit/s\"\nrtt = \"50 ms\"\nloss = {{ down = \"1 %\", up = \"0 %\" }}\n{}{}{traffic}",
        point("west", "left"),
        point("east", "right")
    );
    simulate(&lab).remove(0)
}

fn state(run: &RunSummary, station: &str, name: &str) -> f64 {
    run.stations.iter().find(|of| of.name == station).unwrap().state.get(name).copied().unwrap_or(f64::NAN)
}

fn goodput(flow: &FlowSummary) -> f64 {
    number(flow.metrics.get("goodput_mbps"))
}

#[test]
fn four_flows_of_an_application_get_a_flowshare_each() {
    let run = sites("", "[traffic.streams]\ntransport = { kind = \"rudp\", application = 1 }\nflows = 4\n");
    // 1,500 bytes, 50 ms and p = 0.01: 337,000 B/s by the equation (b = 1, t_RTO = 4 R), 2.69 Mbit/s.
    let goodputs: Vec<f64> = run.flows.iter().map(goodput).collect();
    let mean = goodputs.iter().sum::<f64>() / 4.0;
    assert!((2.3..3.2).contains(&mean), "{goodputs:?}");
    assert!(goodputs.iter().all(|one| (one / mean - 1.0).abs() < 0.02), "{goodputs:?}");
    // The points are nearer to each other than the hosts, but all delay is between them.
    assert!((state(&run, "west", "rtt_ms") - 50.0).abs() < 1.0, "{}", state(&run, "west", "rtt_ms"));
    let down = run.queues.iter().find(|queue| queue.link == "down").unwrap();
    let lost = number(down.metrics.get("link_lost_packets"));
    let seen = state(&run, "east", "packets_lost");
    // A loss is known once three later packets have come.
    assert!(lost > 300.0 && (0.0..=4.0).contains(&(lost - seen)), "{seen} of {lost}");
    assert_eq!(state(&run, "west", "flows"), 4.0);
}

/// Mean goodput of the flows of a group.
fn mean(run: &RunSummary, group: &str) -> f64 {
    let of_group = || run.flows.iter().filter(|flow| flow.name.starts_with(group)).map(goodput);
    of_group().sum::<f64>() / of_group().count() as f64
}

#[test]
fn four_connections_of_sliq_get_as_much_goodput_as_four_streams_beside_them() {
    let coordinated = "transport = { kind = \"sliq\", coordination = { application = 1 } }\nflows = 4\n";
    let alone = sites("", &format!("[traffic.sliq]\n{coordinated}"));
    assert!((2.3..3.2).contains(&mean(&alone, "sliq")), "{}", mean(&alone, "sliq"));
    assert_eq!(state(&alone, "west", "flows"), 4.0);
    assert!(alone.stations.iter().all(|station| station.state["discarded_packets"] == 0.0));
    let both = sites(
        "",
        &format!(
            "[traffic.sliq]\n{coordinated}[traffic.rudp]\ntransport = {{ kind = \"rudp\", application = 1 }}\nflows = 4\n"
        ),
    );
    let [sliq, rudp] = ["sliq", "rudp"].map(|group| mean(&both, group));
    // 1,425 and 1,443 bytes in a packet of 1,496 and 1,500.
    assert!((sliq / rudp - 1.0).abs() < 0.04, "{sliq} and {rudp} Mbit/s");
    assert_eq!(state(&both, "west", "flows"), 8.0);
}

#[test]
fn a_deadline_is_kept_at_a_reported_rate() {
    let media = |name: &str, stream: &str| {
        format!(
            "[traffic.{name}]\ntransport = {{ kind = \"sliq\", stream = {{ {stream} }}, coordination = {{ application = 1 }} }}\n\
             workload = {{ kind = \"frames\", fps = 40, size = \"1000 B\", deadline = \"60 ms\", source = \"socket\" }}\n"
        )
    };
    // 1 % of loss, and no time for what is lost to be retransmitted.
    let run = sites(
        "",
        &(media("coded", "delivery = \"arq-fec\", deadline = \"60 ms\"")
            + &media("plain", "delivery = \"best-effort\"")),
    );
    let on_time = |group: &str| {
        let group = run.groups.iter().find(|of| *of.name == *group).unwrap();
        group.metrics.get("frames_on_time_percent").scalar().unwrap()
    };
    assert!(on_time("coded") > 99.5, "{}", on_time("coded"));
    assert!((98.5..99.5).contains(&on_time("plain")), "{}", on_time("plain"));
}

#[test]
fn packets_of_other_traffic_pass_unchanged() {
    let run = sites(
        "",
        "[traffic.streams]\ntransport = { kind = \"rudp\", application = 1 }\n\
         [traffic.other]\ntransport = { kind = \"cp-udp\", application = 2 }\n\
         workload = { kind = \"udp\", rate = \"1 Mbit/s\" }\n\
         [traffic.tfrc]\ntransport = \"tfrc\"\n[traffic.tcp]\ncc = \"newreno\"\n\
         [traffic.plain]\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\" }\n",
    );
    assert_eq!(state(&run, "west", "flows"), 1.0);
    for flow in &run.flows {
        assert!(goodput(flow) > 0.4, "{}: {}", flow.name, goodput(flow));
    }
    assert!(run.stations.iter().all(|station| station.state["discarded_packets"] == 0.0));
}

/// Six streams of ensembles with frames of 25 KiB, two of them large, over a transport.
fn ensembles(transport: &str) -> RunSummary {
    sites(
        "",
        &format!(
            "[traffic.streams]\nflows = 6\n{transport}\n\
             workload = {{ kind = \"ensembles\", pattern = \"MMmmmm\", dispersion = 0.5, swap = 100 }}\n"
        ),
    )
}

#[test]
fn ensembles_arrive_together_when_streams_share_their_rates_by_the_sizes_of_their_frames() {
    let metric = |run: &RunSummary, name: &str| run.groups[0].metrics.get(name).scalar().unwrap();
    let rudp =
        |scheme: &str| format!("transport = {{ kind = \"rudp\", application = 1, scheme = \"{scheme}\" }}");
    let sliq = |scheme: &str| {
        format!(
            "transport = {{ kind = \"sliq\", coordination = {{ application = 1, scheme = \"{scheme}\" }} }}"
        )
    };
    let apart = ensembles("cc = \"newreno\"");
    for (together, equal) in [(rudp("frames"), rudp("equal")), (sliq("frames"), sliq("equal"))] {
        let (together, equal) = (ensembles(&together), ensembles(&equal));
        // Six flowshares of 2.7 Mbit/s carry 153,600 bytes 13 times a second. The barrier bounds the loss of equal rates.
        let rate = metric(&together, "ensembles_per_s");
        assert!((11.0..15.0).contains(&rate), "{rate}");
        for name in ["completion_asynchrony_ms", "stall_time_ms", "ensemble_jitter_ms"] {
            let [together, equal, apart] = [&together, &equal, &apart].map(|run| metric(run, name));
            assert!(together < equal && together < apart, "{name}: {together}, {equal} and {apart}");
        }
        // All data sent is read: ensembles of 153,600 bytes, except the one under way.
        let read = metric(&together, "goodput_mbps") * 1e6 / 8.0 / 153_600.0;
        assert!((read / rate - 1.0).abs() < 0.02, "{read} of {rate} a second");
    }
}

#[test]
fn an_urgent_flow_gets_the_rate_that_the_others_do_not_keep() {
    let group = |name: &str, flows: u32, urgent: bool| {
        format!(
            "[traffic.{name}]\nflows = {flows}\n\
             transport = {{ kind = \"rudp\", application = 1, scheme = {{ kind = \"priority\", floor = 0.2 }}, urgent = {urgent} }}\n"
        )
    };
    let run = sites("", &(group("control", 1, true) + &group("data", 2, false)));
    let [control, data] = [0, 1].map(|group| number(run.groups[group].metrics.get("goodput_mbps")));
    // Each flow keeps 0.2 of its flowshare, and the urgent one also gets the other 2.4 of the three: 2.6 to 0.4.
    assert!((5.5..7.5).contains(&(control / data)), "{control} to {data} Mbit/s");
}
