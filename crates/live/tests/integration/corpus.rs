//! The inputs that fuzzing found worth keeping (`fuzz/corpus`), without a fuzzer.

#[path = "../../../../fuzz/checks/frame.rs"]
mod frame;
#[path = "../../../../fuzz/checks/link.rs"]
mod link;

/// Checks all inputs of a folder. Returns how many there are.
fn checked(folder: &str, check: fn(&[u8])) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{folder}")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&std::fs::read(path).unwrap());
        count += 1;
    }
    count
}

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let frames = checked("frame", frame::check);
    assert!(frames > 20, "{frames} inputs");
    let requests = checked("link", link::check);
    assert!(requests > 10, "{requests} inputs");
}
