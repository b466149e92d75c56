//! What the list tells of results, whatever their state, and its page.

use super::{Served, copy, is, with_two};
use crate::browser;
use crate::layout;
use crate::place::{Place, tree};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use weir_engine::Lock;

#[test]
fn the_list_tells_of_each_result_what_is_known_and_finds_it() {
    let place = with_two();
    place.done(&["note", "results/first", "the OLD target"]);
    let served = Served::new(&place, &[]);
    let row = served.row("first", is("complete"));
    assert_eq!((&row["lab"], &row["engines"]), (&json!("lab"), &json!(["sim"])));
    assert_eq!((&row["runs"], &row["planned"], &row["invalid"]), (&json!(4), &json!(4), &json!(0)));
    assert_eq!(row["levels"], json!([{ "level": "dumbbell.queue", "labels": ["tail-drop", "pie"] }]));
    assert_eq!((&row["notes"][0]["text"], &row["pinned"]), (&json!("the OLD target"), &json!(false)));
    let bytes: usize = tree(&place.path("results/first")).iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(row["bytes"], json!(bytes));
    let age = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() - row["ended"].as_u64().unwrap();
    assert!(age < 600, "{row}");
    // Names, labels, notes and what else is in the lab; words in any order, in small or capital letters.
    assert_eq!(served.found("find=old+TARGET"), ["first"]);
    assert_eq!(served.found("find=60+ms"), ["deep/er/second"]);
    assert_eq!(served.found("find=second+pie"), ["deep/er/second"]);
    assert_eq!(served.found("find=pie&order=name"), ["deep/er/second", "first"]);
    assert_eq!(served.found("find=dualpi2"), [""; 0]);
    assert_eq!(served.found("engine=sim").len(), 2);
    assert_eq!(served.found("engine=live"), [""; 0]);
    assert_eq!(served.found("invalid=true"), [""; 0]);
    assert_eq!(served.get("results?order=sideways").0, 400);
    // A result itself may be served.
    let served = Served::new(&place, &["results/first"]);
    assert_eq!(served.found(""), ["."]);
    assert_eq!(served.file("index.html").0, 200);
}

#[test]
fn a_result_with_claims_or_of_a_ready_test_has_its_verdict_and_one_with_invalid_runs_is_found() {
    let place = Place::new();
    let lab = fs::read_to_string(place.path("lab.toml")).unwrap();
    let claim = "[[expect]]\nmetric = 'goodput_mbps'\nof = 'a'\nvalue = 100.0\ntolerance = '5 %'\nsource = 'nobody'\n";
    fs::write(place.path("claims.toml"), lab + claim).unwrap();
    place.done(&["run", "claims.toml", "--out", "results/claims"]);
    place.done(&["test", "bufferbloat", "--out", "results/test"]);
    let summary = place.path("results/test/summary.json");
    let mut of_test: Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
    of_test["runs"][0]["invalid"] = json!(["the machine was busy"]);
    fs::write(&summary, of_test.to_string()).unwrap();
    let served = Served::new(&place, &[]);
    let claims = served.row("claims", is("complete"));
    assert_eq!(claims["verdict"]["holds"], json!(false), "{claims}");
    assert!(claims["verdict"]["text"].as_str().unwrap().contains("claims hold"), "{claims}");
    let test = served.row("test", is("complete"));
    assert!(test["verdict"]["text"].as_str().unwrap().contains("grade"), "{test}");
    assert_eq!((&test["invalid"], served.found("invalid=true")), (&json!(1), vec!["test".into()]));
}

/// What damages a result folder.
type Damage = fn(&Path);

#[test]
fn a_damaged_result_and_one_of_another_version_are_rows_that_say_so() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "whole"]);
    let damages: [(&str, Damage, &str); 8] = [
        (
            "emptied",
            |at| fs::write(at.join("runs/sim-pie_r1/run.json"), "").unwrap(),
            "run.json: 0 bytes long",
        ),
        (
            "cut",
            |at| fs::write(at.join("runs/sim-pie_r2/flows.parquet"), "PAR1").unwrap(),
            "flows.parquet: 4 bytes long",
        ),
        (
            "missing",
            |at| fs::remove_file(at.join("runs/sim-pie_r1/links.parquet")).unwrap(),
            "links.parquet: missing",
        ),
        (
            "unlisted",
            |at| fs::remove_file(at.join("runs/sim-pie_r1/records.json")).unwrap(),
            "no records here",
        ),
        ("summary", |at| fs::write(at.join("summary.json"), "{").unwrap(), "summary.json: damaged"),
        ("notes", |at| fs::write(at.join("notes.json"), "[{").unwrap(), "notes.json is damaged"),
        (
            "newer",
            |at| fs::write(at.join("lab.toml"), "format = 99\nquantum = true").unwrap(),
            "cannot be read",
        ),
        ("linked", |at| symlink("/etc", at.join("runs/etc")).unwrap(), "etc is neither a file nor a folder"),
    ];
    for (name, damage, _) in &damages {
        copy(&place.path("whole"), &place.path(&format!("results/{name}")));
        damage(&place.path(&format!("results/{name}")));
    }
    copy(&place.path("whole"), &place.path("results/piped"));
    let summary = place.path("results/piped/summary.json");
    fs::remove_file(&summary).unwrap();
    assert!(Command::new("mkfifo").arg(&summary).status().unwrap().success());
    let served = Served::new(&place, &[]);
    for (name, _, why) in damages {
        let row = served.row(name, is("damaged"));
        assert!(row["why"].as_str().unwrap().contains(why), "{row}");
        assert!(!row["why"].as_str().unwrap().contains('\n'), "{row}");
    }
    assert!(served.row("piped", is("damaged"))["why"].as_str().unwrap().contains("summary.json is neither"));
    // What is damaged while the server works shows too.
    copy(&place.path("whole"), &place.path("results/later"));
    served.row("later", is("complete"));
    fs::write(place.path("results/later/runs/sim-pie_r1/run.json"), "").unwrap();
    served.row("later", is("damaged"));
}

#[test]
fn a_tree_that_runs_is_followed_and_one_that_was_interrupted_says_so() {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "results/lab", "--only", "dumbbell.queue=pie"]);
    let served = Served::new(&place, &[]);
    let row = served.row("lab", is("unfinished"));
    assert_eq!(row["why"], "2 of 4 runs; the same command runs the others");
    let lock = Lock::take(&place.path("results/lab")).unwrap();
    let row = served.row("lab", is("running"));
    let process = format!("2 of 4 runs; process {}", std::process::id());
    assert!(row["why"].as_str().unwrap().starts_with(&process), "{row}");
    assert_eq!(served.list("")["running"], 1);
    let (run, aside) = (place.path("results/lab/runs/sim-pie_r2"), place.path("aside"));
    fs::rename(&run, &aside).unwrap();
    served.row("lab", |row| row["runs"] == 1);
    fs::rename(&aside, &run).unwrap();
    served.row("lab", |row| row["runs"] == 2);
    drop(lock);
    served.row("lab", is("unfinished"));
    place.done(&["run", "lab.toml", "--out", "results/lab"]);
    assert_eq!(served.row("lab", is("complete"))["runs"], 4);
}

#[test]
fn the_page_fits_its_window_and_has_contrast_and_accessible_names() {
    let Some(browser) = browser::browser() else { return };
    let place = with_two();
    place.done(&[
        "note",
        "results/first",
        "a note, and a very long word: https://example.org/a/very/long/address/that/does/not/break",
    ]);
    place.done(&["run", "lab.toml", "--out", "results/part", "--only", "dumbbell.queue=pie"]);
    copy(&place.path("results/part"), &place.path("results/damaged"));
    fs::write(place.path("results/damaged/lab.toml"), "format = 99").unwrap();
    let _lock = Lock::take(&place.path("results/part")).unwrap();
    let served = Served::new(&place, &["--notes"]);
    served.post("pins", &json!({ "result": "first", "pinned": true }));
    served.row("damaged", is("damaged"));
    // The page as a file, with the server's answer in it.
    let page = place.path("page/index.html");
    fs::create_dir_all(place.path("page/assets")).unwrap();
    fs::create_dir_all(place.path("page/report/assets")).unwrap();
    let body = |path: &str| served.get(path).1.split_once("\r\n\r\n").unwrap().1.to_owned();
    for name in [
        "assets/list.js",
        "assets/list.css",
        "report/assets/weir.js",
        "report/assets/weir.css",
        "report/assets/uplot.css",
    ] {
        fs::write(place.path(&format!("page/{name}")), body(name)).unwrap();
    }
    let answer = Value::String(served.list("").to_string());
    let script = format!(
        "<script>window.fetch = async () => ({{ ok: true, text: async () => {answer} }});\
         addEventListener('load', () => setTimeout(() => {{ document.querySelector('.add').click(); \
         document.querySelectorAll('.result > input')[1].click(); }}, 200));</script></head>"
    );
    fs::write(&page, body("").replacen("</head>", &script, 1)).unwrap();
    let wrong = layout::checked(&browser, &page, "");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
