//! The messages of a session: JSON, one message per frame of at most [`Message::LONGEST`] bytes.

use super::Digest;
use serde::{Deserialize, Serialize};

/// Most digests in one message, so that it fits a frame.
pub const MOST_DIGESTS: usize = 800;

/// A message of a session. The sender of files offers, the receiver answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// A file that is to be sent. Files are numbered from 0 in the order in which they are offered.
    Offer {
        /// Its name, without folders.
        name: String,
        /// Its length in bytes.
        bytes: u64,
        /// It comes from memory, and the receiver stores none of it. Such an offer is the only one of its session.
        #[serde(default, skip_serializing_if = "is_false")]
        memory: bool,
    },
    /// All files are offered, and this many connections will carry their blocks.
    Begin {
        /// Number of connections, at least 1.
        streams: u32,
    },
    /// The receiver takes the files; connections that begin with the token belong to the session.
    Accept {
        /// 32 secret bytes.
        token: Digest,
    },
    /// The digests of blocks of a file that the receiver has already, in order from `first`.
    Has {
        /// Number of the file.
        file: u32,
        /// Number of the first block.
        first: u64,
        /// The digests.
        digests: Vec<Digest>,
    },
    /// The receiver has listed all blocks that it has; blocks may be sent.
    Ready {
        /// The largest receive buffer of its TCP connections in bytes, of which the kernel uses half for the window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receive_buffer: Option<u64>,
    },
    /// The digest that a block must have.
    Digest {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u64,
        /// Its digest.
        digest: Digest,
    },
    /// A block did not have its digest and must be retransmitted.
    Again {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u64,
    },
    /// How many bytes have been received in this session.
    Progress {
        /// Payload bytes of all connections together.
        bytes: u64,
        /// When, by the receiver's clock: nanoseconds since it accepted the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ns: Option<u64>,
    },
    /// Of a member of a group ([`crate::group`]): what it has heard of the datagrams.
    Heard {
        /// One more than the highest sequence.
        sequence: u64,
        /// How many fragments have come.
        count: u64,
    },
    /// Of a member of a group: fragments of a block have not come.
    Missing {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u64,
        /// The first fragment of each range, and how many there are.
        ranges: Vec<(u16, u16)>,
    },
    /// A file is complete and verified, is on the disk, and has its final name.
    Stored {
        /// Number of the file.
        file: u32,
        /// Its digest.
        digest: Digest,
    },
    /// The session is refused, and ends.
    Refuse {
        /// The reason, for a person.
        reason: String,
    },
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The message is too long.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    /// The bytes are not the JSON of a message.
    #[error("the other host sent an invalid message: {0}")]
    Senseless(#[from] serde_json::Error),
}

impl Message {
    /// The length of a Noise protocol frame (65,535 bytes) without its 16 bytes of authentication.
    pub const LONGEST: usize = 65_519;

    /// Encodes a message.
    ///
    /// # Errors
    /// The message does not fit a frame.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let bytes = serde_json::to_vec(self)?;
        if bytes.len() > Self::LONGEST { Err(MessageError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn decode(bytes: &[u8]) -> Result<Message, MessageError> {
        if bytes.len() > Self::LONGEST {
            return Err(MessageError::TooLong(bytes.len()));
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written_and_fit_a_frame() {
        let digest = Digest::of(b"x");
        let all = [
            Message::Offer { name: "a.bin".into(), bytes: u64::MAX, memory: false },
            Message::Offer { name: "memory".into(), bytes: 1, memory: true },
            Message::Begin { streams: 4 },
            Message::Accept { token: digest },
            Message::Has { file: u32::MAX, first: u64::MAX, digests: vec![digest; MOST_DIGESTS] },
            Message::Ready { receive_buffer: Some(1 << 30) },
            Message::Digest { file: 0, block: 7, digest },
            Message::Again { file: 0, block: 7 },
            Message::Progress { bytes: 12, after_ns: Some(1_000_000_001) },
            Message::Heard { sequence: u64::MAX, count: u64::MAX },
            Message::Missing { file: u32::MAX, block: u64::MAX, ranges: vec![(4095, 4095); 2048] },
            Message::Stored { file: 0, digest },
            Message::Refuse { reason: "no room".into() },
        ];
        for message in all {
            assert_eq!(Message::decode(&message.encode().unwrap()).unwrap(), message);
        }
        let long = Message::Refuse { reason: "x".repeat(Message::LONGEST) };
        assert!(matches!(long.encode(), Err(MessageError::TooLong(_))));
    }

    #[test]
    fn invalid_messages_are_refused() {
        let deep = "[".repeat(60_000);
        for bytes in [
            &b""[..],
            b"null",
            b"{}",
            br#"{"message":"ready","receive_buffer":1,"more":1}"#,
            br#"{"message":"offer","name":"x","bytes":-1}"#,
            br#"{"message":"accept","token":"12"}"#,
            b"\xff\xfe",
            deep.as_bytes(),
            &[b' '; Message::LONGEST + 1],
        ] {
            assert!(Message::decode(bytes).is_err());
        }
    }
}
