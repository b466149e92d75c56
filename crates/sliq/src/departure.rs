//! What a packet that has left carried.

/// What the packet that left last has carried, for a driver that counts bytes by their purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// The stream of its data; `None` for a packet of the connection's own.
    pub stream: Option<u8>,
    /// Whether its data was sent before, or is a repair packet.
    pub again: bool,
    /// Bytes of the acknowledgement in it; of a packet with nothing else, all bytes of its UDP payload without the tag.
    pub acknowledgement: u32,
}
