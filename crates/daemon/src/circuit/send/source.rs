//! Where the bytes of a transfer come from: a file, or memory alone.

use rustix::net::SendFlags;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use weir_circuit::transfer::{BLOCK, BlockHeader};

/// The bytes of a transfer, in blocks.
pub(super) enum Source {
    /// A file. Its blocks go from the page cache to the connection without a copy (sendfile(2)).
    File(File),
    /// Memory alone: each block begins with its number, so that no two have the same digest.
    Memory,
}

impl Source {
    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Source::Memory)
    }

    /// The bytes of a block of this length, in a buffer that is reused.
    ///
    /// # Errors
    /// The file's; `UnexpectedEof` where it has become shorter.
    pub(super) fn read<'a>(&self, block: u64, length: u32, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        buffer.resize(length as usize, 0);
        match self {
            Source::File(file) => file.read_exact_at(buffer, block * BLOCK)?,
            Source::Memory => buffer.iter_mut().zip(block.to_be_bytes()).for_each(|(to, from)| *to = from),
        }
        Ok(buffer)
    }

    /// Sends a block over a connection, its header first.
    ///
    /// # Errors
    /// The connection's or the file's; `UnexpectedEof` where the file has become shorter.
    pub(super) fn send(
        &self,
        mut stream: &TcpStream,
        header: BlockHeader,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        // `MORE` keeps the header from leaving as a packet of its own.
        let encoded = header.encode();
        let mut rest = &encoded[..];
        while !rest.is_empty() {
            match rustix::net::send(stream, rest, SendFlags::MORE | SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Source::File(file) = self else {
            return stream.write_all(self.read(header.block, header.length, buffer)?);
        };
        let mut at = header.block * BLOCK;
        let end = at + u64::from(header.length);
        while at < end {
            // At most 4 MiB, so it fits any address space.
            let left = (end - at) as usize;
            match rustix::fs::sendfile(stream, file, Some(&mut at), left) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
