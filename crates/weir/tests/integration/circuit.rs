//! `weir circuit` on the command line: plans, reservations, and refusals.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Status, output and errors of `weir circuit`.
fn circuit(arguments: &str) -> (i32, String, String) {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).arg("circuit").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The error of a refused command, with status 2 and nothing on stdout.
fn refusal(arguments: &str) -> String {
    let (status, out, err) = circuit(arguments);
    assert_eq!((status, out.as_str()), (2, ""), "{arguments}: {err}");
    err
}

fn json(arguments: &str) -> Value {
    let (status, out, err) = circuit(arguments);
    assert_eq!(status, 0, "{arguments}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_plan_lists_each_setting_with_its_reason() {
    let (status, out, _) = circuit("plan --rate 4gbit --rtt 26ms");
    assert_eq!(status, 0);
    for told in ["16900000 B", "4000000000bit", "4096 33801564 33801564", "3.826 Gbit/s", "(3.5.1)"] {
        assert!(out.contains(told), "{told} in\n{out}");
    }
    let plan = json("plan --rate 500mbit --rtt 50ms --json");
    assert_eq!(plan["ceiling_bit_per_s"], 478_203_434u64);
    let settings = plan["settings"].as_array().unwrap();
    // The shaper that `up` sets: a class of HTB with a queue.
    let has =
        |name: &str, value: &str| settings.iter().any(|row| row["name"] == name && row["value"] == value);
    assert!(has("htb rate", "500000000bit") && has("htb ceil", "500000000bit"), "{plan}");
    // 2,684 frames of 1,514 bytes are the window, 45 the largest packet.
    assert!(has("bfifo limit", "4131706 B (4131.7 kB)"), "{plan}");
    assert!(settings.iter().all(|row| !row["reason"].as_str().unwrap().is_empty()));
    let gives_way = json("plan --rate 500mbit --rtt 50ms --semi --priority background --json");
    assert_eq!(gives_way["control"], "htcp");
    assert_eq!(json("plan --rate 4gbit --rtt 26ms --mtu 9000 --json")["ceiling_bit_per_s"], 3_970_712_225u64);
}

#[test]
fn impossible_plans_are_refused() {
    for (arguments, why) in [
        ("plan --rate 0gbit --rtt 26ms", "a rate above 0"),
        ("plan --rate 4gbit --rtt 0ms", "a round trip of at least 1 us"),
        ("plan --rate 4gbit --rtt 26ms --card 1gbit", "does not fit a card of 1 Gbit/s"),
        ("plan --rate 4Gbps --rtt 26ms", "did you mean \"4 Gbit/s\"?"),
        ("plan --rate 4gbit --rtt 26", "has no unit"),
        ("plan --rate 4gbit --rtt 26ms --mtu 100", "an MTU of 100 B is out of range"),
        ("plan --rate 4gbit --rtt 26ms --hz 0", "HZ must be at least 1"),
        ("plan --rate 4gbit --rtt 26ms --priority double", "invalid value 'double'"),
    ] {
        let told = refusal(arguments);
        assert!(told.contains(why), "{arguments}: {told}");
    }
}

fn reserve(store: &Path, rest: &str) -> String {
    format!("reserve --store {} --device eth99 --card 10gbit --rtt 26ms {rest}", store.display())
}

#[test]
fn reservations_are_made_listed_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("circuits.sqlite");
    let at = format!("--store {}", store.display());
    assert_eq!(json(&format!("list {at} --json")), serde_json::json!([]));
    assert!(!store.exists(), "to look makes no file");
    let one = "--to 10.1.0.0/16 --rate 4gbit --from 2100-01-01T10:00Z --for 2h --json";
    let made = json(&reserve(&store, one));
    assert_eq!((&made["number"], &made["until"]), (&1.into(), &"2100-01-01T12:00:00Z".into()));
    let other = "--to 10.2.0.0/16 --rate 6gbit --from 2100-01-01T11:00Z --until 2100-01-01T13:00Z --json";
    assert_eq!(json(&reserve(&store, other))["number"], 2);

    let overlap =
        refusal(&reserve(&store, "--to 10.1.0.0/16 --rate 1gbit --from 2100-01-01T10:30Z --for 1h"));
    assert!(overlap.contains("reservation 1 to the same destination overlaps"), "{overlap}");
    assert!(overlap.contains("1: 4 Gbit/s to 10.1.0.0/16 by eth99"), "{overlap}");
    let full = refusal(&reserve(&store, "--to 10.3.0.0/16 --rate 5gbit --from 2100-01-01T10:30Z --for 2h"));
    assert!(
        full.contains("only 0 bit/s are free at 2100-01-01T11:00:00Z, besides reservation 1, 2"),
        "{full}"
    );

    assert!(refusal(&format!("cancel 1 3 {at}")).contains("there is no reservation 3"));
    assert_eq!(json(&format!("list {at} --json")).as_array().unwrap().len(), 2, "all or none");
    let (status, out, _) = circuit(&format!("cancel 1 {at}"));
    assert_eq!((status, out.starts_with("cancelled 1: 4 Gbit/s to 10.1.0.0/16")), (0, true));
    let (_, out, _) = circuit(&format!("list {at}"));
    assert!(out.starts_with("to come  2: 6 Gbit/s") && out.lines().count() == 1, "{out}");
}

#[test]
fn impossible_reservations_are_refused_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("circuits.sqlite");
    for (rest, why) in [
        ("--to 10.1.0.0/16 --rate 0gbit --for 2h", "a rate above 0"),
        ("--to 10.1.0.0/16 --rate 11gbit --for 2h", "does not fit a card of 10 Gbit/s"),
        ("--to 10.1.0.1/16 --rate 1gbit --for 2h", "`10.1.0.0/16` was probably meant"),
        ("--to 10.1.0.0/16 --rate 1gbit --for 2h --from 2100-01-01T10:00", "is not a time in UTC"),
        ("--to 10.1.0.0/16 --rate 1gbit", "--for <TIME>|--until <UTC>"),
    ] {
        let told = refusal(&reserve(&store, rest));
        assert!(told.contains(why), "{rest}: {told}");
    }
    let unknown =
        format!("reserve --store {} --to ::1 --rate 1gbit --rtt 1ms --for 1h --device", store.display());
    assert!(refusal(&format!("{unknown} no-such-dev")).contains("there is no device no-such-dev"));
    assert!(refusal(&format!("{unknown} ../lo")).contains("cannot be the name of a device"));
    assert!(!store.exists());
    let empty = refusal(&reserve(&store, "--to ::1 --rate 1gbit --from 2100-01-01T10:00Z --for 0s"));
    assert!(empty.contains("must end after it begins"), "{empty}");
    let endless = refusal(&reserve(&store, "--to ::1 --rate 1gbit --from 9999-12-31T23:00Z --for 2h"));
    assert!(
        endless.contains("end after the year 9999") && endless.contains("--for 3599 s or less"),
        "{endless}"
    );
    let past = refusal(&reserve(&store, "--to ::1 --rate 1gbit --from 2020-01-01T10:00Z --for 1h"));
    assert!(past.contains("would end at 2020-01-01T11:00:00Z"), "{past}");
}

/// `labs/circuits-weir` says that no number in it is picked by hand.
#[test]
fn the_planned_lab_has_the_planners_numbers() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/circuits-weir/planned.toml");
    let lab = std::fs::read_to_string(lab).unwrap();
    // Linux's own buffers, which count if a plan asks for less.
    let (least_send, least_receive) = (4u64 << 20, 6u64 << 20);
    for rate in ["100 Mbit/s", "200 Mbit/s", "1 Gbit/s", "10 Gbit/s"] {
        for rtt in ["0.3 ms", "10 ms", "50 ms", "350 ms"] {
            let short = |text: &str| text.replace(' ', "").replace("bit/s", "bit").to_lowercase();
            let plan = json(&format!("plan --rate {} --rtt {} --json", short(rate), short(rtt)));
            let row = format!("\"{rate}, {rtt}\" = ");
            let row = lab.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("{row}"));
            let buffer = |name: &str, least: u64| plan[name][2].as_u64().unwrap().max(least);
            for part in [
                format!(
                    "classes = [{{ rate = \"{rate}\", burst = \"{burst} B\", cburst = \"{burst} B\", \
                     queue = {{ kind = \"tail-drop\", limit = \"{limit} B\" }} }}]",
                    burst = plan["burst_bytes"],
                    limit = plan["limit_bytes"],
                ),
                format!("send_buffer\" = \"{} B\"", buffer("tcp_wmem", least_send)),
                format!("receive_buffer\" = \"{} B\"", buffer("tcp_rmem", least_receive)),
            ] {
                assert!(row.contains(&part), "{part}: {row}");
            }
        }
    }
}

#[test]
fn a_probe_measures_the_round_trip_to_a_host_that_answers_or_refuses() {
    // Nothing listens on a port that was just given back: the kernel refuses at once, which is an answer.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let plan = json(&format!("plan --rate 1gbit --probe 127.0.0.1:{port} --json"));
    assert!(
        plan["request"]["rtt"].as_str().unwrap().ends_with("us") || plan["request"]["rtt"] != "0 s",
        "{plan}"
    );
    assert!(plan["bdp_bytes"].as_u64().unwrap() >= 125, "a microsecond at 1 Gbit/s is 125 bytes: {plan}");
    assert!(refusal("plan --rate 1gbit --probe 127.0.0.1:1 --rtt 2ms").contains("cannot be used with"));
}
