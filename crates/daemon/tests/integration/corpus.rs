//! The inputs that fuzzing found worth keeping (`fuzz/corpus`), without a fuzzer, and bytes at random.

#[path = "../../../../fuzz/checks/key_log.rs"]
mod key_log;
#[path = "../../../../fuzz/checks/overlay_host.rs"]
mod overlay_host;
#[path = "../../../../fuzz/checks/sliq_host.rs"]
mod sliq_host;

use weir_base::Random;

/// Checks all inputs of a folder. Returns how many there are.
fn checked(folder: &str, check: fn(&[u8])) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{folder}")).unwrap() {
        let path = entry.unwrap().path();
        check(&std::fs::read(path).unwrap());
        count += 1;
    }
    count
}

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    let hosts = checked("sliq_host", sliq_host::check);
    let nodes = checked("overlay_host", overlay_host::check);
    let lines = checked("key_log", key_log::check);
    assert!(hosts > 10 && nodes >= 10 && lines >= 10, "{hosts}, {nodes} and {lines} inputs");
}

#[test]
fn bytes_at_random_change_nothing_between_hosts() {
    let mut random = Random::stream(1, "bytes");
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..random.bits() % 300).map(|_| random.bits() as u8).collect();
        sliq_host::check(&bytes);
    }
}
