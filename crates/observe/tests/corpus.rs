//! The inputs of `fuzz/corpus/analysis` and `queue_events`, and all inputs made from them by truncation and by bit flips, without a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../fuzz/checks/analysis.rs"]
mod analysis;
#[path = "../../../fuzz/checks/queue_events.rs"]
mod queue_events;

use weir_base::Random;

/// Inputs made of each one at random.
const MUTATIONS: u32 = 5000;

type Check = fn(&[u8]);
const CHECKS: [(&str, Check, usize); 2] =
    [("analysis", analysis::check, 5), ("queue_events", queue_events::check, 2)];

#[test]
fn every_input_of_the_corpus_passes_its_check() {
    CHECKS.into_iter().for_each(|(name, check, least)| every_input(name, check, least));
}

fn every_input(name: &str, check: Check, least: usize) {
    let mut count = 0;
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{name}")).unwrap() {
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
    assert!(count >= least, "{count} inputs");
}

#[test]
fn inputs_that_differ_from_them_in_several_places_pass_too() {
    CHECKS.into_iter().for_each(|(name, check, _)| changed_inputs(name, check));
}

fn changed_inputs(name: &str, check: Check) {
    let mut random = Random::stream(1, "corpus");
    for entry in std::fs::read_dir(format!("../../fuzz/corpus/{name}")).unwrap() {
        let input = std::fs::read(entry.unwrap().path()).unwrap();
        for _ in 0..MUTATIONS {
            let mut changed = input.clone();
            for _ in 0..1 + random.below(8) {
                let at = random.below(changed.len() as u64) as usize;
                match random.below(4) {
                    0 => changed[at] ^= 1 << random.below(8),
                    1 => changed[at] = random.bits() as u8,
                    2 => changed.insert(at, random.bits() as u8),
                    _ if changed.len() > 1 => _ = changed.remove(at),
                    _ => {}
                }
            }
            check(&changed);
        }
    }
}
