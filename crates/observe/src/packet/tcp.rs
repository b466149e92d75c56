//! The header of TCP (RFC 9293, section 3.1) with the options that an analysis needs.

use super::Skipped;
use crate::bytes::{be16, be32};

/// A TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tcp {
    /// The sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// What is acknowledged, with the flag ACK.
    pub acknowledgement: Option<u32>,
    /// Number of bytes of data.
    pub payload: u32,
    /// The flag SYN.
    pub syn: bool,
    /// The flag FIN.
    pub fin: bool,
    /// The flag RST.
    pub rst: bool,
    /// The flag ECE.
    pub ece: bool,
    /// The largest segment that its sender takes (kind 2), in bytes.
    pub mss: Option<u16>,
    /// The timestamps (kind 8): its own, and the echo of the other end's.
    pub timestamps: Option<(u32, u32)>,
    /// The SACK blocks (kind 5) in their order, up to the first `None`.
    pub sack: [Option<(u32, u32)>; 4],
}

/// The fixed part of a header in bytes.
const FIXED: u32 = 20;

impl Tcp {
    /// Reads the header at the start of these bytes, of a packet with this number of bytes behind its IP header. Options that the capture
    /// has cut off are left out.
    pub(super) fn of(bytes: &[u8], length: u32) -> Result<Tcp, Skipped> {
        let offset = u32::from(*bytes.get(12).ok_or(Skipped::Short)? >> 4) * 4;
        let flags = *bytes.get(13).ok_or(Skipped::Short)?;
        let word = |at| be32(bytes, at).ok_or(Skipped::Short);
        if offset < FIXED || length < offset {
            return Err(Skipped::Malformed);
        }
        let mut header = Tcp {
            sequence: word(4)?,
            acknowledgement: if flags & 0x10 == 0 { None } else { Some(word(8)?) },
            payload: length - offset,
            fin: flags & 0x01 != 0,
            syn: flags & 0x02 != 0,
            rst: flags & 0x04 != 0,
            ece: flags & 0x40 != 0,
            ..Tcp::default()
        };
        let end = (offset as usize).min(bytes.len());
        header.read(bytes.get(FIXED as usize..end).unwrap_or_default());
        Ok(header)
    }

    fn read(&mut self, mut options: &[u8]) {
        loop {
            options = match options {
                [1, rest @ ..] => rest,
                [kind, length, ..] if *kind != 0 && *length >= 2 => {
                    let Some((option, behind)) = options.split_at_checked((*length).into()) else { return };
                    self.option(*kind, &option[2..]);
                    behind
                }
                _ => return,
            };
        }
    }

    fn option(&mut self, kind: u8, value: &[u8]) {
        match kind {
            2 => self.mss = be16(value, 0),
            5 => {
                let block = |block: &[u8]| Some((be32(block, 0)?, be32(block, 4)?));
                for (place, found) in self.sack.iter_mut().zip(value.chunks_exact(8)) {
                    *place = block(found);
                }
            }
            8 => self.timestamps = be32(value, 0).zip(be32(value, 4)),
            _ => {}
        }
    }
}
