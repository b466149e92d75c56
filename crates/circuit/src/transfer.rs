//! Transfers over a circuit, as far as they are pure: what the two hosts say to one another, how files are cut into blocks, and when a
//! file is whole. Sockets, files and keys are the command line's.
//!
//! Two hosts share a session that is encrypted and authenticated; the payload goes beside it, in clear, over as many connections as are
//! wanted. For each block the sender tells its BLAKE3 digest through the session, so that a block which was damaged, or put in by
//! somebody else, is found and asked for again. What a receiver has of a file from an earlier attempt counts only if its digest is the
//! sender's.

mod block;
mod digest;
mod ledger;
mod message;
mod name;

pub use block::{BLOCK, BlockHeader, blocks, length_of};
pub use digest::{Digest, DigestError};
pub use ledger::{Ledger, Outcome};
pub use message::{MOST_DIGESTS, Message, MessageError};
pub use name::{NameError, check_name, part_name};
