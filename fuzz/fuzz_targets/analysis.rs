//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/analysis.rs"]
mod analysis;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| analysis::check(data));
