//! The inputs of `fuzz/corpus/transfer` and `fuzz/corpus/group`, and all inputs made from them by truncation and by bit flips, without a fuzzer.

#[path = "../../../../fuzz/checks/group.rs"]
mod group;
#[path = "../../../../fuzz/checks/transfer.rs"]
mod transfer;

/// Checks what is made from each input of a folder. Returns how many there are.
fn checked(folder: &str, check: fn(&[u8])) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{folder}")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        (0..=bytes.len()).for_each(|end| check(&bytes[..end]));
        for at in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            check(&flipped);
        }
        count += 1;
    }
    count
}

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    assert!(checked("transfer", transfer::check) > 10);
    assert!(checked("group", group::check) > 10);
}
