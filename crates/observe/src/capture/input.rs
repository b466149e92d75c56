//! A buffer over what is read: the next bytes side by side, with their place in the file.

use std::io::{self, Read};

/// Bytes that are asked for at a time.
const STEP: usize = 1 << 18;

#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the bytes that are not taken yet begin and end in the buffer.
    begin: usize,
    end: usize,
    /// Bytes taken so far.
    position: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Input<R> {
        Input { reader, buffer: vec![0; 2 * STEP], begin: 0, end: 0, position: 0 }
    }

    /// Whether this many bytes follow; they are in the buffer then.
    pub(super) fn has(&mut self, count: usize) -> io::Result<bool> {
        while self.end - self.begin < count {
            if self.begin + count.max(STEP) > self.buffer.len() {
                self.buffer.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            }
            if self.buffer.len() < count.max(STEP) {
                self.buffer.resize(count.max(STEP), 0);
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The next bytes, of which [`Input::has`] has said that they are there.
    pub(super) fn peek(&self, count: usize) -> &[u8] {
        &self.buffer[self.begin..self.end][..count]
    }

    /// Takes them.
    pub(super) fn take(&mut self, count: usize) -> &[u8] {
        let from = self.begin;
        self.begin += count;
        self.position += count as u64;
        &self.buffer[from..self.end][..count]
    }

    /// Bytes of what was taken last: `count` of them, the first of which is `from` bytes before the end of what was taken.
    pub(super) fn taken(&self, from: usize, count: usize) -> &[u8] {
        &self.buffer[self.begin - from..self.begin][..count]
    }

    /// Leaves bytes out, though they be more than the buffer holds; false if the input ends first.
    pub(super) fn skip(&mut self, mut count: u64) -> io::Result<bool> {
        while count > 0 {
            if !self.has(1)? {
                return Ok(false);
            }
            let some = count.min((self.end - self.begin) as u64);
            self.take(some as usize);
            count -= some;
        }
        Ok(true)
    }

    /// Number of bytes taken.
    pub(super) fn position(&self) -> u64 {
        self.position
    }
}
