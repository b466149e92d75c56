//! What is said within a session: JSON, one message a frame of at most [`Message::LONGEST`] bytes.

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
        /// It comes from memory, and the receiver keeps nothing of it. Such an offer is alone in its session.
        #[serde(default, skip_serializing_if = "is_false")]
        memory: bool,
    },
    /// All files are offered, and so many connections will carry their blocks.
    Begin {
        /// At least 1.
        streams: u32,
    },
    /// The receiver takes the files; connections that begin with the token belong to the session.
    Accept {
        /// 32 bytes that nobody else knows.
        token: Digest,
    },
    /// The digests of blocks that the receiver has of a file already, from a first one on.
    Has {
        /// Number of the file.
        file: u32,
        /// Number of the first block.
        first: u64,
        /// The digests.
        digests: Vec<Digest>,
    },
    /// The receiver has said all that it has; blocks may come.
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
        /// Payload, of all connections together.
        bytes: u64,
        /// When, by the receiver's clock: nanoseconds since the session was taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ns: Option<u64>,
    },
    /// A file is whole, verified, on the disk, and has its name.
    Stored {
        /// Number of the file.
        file: u32,
        /// The digest of the digests of its blocks.
        digest: Digest,
    },
    /// The session ends here.
    Refuse {
        /// Why, in words for a person.
        reason: String,
    },
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Too many of them.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    /// Not what messages look like.
    #[error("what the other host says makes no sense: {0}")]
    Senseless(#[from] serde_json::Error),
}

impl Message {
    /// What a frame of the Noise protocol holds (65,535 bytes) without its 16 bytes of authentication.
    pub const LONGEST: usize = 65_519;

    /// As bytes.
    ///
    /// # Errors
    /// It does not fit a frame.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let bytes = serde_json::to_vec(self)?;
        if bytes.len() > Self::LONGEST { Err(MessageError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are no message.
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
    fn what_is_no_message_is_refused() {
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
