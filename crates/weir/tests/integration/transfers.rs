//! Transfers of files over loopback, whatever carries them, the TCP of `weir circuit` or SLIQ: files arrive whole, interrupted transfers go
//! on, and what a careless sender asks for is refused.

use crate::hosts::{BLOCK, Place, Serving, bytes, text, weir};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use weir_circuit::transfer::Digest;

/// Two hosts for each carrier, and arguments of the sender by which that carrier does more.
fn carriers() -> [(Place, &'static [&'static str]); 2] {
    [
        (Place::of("circuit", &[]), &["--streams", "3"]),
        (Place::of("sliq", &["--timeout", "2s"]), &["--cc", "copa"]),
    ]
}

#[test]
fn files_of_all_lengths_arrive_whole_both_ways_and_none_is_overwritten() {
    for (place, more) in carriers() {
        let receiver = place.serve(&[]);
        let contents = [("empty", 0), ("one", 1), ("block", BLOCK), ("more", 3 * BLOCK + 17)]
            .map(|(name, length)| (name, bytes(length)));
        let files: Vec<PathBuf> = contents.iter().map(|(name, bytes)| place.file(name, bytes)).collect();
        let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let told = place.sent(&paths, &receiver.at, more);
        let mut expected: Vec<_> =
            contents.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        expected.sort();
        assert!(place.received() == expected, "a file is another");
        assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(4 * BLOCK + 18).into(), &0.into()));
        assert_eq!(told["files"].as_array().unwrap().len(), 4);
        // What is there is not overwritten, and nothing of the second attempt remains.
        fs::write(place.path("in/one"), "mine").unwrap();
        let again = place.send(&[&place.path("one")], &receiver.at, &[]);
        let why = text(&again.stderr);
        assert!(
            again.status.code() == Some(1) && why.contains("is there already, and nothing is overwritten"),
            "{why}"
        );
        assert_eq!(fs::read(place.path("in/one")).unwrap(), b"mine");
        assert_eq!(place.received().len(), 4);
        // Back: the hosts have changed places.
        let back = place.reversed();
        back.sent(&[&place.path("in/more")], &back.serve(&[]).at, &[]);
        assert!(back.received() == [("more".to_owned(), bytes(3 * BLOCK + 17))]);
    }
}

#[test]
fn a_finished_transfer_that_is_repeated_has_nothing_to_do_unless_the_content_is_another() {
    for (place, _) in carriers() {
        let receiver = place.serve(&[]);
        let contents = bytes(2 * BLOCK + 5);
        let file = place.file("data", &contents);
        place.sent(&[&file], &receiver.at, &[]);
        let again = place.send(&[&file], &receiver.at, &[]);
        let told = text(&again.stdout);
        assert!(
            again.status.success() && told.contains("nothing was to do"),
            "{told}{}",
            text(&again.stderr)
        );
        // Another content of the same length is refused, and nothing is overwritten.
        let mut other = contents.clone();
        other[BLOCK + 1] ^= 1;
        fs::write(&file, other).unwrap();
        let refused = place.send(&[&file], &receiver.at, &[]);
        let why = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && why.contains("its content is another"), "{why}");
        assert!(place.received() == [("data".to_owned(), contents)]);
    }
}

#[test]
fn an_interrupted_transfer_resumes_with_the_missing_and_the_wrong_blocks() {
    for (place, _) in carriers() {
        let receiver = place.serve(&[]);
        let contents = bytes(3 * BLOCK + 5);
        let file = place.file("data", &contents);
        // The first and the third block are there; the second has a wrong byte; the last is missing.
        let mut part = contents[..3 * BLOCK].to_vec();
        part[BLOCK + 77] ^= 1;
        fs::write(place.path("in/data.weir-part"), part).unwrap();
        let told = place.sent(&[&file], &receiver.at, &[]);
        assert_eq!((&told["sent_bytes"], &told["kept_bytes"]), (&(BLOCK + 5).into(), &(2 * BLOCK).into()));
        assert!(place.received() == [("data".to_owned(), contents)]);
    }
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
    for (place, _) in carriers() {
        let receiver = place.serve(&[]);
        let contents = bytes(24 * BLOCK);
        // On a machine that is busy a transfer may end before it is killed.
        let mut names = (0..10).map(|attempt| format!("data-{attempt}"));
        let name = names
            .find(|name| killed_in_the_middle(&place, &place.file(name, &contents), &receiver.at))
            .unwrap();
        let told = place.resumed(&[&place.path(&name)], &receiver.at);
        let kept = told["kept_bytes"].as_u64().unwrap();
        assert!(kept >= BLOCK as u64 && kept.is_multiple_of(BLOCK as u64), "{told}");
        assert_eq!(told["sent_bytes"].as_u64().unwrap() + kept, contents.len() as u64);
        assert!(fs::read(place.path("in").join(name)).unwrap() == contents, "the file is another");
    }
}

/// Sends a file and stops the receiver when a block is there. Returns the sender; `None` if the transfer was complete by then.
fn silenced_in_the_middle(place: &Place, receiver: &Serving, file: &Path) -> Option<Child> {
    let mut sender = place.send_command(&[file], &receiver.at, &[]);
    let mut sender = sender.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (name, begun) = (file.file_name().unwrap().to_str().unwrap(), Instant::now());
    let part = place.path(&format!("in/{name}.weir-part"));
    let there = || fs::metadata(&part).map_or(0, |about| about.len()) >= BLOCK as u64;
    while !there() && sender.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing arrives");
        std::thread::sleep(Duration::from_millis(1));
    }
    receiver.signal(Signal::STOP);
    if part.exists() {
        return Some(sender);
    }
    receiver.signal(Signal::CONT);
    sender.wait().unwrap();
    None
}

#[test]
fn a_silent_receiver_is_told_each_second_and_the_end_names_the_command_that_resumes() {
    for place in [Place::of("circuit", &[]), Place::of("sliq", &["--timeout", "6s"])] {
        let receiver = place.serve(&[]);
        let contents = bytes(24 * BLOCK);
        let mut names = (0..10).map(|attempt| format!("data-{attempt}"));
        let file = |name: String| {
            let file = place.file(&name, &contents);
            silenced_in_the_middle(&place, &receiver, &file).map(|sender| (sender, file))
        };
        let (mut sender, file) = names.find_map(file).unwrap();
        let mut lines = BufReader::new(sender.stderr.take().unwrap());
        let mut silences = vec![];
        while silences.len() < 3 {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the sender has ended: {silences:?}");
            if line.contains("has been silent for") {
                silences.push((Instant::now(), line));
            }
        }
        for pair in silences.windows(2) {
            let between = pair[1].0 - pair[0].0;
            assert!((0.5..2.5).contains(&between.as_secs_f64()), "{silences:?}");
        }
        assert!(silences[0].1.contains(&receiver.at), "{silences:?}");
        drop(receiver);
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(sender.wait().unwrap().code(), Some(1), "{rest}");
        assert!(rest.contains("the same command resumes"), "{rest}");
        assert!(rest.contains(place.command) && rest.contains(file.to_str().unwrap()), "{rest}");
    }
}

#[test]
fn the_digest_that_is_printed_is_blake3_of_the_file() {
    // BLAKE3 of "abc", as other programs compute it.
    const ABC: &str = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    for (place, _) in carriers() {
        let receiver = place.serve(&[]);
        let told = text(&place.send(&[&place.file("abc", b"abc")], &receiver.at, &[]).stdout);
        assert!(told.contains(&format!("BLAKE3 (abc) = {ABC}")), "{told}");
        let more = place.sent(&[&place.file("more", &bytes(3 * BLOCK + 17))], &receiver.at, &[]);
        let file = &more["files"][0];
        assert_eq!(file["algorithm"], "BLAKE3");
        let digest = Digest::of(&bytes(3 * BLOCK + 17));
        assert_eq!(file["digest"], digest.to_string());
    }
}

#[test]
fn impossible_transfers_are_refused_with_an_explanation() {
    for (place, _) in carriers() {
        let receiver = place.serve(&["--quota", "10 kB"]);
        let large = place.file("large", &bytes(10_001));
        let output = place.send(&[&large], &receiver.at, &[]);
        let why = text(&output.stderr);
        assert!(output.status.code() == Some(1) && why.contains("10001 bytes do not fit the quota"), "{why}");
        let small = place.file("small", &bytes(9_000));
        place.sent(&[&small], &receiver.at, &[]);
        let output = place.send(&[&place.file("second", &bytes(2_000))], &receiver.at, &[]);
        assert!(text(&output.stderr).contains("of which 1000 are free"), "{}", text(&output.stderr));
        assert_eq!(place.received().len(), 1, "of what is refused nothing remains");
        // A link in the folder leads nowhere outside.
        std::os::unix::fs::symlink(place.path("outside"), place.path("in/link.weir-part")).unwrap();
        let link = place.file("link", b"x");
        assert_eq!(place.send(&[&link], &receiver.at, &[]).status.code(), Some(1));
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

        let refusal = |files: &[&Path], to: &str| place.refusal(files, to, &[]);
        assert!(refusal(&[&place.path("none")], &receiver.at).contains("No such file"));
        assert!(refusal(&[place.folder.path()], &receiver.at).contains("it is not a file"));
        assert!(refusal(&[&small, &small], &receiver.at).contains("another file has the same name"));
        assert!(refusal(&[&small], "no such host").contains("write it like"));
        let key = place.path("sender.key");
        let again = weir(&[place.command, "keygen", key.to_str().unwrap()]).output().unwrap();
        assert_eq!(again.status.code(), Some(2), "keys are not overwritten");
        fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let told = refusal(&[&small], &receiver.at);
        assert!(told.contains("others can read it") && told.contains("chmod 600"), "{told}");
    }
}
