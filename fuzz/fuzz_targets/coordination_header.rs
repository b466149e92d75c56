//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/coordination_header.rs"]
mod coordination_header;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| coordination_header::check(data));
