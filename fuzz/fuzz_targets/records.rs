//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/records.rs"]
mod records;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        // The reader catches the panics of the Parquet library. Those that it lets through still end the fuzzer.
        std::panic::set_hook(Box::new(|_| ()));
    },
    |data: &[u8]| records::check(data)
);
