//! The bytes of a stream that are written and not acknowledged, for connections that carry real data. The simulator's streams are
//! counts of bytes.

use std::collections::VecDeque;

/// The bytes of the stream from a position on.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Position of the first byte that is kept.
    from: u64,
    bytes: VecDeque<u8>,
}

impl Content {
    /// Appends written bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Appends the bytes of this part of the stream to a packet.
    pub(crate) fn copy(&self, from: u64, length: u32, to: &mut Vec<u8>) {
        let start = from.saturating_sub(self.from) as usize;
        to.extend(self.bytes.iter().skip(start).take(length as usize));
    }

    /// Drops the bytes before this position, which are acknowledged.
    pub(crate) fn forget(&mut self, before: u64) {
        let count = before.saturating_sub(self.from).min(self.bytes.len() as u64);
        self.bytes.drain(..count as usize);
        self.from += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_copied_by_their_position() {
        let (mut content, mut packet) = (Content::default(), b"head ".to_vec());
        content.push(b"some bytes");
        content.forget(5);
        content.push(b" more");
        content.copy(5, 5, &mut packet);
        content.copy(10, 5, &mut packet);
        assert_eq!(packet, b"head bytes more");
    }
}
