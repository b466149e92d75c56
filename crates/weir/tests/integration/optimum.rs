//! `weir optimum`: what it prints, at which time, and what it refuses.

use crate::place::{LAB, Place, status, text};
use serde_json::Value;
use std::fs;

/// Two ways from `a` to `b`, of which one takes 50 ms and loses everything from 10 s on. A packet with 1,024 bytes of payload takes 28 + 11 + 2
/// bytes more between nodes, and 2 more with a deadline.
const TWO_WAYS: &str = "format = 1
[run]
duration = '20 s'
warmup = '2 s'
[graph]
routers = ['a', 'b', 'c']
[graph.links]
fast = { from = 'a', to = 'b', rate = '10 Mbit/s', delay = '50 ms', schedule = { down = [{ at = '10 s', loss = 1.0 }] } }
first = { from = 'a', to = 'c', rate = '10 Mbit/s', delay = '5 ms' }
second = { from = 'c', to = 'b', rate = '10 Mbit/s', delay = '5 ms' }
[overlay]
nodes = ['a', 'b', 'c']
[traffic.bulk]
from = 'a'
to = 'b'
flows = 2
start = '1 s'
workload = { kind = 'udp', rate = '20 Mbit/s', packet = '1052 B' }
overlay = { priority = 1, cap = '50 Mbit/s' }
[traffic.urgent]
from = 'a'
to = 'b'
start = '1 s'
workload = { kind = 'udp', rate = '20 Mbit/s', packet = '1052 B' }
overlay = { priority = 2, cap = '50 Mbit/s', deadline = '20 ms' }
[traffic.small]
from = 'c'
to = 'b'
start = '1 s'
workload = { kind = 'udp', rate = '0.1 Mbit/s', packet = '1052 B' }
overlay = { priority = 1, cap = '50 Mbit/s' }
";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("two.toml"), TWO_WAYS).unwrap();
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.done(&[&["optimum", "--json"], args].concat())).unwrap()
}

/// The rate of a group's flows in Mbit/s.
fn rate(document: &Value, name: &str) -> f64 {
    let flows = document["flows"].as_array().unwrap();
    let own = flows.iter().find(|flow| flow["name"] == name).unwrap();
    own["rate_bit_per_s"].as_f64().unwrap() / 1e6
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-4 * expected
}

#[test]
fn both_ways_are_shared_by_priority_and_deadline() {
    let place = place();
    let document = json(&place, &["two.toml"]);
    // A link carries 99 % of its rate, and both cost the same, since bulk may use either. All flows spend what their priority is worth, so
    // each bulk flow has a fourth of what the small one leaves, and the urgent one half of it.
    let small = 0.1 * 1024.0 / 1052.0;
    assert!(near(rate(&document, "small"), small), "{document}");
    let left = 2.0 * 9.9 - small * 1065.0 / 1024.0;
    assert!(near(rate(&document, "bulk"), left / 4.0 * 1024.0 / 1065.0), "{document}");
    assert!(near(rate(&document, "urgent"), left / 2.0 * 1024.0 / 1067.0), "{document}");
    assert!(document["gap"].as_f64().unwrap() < 1e-7);
    let links = document["full_links"].as_array().unwrap();
    let ends: Vec<_> = links.iter().map(|link| (&link["from"], &link["to"])).collect();
    assert!(
        ends.contains(&(&"a".into(), &"b".into())) && ends.contains(&(&"c".into(), &"b".into())),
        "{ends:?}"
    );
    let why = |name: &str| {
        let flows = document["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["name"] == name).unwrap()["why"].clone()
    };
    assert_eq!([why("small"), why("bulk"), why("urgent")], ["whole", "price", "price"]);
}

#[test]
fn links_and_flows_count_as_they_are_at_the_time() {
    let place = place();
    let document = json(&place, &["two.toml", "--at", "12s"]);
    assert_eq!(document["at_ms"], 12_000.0);
    // One way is left: the urgent flow has twice what each bulk flow has.
    let (urgent, bulk) = (rate(&document, "urgent"), rate(&document, "bulk"));
    assert!((urgent / bulk - 2.0).abs() < 0.01, "{document}");
    let told = place.done(&["optimum", "two.toml", "--at", "12s"]);
    for part in
        ["at 12 s: 4 flows in 3 classes", "2 of 2", "pays the price of", "has all that it may send", "c > b"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    // From then on the way that is left takes 45 ms.
    let late = "graph.links.second.schedule={ down = [{ at = '10 s', delay = '40 ms' }] }";
    let document = json(&place, &["two.toml", "--at", "12s", "--set", late]);
    assert_eq!(rate(&document, "urgent"), 0.0);
    let told = place.done(&["optimum", "two.toml", "--at", "12s", "--set", late]);
    assert!(told.contains("no path reaches its receivers in time"), "{told}");
}

#[test]
fn the_study_s_lab_of_utilities_has_its_ratio() {
    let place = Place::new();
    let lab = format!("{}/../../labs/overlay/utility.toml", env!("CARGO_MANIFEST_DIR"));
    for (run, ratio) in [("1_r1", 2.0), ("3_r1", 1.0)] {
        let document = json(&place, &[&lab, "--run", run]);
        let found = rate(&document, "far") / rate(&document, "near-a");
        assert!((found / ratio - 1.0).abs() < 2e-3, "{run}: {found}");
    }
    let output = place.weir(&["optimum", &lab]);
    assert!(text(&output.stderr).contains("the lab varies"), "{}", text(&output.stderr));
}

#[test]
fn bad_input_is_refused_with_status_2_and_a_suggestion() {
    let place = place();
    fs::write(place.path("plain.toml"), LAB).unwrap();
    for (args, told) in [
        (&["plain.toml"][..], "has no overlay"),
        (&["none.toml"], "none.toml"),
        (&["two.toml", "--at", "20s"], "the run ends at 20 s"),
        (&["two.toml", "--at", "0s"], "no flow of the overlay is there at 0 s"),
        (&["two.toml", "--at", "5"], "has no unit"),
        (&["two.toml", "--run", "x"], "the lab has no run `x`"),
        (&["two.toml", "--set", "traffic.bulk.overlay.priority=0"], "priority"),
    ] {
        let output = place.weir(&[&["optimum"], args].concat());
        let said = text(&output.stderr);
        assert_eq!(status(&output), 2, "{args:?}: {said}");
        assert!(said.contains(told), "{args:?}: {said}");
        assert!(said.contains("help"), "{args:?}: {said}");
    }
}

#[test]
fn a_result_has_the_optimum_beside_the_goodput() {
    let place = place();
    place.done(&["run", "two.toml", "--out", "out"]);
    let summary: Value = serde_json::from_slice(&fs::read(place.path("out/summary.json")).unwrap()).unwrap();
    let metrics = summary["runs"][0]["groups"].as_array().unwrap();
    let metric = |name: &str, metric: &str| {
        let own = metrics.iter().find(|group| group["name"] == name).unwrap();
        own[metric].as_f64().unwrap_or_else(|| panic!("{own}"))
    };
    let expected: Vec<f64> =
        ["5s", "12s"].map(|at| 2.0 * rate(&json(&place, &["two.toml", "--at", at]), "bulk")).into();
    // From 2 s to 10 s one, from 10 s to 20 s the other.
    let mean = (8.0 * expected[0] + 10.0 * expected[1]) / 18.0;
    assert!(near(metric("bulk", "optimum_mbps"), mean), "{} {mean}", metric("bulk", "optimum_mbps"));
    let ratio = metric("bulk", "optimum_ratio");
    assert!((0.8..1.1).contains(&ratio), "{ratio}");
}
