//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/sliq_host.rs"]
mod sliq_host;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sliq_host::check(data));
