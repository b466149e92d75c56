//! `weir sliq keygen`, `serve`, `send` and `perf`, over loopback: files and streams arrive whole and sealed, interrupted transfers go on,
//! and what a stranger or a careless sender asks for is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What a file is cut into, in bytes.
const BLOCK: usize = 4 << 20;

/// A folder to send from, one to receive in, and the keys of both hosts.
struct Place {
    folder: tempfile::TempDir,
    sender: String,
    receiver: String,
}

/// A receiver, which ends with the test.
struct Serving {
    process: Child,
    at: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("sliq").args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes of which no two blocks are alike.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Where a receiver listens, as it says.
fn address(line: &str) -> String {
    line.split(' ').nth(2).unwrap().trim_end_matches(',').to_owned()
}

fn serving(mut command: Command) -> Serving {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Serving { process, at: address(&line) }
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        let key = |name: &str| {
            let made = weir(&["keygen", folder.path().join(name).to_str().unwrap()]).output().unwrap();
            assert!(made.status.success(), "{}", text(&made.stderr));
            text(&made.stdout).trim().to_owned()
        };
        let (sender, receiver) = (key("sender.key"), key("receiver.key"));
        Place { sender, receiver, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }

    fn serve_command(&self, more: &[&str]) -> Command {
        let key = self.path("receiver.key");
        let arguments = ["serve", "--key", key.to_str().unwrap(), "--allow", &self.sender];
        weir(&[&arguments[..], &["--listen", "127.0.0.1:0"], more].concat())
    }

    fn serve(&self, more: &[&str]) -> Serving {
        let into = self.path("in");
        serving(self.serve_command(&[&["--into", into.to_str().unwrap()], more].concat()))
    }

    fn send_command(&self, files: &[&Path], to: &str, more: &[&str]) -> Command {
        let mut command = weir(&["send"]);
        command.args(files).arg(to).arg("--key").arg(self.path("sender.key"));
        command.args(["--peer", &self.receiver, "--timeout", "2s"]).args(more);
        command
    }

    fn send(&self, files: &[&Path], to: &str, more: &[&str]) -> Output {
        self.send_command(files, to, more).output().unwrap()
    }

    /// Sends what must arrive; what is told at the end.
    fn sent(&self, files: &[&Path], to: &str, more: &[&str]) -> Value {
        let output = self.send(files, to, &[more, &["--json"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let all = text(&output.stdout);
        serde_json::from_str(all.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {all}"))
    }

    fn received(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path("in")).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    }
}

#[test]
fn files_go_there_and_back_sealed() {
    let place = Place::new();
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
    let back = Place {
        folder: tempfile::tempdir().unwrap(),
        sender: place.receiver.clone(),
        receiver: place.sender.clone(),
    };
    fs::create_dir(back.path("in")).unwrap();
    fs::copy(place.path("sender.key"), back.path("receiver.key")).unwrap();
    fs::copy(place.path("receiver.key"), back.path("sender.key")).unwrap();
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
fn a_transfer_that_was_killed_goes_on_with_the_blocks_that_are_missing() {
    let place = Place::new();
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
fn a_block_that_is_wrong_on_the_receivers_disk_is_sent_again() {
    let place = Place::new();
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
fn standard_input_comes_out_of_the_others_standard_output() {
    let place = Place::new();
    let mut receiver =
        place.serve_command(&["--stdout"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(receiver.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    let at = address(&line);
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
    let place = Place::new();
    let mut receiver =
        place.serve_command(&["--stdout"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(receiver.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    let mut sender = place.send_command(&[Path::new("-")], &address(&line), &[]);
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
fn only_hosts_that_know_one_another_talk() {
    let (place, stranger) = (Place::new(), Place::new());
    let receiver = place.serve(&[]);
    let file = place.file("data", b"x");
    let no_answer = |key: PathBuf, peer: &str| {
        let mut command =
            weir(&["send", file.to_str().unwrap(), &receiver.at, "--peer", peer, "--timeout", "1s"]);
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
fn what_cannot_be_sent_or_kept_is_refused_in_words() {
    let place = Place::new();
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
    let plain = weir(&["send", small.to_str().unwrap(), "192.0.2.1", "--plain"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
    let plain = weir(&["serve", "--plain", "--perf", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(plain.status.code() == Some(2) && text(&plain.stderr).contains("do not leave this machine"));
    let again = weir(&["keygen", place.path("sender.key").to_str().unwrap()]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "keys are not overwritten");
    fs::set_permissions(place.path("sender.key"), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(refusal(&[&small], &receiver.at, &[]).contains("others can read it"));
}

#[test]
fn what_many_connections_bring_is_counted() {
    let receiver = serving(weir(&["serve", "--plain", "--perf", "--listen", "127.0.0.1:0"]));
    let perf = weir(&["perf", &receiver.at, "--plain", "--bytes", "100 kB", "--connections", "20", "--json"])
        .output();
    let perf = perf.unwrap();
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    let told: Value = serde_json::from_slice(&perf.stdout).unwrap();
    assert_eq!((&told["received_bytes"], &told["connections"]), (&2_000_000.into(), &20.into()));
}

#[test]
fn of_messages_with_a_deadline_all_are_told_of() {
    let place = Place::new();
    let receiver = serving(place.serve_command(&["--perf"]));
    let mut perf = weir(&["perf", &receiver.at, "--peer", &place.receiver, "--json", "--seconds", "500 ms"]);
    perf.args(["--deadline", "200ms", "--rate", "4mbit", "--message", "1000B"]).arg("--key");
    let perf = perf.arg(place.path("sender.key")).output().unwrap();
    assert!(perf.status.success(), "{}", text(&perf.stderr));
    let messages = &serde_json::from_slice::<Value>(&perf.stdout).unwrap()["messages"];
    assert!(messages["sent"].as_u64().unwrap() > 0, "{messages}");
    assert_eq!(messages["received"], messages["sent"]);
}
