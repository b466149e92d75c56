//! `weir analyze`: what it says of a capture that weir has taken, and what it refuses.

use crate::place::{Place, status, text};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::Stdio;

/// One flow of 300 segments, of which the link loses the 58th: packet 60, since two packets of the handshake are before it.
const LAB: &str = "format = 1
[run]
duration = '5 s'
warmup = '0 s'
[dumbbell]
rate = '10 Mbit/s'
rtt = '40 ms'
queue = { kind = 'tail-drop', limit = '1000 packets' }
drop = [60]
[traffic.sender]
cc = 'newreno'
workload = { kind = 'transfer', size = '434.4 kB' }
";

fn place() -> (Place, String) {
    let place = Place::new();
    fs::write(place.path("loss.toml"), LAB).unwrap();
    place.done(&["run", "loss.toml", "--out", "loss", "--pcap", "down,up", "--no-report"]);
    let mut runs = fs::read_dir(place.path("loss/runs")).unwrap();
    let run = runs.next().unwrap().unwrap().file_name().into_string().unwrap();
    (place, format!("loss/runs/{run}/down.pcap"))
}

#[test]
fn a_capture_of_weirs_gives_a_table_a_document_and_a_folder() {
    let (place, file) = place();
    let table = place.done(&["analyze", &file]);
    let first = table.lines().next().unwrap();
    assert!(first.ends_with("s; 1 of 300 data segments of TCP were retransmitted"), "{table}");
    let header = table.lines().nth(2).unwrap();
    assert!(header.starts_with("from") && header.contains("retransmitted"), "{table}");
    assert_eq!(table.lines().count(), 4, "one direction has data: {table}");

    let document: Value = serde_json::from_str(&place.done(&["analyze", &file, "--json"])).unwrap();
    let flow = &document["analysis"]["flows"][0];
    assert_eq!(document["ended"], json!("complete"));
    // 299 segments that pass at once, and the one that is retransmitted.
    assert_eq!(document["analysis"]["totals"]["flows"], json!(1));
    let expected =
        [("segments", 300), ("retransmissions", 1), ("retransmissions_seen_once", 1), ("reordered", 0)];
    for (name, count) in expected {
        assert_eq!(flow["there"][name], json!(count), "{name}: {flow}");
    }
    assert_eq!(flow["there"]["payload_bytes"], json!(434_400));
    // 450 kB in half a second: no period of a second is full.
    assert_eq!(flow["there"]["peak_rate_mbps"], Value::Null);
    let series = document["analysis"]["series"]["periods"].as_array().unwrap();
    assert_eq!(series.len(), 1);

    place.done(&["analyze", &file, "--out", "out", "--period", "100 ms"]);
    let written: Value = serde_json::from_slice(&fs::read(place.path("out/analysis.json")).unwrap()).unwrap();
    assert_eq!(written["analysis"]["flows"][0]["there"]["retransmissions"], json!(1));
    let series = fs::read_to_string(place.path("out/series.csv")).unwrap();
    let lines: Vec<&str> = series.lines().collect();
    assert_eq!(lines[0], "start_s,packets,ip_bytes,retransmitted_segments,ce_packets");
    let sum = |column: usize| -> u64 {
        lines[1..].iter().map(|line| line.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(json!(sum(1)), document["analysis"]["totals"]["packets"]);
    assert_eq!(sum(3), 1);
    let page = fs::read_to_string(place.path("out/index.html")).unwrap();
    assert!(page.contains("1 of 300 data segments of TCP were retransmitted") && page.contains("<svg"));
}

#[test]
fn a_capture_may_come_from_standard_input_and_may_be_cut() {
    let (place, file) = place();
    let whole = place.done(&["analyze", &file]);
    let mut command = place.command(&["analyze", "-"]);
    let output = command.stdin(Stdio::from(File::open(place.path(&file)).unwrap())).output().unwrap();
    assert_eq!(text(&output.stdout), whole.replacen(&file, "-", 1));
    let bytes = fs::read(place.path(&file)).unwrap();
    fs::write(place.path("cut.pcap"), &bytes[..bytes.len() - 7]).unwrap();
    let cut = place.done(&["analyze", "cut.pcap"]);
    assert!(cut.contains("the file is cut within what begins at byte"), "{cut}");
    assert!(whole.contains(": 303 packets") && cut.contains(": 302 packets"), "{cut}");
}

#[test]
fn what_is_no_capture_is_refused_with_the_place_and_a_suggestion() {
    let place = Place::new();
    fs::write(place.path("empty.pcap"), "").unwrap();
    let refused = |args: &[&str], words: &str| {
        let output = place.weir(&[&["analyze"], args].concat());
        let told = text(&output.stderr);
        assert_eq!(status(&output), 2, "{told}");
        assert!(told.contains(words) && told.contains("help: "), "{told}");
    };
    refused(&["lab.toml"], "lab.toml: not a capture: it begins with [66, 6f, 72, 6d]");
    refused(&["empty.pcap"], "empty.pcap: not a capture: it is empty");
    refused(&["nowhere.pcap"], "nowhere.pcap: ");
    refused(&["."], ".: ");
    refused(&["lab.toml", "--period", "0 s"], "above 0");
}

/// Two links, the second of which loses two packets and is slow.
const TWO_LINKS: &str = "format = 1
[run]
duration = '5 s'
warmup = '0 s'
[graph]
routers = ['near', 'far']
hosts = ['sender']
[graph.links]
access = { from = 'sender', to = 'near', rate = '1 Gbit/s', delay = '1 ms' }
core = { from = 'near', to = 'far', rate = '10 Mbit/s', delay = '9 ms', drop = [60, 70] }
[traffic.flow]
from = 'sender'
to = 'far'
cc = 'newreno'
workload = { kind = 'transfer', size = '434.4 kB' }
";

#[test]
fn two_captures_give_the_sojourn_and_the_loss_of_each_packet() {
    let place = Place::new();
    fs::write(place.path("two.toml"), TWO_LINKS).unwrap();
    place.done(&["run", "two.toml", "--out", "two", "--pcap", "access,core", "--no-report"]);
    let mut runs = fs::read_dir(place.path("two/runs")).unwrap();
    let run = runs.next().unwrap().unwrap().file_name().into_string().unwrap();
    let [before, after] = ["access", "core"].map(|link| format!("two/runs/{run}/{link}.pcap"));
    let args = ["analyze", &before, &after, "--offset", "0s"];
    let table = place.done(&args);
    assert!(table.lines().next().unwrap().ends_with(", 2 were lost"), "{table}");
    assert!(table.contains("the second clock is 0 ms ahead of the first (as given)"), "{table}");
    let document: Value = serde_json::from_str(&place.done(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!((&document["there"]["lost"], &document["back"]["packets"]), (&json!(2), &json!(0)));
    place.done(&[&args[..], &["--out", "between"]].concat());
    let packets = fs::read_to_string(place.path("between/packets.csv")).unwrap();
    let (lost, arrived): (Vec<&str>, Vec<&str>) =
        packets.lines().skip(1).partition(|line| line.ends_with(','));
    assert_eq!((lost.len(), json!(arrived.len())), (2, document["there"]["packets"].clone()));
    // The SYN: 1 ms, and 480 ns for 60 bytes on the first link.
    assert!(arrived[0].ends_with(",there,60,1.00048"), "{}", arrived[0]);
    assert!(fs::read_to_string(place.path("between/index.html")).unwrap().contains("2 were lost"));
    let estimated = place.done(&["analyze", &before, &after]);
    assert!(estimated.contains("(estimated: the least time is taken as zero"), "{estimated}");
    // The second clock is behind, and a time may be negative.
    let negative = place.done(&["analyze", &before, &after, "--offset", "-3ms"]);
    assert!(negative.contains("the second clock is -3 ms ahead"), "{negative}");
}

#[test]
fn two_captures_that_cannot_be_compared_are_refused() {
    let (place, down) = place();
    let up = down.replace("down.pcap", "up.pcap");
    let refused = |args: &[&str], words: &str| {
        let output = place.weir(&[&["analyze"], args].concat());
        let told = text(&output.stderr);
        assert_eq!(status(&output), 2, "{told}");
        assert!(told.contains(words), "{told}");
    };
    refused(&[&down, &up], "have no packet in common");
    refused(&[&down, "-"], "give the offset");
    refused(&["-", "-"], "both captures are to come from standard input");
    refused(&[&down, "loss.toml"], "loss.toml: not a capture");
    refused(&[&down, &up, "--flows", "3"], "cannot be used with");
    refused(&[&down, "--offset", "0s"], "required");
}

/// A capture of packets that a queue has stamped: ECN bits, units of delay (32.768 us), drops before it.
fn stamped(packets: &[(u8, u16, u16)]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
    for (ecn, units, drops) in packets {
        let [high, low] = (drops << 11 | units).to_be_bytes();
        let packet = [0x45, *ecn, 0, 28, high, low, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        for word in [0u32, 0, 28, 28] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
        file.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    }
    file
}

#[test]
fn stamped_packets_tell_the_delay_and_the_drops_of_their_queue() {
    let place = Place::new();
    fs::write(place.path("stamped.pcap"), stamped(&[(0, 10, 1), (0, 20, 0), (3, 1, 0), (2, 1, 2)])).unwrap();
    let table = place.done(&["analyze", "stamped.pcap", "--stamped"]);
    assert!(
        table.contains("\nwith ECN: 2 packets, 2 dropped (50.0 %), 1 marked (50.0 %); delay in the queue"),
        "{table}"
    );
    assert!(table.contains("\nwithout ECN: 2 packets, 1 dropped (33.3 %), 0 marked"), "{table}");
    let document = place.done(&["analyze", "stamped.pcap", "--stamped", "--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    // 15 units of 32.768 us.
    assert_eq!(document["analysis"]["stamped"]["not_ecn"]["delay_ms"]["mean"], json!(0.49152));
    // Without the option, identifications are what IP makes of them.
    let plain: Value = serde_json::from_str(&place.done(&["analyze", "stamped.pcap", "--json"])).unwrap();
    assert_eq!(plain["analysis"]["stamped"], Value::Null);
}
