//! The files to be sent, the parts of files that earlier attempts have left, and the receiver's address.

use super::PORT;
use super::send::Outgoing;
use super::source::Source;
use crate::failure::Failure;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use weir_circuit::transfer::{BLOCK, Digest, MOST_DIGESTS, Message, check_name, length_of};

fn bad(path: &Path, error: impl std::fmt::Display, help: &str) -> Failure {
    Failure::bad_input(format!("{}: {error}", path.display()), help)
}

/// Opens files that are to be sent.
///
/// # Errors
/// A path cannot be read or is not a file, or its name is not allowed for received files or is given twice.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<Outgoing>, Failure> {
    let mut files: Vec<Outgoing> = vec![];
    for path in paths {
        let unreadable = |error: io::Error| bad(path, error, "name files that can be read");
        let file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !about.is_file() {
            return Err(bad(path, "it is not a file", "folders are not sent; name their files"));
        }
        check_name(&name).map_err(|error| bad(path, error, "rename it"))?;
        if files.iter().any(|other| other.name == name) {
            return Err(bad(path, "another file has the same name", "send it with a separate command"));
        }
        files.push(Outgoing { name, bytes: about.len(), source: Source::File(file) });
    }
    Ok(files)
}

/// The address of `HOST` or `HOST:PORT`.
///
/// # Errors
/// The host has no address.
pub fn address(host: &str) -> Result<SocketAddr, Failure> {
    let with_port = host.to_socket_addrs().or_else(|_| (host, PORT).to_socket_addrs());
    let first = with_port.map(|mut all| all.next());
    let help = "write it like 10.1.2.3, host.example or 10.1.2.3:7765";
    let found = first.map_err(|error| Failure::bad_input(format!("{host}: {error}"), help))?;
    found.ok_or_else(|| Failure::bad_input(format!("{host} has no address"), "give its IP address"))
}

/// The part of a file that an earlier attempt has left, read block by block.
pub(crate) struct Left {
    file: u32,
    bytes: u64,
    /// Length of the part in bytes.
    length: u64,
    block: u64,
    /// The digests that the sender has not been told yet, from this block on.
    first: u64,
    digests: Vec<Digest>,
    buffer: Vec<u8>,
}

/// The next block of a part.
pub(crate) struct Found {
    /// A block and its digest; `None` if there are no more.
    pub block: Option<(u64, Digest)>,
    /// A message for the sender, if one is due.
    pub tell: Option<Message>,
}

impl Left {
    /// The part of file number `file`, which has `bytes` bytes when it is whole.
    ///
    /// # Errors
    /// The part's length cannot be read.
    pub(crate) fn new(file: u32, part: &File, bytes: u64) -> io::Result<Left> {
        let length = part.metadata()?.len().min(bytes);
        Ok(Left { file, bytes, length, block: 0, first: 0, digests: vec![], buffer: vec![] })
    }

    /// Reads the next block.
    ///
    /// # Errors
    /// The part cannot be read.
    pub(crate) fn next(&mut self, part: &File) -> io::Result<Found> {
        let size = length_of(self.bytes, self.block);
        let Some(size) = size.filter(|size| self.block * BLOCK + u64::from(*size) <= self.length) else {
            return Ok(Found { block: None, tell: self.message() });
        };
        self.buffer.resize(size as usize, 0);
        part.read_exact_at(&mut self.buffer, self.block * BLOCK)?;
        let (block, digest) = (self.block, Digest::of_block(&self.buffer, self.block, self.bytes));
        self.block += 1;
        self.digests.push(digest);
        let tell = if self.digests.len() == MOST_DIGESTS { self.message() } else { None };
        Ok(Found { block: Some((block, digest)), tell })
    }

    fn message(&mut self) -> Option<Message> {
        let digests = std::mem::take(&mut self.digests);
        let first = std::mem::replace(&mut self.first, self.block);
        (!digests.is_empty()).then_some(Message::Has { file: self.file, first, digests })
    }
}
