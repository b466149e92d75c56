//! Graphs, parking lots and stars: the networks that they become, and the paths of their groups.

use std::path::Path;
use weir_base::{Bytes, Rate, Span};
use weir_plan::{Ip, Lab, Run};

fn only(text: &str) -> Run {
    let lab = Lab::from_str(&format!("format = 1\n{text}"), "test.toml", Path::new("."), &[]);
    let mut runs = lab.unwrap_or_else(|error| panic!("{error}")).runs();
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn link<'a>(run: &'a Run, name: &str) -> &'a weir_plan::Link {
    run.network.links.iter().find(|link| link.name == name).unwrap()
}

fn node(run: &Run, index: usize) -> &str {
    &run.network.nodes[index].name
}

/// The names of the links on the route of packets to this host.
fn way(run: &Run, host: usize) -> Vec<&str> {
    let way = run.network.routes.iter().find(|way| way.to == host).unwrap();
    way.links.iter().map(|&link| run.network.links[link].name.as_str()).collect()
}

/// A group's path there and back.
fn ways<'a>(run: &'a Run, group: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let group = run.groups.iter().find(|other| other.name == group).unwrap();
    (way(run, group.pairs[0].to), way(run, group.pairs[0].from))
}

/// A phone with two accesses, a server behind two routers, and a link by satellite that leads down only.
const PHONE: &str = "[graph]
routers = ['cell', 'isp', 'core']
hosts = ['phone', 'server']
base_rtt = '40 ms'
[graph.links.wifi]
from = 'isp'
to = 'phone'
rate = { down = '50 Mbit/s', up = '10 Mbit/s' }
delay = '5 ms'
[graph.links.lte]
from = 'cell'
to = 'phone'
rate = '20 Mbit/s'
delay = { down = '20 ms', up = '25 ms' }
[graph.links.dsl]
from = 'core'
to = 'isp'
rate = '40 Mbit/s'
delay = '10 ms'
queue = { kind = 'tail-drop', limit = '1 bdp' }
[graph.links.backhaul]
from = 'core'
to = 'cell'
rate = '100 Mbit/s'
delay = '5 ms'
[graph.links.hosting]
from = 'server'
to = 'core'
rate = '1 Gbit/s'
delay = '1 ms'
[graph.links.satellite]
from = 'core'
to = 'isp'
one_way = true
rate = '30 Mbit/s'
delay = '250 ms'
";

#[test]
fn a_graph_has_its_nodes_and_links_in_the_order_of_the_file_and_one_way_links_have_one_direction() {
    let run = only(&format!("{PHONE}[traffic.a]\nfrom = 'server'\nto = 'phone'\n"));
    let names: Vec<&str> = run.instrumented_links().map(|(_, link)| link.name.as_str()).collect();
    let expected = [
        "wifi",
        "wifi-up",
        "lte",
        "lte-up",
        "dsl",
        "dsl-up",
        "backhaul",
        "backhaul-up",
        "hosting",
        "hosting-up",
        "satellite",
    ];
    assert_eq!(names, expected);
    let wifi = link(&run, "wifi-up");
    assert_eq!((node(&run, wifi.from), node(&run, wifi.to)), ("phone", "isp"));
    assert_eq!(wifi.rate, Some(Rate::from_mbit_per_sec(10)));
    assert_eq!(run.network.base_rtt, Some(Span::from_millis(40)));
    // The group's own hosts stand behind the nodes that it names.
    assert_eq!(node(&run, link(&run, "a-sender-out").to), "server");
    assert!(run.network.nodes.iter().filter(|node| node.host).count() == 2);
}

#[test]
fn groups_take_the_path_of_least_delay_and_its_slowest_link_is_their_bottleneck() {
    let run = only(&format!("{PHONE}[traffic.a]\nfrom = 'server'\nto = 'phone'\n"));
    // Down: 1 + 10 + 5 = 16 ms by wifi against 1 + 5 + 20 = 26 by lte; up: 16 against 31.
    let (there, back) = ways(&run, "a");
    assert_eq!((there, back), (vec!["hosting", "dsl", "wifi"], vec!["wifi-up", "dsl-up", "hosting-up"]));
    assert_eq!(run.groups[0].pairs[0].rtt, Span::from_millis(32));
    // 1500 bytes at 40 Mbit/s.
    assert_eq!(run.network.nodes[run.groups[0].pairs[0].from].jitter, Span::from_micros(300));
}

#[test]
fn a_group_on_a_host_with_several_links_chooses_by_via_and_returns_on_the_same_path() {
    let run = only(&format!(
        "{PHONE}[traffic.near]\nfrom = 'phone'\nto = 'server'\n\
         [traffic.far]\nfrom = 'phone'\nto = 'server'\nvia = ['lte']\n"
    ));
    assert_eq!(ways(&run, "near").0, ["wifi-up", "dsl-up", "hosting-up"]);
    // `lte` means whichever of its directions is on the way.
    let (there, back) = ways(&run, "far");
    assert_eq!(there, ["lte-up", "backhaul-up", "hosting-up"]);
    assert_eq!(back, ["hosting", "backhaul", "lte"]);
    // 25 + 5 + 1 there, 1 + 5 + 20 back.
    assert_eq!(run.groups[1].pairs[0].rtt, Span::from_millis(57));
}

#[test]
fn paths_there_and_back_may_differ() {
    let run = only(&format!(
        "{PHONE}[traffic.sat]\nfrom = 'server'\nto = 'phone'\nvia = ['satellite']\n\
         [traffic.mixed]\nfrom = 'server'\nto = 'phone'\nvia = ['isp']\nback = ['lte', 'core']\n"
    ));
    // A one-way link cannot be the path back, which is then the shortest one.
    let (there, back) = ways(&run, "sat");
    assert_eq!(there, ["hosting", "satellite", "wifi"]);
    assert_eq!(back, ["wifi-up", "dsl-up", "hosting-up"]);
    assert_eq!(run.groups[0].pairs[0].rtt, Span::from_millis(256 + 16));
    let (there, back) = ways(&run, "mixed");
    assert_eq!(there, ["hosting", "dsl", "wifi"]);
    assert_eq!(back, ["lte-up", "backhaul-up", "hosting-up"]);
}

#[test]
fn nothing_is_forwarded_through_a_host() {
    // Through `h` it would be 2 ms, around it 20.
    let text = "[graph]\nrouters = ['a', 'b', 'c']\nhosts = ['h']\n\
         [graph.links]\nah = { from = 'a', to = 'h', rate = '1 Mbit/s', delay = '1 ms' }\n\
         hb = { from = 'h', to = 'b', rate = '1 Mbit/s', delay = '1 ms' }\n\
         ac = { from = 'a', to = 'c', rate = '1 Mbit/s', delay = '10 ms' }\n\
         cb = { from = 'c', to = 'b', rate = '1 Mbit/s', delay = '10 ms' }\n\
         [traffic.x]\nfrom = 'a'\nto = 'b'\n[traffic.y]\nfrom = 'h'\nto = 'b'\n";
    let run = only(text);
    assert_eq!(ways(&run, "x").0, ["ac", "cb"]);
    assert_eq!(ways(&run, "y").0, ["hb"]);
    assert_eq!(
        ways(&only(&text.replace("hosts = ['h']", "").replace("'c']", "'c', 'h']")), "x").0,
        ["ah", "hb"]
    );
}

#[test]
fn direction_up_reverses_a_group_in_a_graph_too() {
    let run = only(&format!("{PHONE}[traffic.a]\nfrom = 'server'\nto = 'phone'\ndirection = 'up'\n"));
    assert_eq!(ways(&run, "a").0, ["wifi-up", "dsl-up", "hosting-up"]);
}

#[test]
fn many_stops_are_found_as_fast_as_few() {
    let hops: Vec<String> = (1..=40).map(|n| format!("'hop{n}'")).collect();
    let links: String = (0..40)
        .map(|n| {
            format!("hop{0} = {{ from = 'n{n}', to = 'n{0}', rate = '1 Mbit/s', delay = '1 ms' }}\n", n + 1)
        })
        .collect();
    let nodes: Vec<String> = (0..=40).map(|n| format!("'n{n}'")).collect();
    let run = only(&format!(
        "[graph]\nrouters = [{}]\n[graph.links]\n{links}[traffic.a]\nfrom = 'n0'\nto = 'n40'\nvia = [{}]\n",
        nodes.join(", "),
        hops.join(", ")
    ));
    assert_eq!((run.network.routes[0].links.len(), run.groups[0].pairs[0].rtt), (40, Span::from_millis(80)));
}

#[test]
fn a_parking_lot_is_a_chain_of_equal_links_and_groups_pass_all_of_them_or_one() {
    let run = only(
        "[parking_lot]\nbottlenecks = 3\nbase_rtt = '60 ms'\nrate = { down = '10 Mbit/s', up = '20 Mbit/s' }\ndelay = '5 ms'\n\
         queue = { kind = 'tail-drop', limit = '1 bdp' }\nloss = 0.01\n\
         [traffic.long]\n[traffic.first]\nhop = 1\n[traffic.last]\nhop = 3\nrtt = '30 ms'\n[traffic.two]\nfrom = 'n1'\n\
         [traffic.against]\nhop = 2\ndirection = 'up'\n",
    );
    let names: Vec<&str> = run.instrumented_links().map(|(_, link)| link.name.as_str()).collect();
    assert_eq!(names, ["hop1", "hop1-up", "hop2", "hop2-up", "hop3", "hop3-up"]);
    let rtts: Vec<u64> = run.groups.iter().map(|group| group.rtt().as_millis()).collect();
    assert_eq!(rtts, [30, 10, 30, 20, 10]);
    let hop = link(&run, "hop3");
    assert_eq!((node(&run, hop.from), node(&run, hop.to)), ("n2", "n3"));
    assert_eq!((hop.rate, hop.loss.mean()), (Some(Rate::from_mbit_per_sec(10)), 0.01));
    let up = link(&run, "hop3-up");
    assert_eq!((up.rate, up.loss.mean()), (Some(Rate::from_mbit_per_sec(20)), 0.0));
    let at = |name: &str| node(&run, link(&run, name).to);
    assert_eq!((at("first-sender-out"), at("first-receiver-out")), ("n0", "n1"));
    assert_eq!((at("last-sender-out"), at("last-receiver-out")), ("n2", "n3"));
    assert_eq!((at("against-sender-out"), at("against-receiver-out")), ("n2", "n1"));
    // There is only one path between two places, so no route is given.
    assert!(run.network.routes.is_empty());
}

#[test]
fn a_chains_hops_have_numbers_too() {
    let run = only(
        "[chain.links.lan]\nrate = '10 Mbit/s'\ndelay = '1 ms'\n[chain.links.wan]\nrate = '5 Mbit/s'\ndelay = '7 ms'\n\
         [traffic.a]\nhop = 2\n",
    );
    assert_eq!(run.groups[0].pairs[0].rtt, Span::from_millis(14));
}

#[test]
fn a_star_has_a_hub_and_arms() {
    let run = only(
        "[star]\narms = 3\nrate = '10 Mbit/s'\ndelay = '5 ms'\n[traffic.across]\nfrom = 'leaf1'\nto = 'leaf3'\n\
         [traffic.in]\nfrom = 'leaf2'\nto = 'hub'\n",
    );
    let names: Vec<&str> = run.instrumented_links().map(|(_, link)| link.name.as_str()).collect();
    assert_eq!(names, ["arm1", "arm1-up", "arm2", "arm2-up", "arm3", "arm3-up"]);
    let arm = link(&run, "arm2");
    assert_eq!((node(&run, arm.from), node(&run, arm.to)), ("hub", "leaf2"));
    assert_eq!(
        (run.groups[0].pairs[0].rtt, run.groups[1].pairs[0].rtt),
        (Span::from_millis(20), Span::from_millis(10))
    );
}

#[test]
fn hosts_speak_ipv4_unless_the_run_or_their_group_says_otherwise() {
    let net = "[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n";
    let run = only(&format!("{net}[traffic.a]\n[traffic.b]\nip = 6\n"));
    assert_eq!((run.groups[0].ip, run.groups[1].ip), (Ip::V4, Ip::V6));
    let run = only(&format!("{net}[run]\nip = 6\n[traffic.a]\n[traffic.b]\nip = 4\n"));
    assert_eq!((run.groups[0].ip, run.groups[1].ip), (Ip::V6, Ip::V4));
    assert_eq!((Ip::V4.header(), Ip::V6.header()), (20, 40));
    // Defaults are not written down.
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!((text.matches("\"ip\":6").count(), text.matches("\"ip\"").count()), (1, 1));
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    let datagrams = "workload = { kind = 'udp', rate = '1 Mbit/s', packet = '48 B' }\n";
    let run = only(&format!("{net}[traffic.a]\nip = 6\n{datagrams}"));
    assert_eq!(run.network.mtu(), Bytes::new(1500));
}
