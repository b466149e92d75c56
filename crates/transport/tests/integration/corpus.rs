//! The checks of the fuzzer with the inputs of its corpus and with random bytes, without the fuzzer.

#[path = "../../../../fuzz/checks/rudp.rs"]
mod rudp;
#[path = "../../../../fuzz/checks/sliq.rs"]
mod sliq;

use proptest::prelude::*;

/// Runs a check on each input of a folder.
fn each_of(folder: &str, check: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of the repository is there: {inputs} inputs");
}

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    each_of("sliq", sliq::check);
    each_of("rudp", rudp::check);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_pass_the_checks(data in prop::collection::vec(any::<u8>(), 0..400)) {
        sliq::check(&data);
        rudp::check(&data);
    }
}
