//! The files of a session whose carrier brings all in order and undamaged, over one connection: the digest of a block is there before the
//! block.

use super::{Carrier, Folder, Looked, Receiving};
use std::io;
use std::time::Duration;
use weir_circuit::transfer::{BlockHeader, Message};

/// The carrier: one connection, and files alone.
const CARRIER: Carrier = Carrier { memory: false, streams: 1 };

/// The files of a session.
pub(crate) struct Files {
    session: Receiving,
    /// Up to where blocks of earlier attempts have been read; `None` until all files are offered, and again after the last.
    looked: Option<Looked>,
    offered: bool,
}

impl Default for Files {
    fn default() -> Files {
        Files { session: Receiving::new(CARRIER), looked: None, offered: false }
    }
}

impl Files {
    pub(crate) fn session(&self) -> &Receiving {
        &self.session
    }

    /// Whether [`Files::look`] has something to do.
    pub(crate) fn looks(&self) -> bool {
        self.looked.is_some()
    }

    /// Handles a message of the sender. Returns the answers.
    ///
    /// # Errors
    /// The request cannot be met, or the message is not one that a sender sends.
    pub(crate) fn hear(&mut self, message: Message, folder: &Folder) -> io::Result<Vec<Message>> {
        if self.offered {
            return Ok(self.session.hear(message, folder)?.into_iter().collect());
        }
        if self.session.offer(message, folder)? {
            (self.offered, self.looked) = (true, Some(Looked::default()));
        }
        Ok(vec![])
    }

    /// Reads the next block that an earlier attempt has left. Returns messages for the sender.
    ///
    /// # Errors
    /// The disk's, or a file that is whole cannot be given its name.
    pub(crate) fn look(&mut self, folder: &Folder) -> io::Result<Vec<Message>> {
        let Some(at) = &mut self.looked else { return Ok(vec![]) };
        if let Some(tell) = self.session.look(at)? {
            return Ok(tell.into_iter().collect());
        }
        self.looked = None;
        let mut messages = vec![Message::Ready { receive_buffer: None }];
        messages.extend(self.session.complete_all(folder)?);
        Ok(messages)
    }

    /// Stores a block. Returns the answers.
    ///
    /// # Errors
    /// Its place, length or digest is not the announced one, or it cannot be written.
    pub(crate) fn block(
        &mut self,
        header: BlockHeader,
        payload: &[u8],
        folder: &Folder,
    ) -> io::Result<Vec<Message>> {
        if payload.len() != header.length as usize {
            return Err(io::Error::other("the length or place of a block is invalid"));
        }
        self.session.count(payload.len() as u64);
        Ok(self.session.block(header, payload, folder, Duration::ZERO)?.into_iter().collect())
    }
}
