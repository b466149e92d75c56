//! `weir capacity`: what it prints, what it refuses, and that an interrupt leaves bounds.

use crate::place::{Place, status, text};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_optimum::{Values, grid, write_csv};

const CSV: &str =
    "from,to,rate,delay\na,b,10 Mbit/s,5 ms\nb,d,3 Mbit/s,5 ms\na,c,4 Mbit/s,20 ms\nc,d,9 Mbit/s,20 ms\n";

/// A phone with two accesses, through which nothing is forwarded.
const LAB: &str = "format = 1
[run]
duration = '4 s'
[graph]
routers = ['isp', 'cell', 'core']
hosts = ['phone']
[graph.links]
dsl = { from = 'core', to = 'isp', rate = '40 Mbit/s', delay = '10 ms' }
wifi = { from = 'isp', to = 'phone', rate = '50 Mbit/s', delay = '2 ms' }
net = { from = 'core', to = 'cell', rate = '10 Mbit/s', delay = '5 ms' }
lte = { from = 'cell', to = 'phone', rate = '20 Mbit/s', delay = '25 ms' }
[traffic.video]
from = 'core'
to = 'phone'
[traffic.across]
from = 'isp'
to = 'cell'
[traffic.both]
from = 'core'
to = ['phone', 'isp']
";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("net.csv"), CSV).unwrap();
    fs::write(place.path("graph.toml"), LAB).unwrap();
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.done(&[&["capacity", "--json"], args].concat())).unwrap()
}

fn mbit(value: &Value) -> f64 {
    (value.as_f64().unwrap() / 1e3).round() / 1e3
}

#[test]
fn a_network_as_csv_has_its_rate_paths_cut_and_prices() {
    let place = place();
    let net = ["net.csv", "--from", "a", "--to", "d"];
    let told = place.done(&[&["capacity", "--deadline", "40ms"], &net[..]].concat());
    for part in [
        "4 nodes, 4 directed links, 1 session",
        "7 Mbit/s    0  yes",
        "in 10 ms: a > b > d",
        "tight cut",
        "upper bound",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let document = json(&place, &[&net[..], &["--deadline", "39ms,40ms,9ms"]].concat());
    let of = |index: usize| &document["deadlines"][index];
    let rates: Vec<f64> = (0..3).map(|index| mbit(&of(index)["upper_bit_per_s"])).collect();
    assert_eq!(rates, [0.0, 3.0, 7.0]);
    assert_eq!(of(2)["sessions"][0]["paths"][1]["nodes"], serde_json::json!(["a", "c", "d"]));
    assert_eq!((&of(2)["checked"], &of(2)["exact"]), (&"all".into(), &true.into()));
    assert_eq!(mbit(&of(2)["cut"]["rate_bit_per_s"]), 7.0);
    let price: f64 =
        of(2)["prices"].as_array().unwrap().iter().map(|price| price["price"].as_f64().unwrap()).sum();
    assert!((price - 2.0).abs() < 1e-6, "each link of the cut has the price 1: {price}");
}

#[test]
fn a_range_of_deadlines_is_a_staircase_that_can_be_drawn() {
    let place = place();
    let args = ["net.csv", "--from", "a", "--to", "d", "--deadline", "0ms..60ms", "--plot", "steps.svg"];
    let told = place.done(&[&["capacity"], &args[..]].concat());
    for part in ["from 0 s", "from 10 ms  3 Mbit/s", "from 40 ms  7 Mbit/s"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(fs::read_to_string(place.path("steps.svg")).unwrap().contains("deadline, ms"));
}

#[test]
fn three_packets_and_weights_change_what_they_should() {
    let place = place();
    // Three packets of 1500 bytes need 12 ms at 3 Mbit/s and 3.6 ms at 10 Mbit/s.
    let net = ["net.csv", "--from", "a", "--to", "d", "--packet", "1500B", "--deadline", "0ms..30ms"];
    let document = json(&place, &net);
    assert_eq!(document["deadlines"][1]["deadline_ms"], 25.6);
    let net = ["net.csv", "--from", "a", "--to", "b,d", "--from", "a", "--to", "b", "--deadline", "10ms"];
    let rates = |more: &[&str]| -> Vec<f64> {
        let document = json(&place, &[&net[..], more].concat());
        let sessions = document["deadlines"][0]["sessions"].as_array().unwrap();
        sessions.iter().map(|session| mbit(&session["rate_bit_per_s"])).collect()
    };
    assert_eq!(rates(&["--weight", "1=3"]), [3.0, 7.0]);
    assert_eq!(rates(&["--weight", "2=3"]), [0.0, 10.0]);
}

#[test]
fn the_groups_of_a_lab_are_sessions_and_hosts_forward_nothing() {
    let place = place();
    let rate = |session: &str, deadline: &str| {
        let document = json(&place, &["graph.toml", "--session", session, "--deadline", deadline]);
        mbit(&document["deadlines"][0]["upper_bit_per_s"])
    };
    assert_eq!([rate("video", "12ms"), rate("video", "30ms")], [40.0, 50.0]);
    // The way by the core is the only one: the phone forwards nothing.
    assert_eq!([rate("across", "15ms"), rate("across", "100ms")], [10.0, 10.0]);
    // The phone gets 50, the provider 40.
    assert_eq!(rate("both", "100ms"), 40.0);
    assert_eq!(rate("both", "11ms"), 0.0);
}

#[test]
fn trees_are_exact_or_bounded_as_asked() {
    let place = place();
    let links = ["s,a", "s,b", "a,c", "b,c", "c,d", "a,x", "b,y", "d,x", "d,y"];
    let lines: String = links.iter().map(|link| format!("{link},1 Mbit/s,1 ms\n")).collect();
    fs::write(place.path("butterfly.csv"), format!("from,to,rate,delay\n{lines}")).unwrap();
    let rates = |more: &[&str]| {
        let net = ["butterfly.csv", "--from", "s", "--to", "x,y", "--deadline", "4ms"];
        let document = json(&place, &[&net[..], more].concat());
        let deadline = &document["deadlines"][0];
        [mbit(&deadline["lower_bit_per_s"]), mbit(&deadline["upper_bit_per_s"])]
    };
    assert_eq!(rates(&[]), [2.0, 2.0]);
    assert_eq!(rates(&["--routing", "exact"]), [1.5, 1.5]);
    let [lower, upper] = rates(&["--routing", "bounds"]);
    assert!((1.0..=1.5).contains(&lower) && upper == 2.0, "{lower} to {upper}");
}

#[test]
fn bad_input_is_refused_with_status_2_the_place_and_a_suggestion() {
    let place = place();
    let bad = |name: &str, line: &str| {
        fs::write(place.path(name), format!("from,to,rate,delay\n{line}\n")).unwrap()
    };
    bad("negative.csv", "a,b,-1 Mbit/s,5 ms");
    bad("infinite.csv", "a,b,1 Mbit/s,inf ms");
    bad("twice.csv", "a,b,1 Mbit/s,5 ms\na,b,1 Mbit/s,5 ms");
    let ends = ["--from", "a", "--to", "b"];
    let at = ["--deadline", "40ms"];
    for (args, told) in [
        (
            [&["negative.csv"], &ends[..], &at].concat(),
            "negative.csv: line 2: rate: a rate cannot be negative",
        ),
        ([&["infinite.csv"], &ends[..], &at].concat(), "infinite.csv: line 2: delay:"),
        ([&["twice.csv"], &ends[..], &at].concat(), "line 3: line 2 already has a link from `a` to `b`"),
        ([&["none.csv"], &ends[..], &at].concat(), "none.csv"),
        ([&["net.csv", "--from", "a", "--to", "dd"], &at[..]].concat(), "there is no node `dd`"),
        ([&["net.csv", "--from", "a", "--to", "d,d"], &at[..]].concat(), "named twice"),
        ([&["net.csv", "--from", "a", "--to", "a"], &at[..]].concat(), "its source"),
        ([&["net.csv"], &at[..]].concat(), "0 sources"),
        ([&["net.csv", "--weight", "1=0"], &ends[..], &at].concat(), "--weight 1=0"),
        ([&["net.csv"], &ends[..], &["--deadline", "40"]].concat(), "has no unit"),
        ([&["net.csv"], &ends[..], &["--deadline", "9ms..3ms"]].concat(), "is empty"),
        ([&["net.csv"], &ends[..], &["--deadline", "2000h"]].concat(), "is too long"),
        ([&["net.csv", "--plot", "x.svg"], &ends[..], &at].concat(), "--plot draws"),
        ([&["graph.toml", "--session", "vide"], &at[..]].concat(), "did you mean `video`?"),
        ([&["../labs/none.toml"], &at[..]].concat(), "none.toml"),
    ] {
        let output = place.weir(&[&["capacity"], &args[..]].concat());
        let said = text(&output.stderr);
        assert_eq!(status(&output), 2, "{args:?}: {said}");
        assert!(said.contains(told), "{args:?}: {said}");
        assert!(said.contains("help") || said.contains("--help"), "{args:?}: {said}");
    }
}

#[test]
fn what_cannot_be_reached_in_time_has_the_answer_zero() {
    let place = place();
    for (to, deadline) in [("d", "1ms"), ("a", "1s")] {
        let from = if to == "a" { "d" } else { "a" };
        let told = place.done(&["capacity", "net.csv", "--from", from, "--to", to, "--deadline", deadline]);
        assert!(told.contains("0 bit/s"), "{told}");
    }
}

#[test]
fn an_interrupt_prints_the_bounds_so_far() {
    let place = Place::new();
    fs::write(place.path("grid.csv"), write_csv(&grid(30, Values::default(), 1))).unwrap();
    let mut args: Vec<String> = ["capacity", "grid.csv", "--deadline", "150ms"].map(String::from).into();
    for session in 1..=20 {
        let to: Vec<String> = (1..=4).map(|receiver| (session * 40 + receiver * 23).to_string()).collect();
        args.extend(["--from".into(), session.to_string(), "--to".into(), to.join(",")]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // The rounds become long: at 8 s one takes seconds.
    for after in [300, 2500, 8000] {
        let mut weir = place.command(&args);
        let running = weir.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after));
        let told = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
        assert!(told.success());
        let start = Instant::now();
        let output = running.wait_with_output().unwrap();
        let took = start.elapsed();
        eprintln!("an interrupt after {after} ms: the bounds are there {took:?} later");
        assert_eq!(status(&output), 130, "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("the bounds so far"), "{}", text(&output.stderr));
        let told = text(&output.stdout);
        assert!(told.contains("20 sessions") && told.contains("bit/s to "), "{told}");
        // 0.3 s on an idle machine; tests run beside each other.
        assert!(took < Duration::from_secs(2), "after {after} ms it took {took:?}");
    }
}
