//! `weir sliq keygen`, `serve`, `send` and `perf`, over loopback: files and streams arrive whole and sealed, interrupted transfers go on,
//! and what a stranger or a careless sender asks for is refused.

use crate::hosts::{BLOCK, Place, address, bytes, serving, text, weir};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

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
fn files_are_sent_both_ways_sealed() {
    let place = two_hosts();
    let receiver = place.serve(&[]);
    let contents = [("empty", 0), ("one", 1), ("block", BLOCK), ("more", BLOCK + 17)]
        .map(|(name, length)| (name, bytes(length)));
    let files: Vec<PathBuf> = contents.iter().map(|(name, bytes)| place.file(name, bytes)).collect();
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let told = place.sent(&paths, &receiver.at, &["--cc", "copa"]);
    let mut expected: Vec<_> = contents.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    expected.sort();
    assert_eq!(place.received(), expected);
    assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(2 * BLOCK + 18).into(), &0.into()));
    assert_eq!(told["files"].as_array().unwrap().len(), 4);
    // Back: the hosts have changed places.
    let back = place.reversed();
    let receiver = back.serve(&[]);
    back.sent(&[&place.path("in/more")], &receiver.at, &[]);
    assert_eq!(back.received(), [("more".to_owned(), bytes(BLOCK + 17))]);
}

/// Sends a file and kills the sender when two blocks are there; whether the transfer was not complete by then.
fn killed_in_the_middle(place: &Place, file: &Path, to: &str) -> bool {
    let mut sender = place.send_command(&[file], to, &[]).stdout(Stdio::null()).spawn().unwrap();
    let (name, begun) = (file.file_name().unwrap().to_str().unwrap(), Instant::now());
    let part = place.path(&format!("in/{name}.weir-part"));
    let there = || fs::metadata(&part).map_or(0, |about| about.len()) >= 2 * BLOCK as u64;
    while !there() && sender.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing arrives");
        std::thread::sleep(Duration::from_millis(1));
    }
    sender.kill().unwrap();
    !sender.wait().unwrap().success() && part.exists()
}

#[test]
fn a_killed_transfer_resumes_with_the_missing_blocks() {
    let place = two_hosts();
    let receiver = place.serve(&[]);
    let contents = bytes(24 * BLOCK);
    // On a machine that is busy a transfer may end before it is killed.
    let mut names = (0..10).map(|attempt| format!("data-{attempt}"));
    let name =
        names.find(|name| killed_in_the_middle(&place, &place.file(name, &contents), &receiver.at)).unwrap();
    let told = place.sent(&[&place.path(&name)], &receiver.at, &[]);
    let kept = told["kept_bytes"].as_u64().unwrap();
    assert!(kept >= 2 * BLOCK as u64 && kept.is_multiple_of(BLOCK as u64), "{told}");
    assert_eq!(told["sent_bytes"].as_u64().unwrap() + kept, contents.len() as u64);
    assert!(fs::read(place.path("in").join(name)).unwrap() == contents, "the file is another");
}

#[test]
fn a_block_that_is_wrong_on_the_receivers_disk_is_retransmitted() {
    let place = two_hosts();
    let receiver = place.serve(&[]);
    let contents = bytes(2 * BLOCK + 5);
    let file = place.file("data", &contents);
    let mut part = contents[..2 * BLOCK].to_vec();
    part[BLOCK + 77] ^= 1;
    fs::write(place.path("in/data.weir-part"), part).unwrap();
    let told = place.sent(&[&file], &receiver.at, &[]);
    assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(BLOCK + 5).into(), &BLOCK.into()));
    assert!(place.received() == [("data".to_owned(), contents)]);
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
fn impossible_transfers_are_refused_with_an_explanation() {
    let place = two_hosts();
    let receiver = place.serve(&["--quota", "10 kB"]);
    let large = place.file("large", &bytes(10_001));
    let output = place.send(&[&large], &receiver.at, &[]);
    let why = text(&output.stderr);
    assert!(output.status.code() == Some(1) && why.contains("10001 bytes do not fit the quota"), "{why}");
    let small = place.file("small", &bytes(9_000));
    place.sent(&[&small], &receiver.at, &[]);
    let why = text(&place.send(&[&small], &receiver.at, &[]).stderr);
    assert!(why.contains("is there already, and nothing is overwritten"), "{why}");
    // A link in the folder leads nowhere outside.
    std::os::unix::fs::symlink(place.path("outside"), place.path("in/link.weir-part")).unwrap();
    assert_eq!(place.send(&[&place.file("link", b"x")], &receiver.at, &[]).status.code(), Some(1));
    assert!(!place.path("outside").exists());
    fs::write(place.path("kept"), b"kept").unwrap();
    fs::hard_link(place.path("kept"), place.path("in/second.weir-part")).unwrap();
    let output = place.send(&[&place.file("second", b"other")], &receiver.at, &[]);
    assert!(
        output.status.code() == Some(1) && text(&output.stderr).contains("remove the link"),
        "{output:?}"
    );
    assert_eq!(fs::read(place.path("kept")).unwrap(), b"kept");
    fs::remove_file(place.path("in/second.weir-part")).unwrap();

    let refusal = |files: &[&Path], to: &str, more: &[&str]| {
        let output = place.send(files, to, more);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(refusal(&[&place.path("none")], &receiver.at, &[]).contains("No such file"));
    assert!(refusal(&[place.folder.path()], &receiver.at, &[]).contains("it is not a file"));
    assert!(refusal(&[&small, Path::new("-")], &receiver.at, &[]).contains("- is standard input"));
    assert!(refusal(&[&small], "no such host", &[]).contains("write it like"));
    assert!(refusal(&[&small], &receiver.at, &["--mtu", "1000B"]).contains("write 1228 B to 65535 B"));
    assert!(refusal(&[&small], &receiver.at, &["--cc", "none-such"]).contains("none-such"));
    assert!(
        refusal(&[&small], &receiver.at, &["--second", "cubic"]).contains("the first controller already")
    );
    let plain = weir(&["sliq", "send", small.to_str().unwrap(), "192.0.2.1", "--plain"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
    let plain = weir(&["sliq", "serve", "--plain", "--perf", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
    let again = weir(&["sliq", "keygen", place.path("sender.key").to_str().unwrap()]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "keys are not overwritten");
    fs::set_permissions(place.path("sender.key"), PermissionsExt::from_mode(0o644)).unwrap();
    let told = refusal(&[&small], &receiver.at, &[]);
    assert!(told.contains("others can read it") && told.contains("chmod 600"), "{told}");
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
