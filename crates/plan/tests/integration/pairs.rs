//! Flows of one group that differ in RTT, start or receiver, and the largest packets of links and hosts.

use weir_base::{Bytes, Span};
use weir_plan::{Lab, Run};

fn read(text: &str) -> Result<Run, String> {
    let text = format!("format = 1\n{text}\n");
    let lab = Lab::from_str(&text, "lab.toml", std::path::Path::new("."), &[]);
    lab.map(|lab| lab.runs().remove(0)).map_err(|error| error.to_string())
}

fn run(text: &str) -> Run {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

const DUMBBELL: &str =
    "[run]\nduration = \"20 s\"\nstart_jitter = \"0 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"10 ms\"\n";
const CHAIN: &str = "[run]\nduration = \"20 s\"\n[chain.links]\n\
    a = { rate = \"10 Mbit/s\", delay = \"1 ms\" }\nb = { rate = \"5 Mbit/s\", delay = \"2 ms\" }\n";

fn rtts(run: &Run) -> Vec<u64> {
    (0..run.flows.len()).map(|flow| run.pair(flow).rtt.as_millis()).collect()
}

#[test]
fn flows_take_the_rtts_of_a_list_in_turn_and_flows_of_equal_rtt_share_hosts() {
    let run = run(&format!("{DUMBBELL}[traffic.a]\nflows = 3\nrtt = [\"10 ms\", \"40 ms\"]"));
    assert_eq!(rtts(&run), [10, 40, 10]);
    assert_eq!(run.groups[0].rtt(), Span::from_millis(10));
    let pairs: Vec<_> = run.flows.iter().map(|flow| flow.pair).collect();
    assert_eq!(pairs, [0, 1, 0]);
    // One sender, and a receiver for each RTT, behind which the rest of the delay lies.
    let names: Vec<_> = run.network.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["left", "right", "a-sender", "a-receiver", "a-receiver-2"]);
    let delay =
        |name: &str| run.network.links.iter().find(|link| link.name == name).unwrap().delay.as_millis();
    assert_eq!((delay("a-receiver-out"), delay("a-receiver-2-out"), delay("a-receiver-2-in")), (0, 15, 15));
}

#[test]
fn a_range_is_divided_evenly_and_a_list_makes_the_number_of_flows() {
    let run = run(&format!(
        "{DUMBBELL}[traffic.a]\nflows = 4\nrtt = {{ from = \"10 ms\", to = \"40 ms\" }}\n\
         [traffic.b]\nstart = [\"0 s\", \"5 s\", \"7 s\"]"
    ));
    assert_eq!(rtts(&run), [10, 20, 30, 40, 10, 10, 10]);
    let starts: Vec<_> = run.flows[4..].iter().map(|flow| flow.start.as_millis()).collect();
    assert_eq!(starts, [0, 5000, 7000]);
}

#[test]
fn sources_of_random_flows_share_the_load_of_the_group() {
    let web = |more: &str| {
        let load = "workload = { kind = \"web\", load = \"6 Mbit/s\", size = \"3 kB\" }";
        run(&format!("{DUMBBELL}[traffic.a]\n{load}\n{more}"))
    };
    let (one, three) = (web(""), web("rtt = [\"10 ms\", \"20 ms\", \"40 ms\"]"));
    // 250 flows a second for 20 s, with a standard deviation of 71; of each source a third, with one of 41.
    for run in [&one, &three] {
        assert!(run.flows.len().abs_diff(5000) < 300, "{}", run.flows.len());
    }
    for rtt in [10, 20, 40] {
        let flows = rtts(&three).iter().filter(|of| **of == rtt).count();
        assert!(flows.abs_diff(1667) < 170, "{flows} of {rtt} ms");
    }
}

#[test]
fn flows_of_one_sender_take_several_receivers_in_turn() {
    let run = run(&format!("{CHAIN}[traffic.a]\nflows = 4\nto = [\"n1\", \"n2\"]"));
    // 1 ms and 3 ms each way.
    assert_eq!(rtts(&run), [2, 6, 2, 6]);
    assert_eq!(run.pair(0).from, run.pair(1).from);
    assert_ne!(run.pair(0).to, run.pair(1).to);
}

#[test]
fn paths_back_to_one_sender_in_a_graph_may_meet_but_not_part() {
    let graph = "[graph]\nrouters = [\"x\", \"y\", \"z\"]\n[graph.links]\n\
         xy = { from = \"x\", to = \"y\", rate = \"9 Mbit/s\", delay = \"1 ms\" }\n\
         yz = { from = \"y\", to = \"z\", rate = \"9 Mbit/s\", delay = \"1 ms\" }\n\
         xz = { from = \"x\", to = \"z\", rate = \"9 Mbit/s\", delay = \"9 ms\" }\n";
    let both = |more: &str| read(&format!("{graph}[traffic.a]\nfrom = \"x\"\nto = [\"y\", \"z\"]\n{more}"));
    assert_eq!(rtts(&both("").unwrap()), [2, 4]);
    // Both ways back over xz: from y it is 1 ms to z first.
    assert_eq!(rtts(&both("back = [\"xz\"]").unwrap()), [1 + 10, 2 + 9]);
}

#[test]
fn hosts_send_no_larger_packets_than_their_paths_and_cards_carry() {
    let run = run("[graph]\nrouters = [\"x\", \"y\", \"z\"]\n[graph.links]\n\
         wide = { from = \"x\", to = \"y\", rate = \"1 Gbit/s\", delay = \"1 ms\", mtu = \"9000 B\" }\n\
         thin = { from = \"y\", to = \"z\", rate = \"1 Gbit/s\", delay = \"1 ms\" }\n\
         [traffic.jumbo]\nfrom = \"x\"\nto = \"y\"\n[traffic.usual]\nfrom = \"x\"\nto = \"z\"\n\
         [traffic.card]\nfrom = \"x\"\nto = \"y\"\nhost = \"dtn\"\n\
         [nic.dtn]\nrate = \"1 Gbit/s\"\nmtu = \"4000 B\"\n");
    let mtus: Vec<_> = (0..3).map(|flow| run.mtu(flow)).collect();
    assert_eq!(mtus, [9000, 1500, 4000].map(Bytes::new));
    assert_eq!(run.network.mtu(), Bytes::new(9000));
}

const SIX: &str = "[nic.capture]\nrate = \"100 Mbit/s\"\nhosts = 6\nmtu = \"1400 B\"\n";

#[test]
fn flows_take_the_hosts_of_a_name_in_turn_and_each_host_has_its_own_card() {
    let run = run(&format!(
        "{DUMBBELL}{SIX}[traffic.a]\nflows = 8\nhost = \"capture\"\n[traffic.b]\nflows = 2\nhost = \"capture\"\n"
    ));
    let from = |flow: usize| run.network.nodes[run.pair(flow).from].name.as_str();
    let names: Vec<_> = (0..10).map(from).collect();
    let six = ["capture-1", "capture-2", "capture-3", "capture-4", "capture-5", "capture-6"];
    assert_eq!(names, [&six[..], &six[..2], &six[..2]].concat());
    // Both groups have the same hosts, and each group a receiver.
    let names: Vec<_> = run.network.nodes[2..].iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, [&six[..], &["a-receiver", "b-receiver"]].concat());
    for name in six {
        let (node, host) = (0..).zip(&run.network.nodes).find(|(_, node)| node.name == name).unwrap();
        assert!(
            host.card.is_some() && host.mtu == Bytes::new(1400) && host.alike.as_deref() == Some("capture")
        );
        let card = run.network.links.iter().find(|link| link.from == node).unwrap();
        assert_eq!((card.name.as_str(), card.rate.unwrap().mbit_per_sec()), (name, 100.0));
    }
    assert_eq!(run.instrumented_links().count(), 2 + 6);
}

#[test]
fn hosts_that_no_flow_needs_are_not_created() {
    let run = run(&format!("{DUMBBELL}{SIX}[traffic.a]\nflows = 2\nhost = \"capture\"\n"));
    assert_eq!(run.instrumented_links().count(), 2 + 2);
}

#[test]
fn hosts_and_rtts_are_taken_in_turn_independently() {
    let run = run(&format!(
        "{DUMBBELL}{SIX}[traffic.a]\nflows = 12\nhost = \"capture\"\nrtt = [\"10 ms\", \"20 ms\", \"30 ms\", \"40 ms\"]\n"
    ));
    assert_eq!(rtts(&run), [10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40]);
    let hosts: Vec<_> = (0..12).map(|flow| run.pair(flow).from - run.pair(0).from).collect();
    assert_eq!(hosts, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    let pairs: Vec<_> = run.flows.iter().map(|flow| flow.pair).collect();
    assert_eq!(pairs, (0..12).collect::<Vec<_>>());
}

#[test]
fn sources_of_random_flows_take_the_hosts_of_a_name_in_turn() {
    let web = "workload = { kind = \"web\", load = \"6 Mbit/s\", size = \"3 kB\" }";
    let run = run(&format!("{DUMBBELL}{SIX}[traffic.a]\nhost = \"capture\"\nflows = 6\n{web}\n"));
    // 5000 flows, a sixth from each host, with a standard deviation of 29.
    for host in 0..6 {
        let flows = run.flows.iter().filter(|flow| flow.pair == host).count();
        assert!(flows.abs_diff(833) < 120, "{flows} from {host}");
    }
}

#[test]
fn invalid_settings_of_several_hosts_are_refused() {
    let told = |text: &str| read(&format!("{DUMBBELL}{text}")).unwrap_err();
    let none = told(&SIX.replace("= 6", "= 0").replace("[nic", "[traffic.a]\nhost = \"capture\"\n[nic"));
    assert!(none.contains("a name cannot stand for 0 hosts") && none.contains("from 1 to 1000"), "{none}");
    let command = told(&format!(
        "{SIX}[traffic.a]\nhost = \"capture\"\nflows = 2\nworkload = {{ kind = \"command\", run = \"true\" }}\n"
    ));
    assert!(command.contains("one pair of hosts"), "{command}");
    let flow = told(&format!("{SIX}[traffic.capture]\nhost = \"capture\"\nflows = 2\n"));
    assert!(flow.contains("`capture-1` would be a flow of the group `capture` and a host"), "{flow}");
    let one = told(&format!("{SIX}[traffic.a]\nhost = \"capture\"\n[traffic.b]\nhost = \"capture-6\"\n"));
    assert!(one.contains("`capture-6` is one of the 6 hosts `capture`"), "{one}");
    let router = told("[traffic.a]\nhost = \"left\"\n");
    assert!(router.contains("`left` is a node of the network"), "{router}");
}

#[test]
fn contradictory_settings_are_refused() {
    let told = |text: &str| read(text).unwrap_err();
    let two_of_three =
        told(&format!("{DUMBBELL}[traffic.a]\nflows = 2\nrtt = [\"10 ms\", \"20 ms\", \"30 ms\"]"));
    assert!(two_of_three.contains("one of its lists or ranges needs 3"), "{two_of_three}");
    let short = told(&format!("{DUMBBELL}[traffic.a]\nrtt = [\"10 ms\", \"5 ms\"]"));
    assert!(short.contains("shorter than that of its path, 10 ms"), "{short}");
    let tiny = told(&DUMBBELL.replace("rtt =", "mtu = \"100 B\"\nrtt ="));
    assert!(tiny.contains("an MTU cannot be 100 B"), "{tiny}");
    let big = told(&format!("{DUMBBELL}[traffic.a]\nworkload = {{ kind = \"udp\", packet = \"2000 B\" }}"));
    assert!(big.contains("cannot be 2 kB long"), "{big}");
    let empty = told(&format!("{DUMBBELL}[traffic.a]\nstart = []"));
    assert!(empty.contains("start"), "{empty}");
    let up = told(&format!("{CHAIN}[traffic.a]\ndirection = \"up\"\nto = [\"n1\", \"n2\"]"));
    assert!(up.contains("the data comes from `to`"), "{up}");
    let command = told(&format!(
        "{DUMBBELL}[traffic.a]\nrtt = [\"10 ms\", \"20 ms\"]\nworkload = {{ kind = \"command\", run = \"true\" }}"
    ));
    assert!(command.contains("one pair of hosts"), "{command}");
}

#[test]
fn only_echo_requests_go_to_a_station_and_only_to_one_that_answers() {
    let at = |kind: &str, workload: &str| {
        read(&format!(
            "{DUMBBELL}[stations.box]\nat = \"right\"\nkind = \"{kind}\"\n[traffic.a]\nto = \"box\"\nworkload = \"{workload}\""
        ))
    };
    let run = at("echo", "ping").unwrap();
    assert_eq!(run.network.nodes[run.pair(0).to].name, "right");
    assert_eq!(run.network.nodes.len(), 3, "no receiving host");
    assert!(at("echo", "bulk").unwrap_err().contains("answers echo requests"));
    assert!(at("policer", "ping").unwrap_err().contains("does not answer packets"));
}
