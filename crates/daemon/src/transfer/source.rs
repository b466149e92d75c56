//! Where the bytes of a transfer come from: a file, or memory alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use weir_circuit::transfer::BLOCK;

/// The bytes of a transfer, in blocks.
pub(crate) enum Source {
    /// A file.
    File(File),
    /// Memory alone: each block begins with its number, so that no two have the same digest.
    Memory,
}

impl Source {
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Source::Memory)
    }

    /// Reads the bytes from `at` on that fill a buffer.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub(crate) fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Source::File(file) => file.read_exact_at(buffer, at)?,
            Source::Memory => {
                let begins = (at / BLOCK).to_be_bytes();
                let byte = |at: u64| begins.get((at % BLOCK) as usize).copied().unwrap_or_default();
                (at..).zip(buffer).for_each(|(at, to)| *to = byte(at));
            }
        }
        Ok(())
    }

    /// Reads a block of this length into a buffer that is reused.
    ///
    /// # Errors
    /// The file's; `UnexpectedEof` where it has become shorter.
    pub(crate) fn read(&self, block: u64, length: u32, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.resize(length as usize, 0);
        match self {
            Source::File(file) => file.read_exact_at(buffer, block * BLOCK)?,
            Source::Memory => buffer.iter_mut().zip(block.to_be_bytes()).for_each(|(to, from)| *to = from),
        }
        Ok(())
    }
}
