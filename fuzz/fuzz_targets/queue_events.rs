//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/queue_events.rs"]
mod queue_events;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| queue_events::check(data));
