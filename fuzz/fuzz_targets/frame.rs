//! Whatever a host puts on its wire, the live engine reads the frame or leaves it, and marking it keeps its checksum right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| weir_live::examine_frame(frame));
