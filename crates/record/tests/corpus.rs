//! Checks the inputs that fuzzing found (`fuzz/corpus/records`) without a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../fuzz/checks/records.rs"]
mod records;

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let mut count = 0;
    for entry in std::fs::read_dir("../../fuzz/corpus/records").unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        records::check(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 20, "{count} inputs");
}
