//! The state of a file that is being received. The session gives the digest of each block, and only payload with that digest is
//! written.

use super::{Digest, blocks};

/// What to do with the payload of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The block's digest is not known yet: the payload waits.
    Waits,
    /// The payload has the digest: it may be written.
    Matches,
    /// The payload has another digest: the block must be requested again.
    Differs,
    /// The block has been received already.
    Superfluous,
}

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slot {
    /// Nothing is known.
    Unknown,
    /// An earlier attempt has left a block with this digest.
    Left(Digest),
    /// The session has given the digest that the block must have.
    Expected(Digest),
    /// The block has been received, with this digest.
    There(Digest),
}

/// The blocks of one file.
#[derive(Debug)]
pub struct FileBlocks {
    slots: Vec<Slot>,
    missing: u64,
}

impl FileBlocks {
    /// The blocks of a file of this many bytes, of which no block has been received. It takes 33 bytes for each block.
    pub fn new(bytes: u64) -> FileBlocks {
        let missing = blocks(bytes);
        FileBlocks { slots: vec![Slot::Unknown; usize::try_from(missing).unwrap_or(usize::MAX)], missing }
    }

    /// Notes the digest of a block that an earlier attempt has left. `None` if the file has no such block.
    pub fn left(&mut self, block: u64, digest: Digest) -> Option<()> {
        *self.slot(block)? = Slot::Left(digest);
        Some(())
    }

    /// Notes the digest that the session gives for a block; a block that an earlier attempt has left counts if it has this digest.
    /// `None` if the file has no such block.
    pub fn expect_digest(&mut self, block: u64, digest: Digest) -> Option<()> {
        let slot = self.slot(block)?;
        match *slot {
            Slot::There(_) => {}
            Slot::Left(has) if has == digest => {
                *slot = Slot::There(digest);
                self.missing -= 1;
            }
            Slot::Unknown | Slot::Left(_) | Slot::Expected(_) => *slot = Slot::Expected(digest),
        }
        Some(())
    }

    /// Checks payload with this digest for a block. `None` if the file has no such block.
    pub fn came(&mut self, block: u64, digest: Digest) -> Option<Outcome> {
        Some(match *self.slot(block)? {
            Slot::Unknown | Slot::Left(_) => Outcome::Waits,
            Slot::Expected(expected) if expected == digest => Outcome::Matches,
            Slot::Expected(_) => Outcome::Differs,
            Slot::There(_) => Outcome::Superfluous,
        })
    }

    /// Notes that matching payload was written.
    pub fn written(&mut self, block: u64) {
        if let Some(slot) = self.slot(block)
            && let Slot::Expected(digest) = *slot
        {
            *slot = Slot::There(digest);
            self.missing -= 1;
        }
    }

    /// Whether a block with the session's digest has been received.
    pub fn has(&self, block: u64) -> bool {
        let slot = usize::try_from(block).ok().and_then(|block| self.slots.get(block));
        matches!(slot, Some(Slot::There(_)))
    }

    /// The digest of the whole file. `None` until all blocks have been received.
    pub fn whole(&self) -> Option<Digest> {
        let there = |slot: &Slot| if let Slot::There(digest) = slot { Some(*digest) } else { None };
        (self.missing == 0).then(|| Digest::of_file(&self.slots.iter().filter_map(there).collect::<Vec<_>>()))
    }

    fn slot(&mut self, block: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(block).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::BLOCK;

    #[test]
    fn only_blocks_with_the_announced_digest_count() {
        let (right, wrong) = (Digest::of(b"right"), Digest::of(b"wrong"));
        let mut blocks = FileBlocks::new(2 * BLOCK + 1);
        assert_eq!(blocks.came(0, right), Some(Outcome::Waits));
        blocks.expect_digest(0, right).unwrap();
        assert_eq!(blocks.came(0, wrong), Some(Outcome::Differs));
        assert_eq!(blocks.came(0, right), Some(Outcome::Matches));
        blocks.written(0);
        assert_eq!(blocks.came(0, wrong), Some(Outcome::Superfluous));
        // A block of an earlier attempt counts if it has the right digest, and is overwritten if not.
        blocks.left(1, right).unwrap();
        blocks.left(2, wrong).unwrap();
        blocks.expect_digest(1, right).unwrap();
        blocks.expect_digest(2, right).unwrap();
        assert_eq!((blocks.came(1, right), blocks.whole()), (Some(Outcome::Superfluous), None));
        assert_eq!(blocks.came(2, right), Some(Outcome::Matches));
        blocks.written(2);
        assert_eq!(blocks.whole(), Some(Digest::of_file(&[right; 3])));
        // A block without a digest cannot be written, and a block is counted once.
        blocks.written(2);
        assert_eq!(blocks.whole(), Some(Digest::of_file(&[right; 3])));
        assert_eq!(
            (blocks.expect_digest(3, right), blocks.came(u64::MAX, right), blocks.left(3, right)),
            (None, None, None)
        );
        assert_eq!(FileBlocks::new(0).whole(), Some(Digest::of(b"")));
    }
}
