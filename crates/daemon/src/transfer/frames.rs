//! The frames that two hosts exchange over a stream, of SLIQ or of TCP: a kind (1 byte), a length (4 bytes, big-endian) and a payload of that
//! length.

use serde::{Deserialize, Serialize};
use std::io;
use weir_base::Time;
use weir_circuit::transfer::{BLOCK, BlockHeader, Message};

/// Bytes of a frame before its payload.
const HEADER: usize = 5;
/// The longest frame holds a block.
const LONGEST: usize = BLOCK as usize + BlockHeader::LENGTH;

const ASK: u8 = 0;
const MESSAGE: u8 = 1;
const BLOCK_OF_FILE: u8 = 2;
const BYTES: u8 = 3;
const RECEIPTS: u8 = 4;
const COUNTED: u8 = 5;

/// The purpose of a connection, which its first frame names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Files, by the messages of a transfer.
    Files,
    /// A stream of bytes for the other host's standard output.
    Input,
    /// A measurement: the receiver counts all bytes that follow.
    Perf,
}

/// The counts of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Bytes received.
    pub bytes: u64,
    /// Time from the first byte to the last.
    pub seconds: f64,
    /// Processor time of the receiver since the first byte, for all its connections.
    pub cpu_seconds: f64,
    /// Peak memory of the receiver; 0 if unknown.
    pub peak_memory_bytes: u64,
}

/// When a message arrived, by the receiver's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it arrived.
    pub arrived: Time,
}

/// A frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    Ask(Ask),
    Message(Message),
    Block(BlockHeader, &'a [u8]),
    /// A piece of standard input; empty at its end.
    Bytes(&'a [u8]),
    Receipts(Vec<Receipt>),
    Counted(Counted),
}

/// The frames of a connection: those that have arrived, and those to send.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    come: Vec<u8>,
    /// Bytes of `come` that are read.
    read: usize,
    out: Vec<u8>,
    written: usize,
}

fn senseless(what: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("what the other host says makes no sense: {what}"))
}

impl Talk {
    /// Takes bytes that have arrived.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.come.drain(..std::mem::take(&mut self.read));
        self.come.extend_from_slice(bytes);
    }

    /// The next frame; `None` before it is whole.
    ///
    /// # Errors
    /// The bytes are not a valid frame.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let rest = &self.come[self.read..];
        let Some(([kind, length @ ..], rest)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(senseless(format!("a frame of {length} bytes")));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        self.read += HEADER + length;
        let frame = match *kind {
            ASK => Frame::Ask(serde_json::from_slice(payload).map_err(senseless)?),
            MESSAGE => Frame::Message(Message::decode(payload).map_err(io::Error::other)?),
            BLOCK_OF_FILE => {
                let (header, payload) =
                    payload.split_first_chunk().ok_or_else(|| senseless("a block without its place"))?;
                Frame::Block(BlockHeader::decode(*header), payload)
            }
            BYTES => Frame::Bytes(payload),
            RECEIPTS => Frame::Receipts(receipts(payload)),
            COUNTED => Frame::Counted(serde_json::from_slice(payload).map_err(senseless)?),
            kind => return Err(senseless(format!("a frame of kind {kind}"))),
        };
        Ok(Some(frame))
    }

    /// Takes the bytes that are not a frame yet, and returns their number: in a measurement, its first bytes.
    pub(crate) fn rest(&mut self) -> usize {
        let rest = self.come.len() - self.read;
        self.read = self.come.len();
        rest
    }

    fn put(&mut self, kind: u8, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.out.push(kind);
        self.out.extend((length as u32).to_be_bytes());
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }

    /// Writes the frame that names the connection's purpose.
    pub(crate) fn ask(&mut self, ask: Ask) {
        self.put(ASK, &[serde_json::to_vec(&ask).unwrap_or_default().as_slice()]);
    }

    /// Writes a message of a transfer.
    ///
    /// # Errors
    /// It is too long.
    pub(crate) fn say(&mut self, message: &Message) -> io::Result<()> {
        self.put(MESSAGE, &[message.encode().map_err(io::Error::other)?.as_slice()]);
        Ok(())
    }

    /// Writes a block of a file.
    pub(crate) fn block(&mut self, header: BlockHeader, payload: &[u8]) {
        self.put(BLOCK_OF_FILE, &[&header.encode(), payload]);
    }

    /// Writes a piece of standard input; an empty one marks its end.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.put(BYTES, &[bytes]);
    }

    /// Writes the arrival times of messages.
    pub(crate) fn receipts(&mut self, receipts: &[Receipt]) {
        let nanos = |receipt: &Receipt| {
            [receipt.sent, receipt.arrived].map(|time| time.as_nanos().to_be_bytes()).concat()
        };
        self.put(RECEIPTS, &[receipts.iter().flat_map(nanos).collect::<Vec<u8>>().as_slice()]);
    }

    /// Writes the counts.
    pub(crate) fn counted(&mut self, counted: Counted) {
        self.put(COUNTED, &[serde_json::to_vec(&counted).unwrap_or_default().as_slice()]);
    }

    /// Bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    /// The bytes that wait to be written.
    pub(crate) fn to_write(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Of the bytes that wait, so many were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.waiting() == 0 {
            self.out.clear();
            self.written = 0;
        }
    }
}

fn receipts(bytes: &[u8]) -> Vec<Receipt> {
    let time = |bytes: &[u8; 8]| Time::from_nanos(u64::from_be_bytes(*bytes));
    let (receipts, _) = bytes.as_chunks::<16>();
    let receipt = |bytes: &[u8; 16]| {
        let (sent, arrived) = bytes.split_first_chunk()?;
        Some(Receipt { sent: time(sent), arrived: time(arrived.first_chunk()?) })
    };
    receipts.iter().filter_map(receipt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of one end as the other reads them, in pieces of this length.
    fn heard(talk: &Talk, piece: usize) -> Vec<String> {
        let mut heard = vec![];
        let mut other = Talk::default();
        for bytes in talk.out.chunks(piece) {
            other.hear(bytes);
            while let Some(frame) = other.next().unwrap() {
                heard.push(format!("{frame:?}"));
            }
        }
        assert_eq!(other.rest(), 0);
        heard
    }

    #[test]
    fn frames_are_decoded_as_they_were_encoded_however_they_are_split() {
        let mut talk = Talk::default();
        talk.ask(Ask::Files);
        talk.say(&Message::Ready { receive_buffer: None }).unwrap();
        talk.block(BlockHeader { file: 1, block: 2, length: 3 }, b"abc");
        talk.bytes(b"");
        let receipt = Receipt { sent: Time::from_nanos(5), arrived: Time::from_nanos(1 << 40) };
        talk.receipts(&[receipt, receipt]);
        talk.counted(Counted { bytes: 7, ..Counted::default() });
        let whole = heard(&talk, usize::MAX);
        assert_eq!(whole.len(), 6);
        assert_eq!(whole[4], format!("{:?}", Frame::Receipts(vec![receipt, receipt])));
        for piece in [1, 2, 7] {
            assert_eq!(heard(&talk, piece), whole);
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        for bytes in [&[9, 0, 0, 0, 0][..], &[1, 255, 0, 0, 0], &[2, 0, 0, 0, 1, 0], &[0, 0, 0, 0, 1, b'x']] {
            let mut talk = Talk { come: bytes.to_vec(), ..Talk::default() };
            assert!(talk.next().is_err(), "{bytes:?}");
        }
    }
}
