//! What is written where: comparisons outside the folder, notes and pins with permission, and nothing is lost.

use super::{Served, is, with_two};
use crate::place::{Place, text, tree};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

#[test]
fn two_results_are_compared_by_the_page_of_weir_compare_and_nothing_is_written_into_the_folder() {
    let place = with_two();
    let before = tree(&place.path("results"));
    let mut served = Served::new(&place, &[]);
    served.row("first", is("complete"));
    let (status, answer) = served.get("compare?first=first&second=deep/er/second");
    assert_eq!(status, 303, "{answer}");
    let begin = answer.find("location: ../").unwrap() + 12;
    let address = answer[begin..].split("\r\n").next().unwrap();
    let page = served.ask(address).1.split_once("\r\n\r\n").unwrap().1.to_owned();
    place.weir(&["compare", "results/first", "results/deep/er/second", "--out", "page"]);
    assert_eq!(page, fs::read_to_string(place.path("page/index.html")).unwrap());
    let script = address.replace("index.html", "report/lab.js");
    assert_eq!(served.ask(&script).0, 200);
    let (status, answer) = served.get("compare?first=first");
    assert!(status == 400 && answer.contains("runs of only one engine"), "{answer}");
    for (path, body) in [
        ("pins", json!({ "result": "first", "pinned": true })),
        ("notes", json!({ "result": "first", "add": "x" })),
        ("notes", json!({ "result": "first", "remove": 1 })),
    ] {
        let (status, answer) = served.post(path, &body);
        assert!(status == 403 && answer.contains("only with `weir serve --notes`"), "{answer}");
    }
    assert!(tree(&place.path("results")) == before, "nothing is written");
    // Ctrl-C ends the server, and the comparison is removed.
    let process = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn notes_and_pins_are_kept_whoever_writes_and_faulty_ones_are_refused() {
    let place = with_two();
    let served = Served::new(&place, &["--notes"]);
    served.row("first", is("complete"));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (served, place) = (&served, &place);
            scope.spawn(move || {
                for n in 0..10 {
                    let (status, answer) = served
                        .post("notes", &json!({ "result": "first", "add": format!("page {writer} {n}") }));
                    assert_eq!(status, 200, "{answer}");
                }
            });
            scope.spawn(move || {
                (0..10).for_each(|n| {
                    _ = place.done(&["note", "results/first", &format!("command {writer} {n}")])
                });
            });
        }
    });
    let kept: Value =
        serde_json::from_str(&place.done(&["note", "results/first", "--list", "--json"])).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 40);
    for (text, why) in [
        ("bell\u{7}".to_owned(), "a control character, U+0007, as its character 5"),
        ("x".repeat(20_000), "the note has 20000 bytes; it may have 16384"),
        ("x".repeat(1 << 20), "the request is too long; a note may have 16384 bytes"),
        (" ".into(), "the note is empty"),
    ] {
        let (status, answer) = served.post("notes", &json!({ "result": "first", "add": text }));
        assert!(status == 400 && answer.contains(why), "{why}: {answer}");
    }
    assert_eq!(served.post("notes", &json!({ "result": "first", "remove": 77 })).0, 400);
    assert_eq!(served.post("notes", &json!({ "result": "../results/first", "add": "x" })).0, 400);
    assert_eq!(served.post("notes", &json!({ "result": "first", "remove": 40 })).0, 200);
    assert_eq!(served.post("pins", &json!({ "result": "first", "pinned": true })).0, 204);
    assert_eq!(served.found("pinned=true"), ["first"]);
    assert_eq!(served.row("first", is("complete"))["notes"].as_array().unwrap().len(), 39);
    // Both stay when the lab is run again.
    place.done(&["run", "lab.toml", "--out", "results/first", "--rerun"]);
    assert_eq!(served.found("pinned=true"), ["first"]);
    assert_eq!(served.found("find=page+0+9"), ["first"]);
    assert_eq!(served.post("pins", &json!({ "result": "first", "pinned": false })).0, 204);
    assert_eq!(served.found("pinned=true"), [""; 0]);
}

#[test]
fn a_full_disk_loses_no_note() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "out", "--no-report"]);
    place.done(&["note", "out", "kept"]);
    // In a namespace of its own the test may mount a small file system.
    let script = "mkdir disk && mount -t tmpfs -o size=4M none disk || exit 77\n\
        cp -r out disk/out && cat /dev/zero > disk/rest 2> /dev/null\n\
        $WEIR note disk/out \"$(printf 'x%.0s' $(seq 9000))\"\necho status $?\n$WEIR note disk/out --list";
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", script])
        .current_dir(place.path(""))
        .env("WEIR", env!("CARGO_BIN_EXE_weir"));
    let output = command.output().unwrap();
    if output.status.code() == Some(77) || text(&output.stderr).starts_with("unshare:") {
        eprintln!("skipped: this machine allows no mount in a namespace");
        return;
    }
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(
        told.contains("notes.json: No space left on device") && told.contains("its disk has space"),
        "{told}"
    );
    assert!(said.starts_with("status 2\n1  20") && said.ends_with("Z  kept\n"), "{said}");
}
