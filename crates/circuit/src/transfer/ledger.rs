//! The books of a file that is received. The session tells the digest of each block, and only payload of that digest is written.

use super::{Digest, blocks};

/// What is to be done with the payload of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its digest is still to be told.
    Waits,
    /// It is what was told: it may be written.
    Matches,
    /// It is not, and must come again.
    Differs,
    /// The block is there already.
    Superfluous,
}

/// What is known of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slot {
    /// Nothing.
    Unknown,
    /// The digest of what an earlier attempt left.
    Left(Digest),
    /// The digest that it must have.
    Told(Digest),
    /// It is there, and has this digest.
    There(Digest),
}

/// The blocks of one file.
#[derive(Debug)]
pub struct Ledger {
    slots: Vec<Slot>,
    missing: u64,
}

impl Ledger {
    /// Of a file of so many bytes, of which nothing is there. It keeps 33 bytes for each block.
    pub fn new(bytes: u64) -> Ledger {
        let missing = blocks(bytes);
        Ledger { slots: vec![Slot::Unknown; usize::try_from(missing).unwrap_or(usize::MAX)], missing }
    }

    /// An earlier attempt left something for a block. `None` if the file has no such block.
    pub fn left(&mut self, block: u64, digest: Digest) -> Option<()> {
        *self.slot(block)? = Slot::Left(digest);
        Some(())
    }

    /// The session tells the digest of a block; what an earlier attempt left is there if it has that. `None` if the file has no such
    /// block.
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

    /// Payload with this digest has come for a block. `None` if the file has no such block.
    pub fn came(&mut self, block: u64, digest: Digest) -> Option<Outcome> {
        Some(match *self.slot(block)? {
            Slot::Unknown | Slot::Left(_) => Outcome::Waits,
            Slot::Told(told) if told == digest => Outcome::Matches,
            Slot::Told(_) => Outcome::Differs,
            Slot::There(_) => Outcome::Superfluous,
        })
    }

    /// Payload that matches was written.
    pub fn written(&mut self, block: u64) {
        if let Some(slot) = self.slot(block)
            && let Slot::Told(digest) = *slot
        {
            *slot = Slot::There(digest);
            self.missing -= 1;
        }
    }

    /// The digest of the whole file, that of its blocks' digests, when all of them are there.
    pub fn whole(&self) -> Option<Digest> {
        let there = |slot: &Slot| if let Slot::There(digest) = slot { Some(*digest) } else { None };
        (self.missing == 0).then(|| Digest::of_all(self.slots.iter().filter_map(there)))
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
    fn only_what_has_the_digest_that_was_told_counts() {
        let (right, wrong) = (Digest::of(b"right"), Digest::of(b"wrong"));
        let mut ledger = Ledger::new(2 * BLOCK + 1);
        assert_eq!(ledger.came(0, right), Some(Outcome::Waits));
        ledger.told(0, right).unwrap();
        assert_eq!(ledger.came(0, wrong), Some(Outcome::Differs));
        assert_eq!(ledger.came(0, right), Some(Outcome::Matches));
        ledger.written(0);
        assert_eq!(ledger.came(0, wrong), Some(Outcome::Superfluous));
        // What was there counts if it is what it should be, and is written over if not.
        ledger.left(1, right).unwrap();
        ledger.left(2, wrong).unwrap();
        ledger.told(1, right).unwrap();
        ledger.told(2, right).unwrap();
        assert_eq!((ledger.came(1, right), ledger.whole()), (Some(Outcome::Superfluous), None));
        assert_eq!(ledger.came(2, right), Some(Outcome::Matches));
        ledger.written(2);
        assert_eq!(ledger.whole(), Some(Digest::of_all([right; 3])));
        // What was not told cannot be written, and a block is counted once.
        ledger.written(2);
        assert_eq!(ledger.whole(), Some(Digest::of_all([right; 3])));
        assert_eq!(
            (ledger.told(3, right), ledger.came(u64::MAX, right), ledger.left(3, right)),
            (None, None, None)
        );
        assert_eq!(Ledger::new(0).whole(), Some(Digest::of_all([])));
    }
}
