//! Captures of packets, read as a stream: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in either order of bytes. A
//! capture that is cut or damaged gives the packets before that place, and says where and how it ended. The library of `engine`, which
//! writes captures, takes no notice of the resolution that a pcapng interface gives its stamps, so this reader is weir's own.

mod input;
mod pcap;
mod pcapng;

use input::Input;
use serde::Serialize;
use std::io::{self, Read};
use weir_base::Time;

/// Most bytes of a packet that a capture may hold: the largest snap length of libpcap (pcap.h).
const MOST_CAPTURED: u32 = 262_144;

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was captured, since 1970 if the capture's clock was right.
    pub at: Time,
    /// How its bytes begin, as the registry of link types numbers it (`LINKTYPE_`).
    pub link_type: u16,
    /// The bytes that were captured: all of them or, with a snap length, the first.
    pub bytes: &'a [u8],
    /// Its length in bytes on the wire.
    pub length: u32,
}

/// How a capture ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ended {
    /// After a whole packet or block.
    #[default]
    Complete,
    /// Within a packet or a block: the rest was never written, or is lost.
    Cut {
        /// Where what is cut begins, in bytes from the start.
        at_byte: u64,
    },
    /// At bytes that no capture has; what follows was not read.
    Damaged {
        /// Where these bytes begin, in bytes from the start.
        at_byte: u64,
        /// What is wrong with them.
        why: &'static str,
    },
}

/// What of a capture is no packet that [`Capture::next_frame`] returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Packets without a time, which a pcapng file may hold (Simple Packet Blocks).
    pub packets_without_time: u64,
    /// Packets of interfaces that the file does not describe.
    pub packets_without_interface: u64,
    /// Packets that the capturing machine lost, as the file itself says (pcapng only).
    pub packets_dropped_by_capture: u64,
}

/// Why a file is not read at all.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file holds nothing.
    #[error("it is empty")]
    Empty,
    /// The file is something else.
    #[error("it begins with {0:02x?}, as neither a pcap file nor a pcapng file does")]
    Format([u8; 4]),
    /// The file ends before its first packet could begin.
    #[error("it ends within its first header")]
    Header,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

/// A capture that is read from its beginning.
#[derive(Debug)]
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    ended: Ended,
    unread: Unread,
}

/// What a format found next. A frame's bytes stand in the input, where `taken` has left them.
enum Found {
    Frame { at: Time, link_type: u16, from: usize, captured: usize, length: u32 },
    End(Ended),
}

impl<R: Read> Capture<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// The bytes cannot be read, or are no capture.
    pub fn open(reader: R) -> Result<Capture<R>, CaptureError> {
        let mut input = Input::new(reader);
        if !input.has(4)? {
            return Err(if input.has(1)? { CaptureError::Header } else { CaptureError::Empty });
        }
        let mut magic = [0; 4];
        magic.copy_from_slice(input.peek(4));
        let format = if let Some(kind) = pcap::Kind::of(magic) {
            if !input.has(pcap::HEADER)? {
                return Err(CaptureError::Header);
            }
            Format::Pcap(kind.header(input.take(pcap::HEADER)))
        } else if magic == pcapng::SECTION {
            Format::Pcapng(pcapng::Section::new())
        } else {
            return Err(CaptureError::Format(magic));
        };
        Ok(Capture { input, format, ended: Ended::Complete, unread: Unread::default() })
    }

    /// The next packet; `None` at the end, of which [`Capture::ended`] says more.
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        if self.ended != Ended::Complete {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.input)?,
            Format::Pcapng(section) => section.next(&mut self.input, &mut self.unread)?,
        };
        match found {
            Found::Frame { at, link_type, from, captured, length } => {
                let bytes = self.input.taken(from, captured);
                Ok(Some(Frame { at, link_type, bytes, length }))
            }
            Found::End(ended) => {
                self.ended = ended;
                Ok(None)
            }
        }
    }

    /// How the capture ended, once [`Capture::next_frame`] has returned `None`.
    pub fn ended(&self) -> &Ended {
        &self.ended
    }

    /// What of it so far was no packet that could be returned.
    pub fn unread(&self) -> &Unread {
        &self.unread
    }

    /// Number of bytes read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }
}

#[cfg(test)]
mod tests;
