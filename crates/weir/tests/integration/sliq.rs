//! `weir sliq` as a person calls it.

use serde_json::Value;
use std::process::Command;

fn sliq(arguments: &str) -> (i32, String, String) {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).arg("sliq").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const LINK: &str = "plan --rtt 20ms --owd 10ms --rate 10mbit --packet 1250B";

#[test]
fn a_plan_shows_its_choice_and_the_alternatives() {
    let (status, out, err) = sliq(&format!("{LINK} --per 20% --deadline 50ms --target 0.995"));
    assert_eq!(status, 0, "{err}");
    for told in ["coded ARQ: groups of 10 source packets, 2 rounds", "The best of each other kind:\n  FEC "] {
        assert!(out.contains(told), "{told} in\n{out}");
    }
}

#[test]
fn a_plan_in_json_has_its_numbers() {
    // Three packets of 1 ms, two round trips and 10 ms of delay; 0.1^3 is lost, 1.11 packets are sent for each.
    let (status, out, _) = sliq(&format!("{LINK} --per 0.1 --deadline 70ms --json"));
    assert_eq!(status, 0);
    let document: Value = serde_json::from_str(&out).unwrap();
    let plan = &document["plan"];
    assert_eq!((&plan["mode"], &plan["rounds"]), (&"pure-arq".into(), &3.into()));
    assert_eq!(plan["latest_ms"], 53.0);
    let near = |key: &str, value: f64| (plan[key].as_f64().unwrap() - value).abs() < 1e-9;
    assert!(near("delivery", 0.999) && near("efficiency", 1.0) && near("packets_per_source_packet", 1.11));
    assert_eq!(document["beaten"].as_array().unwrap().len(), 2);
    assert_eq!(document["reaches_target"], true);
}

#[test]
fn bad_numbers_are_refused_with_status_2() {
    for (arguments, told) in [
        ("--per 20% --deadline 50ms --target 1", "must lie between 0 and 1"),
        ("--per 20% --deadline 50ms --target 0", "must lie between 0 and 1"),
        ("--per 20% --deadline 5ms", "one packet takes 11 ms"),
        ("--per 95% --deadline 50ms", "more than 0.9"),
        ("--per 120% --deadline 50ms", "between 0 and 1"),
        ("--per much --deadline 50ms", "0.2 or 20%"),
        ("--per 20% --deadline 50", "unit"),
    ] {
        let (status, out, err) = sliq(&format!("{LINK} {arguments}"));
        assert_eq!((status, out.as_str()), (2, ""), "{arguments}: {err}");
        assert!(err.contains(told), "{arguments}: {err}");
    }
}
