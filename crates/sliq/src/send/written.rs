//! Buffers with the data that an application has written. The segments cut from a buffer share it, and it is freed when the last of them
//! is settled.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Maximum number of segments that share a buffer: a segment that waits for its acknowledgement keeps at most this much memory.
const SHARING: usize = 16;

/// The first bytes of a segment, in a shared buffer. The zeros behind them are not stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    buffer: Option<Arc<[u8]>>,
    range: Range<usize>,
}

impl Written {
    /// A copy of these bytes.
    fn new(bytes: &[u8]) -> Written {
        let buffer = (!bytes.is_empty()).then(|| Arc::from(bytes));
        Written { buffer, range: 0..bytes.len() }
    }

    /// Its bytes in this range, in the same buffer.
    pub(super) fn part(&self, range: Range<usize>) -> Written {
        let at = |offset: usize| self.range.start + offset.min(self.range.len());
        let range = at(range.start)..at(range.end);
        if range.is_empty() { Written::default() } else { Written { buffer: self.buffer.clone(), range } }
    }
}

impl Deref for Written {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.range.clone()])
    }
}

/// Cuts the bytes of a write into segments, in order. Zeros follow the bytes.
pub(super) struct Cutter<'a> {
    rest: &'a [u8],
    segment: usize,
    buffer: Written,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(head: &'a [u8], segment: u32) -> Cutter<'a> {
        Cutter { rest: head, segment: segment as usize, buffer: Written::default() }
    }

    /// The bytes of the next segment.
    pub(super) fn next(&mut self) -> Written {
        if self.buffer.is_empty() {
            let (bytes, rest) = self.rest.split_at(self.rest.len().min(SHARING * self.segment));
            (self.buffer, self.rest) = (Written::new(bytes), rest);
        }
        let next = self.buffer.part(0..self.segment);
        self.buffer = self.buffer.part(self.segment..usize::MAX);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_share_a_buffer_and_have_all_bytes_in_order() {
        let head: Vec<u8> = (0..=255).cycle().take(100 * SHARING + 150).collect();
        let mut cutter = Cutter::new(&head, 100);
        let cut: Vec<Written> = (0..SHARING + 3).map(|_| cutter.next()).collect();
        assert_eq!(cut.iter().flat_map(|written| written.to_vec()).collect::<Vec<u8>>(), head);
        assert_eq!(cut.iter().map(|written| written.len()).skip(SHARING).collect::<Vec<_>>(), [100, 50, 0]);
        let shares = |a: &Written, b: &Written| {
            a.buffer.as_ref().unwrap().as_ptr() == b.buffer.as_ref().unwrap().as_ptr()
        };
        assert!(shares(&cut[0], &cut[SHARING - 1]));
        assert!(!shares(&cut[0], &cut[SHARING]));
    }

    #[test]
    fn a_shared_buffer_is_freed_with_the_last_of_its_segments() {
        let mut cutter = Cutter::new(&[1; 200], 100);
        let (first, last) = (cutter.next(), cutter.next());
        drop(cutter);
        let buffer = Arc::downgrade(first.buffer.as_ref().unwrap());
        drop(first);
        assert_eq!(buffer.upgrade().as_deref(), Some(&[1; 200][..]));
        drop(last);
        assert!(buffer.upgrade().is_none());
    }
}
