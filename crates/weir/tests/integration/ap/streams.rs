//! `weir cp` through a pair of aggregation points: streams and datagrams arrive as they were, by the headers that the points rewrite.

use super::row::*;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn cp(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("cp").args(arguments.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until a UDP socket of this namespace is bound to the applications' port: datagrams before that would be lost.
pub(crate) fn await_bound() {
    let (bound, began) = (format!(":{PORT:04X} "), Instant::now());
    while !std::fs::read_to_string("/proc/thread-self/net/udp").unwrap().contains(&bound) {
        assert!(began.elapsed() < PATIENCE, "nothing listens at port {PORT}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a receiver, sends when it is ready, and returns how both ended and the received bytes.
fn through(row: &Row, send: &str, recv: &str) -> (Output, Child, Vec<u8>) {
    let (who, folder) = ("--application 1 --flow 3", row.folder.path());
    let mut receiver =
        row.right(|| cp(folder, &format!("recv --at {RIGHT}:{PORT} {who} {recv}")).spawn().unwrap());
    row.right(await_bound);
    let mut output = receiver.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = vec![];
        output.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let sent = row.left(|| {
        cp(folder, &format!("send --at {LEFT}:{PORT} --to {RIGHT}:{PORT} {who} {send}")).output().unwrap()
    });
    let bytes = reading.join().unwrap();
    receiver.wait().unwrap();
    (sent, receiver, bytes)
}

#[test]
fn a_file_arrives_whole_at_the_rate_that_the_points_report() {
    let Some(row) = Row::new(2) else { return };
    let _west = row.start(1, "");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let data = content(3_000_000);
    std::fs::write(row.folder.path().join("film.bin"), &data).unwrap();
    // At most four times the rate before the first report: mostly the points' rate, capped by the flow's own.
    let pace = "--rate 1mbit --max-rate 40mbit --jitter 0.5 --burst 2";
    let (sent, mut receiver, bytes) = through(&row, &format!("{pace} film.bin"), "");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(receiver.wait().unwrap().success());
    assert!(bytes == data, "{} of {} bytes, or others", bytes.len(), data.len());
    let told = text(&sent.stderr);
    assert!(told.starts_with("sent 3000000 bytes in ") && !told.contains("flowshare was 0.00"), "{told}");
    let shown = row.shown(1);
    // 3 MB in packets of 1,427 bytes at most, and the packets that open and end the stream.
    assert!(count(&shown, "outbound") > 2_100, "{shown}");
    assert_eq!(count(&shown, "refused_foreign"), 0);
}

#[test]
fn a_stream_survives_a_restart_of_its_points() {
    let Some(row) = Row::new(2) else { return };
    let mut west = row.start(1, "");
    let mut east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let data = content(1_500_000);
    std::fs::write(row.folder.path().join("film.bin"), &data).unwrap();
    let (sent, _, bytes) = std::thread::scope(|scope| {
        let stream = scope.spawn(|| through(&row, "--rate 6mbit --max-rate 6mbit film.bin", ""));
        // Two seconds of data: both are killed on the way, and started again.
        for _ in 0..500 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if count(&row.shown(1), "outbound") > 200 {
                break;
            }
        }
        west.kill();
        east.kill();
        // The epoch is in seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        west = row.start(1, "");
        east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
        stream.join().unwrap()
    });
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(bytes == data, "{} of {} bytes, or others", bytes.len(), data.len());
    for n in [1, 2] {
        let values = row.shown(n)["applications"][0]["values"].take();
        assert_eq!(value(&values, "packets_lost"), 0.0, "point {n}: what was lost meanwhile passed neither");
    }
}

#[test]
fn datagrams_arrive_in_order_and_are_all_counted() {
    let Some(row) = Row::new(2) else { return };
    let _west = row.start(1, "");
    let _east = row.start_between(2, ["b", "a"], [RIGHT, LEFT], "");
    let data = content(200_050);
    std::fs::write(row.folder.path().join("frames.bin"), &data).unwrap();
    let (sent, _, bytes) = through(&row, "--datagrams 1000B --rate 4mbit frames.bin", "--datagrams");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(bytes == data, "{} of {} bytes, or others", bytes.len(), data.len());
    let told = text(&sent.stderr);
    assert!(told.starts_with("sent 201 datagrams in ") && told.contains("a round trip of"), "{told}");
    // The five packets that mark the end are counted too; the one that comes back is counted by itself.
    let shown = row.shown(1);
    assert_eq!((count(&shown, "outbound"), count(&shown, "returned")), (206, 1), "{shown}");
    assert_eq!(count(&row.shown(2), "inbound"), 206);
}

#[test]
fn a_receiver_leaves_its_file_unchanged_until_data_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let command = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("cp").args(arguments.split_whitespace()).current_dir(folder.path());
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    };
    // Two ports that are free now.
    let free = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (one, two) = (free(), free());
    let [from, to] = [one, two].map(|socket| socket.local_addr().unwrap());
    let (copy, data) = (folder.path().join("copy.bin"), content(20_000));
    std::fs::write(folder.path().join("film.bin"), &data).unwrap();
    std::fs::write(&copy, "older").unwrap();
    let who = "--application 1 --flow 0";
    let mut receiver = command(&format!("recv --at {to} {who} copy.bin")).spawn().unwrap();
    // The sender may begin before the receiver listens: it retransmits what was lost.
    let mut sender =
        command(&format!("send --at {from} --to {to} {who} --rate 4mbit film.bin")).spawn().unwrap();
    assert!(sender.wait().unwrap().success() && receiver.wait().unwrap().success());
    assert!(std::fs::read(&copy).unwrap() == data);

    // The sender sends to a port without a receiver: it says that it waits, and ends when it is interrupted.
    std::fs::write(&copy, "older").unwrap();
    let mut receiver = command(&format!("recv --at {to} {who} copy.bin")).spawn().unwrap();
    let mut sender = command(&format!("send --at {from} --to 127.0.0.1:9 {who} film.bin")).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(sender.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "nothing has come from 127.0.0.1:9 for 3 s; it is given up after 30 s\n");
    for child in [&mut sender, &mut receiver] {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    assert_eq!(std::fs::read(&copy).unwrap(), b"older");
}

#[test]
fn invalid_settings_are_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &str, words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("cp").args(arguments.split_whitespace()).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output.stderr).contains(words), "{arguments}: {}", text(&output.stderr));
    };
    let send = "send --at 127.0.0.1:9000 --application 1 --flow 0";
    refused(&format!("{send} --to [::1]:9000"), "two versions of IP");
    refused(&format!("{send} --to 127.0.0.1:9001 --scheme fair"), "write equal, weighted");
    refused(&format!("{send} --to 127.0.0.1:9001 nothing.bin"), "nothing.bin");
    refused(&format!("{send} --to 127.0.0.1:9001 --datagrams 1500B"), "a datagram cannot carry");
    refused(&format!("{send} --to 127.0.0.1:9001 --mtu 100B"), "cannot be 100 B long");
    refused(&format!("{send} --to 127.0.0.1:9001 --rate 2gbit"), "above --max-rate 1 Gbit/s");
    refused(&format!("{send} --to 127.0.0.1:9001 --jitter 1.5"), "write a number from 0 to 1");
    refused(&format!("{send} --to 127.0.0.1:9001 --burst 65"), "65");
    refused("send --at 127.0.0.1:9000 --to 127.0.0.1:9001 --application 32 --flow 0", "32");
    refused("recv --at 127.0.0.1:9000 --application 1 --flow 128", "128");
    refused("recv --at 127.0.0.1:9000 --application 1 --flow 0 no/such/folder", "no/such/folder");
    refused("recv --at 127.0.0.1:9000 --application 1 --flow 0 .", "cannot be a file");
    std::fs::write(folder.path().join("key"), "00").unwrap();
    refused("recv --at 127.0.0.1:9000 --application 1 --flow 0 --key key", "key");
}
