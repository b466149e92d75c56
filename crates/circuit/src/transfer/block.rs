//! Files are sent in blocks; each block goes whole over one connection, behind a header.

/// Length of a block in bytes; the last of a file may be shorter.
pub const BLOCK: u64 = 4 << 20;

/// Number of blocks of a file of this many bytes.
pub fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK)
}

/// Length in bytes of a block of a file of `bytes` bytes. `None` if the file has no such block.
pub fn length_of(bytes: u64, block: u64) -> Option<u32> {
    let left = bytes.checked_sub(block.checked_mul(BLOCK)?)?;
    u32::try_from(left.min(BLOCK)).ok().filter(|length| *length > 0)
}

/// The header before a block's payload: three numbers, most significant byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Number of the file in its session.
    pub file: u32,
    /// Number of the block in its file.
    pub block: u64,
    /// Length of the payload in bytes.
    pub length: u32,
}

impl BlockHeader {
    /// Length of a header in bytes.
    pub const LENGTH: usize = 16;

    /// Encodes the header.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&self.file.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.block.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Decodes a header. It does not check that the file has such a block.
    pub fn decode(bytes: [u8; Self::LENGTH]) -> BlockHeader {
        let [a, b, c, d, e @ .., w, x, y, z] = bytes;
        BlockHeader {
            file: u32::from_be_bytes([a, b, c, d]),
            block: u64::from_be_bytes(e),
            length: u32::from_be_bytes([w, x, y, z]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_into_blocks_and_the_last_one_holds_the_rest() {
        assert_eq!([0, 1, BLOCK, BLOCK + 1].map(blocks), [0, 1, 1, 2]);
        let of = |bytes, block| length_of(bytes, block);
        assert_eq!((of(BLOCK + 7, 0), of(BLOCK + 7, 1), of(BLOCK + 7, 2)), (Some(4 << 20), Some(7), None));
        assert_eq!((of(0, 0), of(BLOCK, 1), of(7, u64::MAX)), (None, None, None));
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        let header = BlockHeader { file: 3, block: 1 << 40, length: 4 << 20 };
        assert_eq!(BlockHeader::decode(header.encode()), header);
    }
}
