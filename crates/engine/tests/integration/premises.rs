//! What the plan of a run permits to conclude: only a flow that nothing but its link limits must use it, and only losses on
//! orderly paths bound retransmissions.

use std::path::Path;
use weir_engine::run_info;
use weir_record::Premises;

const ALL: Premises = Premises { orderly: true, spaced: true, counted: true, fills: true };
const NOT_FILLING: Premises = Premises { fills: false, ..ALL };
const ORDERLY: Premises = Premises { counted: false, ..NOT_FILLING };
const NOTHING: Premises = Premises { orderly: false, spaced: false, ..ORDERLY };

/// The premises of the first run of a lab: 20 Mbit/s, 20 ms, one product of buffer and this beside; a group with these settings.
fn premises(link: &str, group: &str) -> Premises {
    let text = format!(
        "format = 1\n[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n{link}\n[traffic.a]\n{group}\n"
    );
    let lab = weir_plan::Lab::from_str(&text, "lab.toml", Path::new("."), &[])
        .unwrap_or_else(|error| panic!("{}", error.render(false, 100)));
    run_info("sim", &lab.runs()[0]).premises
}

const ONE_BDP: &str = "queue = { kind = \"tail-drop\", limit = \"1 bdp\" }";

#[test]
fn one_bulk_flow_behind_a_plain_link_must_use_it() {
    for cc in ["bbr", "cubic", "newreno"] {
        assert_eq!(premises(ONE_BDP, &format!("cc = \"{cc}\"")), ALL, "{cc}");
    }
}

#[test]
fn whatever_else_limits_the_flow_releases_it() {
    for link in [
        "queue = { kind = \"tail-drop\", limit = \"0.25 bdp\" }".into(),
        "queue = \"pie\"".into(),
        "queue = { kind = \"tail-drop\", limit = \"100 bdp\" }".into(),
        format!("{ONE_BDP}\nloss = \"1 %\""),
    ] {
        assert_eq!(premises(&link, "cc = \"cubic\""), NOT_FILLING, "{link}");
    }
    for group in [
        "cc = \"ledbat\"",
        "flows = 2",
        "send_buffer = \"64 KiB\"",
        "receive_buffer = \"64 KiB\"",
        "stop = \"5 s\"",
        "workload = { kind = \"transfer\", size = \"1 MB\" }",
        "[traffic.b]",
    ] {
        assert_eq!(premises(ONE_BDP, group), NOT_FILLING, "{group}");
    }
}

#[test]
fn paths_and_senders_that_retransmit_for_other_reasons_are_not_counted() {
    let halved = format!("{ONE_BDP}\nschedule = [{{ at = \"9 s\", rate = \"10 Mbit/s\" }}]");
    assert_eq!(premises(&halved, ""), ORDERLY);
    assert_eq!(premises(ONE_BDP, "sack = false"), ORDERLY);
    for link in ["jitter = \"5 ms\"", "duplicate = \"1 %\"", "corrupt = \"1 %\""] {
        assert_eq!(premises(&format!("{ONE_BDP}\n{link}"), ""), NOTHING, "{link}");
    }
}

#[test]
fn acknowledgements_behind_data_and_hosts_with_much_jitter_distort_estimates() {
    let unspaced = Premises { spaced: false, ..NOT_FILLING };
    assert_eq!(premises(ONE_BDP, "[traffic.b]\ndirection = \"up\""), unspaced);
    // A packet takes 0.6 ms.
    let jitter = |jitter: &str| {
        let text = format!(
            "format = 1\n[run]\nduration = \"20 s\"\nhost_jitter = \"{jitter}\"\n[dumbbell]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n[traffic.a]\n"
        );
        let lab = weir_plan::Lab::from_str(&text, "lab.toml", Path::new("."), &[]).unwrap();
        run_info("sim", &lab.runs()[0]).premises.spaced
    };
    assert!(jitter("600 us") && !jitter("5 ms"));
}
