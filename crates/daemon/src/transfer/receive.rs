//! The receiving side of a session, over any carrier: which files are offered, which of their blocks are there, and when a file is whole.
//! A block that does not have the session's digest is never written.

use super::aligned::SECTOR;
use super::files::Left;
use super::folder::Folder;
use super::{MOST_FILES, guard};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use weir_circuit::transfer::{BLOCK, BlockHeader, Digest, FileBlocks, Message, Outcome, length_of};

/// Most bytes that are received into memory in a session: the state of each block takes 33 bytes.
const MOST_IN_MEMORY: u64 = 16 << 40;

/// What a carrier of sessions can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carrier {
    /// Whether bytes that are sent from memory are received too: they are verified and discarded.
    pub memory: bool,
    /// Most connections that carry the blocks of a session.
    pub streams: u32,
}

/// A file that is received.
struct Incoming {
    name: String,
    bytes: u64,
    /// The partial file; `None` for bytes from memory.
    part: Option<File>,
    /// The same file for direct I/O, past the page cache: this takes 0.1 s of processor time a GB, against 0.6 to 2.6 s.
    direct: Option<File>,
    blocks: Mutex<FileBlocks>,
    /// Signals that a digest was received, or that the session has ended.
    told: Condvar,
    stored: AtomicBool,
    /// Whether the file is there under its name already, with its length: then its content must be the same.
    is_there: bool,
}

/// The files of a session.
pub(crate) struct Receiving {
    carrier: Carrier,
    files: Vec<Incoming>,
    received: AtomicU64,
    ended: AtomicBool,
}

/// The place up to which blocks of earlier attempts have been read.
#[derive(Default)]
pub(crate) struct Looked {
    file: usize,
    left: Option<Left>,
}

impl Receiving {
    /// A session of this carrier, without files.
    pub(crate) fn new(carrier: Carrier) -> Receiving {
        Receiving { carrier, files: vec![], received: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// Takes an offer, and opens its part. Returns whether the offers are complete.
    ///
    /// # Errors
    /// What is offered cannot be received, or the message is no offer.
    pub(crate) fn offer(&mut self, message: Message, folder: &Folder) -> io::Result<bool> {
        let refused = |why: &str| Err(io::Error::other(why));
        match message {
            Message::Offer { name, bytes, memory } => {
                if self.files.len() >= MOST_FILES || self.files.iter().any(|file| file.name == name) {
                    return refused("too many files, or two files with the same name");
                }
                if memory && !self.carrier.memory {
                    return refused("a transfer from memory is received with `serve --memory`");
                }
                if memory && (!self.files.is_empty() || bytes > MOST_IN_MEMORY)
                    || self.files.iter().any(|file| file.part.is_none())
                {
                    return refused("a transfer from memory has at most 16 TiB, and no files");
                }
                let there = if memory { None } else { folder.there(&name, bytes)? };
                let is_there = there.is_some();
                let part = match there {
                    None if !memory => Some(folder.part(&name, bytes)?),
                    there => there,
                };
                let direct = part.as_ref().filter(|_| !is_there).and_then(|_| folder.direct(&name));
                let blocks = Mutex::new(FileBlocks::new(bytes));
                let (told, stored) = (Condvar::new(), AtomicBool::new(false));
                self.files.push(Incoming { name, bytes, part, direct, blocks, told, stored, is_there });
                Ok(false)
            }
            Message::Begin { streams } if (1..=self.carrier.streams).contains(&streams) => Ok(true),
            _ => refused("it sent a message other than an offer"),
        }
    }

    /// Reads the next block that an earlier attempt has left. Returns a message for the sender if one is due; `None` when all are read.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn look(&self, at: &mut Looked) -> io::Result<Option<Option<Message>>> {
        let Some(file) = self.files.get(at.file) else { return Ok(None) };
        let Some(part) = &file.part else {
            at.file += 1;
            return Ok(Some(None));
        };
        let left = match &mut at.left {
            Some(left) => left,
            none => none.insert(Left::new(at.file as u32, part, file.bytes)?),
        };
        let found = left.next(part)?;
        match found.block {
            Some((block, digest)) => drop(guard(&file.blocks).left(block, digest)),
            None => *at = Looked { file: at.file + 1, left: None },
        }
        Ok(Some(found.tell))
    }

    /// Gives files their names that are whole without a block: those of no length. Returns the messages that say so.
    ///
    /// # Errors
    /// One cannot be given its name.
    pub(crate) fn complete_all(&self, folder: &Folder) -> io::Result<Vec<Message>> {
        let messages = (0..self.files.len()).map(|number| self.complete(number as u32, folder).transpose());
        messages.flatten().collect()
    }

    /// Takes the digest of a block. Returns the message that says that its file is whole, if it is.
    ///
    /// # Errors
    /// The message is no digest, or no file has the block.
    pub(crate) fn hear(&self, message: Message, folder: &Folder) -> io::Result<Option<Message>> {
        let Message::Digest { file: number, block, digest } = message else {
            return Err(io::Error::other("it sent a message that no sender sends"));
        };
        let no_such = || io::Error::other("it names a block outside every file");
        let file = self.files.get(number as usize).ok_or_else(no_such)?;
        let mut blocks = guard(&file.blocks);
        blocks.expect_digest(block, digest).ok_or_else(no_such)?;
        if file.is_there && !blocks.has(block) {
            return Err(file.is_another());
        }
        drop(blocks);
        file.told.notify_all();
        self.complete(number, folder)
    }

    /// Checks that a file has such a block.
    ///
    /// # Errors
    /// None has.
    pub(crate) fn check(&self, header: BlockHeader) -> io::Result<()> {
        let length =
            self.files.get(header.file as usize).and_then(|file| length_of(file.bytes, header.block));
        let fits = length == Some(header.length);
        fits.then_some(()).ok_or_else(|| io::Error::other("the length or place of a block is invalid"))
    }

    /// Writes a block if its digest is the session's; another one is requested again. Its digest may come within the time `wait`.
    /// Returns the answer.
    ///
    /// # Errors
    /// No file has the block, its digest is missing, or it cannot be written.
    pub(crate) fn block(
        &self,
        header: BlockHeader,
        payload: &[u8],
        folder: &Folder,
        wait: Duration,
    ) -> io::Result<Option<Message>> {
        self.check(header)?;
        let file = &self.files[header.file as usize];
        let digest = Digest::of_block(payload, header.block, file.bytes);
        let mut blocks = guard(&file.blocks);
        loop {
            match blocks.came(header.block, digest) {
                Some(Outcome::Matches) => {
                    // Written within the lock, so that nobody else writes other bytes to this block.
                    file.write(header.block, payload)?;
                    blocks.written(header.block);
                    drop(blocks);
                    return self.complete(header.file, folder);
                }
                Some(Outcome::Waits) if !self.ended.load(Ordering::Acquire) => {
                    let waited = file.told.wait_timeout(blocks, wait).unwrap_or_else(PoisonError::into_inner);
                    if waited.1.timed_out() {
                        return Err(io::Error::other("a block arrived whose digest is missing"));
                    }
                    blocks = waited.0;
                }
                Some(Outcome::Differs) => {
                    return Ok(Some(Message::Again { file: header.file, block: header.block }));
                }
                Some(Outcome::Waits | Outcome::Superfluous) | None => return Ok(None),
            }
        }
    }

    /// Gives a file its name when all of it is there. Returns the message that says so.
    fn complete(&self, number: u32, folder: &Folder) -> io::Result<Option<Message>> {
        let file = &self.files[number as usize];
        let Some(digest) = guard(&file.blocks).whole() else { return Ok(None) };
        if file.stored.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        let complete = |part| folder.complete(&file.name, part, file.bytes);
        let part = file.part.as_ref().filter(|_| !file.is_there);
        part.map_or(Ok(()), complete).map_err(|error| {
            file.stored.store(false, Ordering::Release);
            let what = format!("{:?} cannot be renamed to its final name: {error}", file.name);
            io::Error::new(error.kind(), what)
        })?;
        Ok(Some(Message::Stored { file: number, digest }))
    }

    /// Whether a block is there, with the session's digest.
    pub(crate) fn has(&self, file: u32, block: u64) -> bool {
        self.files.get(file as usize).is_some_and(|file| guard(&file.blocks).has(block))
    }

    /// Counts bytes that have arrived.
    pub(crate) fn count(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The number of files that are whole, and of all.
    pub(crate) fn whole(&self) -> (usize, usize) {
        let whole = self.files.iter().filter(|file| file.stored.load(Ordering::Acquire));
        (whole.count(), self.files.len())
    }

    /// Whether a file of this name is being received.
    pub(crate) fn is_receiving(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name && !file.stored.load(Ordering::Acquire))
    }

    /// Whether the session has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends the session: nobody waits for digests any more, and files that are not whole are given up. Their parts stay.
    pub(crate) fn end(&self, folder: &Folder) {
        self.ended.store(true, Ordering::Release);
        for file in &self.files {
            file.told.notify_all();
            let is_part = !file.is_there && !file.stored.load(Ordering::Acquire);
            if let Some(part) = file.part.as_ref().filter(|_| is_part) {
                folder.give_up(&file.name, part);
            }
        }
    }
}

impl Incoming {
    /// The error of a file that is there already with another content.
    fn is_another(&self) -> io::Error {
        let name = &self.name;
        io::Error::other(format!(
            "{name:?} is there already, and nothing is overwritten: its content is another"
        ))
    }

    /// Writes a block; never to a file that is there, whose blocks may come before the message with their digest is refused.
    fn write(&self, block: u64, payload: &[u8]) -> io::Result<()> {
        if self.is_there {
            return Err(self.is_another());
        }
        let whole_sectors =
            payload.len().is_multiple_of(SECTOR) && payload.as_ptr().addr().is_multiple_of(SECTOR);
        let file = self.direct.as_ref().filter(|_| whole_sectors).or(self.part.as_ref());
        file.map_or(Ok(()), |file| file.write_all_at(payload, block * BLOCK)).map_err(|error| {
            io::Error::new(error.kind(), format!("{:?} cannot be written: {error}", self.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_circuit::transfer::blocks;

    #[test]
    fn nothing_is_written_to_a_file_that_is_there_though_a_block_comes_before_its_digest_is_answered() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("data"), b"mine").unwrap();
        let folder = Folder::open(place.path(), None).unwrap();
        let mut files = Receiving::new(Carrier { memory: false, streams: 1 });
        let offer = Message::Offer { name: "data".to_owned(), bytes: 4, memory: false };
        assert!(!files.offer(offer, &folder).unwrap());
        assert_eq!(blocks(4), 1);
        let digest = Digest::of_block(b"your", 0, 4);
        let why = "\"data\" is there already, and nothing is overwritten: its content is another";
        // Both threads of a session may be the first to find it: the one that hears the digest, and the one that stores the block.
        let heard = files.hear(Message::Digest { file: 0, block: 0, digest }, &folder);
        assert_eq!(heard.unwrap_err().to_string(), why);
        let header = BlockHeader { file: 0, block: 0, length: 4 };
        let stored = files.block(header, b"your", &folder, Duration::ZERO);
        assert_eq!(stored.unwrap_err().to_string(), why);
        assert_eq!(std::fs::read(place.path().join("data")).unwrap(), b"mine");
    }
}
