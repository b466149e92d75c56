//! `weir sliq` through a pair of aggregation points: a file arrives whole, sealed behind the headers that the points rewrite. Where the
//! application has a key, only who has it takes part.

use super::row::*;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const OTHER_KEY: &str = "ff0102030405060708090a0b0c0d0e0f";
const WHO: &str = "--application 1 --flow 3";

/// A process that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The hosts of a transfer: their keys, their files and the server.
pub(crate) struct Hosts<'a> {
    folder: &'a Path,
    receiver: String,
    _serving: Serving,
}

impl<'a> Hosts<'a> {
    /// Makes the hosts' keys and starts the server at `RIGHT`, in this row, with more arguments.
    pub(crate) fn new(folder: &'a Path, row: &Row, more: &str) -> Hosts<'a> {
        let keygen = |name: &str| {
            let made = sliq(folder, &format!("keygen {name}")).output().unwrap();
            assert!(made.status.success(), "{}", text(&made.stderr));
            text(&made.stdout).trim().to_owned()
        };
        let (sender, receiver) = (keygen("a.key"), keygen("b.key"));
        std::fs::create_dir(folder.join("in")).unwrap();
        let listen =
            format!("serve --key b.key --allow {sender} --into in --listen {RIGHT}:{PORT} {WHO} {more}");
        let mut serving = Serving(row.right(|| sliq(folder, &listen).spawn().unwrap()));
        let mut line = String::new();
        BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&receiver), "{line}");
        Hosts { folder, receiver, _serving: serving }
    }

    /// The command that sends a file with these bytes from `LEFT`, with more arguments.
    pub(crate) fn send(&self, data: &[u8], more: &str) -> Command {
        std::fs::write(self.folder.join("film.bin"), data).unwrap();
        let receiver = &self.receiver;
        let send = format!(
            "send film.bin {RIGHT}:{PORT} --at {LEFT}:{PORT} --key a.key --peer {receiver} {WHO} {more}"
        );
        sliq(self.folder, &send)
    }

    /// The bytes that have come; `None` if there is no whole file.
    pub(crate) fn received(&self) -> Option<Vec<u8>> {
        std::fs::read(self.folder.join("in/film.bin")).ok()
    }
}

fn sliq(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("sliq").args(arguments.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that all of the flow's packets passed the points as its own: data there, acknowledgements back, nothing refused but `refused`.
fn assert_passed(row: &Row, refused: &[&str]) {
    for shown in [row.shown(1), row.shown(2)] {
        assert!(count(&shown, "outbound") > 100 && count(&shown, "inbound") > 100, "{shown}");
        let counters = shown["packets"].as_array().unwrap();
        let not_taken = counters.iter().filter(|pair| {
            let name = pair[0].as_str().unwrap();
            name.starts_with("refused") && !refused.contains(&name) && pair[1].as_f64() != Some(0.0)
        });
        assert_eq!(not_taken.collect::<Vec<_>>(), Vec::<&serde_json::Value>::new());
    }
}

#[test]
fn a_file_arrives_whole_over_a_sealed_connection_at_the_reported_rate() {
    let Some(row) = Row::new(2) else { return };
    let _west = row.start(1, "");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let hosts = Hosts::new(row.folder.path(), &row, "");
    let data = content(2_000_000);
    let sent = row.left(|| hosts.send(&data, "--first-rate 2mbit --max-rate 40mbit").output().unwrap());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(hosts.received() == Some(data));
    assert_passed(&row, &[]);
}

#[test]
fn only_who_has_the_applications_key_sends_through_points_with_keys() {
    let Some(row) = Row::new(2).map(|row| row.with_key(KEY)) else { return };
    row.key("peer.key", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
    row.key("other.key", OTHER_KEY);
    let _west = row.start(1, "--key peer.key");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "--key peer.key");
    let hosts = Hosts::new(row.folder.path(), &row, "--application-key application.key");
    let data = content(2_000_000);
    let send = |more: &str| -> Output {
        let more = format!("--first-rate 2mbit --max-rate 40mbit {more}");
        row.left(|| hosts.send(&data, &more).output().unwrap())
    };
    // Without the key a header is of version 1, and with another key it has another tag.
    for (key, refusal) in [("", "refused_unsealed"), ("--application-key other.key", "refused_tag")] {
        let refused = send(&format!("--timeout 1s {key}"));
        assert_eq!(refused.status.code(), Some(1), "{key}");
        assert!(text(&refused.stderr).contains("no answer from 10.1.0.2:9000"), "{}", text(&refused.stderr));
        assert!(count(&row.shown(1), refusal) > 0, "{refusal}: {}", row.shown(1));
        assert_eq!((count(&row.shown(1), "outbound"), hosts.received()), (0, None), "{key}");
    }
    // Nobody of them owns the flow now.
    let sent = send("--application-key application.key");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(hosts.received() == Some(data));
    assert_passed(&row, &["refused_unsealed", "refused_tag"]);
}

#[test]
fn without_points_a_small_file_arrives_and_a_sealed_header_is_answered_by_nobody() {
    for (key, arrives) in [("", true), ("--application-key application.key", false)] {
        let Some(row) = Row::new(0) else { return };
        row.key("application.key", KEY);
        let hosts = Hosts::new(row.folder.path(), &row, key);
        let data = content(10_000);
        let sent = row.left(|| hosts.send(&data, &format!("--timeout 2s {key}")).output().unwrap());
        assert_eq!(sent.status.success(), arrives, "{key}: {}", text(&sent.stderr));
        assert_eq!(hosts.received(), arrives.then_some(data), "{key}");
    }
}
