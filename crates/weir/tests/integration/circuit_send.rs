//! `weir circuit send` and `serve`, over loopback, as far as TCP carries them: blocks that are damaged on the way are retransmitted, and
//! strangers are refused. `transfers.rs` has what holds whatever carries a transfer.

use crate::hosts::{BLOCK, Place, bytes, text, weir};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

fn two_hosts() -> Place {
    Place::of("circuit", &[])
}

/// Passes connections on to a receiver, and flips a bit of one byte in those that carry blocks.
fn meddler(to: String, which: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            let (back_from, back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
            let mut carries_blocks = false;
            std::thread::spawn(move || {
                pass(near, far, |at, bytes| {
                    carries_blocks |= at == 0 && bytes.starts_with(b"weir-b");
                    let place = which.checked_sub(at).and_then(|place| bytes.get_mut(place as usize));
                    if let (true, Some(byte)) = (carries_blocks, place) {
                        *byte ^= 4;
                    }
                })
            });
            std::thread::spawn(move || pass(back_from, back_to, |_, _| {}));
        }
    });
    address
}

/// Passes bytes on from one connection to another; `change` sees where in the connection they are.
fn pass(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(u64, &mut [u8])) {
    let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        change(at, &mut buffer[..read]);
        at += read as u64;
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

#[test]
fn damaged_blocks_are_retransmitted_and_never_written() {
    let place = two_hosts();
    let serving = place.serve(&[]);
    let contents = bytes(2 * BLOCK);
    let file = place.file("data", &contents);
    let meddler = meddler(serving.at.clone(), 1_000_000);
    let told = place.sent(&[&file], &meddler.to_string(), &[]);
    assert_eq!(told["blocks_sent_again"], 1);
    assert_eq!(place.received(), [("data".to_owned(), contents)]);
}

#[test]
fn data_from_memory_are_verified_and_discarded_by_a_receiver_with_memory() {
    let place = two_hosts();
    let send = |at: &str| {
        let mut command =
            weir(&["circuit", "send", "--memory", "9MB", at, "--peer", &place.receiver, "--json", "--key"]);
        command.arg(place.path("sender.key")).output().unwrap()
    };
    let refused = send(&place.serve(&[]).at);
    let why = text(&refused.stderr);
    assert!(refused.status.code() == Some(1) && why.contains("is received with `serve --memory`"), "{why}");
    let serving = place.serve(&["--memory"]);
    let output = send(&serving.at);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!((&told["sent_bytes"], &told["files"][0]["bytes"]), (&9_000_000.into(), &9_000_000.into()));
    assert_eq!(place.received(), []);
    // Files go to its folder as ever.
    let file = place.file("data", &bytes(2 * BLOCK + 4096));
    place.sent(&[&file], &serving.at, &[]);
    assert_eq!(place.received(), [("data".to_owned(), bytes(2 * BLOCK + 4096))]);
}

#[test]
fn only_hosts_that_know_each_others_keys_communicate() {
    let place = two_hosts();
    let serving = place.serve(&[]);
    let file = place.file("data", b"x");
    let stranger = two_hosts();
    let mut command =
        weir(&["circuit", "send", file.to_str().unwrap(), &serving.at, "--peer", &place.receiver, "--key"]);
    let unknown = command.arg(stranger.path("sender.key")).output().unwrap();
    let why = text(&unknown.stderr);
    assert!(unknown.status.code() == Some(2) && why.contains("does not know our key"), "{why}");
    let mut command = weir(&[
        "circuit",
        "send",
        file.to_str().unwrap(),
        &serving.at,
        "--peer",
        &stranger.receiver,
        "--key",
    ]);
    let impostor = command.arg(place.path("sender.key")).output().unwrap();
    let why = text(&impostor.stderr);
    assert!(
        impostor.status.code() == Some(2) && why.contains("does not know our key, or has another one"),
        "{why}"
    );
    // Noise of all kinds ends the connection, and nothing else.
    for noise in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"weir-s 1\xff\xffxxxx", b"weir-s 1\x00\x00", b"weir-b 1", &[0; 100]]
    {
        let mut stream = TcpStream::connect(&serving.at).unwrap();
        stream.write_all(noise).unwrap();
        // The receiver may have hung up already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert_eq!(stream.read_to_end(&mut vec![]).unwrap_or(0), 0);
    }
    assert_eq!(place.received(), []);
    place.sent(&[&file], &serving.at, &[]);
}

#[test]
fn streams_and_congestion_controls_that_do_not_exist_are_refused() {
    let place = two_hosts();
    let serving = place.serve(&[]);
    let small = place.file("small", b"x");
    let refusal = |more: &[&str]| place.refusal(&[&small], &serving.at, more);
    assert!(place.refusal(&[&small], "127.0.0.1:1", &[]).contains("cannot reach 127.0.0.1:1"));
    assert!(refusal(&["--streams", "65"]).contains("write 1 to 64"));
    assert!(refusal(&["--cc", "none-such"]).contains("cannot use the congestion control none-such"));
}
