//! The data that a connection delivers beside files: a stream for standard output, or bytes and messages that are counted.

use super::frames::STREAM;
use crate::transfer::{Counted, Receipt, Talk};
use rustix::time::ClockId;
use std::io;
use weir_base::{Span, Time};
use weir_circuit::transfer::{Digesting, Message};
use weir_endpoint::Stream;

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
    digest: Box<Digesting>,
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
            digest: Box::default(),
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
            self.digest.update(bytes);
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
        Ok(self.told.then_some(Message::Stored { file: 0, digest: self.digest.digest() }))
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
