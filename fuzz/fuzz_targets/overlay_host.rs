//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/overlay_host.rs"]
mod overlay_host;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| overlay_host::check(data));
