//! `weir sliq send`, `serve` and `perf`, over loopback, as far as SLIQ carries them: streams arrive whole and sealed, measurements count
//! what comes, and strangers are refused. `transfers.rs` has what holds whatever carries a transfer.

use crate::hosts::{Place, address, bytes, serving, text, weir};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

fn two_hosts() -> Place {
    Place::of("sliq", &["--timeout", "2s"])
}

/// A receiver whose standard output is the stream; its standard error, and where it listens.
fn receiving_a_stream(place: &Place) -> (Child, BufReader<ChildStderr>, String) {
    let mut receiver =
        place.serve_command(&["--stdout"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(receiver.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    (receiver, errors, address(&line))
}

#[test]
fn standard_input_arrives_at_the_peers_standard_output() {
    let place = two_hosts();
    let (mut receiver, _errors, at) = receiving_a_stream(&place);
    // A file is no stream, and is refused without harm.
    let refused = place.send(&[&place.file("x", b"x")], &at, &[]);
    assert!(refused.status.code() == Some(1) && text(&refused.stderr).contains("a stream is received here"));
    let contents = bytes(3_000_000);
    let mut sender = place.send_command(&[Path::new("-")], &at, &[]);
    let mut sender = sender.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut out) = (sender.stdin.take().unwrap(), receiver.stdout.take().unwrap());
    let mut came = vec![];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            input.write_all(&contents).unwrap();
            drop(input);
        });
        out.read_to_end(&mut came).unwrap();
    });
    assert!(came == contents, "{} bytes came out", came.len());
    assert!(sender.wait().unwrap().success() && receiver.wait().unwrap().success());
}

#[test]
fn a_stream_whose_reader_goes_away_fails_at_both_ends() {
    let place = two_hosts();
    let (mut receiver, _errors, at) = receiving_a_stream(&place);
    let mut sender = place.send_command(&[Path::new("-")], &at, &[]);
    let mut sender =
        sender.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = sender.stdin.take().unwrap();
    input.write_all(b"beginning").unwrap();
    let mut came = [0; 9];
    let mut out = receiver.stdout.take().unwrap();
    out.read_exact(&mut came).unwrap();
    assert_eq!(&came, b"beginning");
    drop(out);
    // More than a pipe holds: a process that another test starts may have the pipe's other end until it executes. The sender may end
    // before it has read all.
    let _ = input.write_all(&bytes(300_000));
    drop(input);
    assert_eq!(sender.wait().unwrap().code(), Some(1));
    assert_eq!(receiver.wait().unwrap().code(), Some(1));
}

#[test]
fn only_hosts_that_know_each_others_keys_communicate() {
    let (place, stranger) = (two_hosts(), two_hosts());
    let receiver = place.serve(&[]);
    let file = place.file("data", b"x");
    let no_answer = |key: PathBuf, peer: &str| {
        let mut command =
            weir(&["sliq", "send", file.to_str().unwrap(), &receiver.at, "--peer", peer, "--timeout", "1s"]);
        let output = command.arg("--key").arg(key).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert!(no_answer(stranger.path("sender.key"), &place.receiver).contains("no answer from 127.0.0.1"));
    assert!(
        no_answer(place.path("sender.key"), &stranger.receiver).contains("have the key that --peer names")
    );
    assert_eq!(place.received(), []);
    place.sent(&[&file], &receiver.at, &[]);
}

#[test]
fn impossible_connections_are_refused_with_an_explanation() {
    let place = two_hosts();
    let receiver = place.serve(&[]);
    let small = place.file("small", b"x");
    let refusal = |files: &[&Path], more: &[&str]| place.refusal(files, &receiver.at, more);
    assert!(refusal(&[&small, Path::new("-")], &[]).contains("- is standard input"));
    assert!(refusal(&[&small], &["--mtu", "1000B"]).contains("write 1228 B to 65535 B"));
    assert!(refusal(&[&small], &["--cc", "none-such"]).contains("none-such"));
    assert!(refusal(&[&small], &["--second", "copa"]).contains("the first controller already"));
    let plain = weir(&["sliq", "send", small.to_str().unwrap(), "192.0.2.1", "--plain"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
    let plain = weir(&["sliq", "serve", "--plain", "--perf", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
}

#[test]
fn bytes_of_many_connections_are_counted() {
    let receiver = serving(weir(&["sliq", "serve", "--plain", "--perf", "--listen", "127.0.0.1:0"])).0;
    let perf = weir(&[
        "sliq",
        "perf",
        &receiver.at,
        "--plain",
        "--bytes",
        "100 kB",
        "--connections",
        "20",
        "--json",
    ])
    .output();
    let perf = perf.unwrap();
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    let told: Value = serde_json::from_slice(&perf.stdout).unwrap();
    assert_eq!((&told["received_bytes"], &told["connections"]), (&2_000_000.into(), &20.into()));
}

#[test]
fn data_that_comes_all_at_once_has_no_goodput_beyond_its_time() {
    let receiver = serving(weir(&["sliq", "serve", "--plain", "--perf", "--listen", "127.0.0.1:0"])).0;
    let perf = |connections: &str| -> Value {
        let perf = ["sliq", "perf", &receiver.at, "--plain", "--bytes", "1 kB", "--json", "--connections"];
        let perf = weir(&perf).arg(connections).output().unwrap();
        assert!(perf.status.success(), "{}", text(&perf.stderr));
        serde_json::from_slice(&perf.stdout).unwrap()
    };
    // A packet has no rate; 300 packets have that at which they come.
    assert_eq!(perf("1")["goodput_bit_per_s"], Value::Null);
    let many = perf("300");
    let (goodput, seconds) = (many["goodput_bit_per_s"].as_f64().unwrap(), many["seconds"].as_f64().unwrap());
    assert!(goodput < 10e9 && (goodput * seconds / 2_400_000.0 - 1.0).abs() < 1e-6, "{many}");
}

#[test]
fn a_deadline_that_no_message_can_have_is_refused() {
    for deadline in ["0s", "61s"] {
        let perf =
            weir(&["sliq", "perf", "127.0.0.1:1", "--plain", "--deadline", deadline]).output().unwrap();
        let told = text(&perf.stderr);
        assert!(
            perf.status.code() == Some(2) && told.contains("write more than 0 s, and 60 s or less"),
            "{told}"
        );
    }
}

#[test]
fn every_message_with_a_deadline_is_reported() {
    let place = two_hosts();
    let receiver = serving(place.serve_command(&["--perf"])).0;
    let mut perf =
        weir(&["sliq", "perf", &receiver.at, "--peer", &place.receiver, "--json", "--duration", "500 ms"]);
    perf.args(["--deadline", "200ms", "--rate", "4mbit", "--message", "1000B"]).arg("--key");
    let perf = perf.arg(place.path("sender.key")).output().unwrap();
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    let messages = &serde_json::from_slice::<Value>(&perf.stdout).unwrap()["messages"];
    assert!(messages["sent"].as_u64().unwrap() > 0, "{messages}");
    assert_eq!(messages["received"], messages["sent"]);
}

#[test]
fn a_flow_of_an_application_reaches_only_a_peer_of_the_same_flow() {
    let place = two_hosts();
    let file = place.file("small", &bytes(50_000));
    let own = ["--application", "1", "--flow", "3", "--first-rate", "20mbit"];
    let receiver = place.serve(&own[..4]);
    place.sent(&[&file], &receiver.at, &own);
    assert_eq!(place.received(), [("small".to_owned(), bytes(50_000))]);
    // Nobody reports a rate, and the sender says so.
    let large = place.file("large", &bytes(1_000_000));
    let mut sender = place.send_command(&[&large], &receiver.at, &own[..4]);
    let mut sender = sender.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut note = String::new();
    BufReader::new(sender.stderr.take().unwrap()).read_line(&mut note).unwrap();
    assert!(note.contains("no aggregation point has reported a rate for 3 s"), "{note}");
    sender.kill().unwrap();
    sender.wait().unwrap();
    // Another flow, and who takes part in no application: there is no answer, and no end of patience either.
    let plain = place.serve(&[]);
    let other = ["--application", "1", "--flow", "4"];
    for (at, words, told) in [
        (&receiver.at, &other[..], "be of --application 1 --flow 4 too"),
        (&plain.at, &own[..], "be of --application 1 --flow 3 too"),
        (&receiver.at, &[][..], "be of no --application"),
    ] {
        let output = place.send(&[&file], at, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let error = text(&output.stderr);
        assert!(error.contains("no answer") && error.contains(told), "{error}");
    }
    for words in [
        &["--application", "1"][..],
        &["--application", "32", "--flow", "0"],
        &["--application", "1", "--flow", "0", "--cc", "copa"],
        &["--application", "1", "--flow", "0", "--scheme", "fair"],
        &["--application", "1", "--flow", "0", "--first-rate", "2gbit"],
    ] {
        let output = place.send(&[&file], &receiver.at, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
    }
}
