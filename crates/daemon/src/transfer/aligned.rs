//! Buffers for direct I/O, which writes a file past the page cache: a write begins at a sector and is whole sectors long.

use std::ops::{Deref, DerefMut};

/// The largest alignment that disks and file systems ask for: a page.
pub(crate) const SECTOR: usize = 4096;

/// Bytes that begin at a multiple of [`SECTOR`].
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    /// Sets the length; the content is arbitrary.
    pub(crate) fn resize(&mut self, length: usize) {
        if self.bytes.len() < length + SECTOR {
            self.bytes.resize(length + SECTOR, 0);
            self.from = self.bytes.as_ptr().addr().wrapping_neg() % SECTOR;
        }
        self.length = length;
    }
}

impl Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.from..self.from + self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_with_a_sector_whatever_their_length() {
        let mut buffer = Aligned::default();
        assert_eq!(buffer.len(), 0);
        for length in [1, 4096, 4 << 20, 17, (4 << 20) + 1] {
            buffer.resize(length);
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % SECTOR), (length, 0));
            buffer[length - 1] = 7;
        }
        // Moving the buffer does not move its bytes.
        let moved = buffer;
        assert_eq!((moved.as_ptr().addr() % SECTOR, moved[4 << 20]), (0, 7));
    }
}
