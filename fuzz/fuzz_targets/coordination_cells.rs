//! See the check itself, which plain tests call with the inputs of `fuzz/corpus` too.
#![no_main]

#[path = "../checks/coordination_cells.rs"]
mod coordination_cells;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| coordination_cells::check(data));
