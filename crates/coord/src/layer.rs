//! The layer of a coordinated flow between its application and its UDP socket, the simulator's or the kernel's.

use crate::endpoint::{Endpoint, Identity};
use crate::header::{Flags, LONGEST, Version};

/// The layer between an application and its UDP socket: it writes the CP header of each outgoing datagram and removes it from each
/// arriving one.
#[derive(Debug)]
pub struct Layer {
    endpoint: Endpoint,
    head: Vec<u8>,
}

impl Layer {
    /// The layer of a flow's end.
    pub fn new(identity: Identity, version: Version) -> Layer {
        Layer { endpoint: Endpoint::new(identity, version, &[]), head: Vec::with_capacity(2 * LONGEST) }
    }

    /// The first bytes of a datagram whose application's bytes begin with `head`: the CP header, then `head`.
    pub fn seal(&mut self, head: &[u8]) -> &[u8] {
        let length = self.endpoint.header_length();
        self.head.clear();
        self.head.resize(length, 0);
        self.endpoint.seal(Flags::default(), &mut self.head);
        self.head.extend_from_slice(head);
        &self.head
    }

    /// The bytes behind the CP header of an arriving datagram; `None` if the header is missing, forged or of another flow.
    pub fn open<'a>(&mut self, head: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.endpoint.open(head, |_, _| {}).ok()?;
        head.get(length..)
    }
}
