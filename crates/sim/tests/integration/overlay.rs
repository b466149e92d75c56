//! The overlay in whole runs: flows over many paths and to many receivers, their admission, and that every packet is accounted for, which
//! [`simulate`] checks after each run.

use crate::simulate::{distribution, number, simulate};
use weir_record::RunSummary;

/// A diamond of 4 Mbit/s and 5 ms a link, from `a` over `b` or `c` to `d`.
fn diamond(overlay: &str, traffic: &str) -> RunSummary {
    let link = |from: &str, to: &str| {
        format!(
            "{from}{to} = {{ from = \"{from}\", to = \"{to}\", rate = \"4 Mbit/s\", delay = \"5 ms\" }}\n"
        )
    };
    let links = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")].map(|(from, to)| link(from, to)).concat();
    let text = format!(
        "[run]\nduration = \"12 s\"\nwarmup = \"2 s\"\n[graph]\nrouters = [\"a\", \"b\", \"c\", \"d\"]\n\
         [graph.links]\n{links}[overlay]\nnodes = [\"a\", \"b\", \"c\", \"d\"]\nk = 1e12\n{overlay}\n{traffic}"
    );
    simulate(&text).remove(0)
}

/// Datagrams of 1,024 bytes, offered at a rate from `a`.
fn group(name: &str, rate: &str, keys: &str) -> String {
    format!(
        "[traffic.{name}]\nfrom = \"a\"\nworkload = {{ kind = \"udp\", rate = \"{rate}\", packet = \"1052 B\" }}\n{keys}\n"
    )
}

fn goodput(run: &RunSummary, group: &str) -> f64 {
    let found = run.groups.iter().find(|one| &*one.name == group).unwrap();
    number(found.metrics.get("goodput_mbps"))
}

/// What of a link's rate reaches a receiver as payload: 1,024 of 1,024 + 28 + about 14 bytes, less 1 % of signalling.
const PAYLOAD: f64 = 0.99 * 1024.0 / (1024.0 + 28.0 + 14.0);

#[test]
fn a_flow_uses_both_paths_of_a_diamond() {
    let run = diamond("", &group("flow", "20 Mbit/s", "to = \"d\"\noverlay = { cap = \"20 Mbit/s\" }"));
    let rate = goodput(&run, "flow");
    assert!(rate > 0.95 * 8.0 * PAYLOAD, "{rate} Mbit/s");
}

#[test]
fn a_group_that_the_overlay_does_not_carry_takes_one_path_between_its_nodes() {
    let run = diamond("", &group("flow", "3 Mbit/s", "to = \"d\"\noverlay = false"));
    // 1,024 of 1,052 bytes.
    assert!((goodput(&run, "flow") - 3.0 * 1024.0 / 1052.0).abs() < 0.01);
}

#[test]
fn a_packet_to_many_receivers_leaves_its_host_once_and_reaches_each() {
    let run = diamond(
        "",
        &group("flow", "20 Mbit/s", "multicast = [\"b\", \"c\", \"d\"]\noverlay = { cap = \"20 Mbit/s\" }"),
    );
    let rates: Vec<f64> = run.flows.iter().map(|flow| number(flow.metrics.get("goodput_mbps"))).collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|rate| *rate > 0.95 * 4.0 * PAYLOAD), "{rates:?}");
}

#[test]
fn a_source_keeps_what_is_not_admitted_and_shares_follow_priorities() {
    let flow = |name: &str, priority: u32| {
        let keys = format!("to = \"d\"\noverlay = {{ priority = {priority}, cap = \"20 Mbit/s\" }}");
        group(name, "20 Mbit/s", &keys)
    };
    let run = diamond("", &[flow("one", 1), flow("three", 3)].concat());
    let (one, three) = (goodput(&run, "one"), goodput(&run, "three"));
    assert!((three / one - 3.0).abs() < 0.15, "{one} and {three} Mbit/s");
    let dropped = number(run.metrics.get("dropped_packets"));
    assert_eq!(dropped, 0.0, "the bottleneck's queue does not overflow");
}

#[test]
fn deadlines_are_kept_over_the_fast_path_while_bulk_fills_both() {
    let text = "[run]\nduration = \"12 s\"\nwarmup = \"2 s\"\n[graph]\nrouters = [\"a\", \"b\", \"d\"]\n[graph.links]\n\
        ad = { from = \"a\", to = \"d\", rate = \"4 Mbit/s\", delay = \"70 ms\" }\n\
        ab = { from = \"a\", to = \"b\", rate = \"4 Mbit/s\", delay = \"2 ms\" }\n\
        bd = { from = \"b\", to = \"d\", rate = \"4 Mbit/s\", delay = \"2 ms\" }\n\
        [overlay]\nnodes = [\"a\", \"b\", \"d\"]\nk = 1e12\n";
    let urgent = group("urgent", "1 Mbit/s", "to = \"d\"\noverlay = { deadline = \"50 ms\" }");
    let bulk = group("bulk", "20 Mbit/s", "to = \"d\"\noverlay = { cap = \"20 Mbit/s\" }");
    let run = simulate(&format!("{text}{urgent}{bulk}")).remove(0);
    let of = |group: &str, name: &str| {
        run.groups.iter().find(|one| &*one.name == group).unwrap().metrics.get(name)
    };
    assert!(number(of("urgent", "in_time_percent")) > 99.0);
    assert!(distribution(of("urgent", "transit_ms")).p99 < 50.0);
    assert!(distribution(of("bulk", "transit_ms")).p99 > 70.0, "bulk uses the slow path too");
    assert!((1.9..=2.1).contains(&number(of("urgent", "passed_links"))));
    assert!(number(run.metrics.get("overlay_overhead_percent")) < 5.0);
    assert!(number(run.metrics.get("overlay_signalling_percent")) < 2.0);
}

#[test]
fn packets_in_packets_are_accounted_for_over_links_that_lose_damage_and_repeat_them() {
    let text = "[run]\nduration = \"5 s\"\nwarmup = \"1 s\"\n[graph]\nrouters = [\"a\", \"b\"]\n[graph.links.ab]\nfrom = \"a\"\n\
        to = \"b\"\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"2 %\"\ncorrupt = \"1 %\"\nduplicate = \"1 %\"\n\
        [overlay]\nnodes = [\"a\", \"b\"]\nk = 1e12\n";
    let flow = group("flow", "20 Mbit/s", "to = \"b\"\noverlay = { cap = \"20 Mbit/s\" }");
    let rate = goodput(&simulate(&format!("{text}{flow}"))[0], "flow");
    assert!(rate > 0.9 * 4.0 * PAYLOAD, "{rate} Mbit/s");
}

/// What of a link's rate reaches a receiver as payload over sealed SLIQ: 1,024 of 1,113 bytes, less 1 % each of signalling and of
/// acknowledgements in data packets.
const SEALED: f64 = 0.98 * 1024.0 / 1113.0;

#[test]
fn over_sliq_a_flow_uses_both_paths_and_its_headers_are_within_8_percent() {
    for cat in ["\"sliq\"", "{ kind = \"sliq\", cc = [\"copa\"] }", "{ kind = \"sliq\", cc = [\"cubic\"] }"] {
        let flow = group("flow", "20 Mbit/s", "to = \"d\"\noverlay = { cap = \"20 Mbit/s\" }");
        let run = diamond(&format!("cat = {cat}"), &flow);
        let rate = goodput(&run, "flow");
        assert!(rate > 0.95 * 8.0 * SEALED, "{cat}: {rate} Mbit/s");
        let percent = |name: &str| number(run.metrics.get(name));
        let (overhead, signals) =
            (percent("overlay_overhead_percent"), percent("overlay_signalling_percent"));
        assert!((7.0..=8.0).contains(&overhead), "{cat}: {overhead} %");
        assert!(signals < 3.0, "{cat}: {signals} %");
    }
}

#[test]
fn over_sliq_lost_packets_are_retransmitted_and_all_bytes_are_accounted_for() {
    let text = "[run]\nduration = \"8 s\"\nwarmup = \"2 s\"\n[graph]\nrouters = [\"a\", \"b\"]\n[graph.links.ab]\nfrom = \"a\"\n\
        to = \"b\"\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"5 %\"\ncorrupt = \"1 %\"\nduplicate = \"1 %\"\n\
        [overlay]\nnodes = [\"a\", \"b\"]\nk = 1e12\ncat = { kind = \"sliq\", cc = [\"copa\"] }\n";
    let flow = group("flow", "20 Mbit/s", "to = \"b\"\noverlay = { cap = \"20 Mbit/s\" }");
    let run = simulate(&format!("{text}{flow}")).remove(0);
    let rate = goodput(&run, "flow");
    assert!(rate > 0.9 * 0.94 * 4.0 * SEALED, "{rate} Mbit/s");
    let percent = |name: &str| number(run.metrics.get(name));
    assert!((5.0..9.0).contains(&percent("overlay_resent_percent")));
    assert!(number(run.groups[0].metrics.get("in_time_percent")) > 99.0);
    assert!(distribution(run.groups[0].metrics.get("transit_ms")).p99 < 500.0);
}

#[test]
fn over_sliq_a_copy_reaches_each_receiver() {
    let flow =
        group("flow", "20 Mbit/s", "multicast = [\"b\", \"c\", \"d\"]\noverlay = { cap = \"20 Mbit/s\" }");
    let run = diamond("cat = { kind = \"sliq\", cc = [\"copa\"] }", &flow);
    let rates: Vec<f64> = run.flows.iter().map(|flow| number(flow.metrics.get("goodput_mbps"))).collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|rate| *rate > 0.95 * 4.0 * SEALED), "{rates:?}");
}

/// What proxies answer is shorter than a packet of data by far, and keeps its length over SLIQ.
#[test]
fn over_sliq_a_tcp_flow_between_proxies_uses_both_paths() {
    let flow = "[traffic.flow]\nfrom = \"a\"\nto = \"d\"\ntransport = \"relay\"\noverlay = { cap = \"20 Mbit/s\" }\n";
    let run = diamond("cat = \"sliq\"", flow);
    let rate = goodput(&run, "flow");
    // Of 8 Mbit/s SLIQ's headers take 7.3 %, and Copa uses 95 % of a link.
    assert!(rate > 0.9 * 8.0 * 0.927 * 0.95, "{rate} Mbit/s");
}
