//! The pure part of transfers over a circuit: the messages between the two hosts, the cutting of files into blocks, and the check that
//! a file is whole. The command line has the sockets, files and keys.
//!
//! Two hosts share a session that is encrypted and authenticated; the payload goes beside it, unencrypted, over one or more
//! connections. The sender sends the BLAKE3 digest of each block through the session, so that a block which was damaged or forged is
//! detected and requested again. Blocks that a receiver has from an earlier attempt count only if their digests are the sender's.

mod block;
mod digest;
mod file_blocks;
mod message;
mod name;

pub use block::{BLOCK, BlockHeader, blocks, length_of};
pub use digest::{Digest, DigestError, Digesting};
pub use file_blocks::{FileBlocks, Outcome};
pub use message::{MOST_DIGESTS, Message, MessageError};
pub use name::{NameError, check_name, part_name};
