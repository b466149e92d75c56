//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/key_log.rs"]
mod key_log;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| key_log::check(data));
