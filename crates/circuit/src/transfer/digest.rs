//! A BLAKE3 digest of bytes, a block or a file. A file's digest is that of all its bytes, as `b3sum` prints it, and costs nothing beside those
//! of its blocks: BLAKE3 is a tree over chunks of 1 KiB, and a block is a whole subtree of it. The digest of a block is its subtree's
//! chaining value; that of a file's only block is the file's.

use super::BLOCK;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::str::FromStr;

/// 32 bytes; two digests are compared in constant time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(blake3::Hash);

/// The digest of bytes that come one after another.
#[derive(Debug, Clone, Default)]
pub struct Digesting(blake3::Hasher);

impl Digesting {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> Digest {
        Digest(self.0.finalize())
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes))
    }

    /// The name of the algorithm.
    pub const NAME: &str = "BLAKE3";

    /// The digest of the bytes of block number `block` of a file of `bytes` bytes.
    pub fn of_block(payload: &[u8], block: u64, bytes: u64) -> Digest {
        if bytes <= BLOCK || payload.is_empty() {
            return Digest::of(payload);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(block * BLOCK).update(payload);
        Digest(hasher.finalize_non_root().into())
    }

    /// The digest of a file from those of its blocks, in order.
    pub fn of_file(blocks: &[Digest]) -> Digest {
        match blocks {
            [] => Digest::of(&[]),
            [block] => *block,
            blocks => {
                let (left, right) = halves(blocks);
                Digest(merge_subtrees_root(&chaining_value(left), &chaining_value(right), Mode::Hash))
            }
        }
    }
}

/// The left subtree of a tree is the largest power of two of blocks that leaves some for the right one (BLAKE3, section 2.1).
fn halves(blocks: &[Digest]) -> (&[Digest], &[Digest]) {
    blocks.split_at(blocks.len().next_power_of_two() / 2)
}

fn chaining_value(blocks: &[Digest]) -> ChainingValue {
    if let [block] = blocks {
        return *block.0.as_bytes();
    }
    let (left, right) = halves(blocks);
    merge_subtrees_non_root(&chaining_value(left), &chaining_value(right), Mode::Hash)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Digest, DigestError> {
        blake3::Hash::from_hex(text).map(Digest).map_err(|_| DigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{blocks, length_of};

    #[test]
    fn the_digest_of_a_file_is_blake3_of_its_bytes() {
        for bytes in
            [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK + 1, 5 * BLOCK + 1025]
        {
            let file: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let of_block = |block: u64| {
                let from = (block * BLOCK) as usize;
                let length = length_of(bytes, block).unwrap() as usize;
                Digest::of_block(&file[from..from + length], block, bytes)
            };
            let parts: Vec<Digest> = (0..blocks(bytes)).map(of_block).collect();
            assert_eq!(Digest::of_file(&parts).to_string(), blake3::hash(&file).to_string(), "{bytes}");
        }
    }

    #[test]
    fn a_stream_has_the_digest_of_its_bytes_however_they_come() {
        let mut stream = Digesting::default();
        assert_eq!(stream.digest(), Digest::of(b""));
        stream.update(b"a");
        stream.update(b"bc");
        assert_eq!(stream.digest(), Digest::of(b"abc"));
    }
}
