//! What all that runs for long has in common, over loopback: flags from a file, signals, another user, status and metrics.

use crate::browser;
use crate::hosts::{BLOCK, Place, bytes, send_signal, serving, text, weir};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Commands whose `serve` receives files.
const RECEIVERS: [&str; 2] = ["circuit", "sliq"];
/// Longest wait for something that takes about a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(10);

fn two_hosts(command: &'static str) -> Place {
    Place::of(command, if command == "sliq" { &["--timeout", "2s"] } else { &[] })
}

#[test]
fn a_receiver_that_is_stopped_tells_its_senders_and_exits_with_success() {
    for command in RECEIVERS {
        let place = two_hosts(command);
        let mut receiver = place.serve(&[]);
        let file = place.file("data", &bytes(64 * BLOCK));
        let mut sender = place.send_command(&[&file], &receiver.at, &[]);
        let mut sender = sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !place.path("in/data.weir-part").exists() {
            assert!(begun.elapsed() < PATIENCE, "nothing arrives");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(receiver.stopped(), Some(0), "{command}");
        let mut told = String::new();
        sender.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(sender.wait().unwrap().code(), Some(1), "{command}: {told}");
        assert!(
            told.contains("the receiver was stopped") || command == "circuit" && told.contains("resumes"),
            "{told}"
        );
        // The part stays, and the same command goes on with it.
        let told = place.sent(&[&file], &place.serve(&[]).at, &[]);
        assert_eq!(told["files"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_sender_that_is_interrupted_says_how_to_go_on_and_exits_with_130() {
    for (command, serve, send) in [
        ("circuit", &["--memory"][..], &["send", "--memory", "900GB"][..]),
        ("sliq", &["--perf"], &["perf", "--duration", "1h"]),
    ] {
        let place = two_hosts(command);
        let receiver = match command {
            "circuit" => place.serve(serve),
            _ => serving(place.serve_command(serve)).0,
        };
        let mut sender =
            weir(&[&[command], send, &[&receiver.at, "--peer", &place.receiver, "--key"]].concat());
        let sender = sender.arg(place.path("sender.key")).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut sender = sender.spawn().unwrap();
        let name = format!("{}-{}", receiver.at, sender.id());
        let begun = Instant::now();
        while !fs::read_to_string("/proc/net/unix").unwrap().contains(&name) {
            assert!(begun.elapsed() < PATIENCE, "it does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        send_signal(&sender, Signal::INT);
        let mut told = String::new();
        sender.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(sender.wait().unwrap().code(), Some(130), "{command}: {told}");
        assert!(told.contains("interrupted"), "{told}");
    }
}

/// Writes a receiver's configuration, in which these keys are allowed.
fn configure(place: &Place, allowed: &[&str]) {
    let text = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let file = format!(
        "key = {:?}\ninto = {:?}\nlisten = \"127.0.0.1:0\"\nallow = {allowed:?}\n",
        text("receiver.key"),
        text("in")
    );
    fs::write(place.path("serve.toml"), file).unwrap();
}

#[test]
fn flags_come_from_a_file_whose_keys_are_read_again_on_a_hang_up() {
    for command in RECEIVERS {
        let (place, stranger) = (two_hosts(command), two_hosts(command));
        configure(&place, &[&stranger.sender]);
        let config = place.path("serve.toml");
        let (receiver, _) = serving(weir(&[command, "serve", "--config", config.to_str().unwrap()]));
        let file = place.file("data", b"data");
        assert!(!place.send(&[&file], &receiver.at, &[]).status.success(), "its key is not allowed yet");
        configure(&place, &[&place.sender]);
        receiver.signal(Signal::HUP);
        let begun = Instant::now();
        while !place.send(&[&file], &receiver.at, &[]).status.success() {
            assert!(begun.elapsed() < PATIENCE, "{command}: its key is allowed now");
        }
        assert_eq!(place.received(), [("data".to_owned(), b"data".to_vec())]);
        // What makes no sense changes nothing.
        fs::write(&config, "allow = 7\n").unwrap();
        receiver.signal(Signal::HUP);
        place.sent(&[&place.file("more", b"more")], &receiver.at, &[]);
    }
}

#[test]
fn a_configuration_with_an_unknown_key_is_refused() {
    let place = two_hosts("sliq");
    fs::write(place.path("serve.toml"), "plain = true\nperf = true\nlisten-at = '127.0.0.1:0'\n").unwrap();
    let config = place.path("serve.toml");
    let refused = weir(&["sliq", "serve", "--config", config.to_str().unwrap()]).output().unwrap();
    let told = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && told.contains("'--listen-at'"), "{told}");
}

#[test]
fn receivers_show_what_they_have_received_as_status_and_metrics() {
    for command in RECEIVERS {
        let place = two_hosts(command);
        let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let receiver = place.serve(&["--metrics", &metrics]);
        place.sent(&[&place.file("data", &bytes(1000))], &receiver.at, &[]);
        let own = || {
            let shown = weir(&["status", "--json"]).output().unwrap();
            let all: Value = serde_json::from_slice(&shown.stdout).unwrap();
            all.as_array().unwrap().iter().find(|one| one["at"] == receiver.at.as_str()).unwrap().clone()
        };
        let begun = Instant::now();
        let counted = serde_json::json!([["whole_files", 1], ["received_bytes", 1000]]);
        while own()["transferred"] != counted {
            assert!(begun.elapsed() < PATIENCE, "{}", own());
        }
        let mut stream = TcpStream::connect(&metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let sample = format!(
            "weir_{command}_serve_transferred_total{{at=\"{}\",what=\"received_bytes\"}} 1000\n",
            receiver.at
        );
        assert!(told.contains(&sample), "{told}");
    }
}

#[test]
fn a_browser_shows_the_status_of_a_receiver() {
    let Some(browser) = browser::browser() else { return };
    let place = two_hosts("sliq");
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let receiver = place.serve(&["--metrics", &metrics]);
    place.sent(&[&place.file("data", &bytes(120_000))], &receiver.at, &[]);
    let begun = Instant::now();
    let shown = || browser::at_rest(&browser, &format!("http://{metrics}/"), "800,600", 3000);
    let mut page = shown();
    // The receiver counts the file shortly after its sender has ended.
    while !page.contains("<td class=\"number\">120,000</td>") {
        assert!(begun.elapsed() < PATIENCE, "{page}");
        page = shown();
    }
    assert!(page.contains(&format!("at {}</h1>", receiver.at)), "{page}");
    assert!(page.contains("<td>received bytes</td>"), "{page}");
    assert!(page.contains("<td>whole files</td><td class=\"number\">1</td>"), "{page}");
    assert!(page.contains("For "), "{page}");
}

#[test]
fn a_receiver_becomes_another_user_once_it_listens() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: root alone becomes another user");
        return;
    }
    for command in RECEIVERS {
        let place = two_hosts(command);
        for open in [place.folder.path(), &place.path("in")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let receiver = place.serve(&["--user", "nobody"]);
        place.sent(&[&place.file("data", b"data")], &receiver.at, &[]);
        let status = fs::read_to_string(format!("/proc/{}/status", receiver.id())).unwrap();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let uid = field("Uid:");
        assert!(!uid.split_whitespace().any(|uid| uid == "0"), "{uid}");
        // CAP_SYS_NICE is number 23 (linux/capability.h).
        assert_eq!(u64::from_str_radix(&field("CapEff:"), 16).unwrap() & !(1 << 23), 0, "{command}");
        let refused = weir(&[command, "serve", "--user", "no such user"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
    }
}

#[test]
fn messages_below_the_asked_weight_are_not_shown() {
    let place = two_hosts("circuit");
    let into = place.path("in");
    let told = |level: &str, name: &str| {
        let mut command = place.serve_command(&["--into", into.to_str().unwrap(), "--log", level]);
        let mut receiver = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(receiver.stdout.take().unwrap()).read_line(&mut line).unwrap();
        place.sent(&[&place.file(name, b"data")], &crate::hosts::address(&line), &[]);
        send_signal(&receiver, Signal::TERM);
        text(&receiver.wait_with_output().unwrap().stderr)
    };
    let files = "1 of 1 files are complete";
    assert!(!told("error", "one").contains(files));
    assert!(told("info", "two").contains(files));
    assert!(told("debug", "three").contains("has connected"));
}
