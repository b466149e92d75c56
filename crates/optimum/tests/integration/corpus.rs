//! The inputs that fuzzing found worth keeping (`fuzz/corpus/capacity`), without a fuzzer.

#[path = "../../../../fuzz/checks/capacity.rs"]
mod capacity;

#[test]
fn networks_of_the_corpus_are_read_or_refused() {
    let mut inputs = 0;
    for entry in std::fs::read_dir("../../fuzz/corpus/capacity").unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        capacity::check(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of the repository is there: {inputs} inputs");
}
