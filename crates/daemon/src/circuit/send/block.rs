//! A block on its way into a connection.

use crate::transfer::Source;
use rustix::net::SendFlags;
use std::io::{self, Write};
use std::net::TcpStream;
use weir_circuit::transfer::{BLOCK, BlockHeader};

/// Sends a block over a connection, its header first. A file's blocks go from the page cache to the connection without a copy
/// (sendfile(2)).
///
/// # Errors
/// The connection's or the file's; `UnexpectedEof` where the file has become shorter.
pub(super) fn send_block(
    source: &Source,
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
    let Source::File(file) = source else {
        source.read(header.block, header.length, buffer)?;
        return stream.write_all(buffer);
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
