//! The checks of the fuzzer with the inputs of its corpus, without the fuzzer, and with inputs that differ from them at random.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../fuzz/checks/overlay.rs"]
mod overlay;
#[path = "../../../fuzz/checks/proxy.rs"]
mod proxy;
#[path = "../../../fuzz/checks/relay.rs"]
mod relay;
#[path = "../../../fuzz/checks/site.rs"]
mod site;

use weir_base::Random;

fn inputs(of: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new("../../fuzz/corpus").join(of);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "the corpus of the repository is there: {} inputs", paths.len());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn messages_and_packets_of_the_corpus_leave_a_node_at_rest_and_bounded() {
    inputs("overlay").iter().for_each(|input| overlay::check(input));
}

#[test]
fn datagrams_of_the_corpus_leave_the_receiving_proxy_empty() {
    inputs("proxy").iter().for_each(|input| proxy::check(input));
}

#[test]
fn datagrams_and_packets_of_the_corpus_leave_a_site_at_rest_and_bounded() {
    inputs("site").iter().for_each(|input| site::check(input));
}

#[test]
fn segments_of_the_corpus_leave_a_tcp_proxy_at_rest_and_bounded() {
    inputs("relay").iter().for_each(|input| relay::check(input));
}

/// Inputs that differ from those of the corpus.
fn changed(of: &str, each: u32, check: fn(&[u8])) {
    let mut random = Random::stream(1, "corpus");
    for input in inputs(of) {
        for _ in 0..each {
            let mut changed = input.clone();
            for _ in 0..1 + random.below(8) {
                let at = random.below(changed.len() as u64) as usize;
                match random.below(3) {
                    0 => changed[at] ^= 1 << random.below(8),
                    1 => changed.insert(at, random.bits() as u8),
                    _ if changed.len() > 1 => _ = changed.remove(at),
                    _ => {}
                }
            }
            check(&changed);
        }
    }
}

#[test]
fn changed_inputs_of_the_corpus_do_so_too() {
    changed("overlay", 100, overlay::check);
    changed("proxy", 100, proxy::check);
}

#[test]
fn changed_segments_do_so_too() {
    changed("relay", 2000, relay::check);
}
