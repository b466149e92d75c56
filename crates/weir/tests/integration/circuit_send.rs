//! `weir circuit send` and `serve`, over loopback: files arrive whole, interrupted transfers go on, blocks that are damaged on
//! the way are retransmitted, and what strangers or careless senders ask for is refused.

use crate::hosts::{BLOCK, Place, bytes, text, weir};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

fn two_hosts() -> Place {
    Place::of("circuit", &[])
}

#[test]
fn files_of_all_lengths_arrive_whole_over_several_streams() {
    let place = two_hosts();
    let serving = place.serve(&[]);
    let contents = [("empty", 0), ("one", 1), ("block", BLOCK), ("more", 3 * BLOCK + 17)]
        .map(|(name, length)| (name, bytes(length)));
    let files: Vec<PathBuf> = contents.iter().map(|(name, bytes)| place.file(name, bytes)).collect();
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let told = place.sent(&paths, &serving.at, &["--streams", "3"]);
    let mut expected: Vec<_> = contents.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    expected.sort();
    assert_eq!(place.received(), expected);
    assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(4 * BLOCK + 18).into(), &0.into()));
    assert_eq!(told["files"].as_array().unwrap().len(), 4);
    // What is there is not overwritten, and nothing of the second attempt remains.
    fs::write(place.path("in/one"), "mine").unwrap();
    let again = place.send(&[&place.path("one")], &serving.at, &[]);
    let why = text(&again.stderr);
    assert!(
        again.status.code() == Some(1) && why.contains("is there already, and nothing is overwritten"),
        "{why}"
    );
    assert_eq!(fs::read(place.path("in/one")).unwrap(), b"mine");
    assert_eq!(place.received().len(), 4);
}

#[test]
fn an_interrupted_transfer_resumes_with_the_missing_and_the_wrong_blocks() {
    let place = two_hosts();
    let serving = place.serve(&[]);
    let contents = bytes(3 * BLOCK + 5);
    let file = place.file("data", &contents);
    // The first and the third block are there; the second has a wrong byte; the last is missing.
    let mut part = contents[..3 * BLOCK].to_vec();
    part[BLOCK + 77] ^= 1;
    fs::write(place.path("in/data.weir-part"), part).unwrap();
    let told = place.sent(&[&file], &serving.at, &[]);
    assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(BLOCK + 5).into(), &(2 * BLOCK).into()));
    assert_eq!(place.received(), [("data".to_owned(), contents)]);
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
fn impossible_transfers_are_refused_with_an_explanation() {
    let place = two_hosts();
    let serving = place.serve(&["--quota", "10 kB"]);
    let large = place.file("large", &bytes(10_001));
    let output = place.send(&[&large], &serving.at, &[]);
    let why = text(&output.stderr);
    assert!(output.status.code() == Some(1) && why.contains("10001 bytes do not fit the quota"), "{why}");
    place.sent(&[&place.file("small", &bytes(9_000))], &serving.at, &[]);
    let output = place.send(&[&place.file("second", &bytes(2_000))], &serving.at, &[]);
    assert!(text(&output.stderr).contains("of which 1000 are free"), "{}", text(&output.stderr));
    assert_eq!(place.received().len(), 1, "of what is refused nothing remains");
    // A link in the folder leads nowhere.
    std::os::unix::fs::symlink(place.path("outside"), place.path("in/link.weir-part")).unwrap();
    assert_eq!(place.send(&[&place.file("link", b"x")], &serving.at, &[]).status.code(), Some(1));
    assert!(!place.path("outside").exists());
    fs::write(place.path("kept"), b"kept").unwrap();
    fs::hard_link(place.path("kept"), place.path("in/second.weir-part")).unwrap();
    let output = place.send(&[&place.file("second", b"other")], &serving.at, &[]);
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
    let small = place.path("small");
    assert!(refusal(&[&place.path("none")], &serving.at, &[]).contains("No such file"));
    assert!(refusal(&[place.folder.path()], &serving.at, &[]).contains("it is not a file"));
    assert!(refusal(&[&small, &small], &serving.at, &[]).contains("another file has the same name"));
    assert!(refusal(&[&small], "127.0.0.1:1", &[]).contains("cannot reach 127.0.0.1:1"));
    assert!(refusal(&[&small], "no such host", &[]).contains("write it like"));
    assert!(refusal(&[&small], &serving.at, &["--streams", "65"]).contains("write 1 to 64"));
    assert!(
        refusal(&[&small], &serving.at, &["--cc", "none-such"])
            .contains("cannot use the congestion control none-such")
    );
    let again = weir(&["circuit", "keygen", place.path("sender.key").to_str().unwrap()]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "keys are not overwritten");
    fs::set_permissions(place.path("sender.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let told = refusal(&[&small], &serving.at, &[]);
    assert!(told.contains("others can read it") && told.contains("chmod 600"), "{told}");
}
