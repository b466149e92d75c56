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
    Told(Digest),
    /// The block has been received, with this digest.
    There(Digest),
}

/// The blocks of one file.
#[derive(Debug)]
pub struct Ledger {
    slots: Vec<Slot>,
    missing: u64,
}

impl Ledger {
    /// A ledger for a file of this many bytes, of which no block has been received. It takes 33 bytes for each block.
    pub fn new(bytes: u64) -> Ledger {
        let missing = blocks(bytes);
        Ledger { slots: vec![Slot::Unknown; usize::try_from(missing).unwrap_or(usize::MAX)], missing }
    }

    /// Notes the digest of a block that an earlier attempt has left. `None` if the file has no such block.
    pub fn left(&mut self, block: u64, digest: Digest) -> Option<()> {
        *self.slot(block)? = Slot::Left(digest);
        Some(())
    }

    /// Notes the digest that the session gives for a block; a block that an earlier attempt has left counts if it has this digest.
    /// `None` if the file has no such block.
    pub fn told(&mut self, block: u64, digest: Digest) -> Option<()> {
        let slot = self.slot(block)?;
        match *slot {
            Slot::There(_) => {}
            Slot::Left(has) if has == digest => {
                *slot = Slot::There(digest);
                self.missing -= 1;
            }
            Slot::Unknown | Slot::Left(_) | Slot::Told(_) => *slot = Slot::Told(digest),
        }
        Some(())
    }

    /// Checks payload with this digest for a block. `None` if the file has no such block.
    pub fn came(&mut self, block: u64, digest: Digest) -> Option<Outcome> {
        Some(match *self.slot(block)? {
            Slot::Unknown | Slot::Left(_) => Outcome::Waits,
            Slot::Told(told) if told == digest => Outcome::Matches,
            Slot::Told(_) => Outcome::Differs,
            Slot::There(_) => Outcome::Superfluous,
        })
    }

    /// Notes that matching payload was written.
    pub fn written(&mut self, block: u64) {
        if let Some(slot) = self.slot(block)
            && let Slot::Told(digest) = *slot
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
        let mut ledger = Ledger::new(2 * BLOCK + 1);
        assert_eq!(ledger.came(0, right), Some(Outcome::Waits));
        ledger.told(0, right).unwrap();
        assert_eq!(ledger.came(0, wrong), Some(Outcome::Differs));
        assert_eq!(ledger.came(0, right), Some(Outcome::Matches));
        ledger.written(0);
        assert_eq!(ledger.came(0, wrong), Some(Outcome::Superfluous));
        // A block of an earlier attempt counts if it has the right digest, and is overwritten if not.
        ledger.left(1, right).unwrap();
        ledger.left(2, wrong).unwrap();
        ledger.told(1, right).unwrap();
        ledger.told(2, right).unwrap();
        assert_eq!((ledger.came(1, right), ledger.whole()), (Some(Outcome::Superfluous), None));
        assert_eq!(ledger.came(2, right), Some(Outcome::Matches));
        ledger.written(2);
        assert_eq!(ledger.whole(), Some(Digest::of_file(&[right; 3])));
        // A block without a digest cannot be written, and a block is counted once.
        ledger.written(2);
        assert_eq!(ledger.whole(), Some(Digest::of_file(&[right; 3])));
        assert_eq!(
            (ledger.told(3, right), ledger.came(u64::MAX, right), ledger.left(3, right)),
            (None, None, None)
        );
        assert_eq!(Ledger::new(0).whole(), Some(Digest::of(b"")));
    }
}
