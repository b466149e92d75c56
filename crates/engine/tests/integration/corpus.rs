//! The inputs of `fuzz/corpus/capture`, and all inputs made from them by truncation and by bit flips, without a fuzzer.

#[path = "../../../../fuzz/checks/capture.rs"]
mod capture;

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let mut count = 0;
    for entry in std::fs::read_dir("../../fuzz/corpus/capture").unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        (0..=bytes.len()).for_each(|end| capture::check(&bytes[..end]));
        for at in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            capture::check(&flipped);
        }
        count += 1;
    }
    assert!(count > 2, "{count} inputs");
}
