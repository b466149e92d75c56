//! The inputs that fuzzing found worth keeping (`fuzz/corpus/lab`), without a fuzzer.

#[path = "../../../../fuzz/checks/lab.rs"]
mod lab;

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let mut count = 0;
    for entry in std::fs::read_dir("../../fuzz/corpus/lab").unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        lab::check(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 20, "{count} inputs");
}
