//! What the fuzzer's inputs must not do, checked without the fuzzer, and with bytes at random.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../fuzz/checks/sliq.rs"]
mod sliq;

use proptest::prelude::*;

#[test]
fn every_input_of_the_corpus_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/sliq");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        sliq::check(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of the repository is there: {inputs} inputs");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_at_random_are_survived(data in prop::collection::vec(any::<u8>(), 0..400)) {
        sliq::check(&data);
    }
}
