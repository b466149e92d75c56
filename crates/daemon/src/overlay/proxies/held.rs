//! A stretch of a stream's bytes that a proxy holds.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

/// The bytes from a position on.
#[derive(Debug, Default)]
pub(super) struct Held {
    from: u64,
    bytes: VecDeque<u8>,
}

impl Held {
    /// Number of bytes that are held.
    pub(super) fn count(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Puts bytes at a position. What lies before the stretch is left out; a gap before them is filled later.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) {
        let skipped = self.from.saturating_sub(at);
        let Some(bytes) = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..)) else {
            return;
        };
        let start = (at + skipped - self.from) as usize;
        let end = start + bytes.len();
        if start == self.bytes.len() {
            return self.append(bytes);
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (first, second) = self.bytes.as_mut_slices();
        let in_first = first.len().saturating_sub(start).min(bytes.len());
        if in_first > 0 {
            first[start..start + in_first].copy_from_slice(&bytes[..in_first]);
        }
        let start = (start + in_first).saturating_sub(first.len());
        second[start..start + bytes.len() - in_first].copy_from_slice(&bytes[in_first..]);
    }

    /// Copies the bytes at a position behind those of `into`; as many of them as there are.
    pub(super) fn copy(&self, at: u64, count: usize, into: &mut Vec<u8>) {
        let start = usize::try_from(at.saturating_sub(self.from)).unwrap_or(usize::MAX).min(self.bytes.len());
        let end = start.saturating_add(count).min(self.bytes.len());
        let (first, second) = self.bytes.as_slices();
        into.extend_from_slice(&first[start.min(first.len())..end.min(first.len())]);
        into.extend_from_slice(&second[start.saturating_sub(first.len())..end.saturating_sub(first.len())]);
    }

    /// Forgets what lies before a position.
    pub(super) fn forget(&mut self, before: u64) {
        let count = usize::try_from(before.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let count = count.min(self.bytes.len());
        self.bytes.drain(..count);
        self.from += count as u64;
        // The space of a burst is not kept.
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
        }
    }

    /// Writes up to `count` of its first bytes, and forgets them. Returns how many there were.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn write(&mut self, count: usize, to: &mut impl Write) -> io::Result<usize> {
        let (first, second) = self.bytes.as_slices();
        let first = &first[..first.len().min(count)];
        let second = &second[..second.len().min(count - first.len())];
        let written = to.write_vectored(&[IoSlice::new(first), IoSlice::new(second)])?;
        self.forget(self.from + written as u64);
        Ok(written)
    }
}

/// Space that an empty stretch keeps, in bytes.
const KEPT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(held: &Held) -> Vec<u8> {
        let mut all = Vec::new();
        held.copy(held.from, usize::MAX, &mut all);
        all
    }

    #[test]
    fn bytes_that_come_in_any_order_stand_where_they_belong() {
        let mut held = Held::default();
        held.put(4, b"efg");
        held.put(0, b"abc");
        assert_eq!(all(&held), b"abc\0efg");
        held.put(2, b"cdef");
        assert_eq!(all(&held), b"abcdefg");
        let mut out = Vec::new();
        assert_eq!(held.write(3, &mut out).unwrap(), 3);
        // What has gone already comes again, with more.
        held.put(1, b"bcdefghi");
        held.put(0, b"ab");
        assert_eq!((out, all(&held)), (b"abc".to_vec(), b"defghi".to_vec()));
    }

    #[test]
    fn a_stretch_that_wraps_around_is_read_and_written_in_both_parts() {
        let mut held = Held { from: 0, bytes: VecDeque::with_capacity(8) };
        held.append(b"01234567");
        held.forget(6);
        held.append(b"89abcd");
        held.put(9, b"XYZ");
        let mut some = b">".to_vec();
        held.copy(7, 4, &mut some);
        assert_eq!((some.as_slice(), all(&held)), (&b">78XY"[..], b"678XYZcd".to_vec()));
        let mut out = Vec::new();
        while held.write(3, &mut out).unwrap() > 0 {}
        assert_eq!((out, held.from), (b"678XYZcd".to_vec(), 14));
        held.copy(3, 5, &mut some);
        assert_eq!(some, b">78XY");
    }
}
