//! The checks of the fuzzer with the inputs of its corpus, without the fuzzer.

#[path = "../../../../fuzz/checks/coordination_cells.rs"]
mod coordination_cells;
#[path = "../../../../fuzz/checks/coordination_config.rs"]
mod coordination_config;
#[path = "../../../../fuzz/checks/coordination_header.rs"]
mod coordination_header;

/// Calls a check with every input of its corpus.
fn replay(target: &str, check: fn(&[u8])) {
    let mut inputs = 0;
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{target}")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of the repository is there: {inputs} inputs");
}

#[test]
fn headers_of_the_corpus_leave_the_payload_unchanged() {
    replay("coordination_header", coordination_header::check);
}

#[test]
fn cells_of_the_corpus_are_aggregated_correctly() {
    replay("coordination_cells", coordination_cells::check);
}

#[test]
fn configurations_of_the_corpus_are_read_or_refused() {
    replay("coordination_config", coordination_config::check);
}
