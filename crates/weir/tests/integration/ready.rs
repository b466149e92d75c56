//! `weir test`: each test runs and answers with numbers; what is wrong is refused.

use crate::place::{Place, status, text};
use serde_json::Value;

/// A line on which every test takes a fraction of a second.
const SMALL: [&str; 4] = ["--rate", "10/5", "--repeats", "1"];

/// The names of all tests.
fn names(place: &Place) -> Vec<String> {
    let list: Value = serde_json::from_str(&place.done(&["test", "--json"])).unwrap();
    list.as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_ready_test_answers_in_two_sentences_with_numbers() {
    let place = Place::new();
    let names = names(&place);
    assert_eq!(names.len(), 10);
    for name in names {
        let told = place.done(&[&["test", &name, "--json"][..], &SMALL].concat());
        let answer: Value = serde_json::from_str(&told).unwrap();
        for sentence in answer["verdict"]["sentences"].as_array().unwrap() {
            let sentence = sentence.as_str().unwrap();
            assert!(
                sentence.ends_with('.') && sentence.contains(|c: char| c.is_ascii_digit()),
                "{name}: {sentence}"
            );
            assert!(!sentence.contains("NaN"), "{name}: {sentence}");
        }
        let cells = answer["verdict"]["cells"].as_array().unwrap();
        assert!(!cells.is_empty(), "{name}");
        for cell in cells {
            // What need not exist: the end of a settling that does not end.
            let optional = |key: &str| key.starts_with("settling") || key.starts_with("recovery");
            let numbers = cell["numbers"].as_object().unwrap();
            let missing: Vec<&String> = numbers
                .iter()
                .filter(|(key, value)| value.is_null() && !optional(key))
                .map(|(key, _)| key)
                .collect();
            assert!(missing.is_empty(), "{name}, {}: {missing:?}", cell["cell"]);
        }
        let folder = place.path(&format!("results/test-{name}"));
        assert!(folder.join("index.html").is_file(), "{name}");
        let is_picture = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().path().extension().is_some_and(|ending| ending == "svg")
        };
        assert!(std::fs::read_dir(&folder).unwrap().any(is_picture), "{name}");
    }
}

/// 1000 packets at 10 Mbit/s are 1.2 s; FQ-CoDel's target is 5 ms.
#[test]
fn a_deep_queue_is_bloated_and_fq_codel_is_not() {
    let place = Place::new();
    let told = place.done(&[&["test", "bufferbloat"][..], &SMALL].concat());
    assert!(told.contains("(grade F) with tail drop limit 1000 packets"), "{told}");
    assert!(told.contains("(grade A") && told.contains("with FQ-CoDel"), "{told}");
    assert!(
        told.contains("Round trips a minute") && told.contains("draft-ietf-ippm-responsiveness-08"),
        "{told}"
    );
}

#[test]
fn a_printed_lab_runs_by_itself() {
    let place = Place::new();
    let lab = place.done(&[
        "test",
        "shaper",
        "--print",
        "--rate",
        "20/20",
        "--rtt",
        "10ms",
        "--cc",
        "bbr",
        "--repeats",
        "1",
    ]);
    assert!(lab.contains("bbr") && lab.contains("policer"), "{lab}");
    std::fs::write(place.path("printed.toml"), &lab).unwrap();
    assert!(place.done(&["run", "printed.toml", "--no-report"]).contains("3 runs done"));
}

#[test]
fn wrong_choices_are_refused_with_what_is_meant() {
    let place = Place::new();
    for (args, meant) in [
        (&["test", "bufferbloatt"][..], "did you mean `bufferbloat`?"),
        (&["test", "call", "--queue", "fq-codle"], "did you mean `fq-codel`?"),
        (&["test", "call", "--queue", "pie:targt=5ms"], "targ"),
        (&["test", "call", "--cc", "cubicc"], "cubic"),
        (&["test", "call", "--rate", "fast"], "--rate"),
        (&["test", "call", "--rtt", "0ms"], "more than 0 s"),
        (&["test", "shaper", "--queue", "pie"], "queues of its own"),
    ] {
        let output = place.weir(args);
        assert_eq!(status(&output), 2, "{args:?}");
        assert!(text(&output.stderr).contains(meant), "{args:?}: {}", text(&output.stderr));
    }
    assert!(!place.path("results").exists(), "nothing was written");
}
