//! The data that a connection delivers: files for a folder, a stream for standard output, or bytes and messages that are counted.

use super::frames::{Counted, Receipt, STREAM, Talk};
use crate::transfer::{Folder, Left, MOST_FILES};
use rustix::time::ClockId;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use weir_base::{Span, Time};
use weir_circuit::transfer::{BLOCK, BlockHeader, Digest, Ledger, Message, Outcome, length_of};
use weir_transport::Stream;

/// The files of a session.
#[derive(Default)]
pub(super) struct Files {
    files: Vec<Incoming>,
    /// The file whose blocks of earlier attempts are being read; `None` until all files are offered, and again after the last.
    looked: Option<(usize, Option<Left>)>,
    received: u64,
}

struct Incoming {
    name: String,
    bytes: u64,
    part: File,
    ledger: Ledger,
    stored: bool,
}

impl Files {
    /// Bytes that were received.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Whether [`Files::look`] has something to do.
    pub(super) fn looks(&self) -> bool {
        self.looked.is_some()
    }

    /// Handles a message of the sender. Returns the answers.
    ///
    /// # Errors
    /// The request cannot be met, or the message is not one that a sender sends.
    pub(super) fn hear(&mut self, message: Message, folder: &Folder) -> io::Result<Vec<Message>> {
        match message {
            Message::Offer { name, bytes, memory: false } => {
                if self.files.len() >= MOST_FILES || self.files.iter().any(|file| file.name == name) {
                    return Err(io::Error::other("too many files, or two of one name"));
                }
                let part = folder.part(&name, bytes)?;
                self.files.push(Incoming { name, bytes, part, ledger: Ledger::new(bytes), stored: false });
                Ok(vec![])
            }
            Message::Begin { .. } => {
                self.looked = Some((0, None));
                Ok(vec![])
            }
            Message::Digest { file, block, digest } => {
                let no_such = || io::Error::other("it names a block that no file has");
                let incoming = self.files.get_mut(file as usize).ok_or_else(no_such)?;
                incoming.ledger.told(block, digest).ok_or_else(no_such)?;
                self.complete(file, folder)
            }
            _ => Err(io::Error::other("it says what a sender has no reason to say")),
        }
    }

    /// Reads the next block that an earlier attempt has left. Returns messages for the sender.
    ///
    /// # Errors
    /// The disk's, or a file that is whole cannot be given its name.
    pub(super) fn look(&mut self, folder: &Folder) -> io::Result<Vec<Message>> {
        let Some((number, left)) = &mut self.looked else { return Ok(vec![]) };
        let Some(file) = self.files.get_mut(*number) else {
            self.looked = None;
            let mut messages = vec![Message::Ready { receive_buffer: None }];
            for number in 0..self.files.len() {
                messages.extend(self.complete(number as u32, folder)?);
            }
            return Ok(messages);
        };
        let left = match left {
            Some(left) => left,
            None => left.insert(Left::new(*number as u32, &file.part, file.bytes)?),
        };
        let found = left.next(&file.part)?;
        match found.block {
            Some((block, digest)) => drop(file.ledger.left(block, digest)),
            None => self.looked = Some((*number + 1, None)),
        }
        Ok(found.tell.into_iter().collect())
    }

    /// Stores a block. Returns the answers.
    ///
    /// # Errors
    /// Its place, length or digest is not the announced one, or it cannot be written.
    pub(super) fn block(
        &mut self,
        header: BlockHeader,
        payload: &[u8],
        folder: &Folder,
    ) -> io::Result<Vec<Message>> {
        let wrong = || io::Error::other("a block is not what was told of it");
        let file = self.files.get_mut(header.file as usize).ok_or_else(wrong)?;
        let length = length_of(file.bytes, header.block);
        if length != Some(header.length) || payload.len() != header.length as usize {
            return Err(wrong());
        }
        self.received += payload.len() as u64;
        match file.ledger.came(header.block, Digest::of(payload)) {
            Some(Outcome::Matches) => {
                file.part.write_all_at(payload, header.block * BLOCK)?;
                file.ledger.written(header.block);
                self.complete(header.file, folder)
            }
            Some(Outcome::Superfluous) => Ok(vec![]),
            // The digest arrives before the block, and the transport damages nothing.
            _ => Err(wrong()),
        }
    }

    /// Gives a file its name when all of it is there. Returns the message that says so.
    fn complete(&mut self, number: u32, folder: &Folder) -> io::Result<Vec<Message>> {
        let Some(file) = self.files.get_mut(number as usize).filter(|file| !file.stored) else {
            return Ok(vec![]);
        };
        let Some(digest) = file.ledger.whole() else { return Ok(vec![]) };
        folder.complete(&file.name, &file.part, file.bytes).map_err(|error| {
            io::Error::new(error.kind(), format!("{:?} cannot be given its name: {error}", file.name))
        })?;
        file.stored = true;
        Ok(vec![Message::Stored { file: number, digest }])
    }

    /// The number of files that are whole.
    pub(super) fn whole(&self) -> usize {
        self.files.iter().filter(|file| file.stored).count()
    }

    /// Whether a file of this name is being received.
    pub(super) fn is_receiving(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name && !file.stored)
    }

    /// Gives up the files that are not whole. Returns the number of whole files, and of all.
    pub(super) fn end(&self, folder: &Folder) -> (usize, usize) {
        let missing = self.files.iter().filter(|file| !file.stored);
        missing.clone().for_each(|file| folder.give_up(&file.name, &file.part));
        (self.files.len() - missing.count(), self.files.len())
    }
}

/// The sender is held back while this many bytes wait for the reader of standard output.
const FULL: usize = 4 << 20;
/// Bytes that a writable pipe takes without blocking (pipe(7), `PIPE_BUF`).
const PIECE: usize = 4096;

/// A stream on its way to standard output.
pub(super) struct Output {
    pub(super) stdout: io::Stdout,
    session: Option<usize>,
    waiting: Vec<u8>,
    /// Bytes of `waiting` that are written.
    done: usize,
    written: u64,
    digest: Digest,
    /// Whether the stream's end has arrived, and whether the sender was told that all of it is written.
    ended: bool,
    told: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            stdout: io::stdout(),
            session: None,
            waiting: vec![],
            done: 0,
            written: 0,
            digest: Digest::of(&[]),
            ended: false,
            told: false,
        }
    }
}

impl Output {
    /// Begins the stream of a connection.
    ///
    /// # Errors
    /// Another stream is being received.
    pub(super) fn begin(&mut self, number: usize) -> io::Result<()> {
        match self.session.replace(number) {
            None => Ok(()),
            before => {
                self.session = before;
                Err(io::Error::other("another stream is being received"))
            }
        }
    }

    /// The number of the connection whose stream it is; `None` before one begins.
    pub(super) fn session(&self) -> Option<usize> {
        self.session
    }

    /// Takes a piece of the stream; an empty one is its end.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.ended = true;
        } else {
            self.digest = Digest::of_all([self.digest, Digest::of(bytes)]);
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Whether so much waits to be written that the sender is held back.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() - self.done >= FULL
    }

    /// Whether [`Output::write`] has something to do: to write, or to tell that all is written.
    pub(super) fn waits(&self) -> bool {
        self.done < self.waiting.len() || (self.ended && !self.told)
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Whether all of the stream was written, and the sender was told.
    pub(super) fn is_whole(&self) -> bool {
        self.told
    }

    /// Writes as much as does not block. Returns the message for the sender once all of the stream is written.
    ///
    /// # Errors
    /// The reader of standard output has gone, or the disk is full.
    pub(super) fn write(&mut self) -> io::Result<Option<Message>> {
        let rest = &self.waiting[self.done..];
        let written = rustix::io::write(&self.stdout, &rest[..rest.len().min(PIECE)])?;
        self.done += written;
        self.written += written as u64;
        if self.done == self.waiting.len() {
            self.waiting.clear();
            self.done = 0;
        }
        self.told |= self.ended && self.waiting.is_empty();
        Ok(self.told.then_some(Message::Stored { file: 0, digest: self.digest }))
    }
}

/// Bytes and messages that are counted.
#[derive(Default)]
pub(super) struct Counting {
    bytes: u64,
    /// Arrival times of the first and the last data; `None` before any.
    times: Option<(Time, Time)>,
    cpu: Span,
    receipts: Vec<Receipt>,
    told: bool,
}

/// The time at which a message was sent, from its first 8 bytes; `None` if it has fewer.
pub(super) fn stamp(head: &[u8]) -> Option<Time> {
    head.first_chunk().map(|bytes| Time::from_nanos(u64::from_be_bytes(*bytes)))
}

/// Most receipts in a frame.
const TIMES: usize = 16;

impl Counting {
    /// Counts bytes that were read; `sent` is the time at their start, at which they were sent if they are a message.
    pub(super) fn take(&mut self, stream: Stream, bytes: u64, sent: Option<Time>, now: Time) {
        self.count(bytes, now);
        if let Some(sent) = sent.filter(|_| stream != STREAM) {
            self.receipts.push(Receipt { sent, arrived: now });
        }
    }

    fn count(&mut self, bytes: u64, now: Time) {
        if self.times.is_none() {
            self.cpu = process_time();
        }
        self.bytes += bytes;
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
    }

    /// Writes the receipts and, after the last data, the counts.
    pub(super) fn go_on(&mut self, ended: bool, talk: &mut Talk, now: Time) {
        for receipts in self.receipts.chunks(TIMES) {
            talk.receipts(receipts);
        }
        self.receipts.clear();
        if ended && !std::mem::replace(&mut self.told, true) {
            let (first, last) = self.times.unwrap_or((now, now));
            talk.counted(Counted {
                bytes: self.bytes,
                seconds: last.since(first).as_secs_f64(),
                cpu_seconds: process_time().saturating_sub(self.cpu).as_secs_f64(),
                peak_memory_bytes: peak_memory(),
            });
        }
    }
}

/// Processor time that this process has used.
pub(super) fn process_time() -> Span {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Span::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Peak memory of this process in bytes (`VmHWM`, proc_pid_status(5)); 0 if the system does not report it.
pub(super) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
