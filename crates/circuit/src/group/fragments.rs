//! A set of a block's fragments.

/// Fragments of a block, a bit each.
#[derive(Debug, Clone)]
pub(super) struct Fragments {
    words: Vec<u64>,
    length: u16,
    count: u16,
}

impl Fragments {
    /// None of a block of this many fragments.
    pub(super) fn none(length: u16) -> Fragments {
        Fragments { words: vec![0; usize::from(length).div_ceil(64)], length, count: 0 }
    }

    fn bit(fragment: u16) -> (usize, u64) {
        (usize::from(fragment / 64), 1 << (fragment % 64))
    }

    pub(super) fn has(&self, fragment: u16) -> bool {
        let (word, bit) = Fragments::bit(fragment);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds one. Returns whether it is new; the block must have it.
    pub(super) fn add(&mut self, fragment: u16) -> bool {
        let (word, bit) = Fragments::bit(fragment);
        let is_new = fragment < self.length && self.words[word] & bit == 0;
        if is_new {
            self.words[word] |= bit;
            self.count += 1;
        }
        is_new
    }

    /// Takes out the first one.
    pub(super) fn take_first(&mut self) -> Option<u16> {
        let word = self.words.iter().position(|word| *word != 0)?;
        let bit = self.words[word].trailing_zeros();
        self.words[word] &= !(1 << bit);
        self.count -= 1;
        Some(word as u16 * 64 + bit as u16)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it has all of them.
    pub(super) fn is_whole(&self) -> bool {
        self.count == self.length
    }

    /// The ranges that it lacks: the first fragment, and how many.
    pub(super) fn missing(&self) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for fragment in (0..self.length).filter(|fragment| !self.has(*fragment)) {
            match ranges.last_mut() {
                Some((first, count)) if *first + *count == fragment => *count += 1,
                _ => ranges.push((fragment, 1)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_in_ranges() {
        let mut fragments = Fragments::none(130);
        assert_eq!((fragments.missing(), fragments.is_empty()), (vec![(0, 130)], true));
        assert!([0, 1, 64, 129, 63].into_iter().all(|fragment| fragments.add(fragment)));
        assert!(!fragments.add(64) && !fragments.add(130));
        assert_eq!(fragments.missing(), [(2, 61), (65, 64)]);
        assert_eq!(
            [(); 6].map(|()| fragments.take_first()),
            [Some(0), Some(1), Some(63), Some(64), Some(129), None]
        );
        (0..130).for_each(|fragment| assert!(!fragments.is_whole() && fragments.add(fragment)));
        assert!(fragments.is_whole() && fragments.missing().is_empty());
    }
}
