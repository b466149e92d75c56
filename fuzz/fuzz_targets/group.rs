//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/group.rs"]
mod group;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| group::check(data));
