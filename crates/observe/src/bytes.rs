//! Integers in bytes from outside; `None` where the bytes end first.

/// An integer of 16 bits in network order.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// An integer of 32 bits in network order.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// The order of the bytes of a capture's own integers: that of the machine that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// An integer of 16 bits.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        be16(bytes, at).map(|value| if self == Order::Big { value } else { value.swap_bytes() })
    }

    /// An integer of 32 bits.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        be32(bytes, at).map(|value| if self == Order::Big { value } else { value.swap_bytes() })
    }
}
