//! Checks of a folder of broken labs: each is refused with a place and a suggestion.

use weir_plan::Diagnostics;

/// The names of the labs in `tests/broken`, in order.
pub(crate) fn broken() -> Vec<String> {
    let files = std::fs::read_dir("tests/broken").unwrap().map(|entry| entry.unwrap().path());
    let labs = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        labs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

/// Asserts that every one of them is refused with a place and a suggestion for each problem.
pub(crate) fn each_has_a_place_and_a_suggestion(refuse: impl Fn(&str) -> Diagnostics) {
    for name in broken() {
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
