//! The sending side of a session, over any carrier: what is offered, which blocks the receiver has already, which is sent next, and which
//! files are stored.

use super::guard;
use super::source::Source;
use crate::failure::Failure;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use weir_circuit::transfer::{BlockHeader, Digest, Message, blocks, length_of};

/// How often a block is retransmitted before the path is given up.
const ATTEMPTS: u32 = 5;

/// The bytes that are sent under a name.
pub(crate) struct Outgoing {
    pub name: String,
    pub bytes: u64,
    pub source: Source,
}

/// A block that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRef {
    file: u32,
    block: u64,
    /// The receiver has requested it again.
    again: bool,
}

/// The state of a transfer.
#[derive(Default)]
struct Work {
    /// The next block.
    file: u32,
    block: u64,
    again: VecDeque<BlockRef>,
    /// How often each block was requested again.
    asked: BTreeMap<(u32, u64), u32>,
    /// Digests of the blocks that the receiver has already, and bytes of those that it keeps.
    has: BTreeMap<(u32, u64), Digest>,
    kept: u64,
    /// Whether the receiver has told all that it has. Blocks are sent from then on.
    ready: bool,
    /// Digests of the files that are stored.
    stored: BTreeMap<u32, Digest>,
    ended: bool,
}

/// Files on their way.
pub(crate) struct Sending {
    files: Vec<Outgoing>,
    work: Mutex<Work>,
    more: Condvar,
}

/// What a message of the receiver brings, besides what [`Sending::hear`] notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing more.
    Noted,
    /// The session's token, for connections that carry blocks.
    Token(Digest),
    /// Blocks may be sent; the size of the receiver's buffers, if it is given.
    Ready(Option<u64>),
    /// Bytes received, and when by the receiver's clock.
    Progress(u64, Option<u64>),
}

/// What was sent.
pub(crate) struct Sums {
    /// Bytes of all files, and those that the receiver had already.
    pub total: u64,
    pub kept: u64,
    /// How many blocks were sent again.
    pub again: u64,
    /// Each file's name, length and digest.
    pub files: Vec<(String, u64, Digest)>,
}

impl Sums {
    /// What is said of a transfer of which the receiver had everything already; `None` of any other.
    pub(crate) fn nothing_to_do(&self) -> Option<&'static str> {
        let has_all = self.kept == self.total && self.again == 0 && self.total > 0;
        has_all.then_some("nothing was to do: the receiver has all of it already\n")
    }

    /// A line for each file: its digest as `b3sum --tag` prints it.
    pub(crate) fn rows(&self) -> String {
        let row =
            |(name, _, digest): &(String, u64, Digest)| format!("{} ({name}) = {digest}\n", Digest::NAME);
        self.files.iter().map(row).collect()
    }

    /// The files as JSON.
    pub(crate) fn documents(&self) -> Vec<serde_json::Value> {
        let document = |(name, bytes, digest): &(String, u64, Digest)| serde_json::json!({ "name": name, "bytes": bytes, "algorithm": Digest::NAME, "digest": digest });
        self.files.iter().map(document).collect()
    }
}

/// The failure of a transfer that the same command resumes.
pub(crate) fn lost(error: &io::Error) -> Failure {
    let message = format!("the transfer failed: {error}; the same command resumes it");
    Failure::failed_with(message, same_command())
}

/// The command of this process, as a shell takes it.
pub(crate) fn same_command() -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=@+%".contains(letter);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().map(|word| quoted(word.to_string_lossy().into_owned()));
    words.collect::<Vec<_>>().join(" ")
}

impl Sending {
    pub(crate) fn new(files: Vec<Outgoing>) -> Sending {
        Sending { files, work: Mutex::default(), more: Condvar::new() }
    }

    /// The file of this number.
    pub(crate) fn file(&self, number: u32) -> Option<&Outgoing> {
        self.files.get(number as usize)
    }

    /// The messages that offer the files, to be carried by this many connections.
    pub(crate) fn offers(&self, streams: u32) -> impl Iterator<Item = Message> {
        let offer = |file: &Outgoing| {
            let (name, bytes, memory) = (file.name.clone(), file.bytes, file.source.is_memory());
            Message::Offer { name, bytes, memory }
        };
        self.files.iter().map(offer).chain([Message::Begin { streams }])
    }

    /// Takes a message of the receiver.
    ///
    /// # Errors
    /// The receiver refuses, the path damages a block again and again, or no receiver sends this now.
    pub(crate) fn hear(&self, message: Message) -> Result<Heard, Failure> {
        let mut work = guard(&self.work);
        match message {
            Message::Refuse { reason } => return Err(Failure::failed(format!("refused: {reason}"))),
            Message::Progress { bytes, after_ns } => return Ok(Heard::Progress(bytes, after_ns)),
            Message::Accept { token } if !work.ready => return Ok(Heard::Token(token)),
            Message::Has { file, first, digests } if !work.ready => {
                work.has.extend((first..).zip(digests).map(|(block, digest)| ((file, block), digest)));
            }
            Message::Ready { receive_buffer } if !work.ready => {
                work.ready = true;
                return Ok(Heard::Ready(receive_buffer));
            }
            Message::Stored { file, digest } if work.ready => drop(work.stored.insert(file, digest)),
            Message::Again { file, block } if work.ready => {
                let asked = work.asked.entry((file, block)).or_default();
                *asked += 1;
                if *asked > ATTEMPTS {
                    let message = format!("a block was damaged {ATTEMPTS} times in transit");
                    return Err(Failure::failed(message));
                }
                work.again.push_back(BlockRef { file, block, again: true });
                self.more.notify_all();
            }
            _ => return Err(lost(&io::Error::other("the other host sent a message that no receiver sends"))),
        }
        Ok(Heard::Noted)
    }

    /// The next block to send; `None` while there is none.
    pub(crate) fn next(&self) -> Option<BlockRef> {
        guard(&self.work).next(&self.files)
    }

    /// The next block to send. Waits for blocks that are requested again; `None` when the transfer has ended.
    pub(crate) fn wait(&self) -> Option<BlockRef> {
        let mut work = guard(&self.work);
        while !work.ended {
            if let Some(place) = work.next(&self.files) {
                return Some(place);
            }
            work = self.more.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Reads a block into a buffer, and says its digest. Returns the header of a block that is to be sent; `None` if the receiver has it.
    ///
    /// # Errors
    /// The file's, `InvalidData` where it has become shorter, or that of `say`.
    pub(crate) fn prepare(
        &self,
        place: BlockRef,
        buffer: &mut Vec<u8>,
        say: impl FnOnce(&Message) -> io::Result<()>,
    ) -> io::Result<Option<BlockHeader>> {
        let BlockRef { file: number, block, again } = place;
        let Some(file) = self.file(number) else { return Ok(None) };
        let Some(length) = length_of(file.bytes, block) else { return Ok(None) };
        file.source.read(block, length, buffer).map_err(|error| file.changed(error))?;
        if !again {
            let digest = Digest::of_block(buffer, block, file.bytes);
            say(&Message::Digest { file: number, block, digest })?;
            let mut work = guard(&self.work);
            if work.has.get(&(number, block)) == Some(&digest) {
                work.kept += u64::from(length);
                return Ok(None);
            }
        }
        Ok(Some(BlockHeader { file: number, block, length }))
    }

    /// Whether the receiver has told all that it has.
    pub(crate) fn is_ready(&self) -> bool {
        guard(&self.work).ready
    }

    /// Whether all files are stored.
    pub(crate) fn is_done(&self) -> bool {
        guard(&self.work).stored.len() >= self.files.len()
    }

    /// Ends all waiting for blocks.
    pub(crate) fn stop(&self) {
        guard(&self.work).ended = true;
        self.more.notify_all();
    }

    /// Bytes of all files.
    pub(crate) fn total(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// What was sent.
    pub(crate) fn sums(&self) -> Sums {
        let work = guard(&self.work);
        let files = self.files.iter().zip(work.stored.values());
        Sums {
            total: self.total(),
            kept: work.kept,
            again: work.asked.values().map(|times| u64::from(*times)).sum(),
            files: files.map(|(file, digest)| (file.name.clone(), file.bytes, *digest)).collect(),
        }
    }
}

impl Work {
    fn next(&mut self, files: &[Outgoing]) -> Option<BlockRef> {
        if !self.ready {
            return None;
        }
        if let Some(place) = self.again.pop_front() {
            return Some(place);
        }
        loop {
            let file = files.get(self.file as usize)?;
            if self.block < blocks(file.bytes) {
                let place = BlockRef { file: self.file, block: self.block, again: false };
                self.block += 1;
                return Some(place);
            }
            (self.file, self.block) = (self.file + 1, 0);
        }
    }
}

impl Outgoing {
    /// Turns the early end of a file into an error that says that the file changed.
    pub(crate) fn changed(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return error;
        }
        let what = format!("{} changed while it was sent: {error}", self.name);
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_circuit::transfer::BLOCK;

    fn sending(lengths: &[u64]) -> Sending {
        let file = |bytes: &u64| Outgoing { name: format!("{bytes}"), bytes: *bytes, source: Source::Memory };
        Sending::new(lengths.iter().map(file).collect())
    }

    /// The blocks that are sent until there is none.
    fn sent(sending: &Sending) -> Vec<(u32, u64)> {
        let mut buffer = vec![];
        let prepare = |place| sending.prepare(place, &mut buffer, |_| Ok(())).unwrap();
        let headers: Vec<_> = std::iter::from_fn(|| sending.next()).map(prepare).collect();
        headers.into_iter().flatten().map(|header| (header.file, header.block)).collect()
    }

    fn digest(sending: &Sending, file: u32, block: u64) -> Digest {
        let (mut told, mut buffer) = (None, vec![]);
        let place = BlockRef { file, block, again: false };
        sending
            .prepare(place, &mut buffer, |message| {
                told = Some(message.clone());
                Ok(())
            })
            .unwrap();
        let Some(Message::Digest { digest, .. }) = told else { panic!("{told:?}") };
        digest
    }

    #[test]
    fn the_blocks_that_the_receiver_has_with_the_same_digest_are_not_sent() {
        let sending = sending(&[2 * BLOCK, 0, BLOCK + 1]);
        assert!(sending.next().is_none(), "the receiver has not told what it has");
        let (same, other) = (digest(&sending, 0, 1), Digest::of(b"other"));
        sending.hear(Message::Has { file: 0, first: 1, digests: vec![same] }).unwrap();
        sending.hear(Message::Has { file: 2, first: 0, digests: vec![other] }).unwrap();
        assert_eq!(sending.hear(Message::Ready { receive_buffer: None }).unwrap(), Heard::Ready(None));
        assert_eq!(sent(&sending), [(0, 0), (2, 0), (2, 1)]);
        assert_eq!(sending.sums().kept, BLOCK);
    }

    #[test]
    fn a_damaged_block_is_sent_again_five_times_and_no_more() {
        let sending = sending(&[BLOCK]);
        sending.hear(Message::Ready { receive_buffer: None }).unwrap();
        assert_eq!(sent(&sending), [(0, 0)]);
        for _ in 0..ATTEMPTS {
            sending.hear(Message::Again { file: 0, block: 0 }).unwrap();
            assert_eq!(sent(&sending), [(0, 0)]);
        }
        assert!(sending.hear(Message::Again { file: 0, block: 0 }).is_err());
        assert_eq!(sending.sums().again, u64::from(ATTEMPTS) + 1);
    }

    #[test]
    fn messages_out_of_turn_are_refused() {
        let sending = sending(&[1]);
        let stored = Message::Stored { file: 0, digest: Digest::of(b"") };
        assert!(sending.hear(stored.clone()).is_err());
        sending.hear(Message::Ready { receive_buffer: None }).unwrap();
        assert!(sending.hear(Message::Ready { receive_buffer: None }).is_err());
        sending.hear(stored).unwrap();
        assert!(sending.is_done());
    }
}
