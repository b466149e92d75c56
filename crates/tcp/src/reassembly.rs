//! Data that has arrived out of order, and its report: the ranges themselves, and the SACK blocks in the order of RFC 2018
//! (newest first) as in Linux (`tcp_sack_new_ofo_skb`): at most four, each merged with its neighbours.

/// Blocks remembered (`TCP_NUM_SACKS`).
const BLOCKS: usize = 4;
/// Blocks that an acknowledgement surely has room for, with some to spare in case it is lost (`TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED: usize = 2;

type Range = (u64, u64);

/// Out-of-order data. Positions count from the peer's SYN.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reassembly {
    /// Disjoint, not touching, ascending.
    ranges: Vec<Range>,
    /// Bytes in `ranges`.
    held: u64,
    blocks: [Range; BLOCKS],
    count: usize,
    /// A duplicate to be reported once (RFC 2883); `None` if there is none.
    pub(crate) duplicate: Option<Range>,
}

fn touch(a: Range, b: Range) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

fn join(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

fn length(range: Range) -> u64 {
    range.1 - range.0
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether an acknowledgement has blocks or a duplicate to report.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.count > 0 || self.duplicate.is_some()
    }

    /// Bytes held.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        debug_assert_eq!(self.held, self.ranges.iter().copied().map(length).sum::<u64>());
        self.held
    }

    /// End of the last range; 0 if there is none.
    #[inline]
    pub(crate) fn reaches(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.1)
    }

    /// The blocks to report, newest first.
    #[inline]
    pub(crate) fn blocks(&self) -> &[Range] {
        &self.blocks[..self.count]
    }

    /// Adds a range beyond the next expected position, and reports it first.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        self.place(start, end);
        self.note(start, end);
    }

    /// Adds a range beyond the next expected position to the data. [`Reassembly::note`] must follow.
    pub(crate) fn place(&mut self, start: u64, end: u64) {
        // In nearly all cases it continues the last range.
        if let Some(last) = self.ranges.last_mut()
            && last.1 == start
        {
            last.1 = end;
            self.held += end - start;
            return;
        }
        let from = match self.ranges.last() {
            Some(last) if last.1 < start => self.ranges.len(),
            _ => self.ranges.partition_point(|range| range.1 < start),
        };
        let to = from + self.ranges[from..].iter().take_while(|range| range.0 <= end).count();
        if from == to {
            self.ranges.insert(from, (start, end));
            self.held += end - start;
        } else {
            let merged = join(join(self.ranges[from], self.ranges[to - 1]), (start, end));
            self.report_overlap(from, to, start, end);
            self.held += length(merged);
            self.held -= self.ranges[from..to].iter().copied().map(length).sum::<u64>();
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
        }
    }

    /// Notes the parts of the new range that were there already as duplicates.
    fn report_overlap(&mut self, from: usize, to: usize, start: u64, end: u64) {
        for index in from..to {
            let (low, high) = self.ranges[index];
            let overlap = (low.max(start), high.min(end));
            if overlap.0 < overlap.1 {
                self.note_duplicate(overlap.0, overlap.1);
            }
        }
    }

    /// A duplicate has arrived (`tcp_dsack_set`, `tcp_dsack_extend`).
    pub(crate) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some(match self.duplicate {
            Some(known) if touch(known, (start, end)) => join(known, (start, end)),
            Some(known) => known,
            None => (start, end),
        });
    }

    /// The block that a range would be merged with; `None` if it would be a new one.
    fn neighbour(&self, range: Range) -> Option<usize> {
        self.blocks[..self.count].iter().position(|&block| touch(block, range))
    }

    /// Whether reporting this range first would move a block that is among the expected ones out of them.
    pub(crate) fn displaces(&self, start: u64, end: u64) -> bool {
        self.neighbour((start, end)).unwrap_or(self.count) >= EXPECTED
    }

    /// Reports a range that was [placed](Reassembly::place) first in the next acknowledgements.
    pub(crate) fn note(&mut self, start: u64, end: u64) {
        // In nearly all cases it continues the newest block.
        if let Some(newest) = self.blocks[..self.count].first_mut()
            && newest.1 == start
        {
            newest.1 = end;
            return self.coalesce();
        }
        let found = self.neighbour((start, end));
        let mut block = (start, end);
        match found {
            Some(index) => {
                block = join(self.blocks[index], block);
                self.blocks[..=index].rotate_right(1);
            }
            None => {
                self.count = (self.count + 1).min(BLOCKS);
                self.blocks[..self.count].rotate_right(1);
            }
        }
        self.blocks[0] = block;
        self.coalesce();
    }

    /// Joins the first block with the blocks that it now touches (`tcp_sack_maybe_coalesce`).
    fn coalesce(&mut self) {
        let mut index = 1;
        while index < self.count {
            if touch(self.blocks[0], self.blocks[index]) {
                self.blocks[0] = join(self.blocks[0], self.blocks[index]);
                self.blocks[index..self.count].rotate_left(1);
                self.count -= 1;
            } else {
                index += 1;
            }
        }
    }

    /// In-order data has reached `position`. Returns the end of the data now in order (`tcp_ofo_queue`, `tcp_sack_remove`).
    pub(crate) fn advance(&mut self, position: u64) -> u64 {
        let mut reached = position;
        let mut used = 0;
        for &(start, end) in &self.ranges {
            if start > reached {
                break;
            }
            if start < reached {
                let duplicate = (start, end.min(position));
                if duplicate.0 < duplicate.1 {
                    self.duplicate.get_or_insert(duplicate);
                }
            }
            reached = reached.max(end);
            used += 1;
            self.held -= end - start;
        }
        self.ranges.drain(..used);
        if self.ranges.is_empty() {
            self.count = 0;
        } else {
            let mut kept = 0;
            for index in 0..self.count {
                if self.blocks[index].1 > reached {
                    self.blocks[kept] = self.blocks[index];
                    kept += 1;
                }
            }
            self.count = kept;
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sack_blocks_are_listed_newest_first_and_merge_when_adjacent() {
        let mut data = Reassembly::default();
        data.insert(20, 30);
        data.insert(40, 50);
        data.insert(60, 70);
        assert_eq!(data.blocks(), &[(60, 70), (40, 50), (20, 30)]);
        data.insert(30, 40);
        assert_eq!(data.blocks(), &[(20, 50), (60, 70)]);
        assert_eq!(data.held(), 40);
        assert_eq!(data.advance(20), 50);
        assert_eq!(data.blocks(), &[(60, 70)]);
        assert_eq!(data.advance(60), 70);
        assert!(data.is_empty() && data.blocks().is_empty());
    }

    #[test]
    fn the_fifth_block_pushes_out_the_oldest() {
        let mut data = Reassembly::default();
        for n in 1..=5 {
            data.insert(n * 10, n * 10 + 5);
        }
        assert_eq!(data.blocks(), &[(50, 55), (40, 45), (30, 35), (20, 25)]);
        assert_eq!(data.advance(10), 15);
    }

    #[test]
    fn a_range_displaces_a_block_if_two_are_reported_and_it_continues_neither() {
        let mut data = Reassembly::default();
        data.insert(20, 30);
        assert!(!data.displaces(40, 50));
        data.insert(40, 50);
        assert!(data.displaces(60, 70));
        assert!(!data.displaces(30, 35) && !data.displaces(50, 55));
        data.insert(60, 70);
        assert!(data.displaces(30, 35), "the third block would become the first");
        assert!(!data.displaces(50, 55));
    }

    #[test]
    fn data_received_twice_is_reported_as_a_duplicate() {
        let mut data = Reassembly::default();
        data.insert(20, 30);
        data.insert(20, 30);
        assert_eq!(data.duplicate, Some((20, 30)));
        assert_eq!(data.held(), 10);
    }
}
