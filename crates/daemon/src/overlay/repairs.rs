//! The code of repairs of services: the erasure code of SLIQ ([`weir_sliq::aec::code`]).

use weir_overlay::proxy::udp::{Code, MOST_SOURCES};
use weir_sliq::aec::code;

// A group that a file may ask for has no more sources than the code takes.
const _: () = assert!(MOST_SOURCES as usize <= code::MOST_SOURCES);

/// Reed-Solomon.
#[derive(Debug)]
pub(super) struct ReedSolomon;

impl Code for ReedSolomon {
    fn encode(&self, sources: &[&[u8]], number: usize, repair: &mut Vec<u8>) {
        code::encode(sources, number, repair);
    }
    fn restore(&self, sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool {
        code::restore(sources, repairs)
    }
}
