//! The UDP proxy (digest A 2.3, A 2.4, A 7).
//!
//! | room | what it is |
//! |---|---|
//! | [`sending`] | packets become chunks, short ones are joined to blobs, and groups of chunks gain repairs |
//! | [`receiving`] | chunks are restored and become packets again, in order if the service says so |
//! | [`release`] | packets leave with the spacing that they had |
//! | [`trailer`] | what stands behind the payload |
//! | [`received`] | what a receiver's node counts of a flow |
//! | [`loss`] | what the source makes of its reports |
//!
//! How a flow is admitted is [`crate::admission`]'s.

pub mod loss;
pub mod received;
pub mod receiving;
pub mod release;
pub mod sending;
#[cfg(test)]
pub(crate) mod tests;
pub mod trailer;

use core::fmt::Debug;
use trailer::{Chunk, MOST, ORIGINAL};
use weir_base::{ParameterError, Span};

/// Sources of a group at most: as many as the erasure code of real hosts takes (crate `weir-sliq`, `aec::code`).
pub const MOST_SOURCES: u8 = 16;
/// Bytes of the longest part: more than any packet has room for.
const LONGEST_CHUNK: u16 = 9000;
/// What a repair has beyond the longest part that it repairs: the fields that are coded with each part, and longer trailers.
const BEYOND: usize = 5 + 2;

/// An erasure code over packets: each repair is made of all sources, and as many repairs as sources are missing restore them.
pub trait Code: Debug {
    /// Writes the repair of this number, as long as the longest source; shorter ones are padded with zeros.
    fn encode(&self, sources: &[&[u8]], number: usize, repair: &mut Vec<u8>);
    /// Restores the sources that are `None` from numbered repairs, at the length of the longest repair. Returns false, and changes nothing,
    /// if that cannot be done.
    fn restore(&self, sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool;
}

/// How a service carries its packets (digest A 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Sources of a group, and sources and repairs together; equal for none.
    pub base: u8,
    /// Sources and repairs.
    pub total: u8,
    /// Bytes of payload of a datagram at most.
    pub chunk: u16,
    /// A group waits for so long for all its sources.
    pub hold: Span,
    /// Packets that are shorter than a chunk are joined to one, a blob: the first waits for so long at most. `None` for not at all.
    pub join: Option<Span>,
    /// Whether packets carry the time of their origin, so that they are released with the spacing that they had there.
    pub is_timed: bool,
    /// Whether packets are released in order.
    pub is_ordered: bool,
    /// How long a packet waits for its predecessors; `None`, or zero, for not at all.
    pub hold_back: Option<Span>,
    /// Priority, whole.
    pub priority: u8,
    /// Loss at which the receiver reports at once, in percent.
    pub threshold: u8,
}

impl Default for Service {
    fn default() -> Service {
        Service {
            base: 1,
            total: 1,
            chunk: 1500,
            hold: Span::ZERO,
            join: None,
            is_timed: false,
            is_ordered: false,
            hold_back: None,
            priority: 1,
            threshold: 20,
        }
    }
}

impl Service {
    /// The first value outside its range.
    pub fn fault(&self) -> Option<ParameterError> {
        if !(1..=MOST_SOURCES).contains(&self.base) {
            return Some(ParameterError::new("base", "a group has 1 to 16 sources", "write for example 8"));
        }
        if self.total < self.base || self.total > MOST + 1 {
            let help = "write a number from `base` to 32";
            return Some(ParameterError::new(
                "total",
                "`total` counts sources and repairs, at most 32",
                help,
            ));
        }
        let is_sound = (1..=LONGEST_CHUNK).contains(&self.chunk);
        let help = "write from 1 to 9000";
        (!is_sound).then(|| ParameterError::new("chunk", "a chunk has 1 to 9000 bytes", help))
    }

    /// A service whose datagrams are cut only where packets have no room for them.
    pub fn whole() -> Service {
        Service { chunk: LONGEST_CHUNK, ..Service::default() }
    }

    /// The same with chunks that fit packets with room for so many bytes.
    pub fn within(self, room: usize) -> Service {
        let around = ORIGINAL + if self.is_coded() { BEYOND } else { 0 };
        let most = u16::try_from(room.saturating_sub(around)).unwrap_or(u16::MAX);
        Service { chunk: self.chunk.min(most).max(1), ..self }
    }

    fn is_coded(&self) -> bool {
        self.total > self.base
    }
}

/// The bit that tells a blob, beside the number of a packet in a symbol.
const BLOB: u8 = 0x80;

/// What is coded of a chunk: its length, its place in its packet and its bytes, so that a restored one is known whole.
fn symbol(part: &[u8], Chunk { packet, chunk, chunks, is_blob }: Chunk) -> Vec<u8> {
    let mut symbol = (part.len() as u16).to_be_bytes().to_vec();
    symbol.extend_from_slice(&[packet | if is_blob { BLOB } else { 0 }, chunk, chunks]);
    symbol.extend_from_slice(part);
    symbol
}

/// The chunk in a symbol, which may be padded; `None` if it contradicts itself.
fn unpack(symbol: &[u8]) -> Option<(Chunk, &[u8])> {
    let ([high, low, packet, chunk, chunks], rest) = symbol.split_first_chunk::<5>()?;
    let part = rest.get(..u16::from_be_bytes([*high, *low]).into())?;
    let (is_blob, packet) = (packet & BLOB != 0, packet & !BLOB);
    let is_sound = chunk < chunks && *chunks <= MOST && packet <= MOST && (!is_blob || *chunks == 1);
    is_sound.then_some((Chunk { packet, chunk: *chunk, chunks: *chunks, is_blob }, part))
}
