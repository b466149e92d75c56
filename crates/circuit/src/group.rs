//! Files from one host to the members of a multicast group, pure: who sends what when, and who asks for what again. Each member has a session of
//! its own with the sender, over a connection that loses nothing: there files are offered, digests of blocks told and ends confirmed, by the
//! messages of [`crate::transfer`]. The bytes go to the group in datagrams, each a [`FRAGMENT`] of a block, and datagrams may be lost. A member
//! asks for what has not come (negative acknowledgement), and the sender retransmits that to all.
//!
//! Source: RFC 5740 and RFC 5401 (NORM) for negative acknowledgements and for repair before new data; digest A 7.6 for the window, which is
//! set anew each 100 ms. Unlike NORM, what is asked for and what is confirmed goes over the sessions, and there is no parity: the overlay repairs
//! loss on its links.

mod datagram;
mod fragments;
mod receiver;
mod sender;
mod window;

pub use datagram::{Datagram, checksum};
pub use receiver::{Damaged, Receiver, Whole};
pub use sender::{Astray, Next, Quiet, Sender};

use crate::transfer::length_of;
use weir_base::Span;

/// Payload bytes of a datagram; the last one of a block may have fewer. With all headers it fits a device of a node whose paths carry 1,280 bytes.
pub const FRAGMENT: usize = 1024;
/// Time between two announcements of a sender, by which members find it.
pub const ANNOUNCED: Span = Span::from_millis(500);

/// A fragment of a block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the file in its session.
    pub file: u32,
    /// Number of the block in its file.
    pub block: u64,
    /// Number of the fragment in its block.
    pub fragment: u16,
}

impl Place {
    /// The first byte in its file.
    pub fn first_byte(&self) -> u64 {
        self.block * crate::transfer::BLOCK + u64::from(self.fragment) * FRAGMENT as u64
    }
}

/// A block of a file: the file's number and its own.
type BlockOf = (u32, u64);

/// Length of a block in bytes, of files of these lengths; `None` if there is no such block.
fn block_length(lengths: &[u64], (file, block): BlockOf) -> Option<u32> {
    length_of(*lengths.get(file as usize)?, block)
}

/// Number of fragments of a block of this length: 4,096 at most.
fn fragments_of(length: u32) -> u16 {
    length.div_ceil(FRAGMENT as u32) as u16
}

/// Length in bytes of the fragment of this number, of a block of `length` bytes; `None` if the block has none of this number.
fn fragment_length(length: u32, fragment: u16) -> Option<usize> {
    let left = (length as usize).checked_sub(usize::from(fragment) * FRAGMENT)?;
    (left > 0).then_some(left.min(FRAGMENT))
}

#[cfg(test)]
mod tests;
