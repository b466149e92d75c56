//! The inputs of `fuzz/corpus/serve`, and inputs made from them by truncation and by changed bytes, without a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../fuzz/checks/serve.rs"]
mod serve;

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let mut count = 0;
    for entry in std::fs::read_dir("../../fuzz/corpus/serve").unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        serve::check(&bytes);
        for at in (0..bytes.len()).step_by(7) {
            serve::check(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            serve::check(&changed);
        }
        count += 1;
    }
    assert!(count > 10, "{count} inputs");
}
