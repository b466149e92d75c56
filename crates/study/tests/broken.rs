//! Every lab with a broken claim is refused with a place and a suggestion. The snapshots beside this file show what a person sees.
#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::path::Path;
use weir_plan::{Diagnostics, Lab};

fn broken() -> Vec<String> {
    let files = std::fs::read_dir("tests/broken").unwrap().map(|entry| entry.unwrap().path());
    let labs = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        labs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

fn refuse(name: &str) -> Diagnostics {
    // Relative to the crate, where cargo runs tests: no snapshot holds a path of this machine.
    let lab = Lab::load(Path::new(&format!("tests/broken/{name}.toml")), &[]).unwrap();
    match weir_study::claims(&lab) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_broken_claim_is_refused_with_a_place_and_a_suggestion() {
    let names = broken();
    assert!(names.len() >= 20);
    for name in names {
        let diagnostics = refuse(&name);
        assert!(!diagnostics.problems().is_empty(), "{name}");
        for problem in diagnostics.problems() {
            let (file, line, column) =
                problem.location().unwrap_or_else(|| panic!("{name}: no place: {problem}"));
            assert!(file.starts_with("tests/broken/") && line >= 1 && column >= 1, "{name}");
            assert!(
                problem.suggestion().is_some_and(|help| help.len() > 5),
                "{name}: no suggestion: {problem}"
            );
        }
    }
}

#[test]
fn what_a_person_sees_of_every_broken_claim() {
    for name in broken() {
        insta::assert_snapshot!(name.clone(), refuse(&name).render(false, 100));
    }
}
