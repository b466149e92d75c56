//! The datagrams that go to a group. All numbers have the most significant byte first:
//!
//! | bytes | announcement | fragment |
//! |---|---|---|
//! | 0 to 3 | `wg`, version 1, kind 0 | `wg`, version 1, kind 1 |
//! | 4 to 7 | checksum of all that follows | the same |
//! | 8 to 15 | session | session |
//! | 16 on | port of the sender (2) | sequence (8), file (4), block (8), fragment (2), payload (1 to 1,024) |
//!
//! The checksum finds a damaged datagram before it spoils a block of 4 MiB; whether a block is right, its digest says.

use super::{FRAGMENT, Place};
use twox_hash::XxHash64;

/// The first bytes: name and version.
const BEGINS: [u8; 3] = *b"wg\x01";
const ANNOUNCEMENT: u8 = 0;
const DATA: u8 = 1;
/// Bytes before those that the checksum covers.
const COVERED: usize = 8;
/// Bytes of a fragment before its payload.
const HEADER: usize = 38;

/// A datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// Files are sent to the group: members connect to this TCP port of the datagram's source.
    Announcement {
        /// The session's number, which only the group is told.
        session: u64,
        /// The port.
        port: u16,
    },
    /// A part of a block.
    Fragment {
        /// The session's number.
        session: u64,
        /// How many fragments were sent before it in the session.
        sequence: u64,
        /// Which one it is.
        place: Place,
        /// Its bytes: 1 to 1,024.
        payload: &'a [u8],
    },
}

/// The checksum of a datagram: the low 32 bits of XXH64 of all behind it. `None` if it is too short to have one.
pub fn checksum(datagram: &[u8]) -> Option<u32> {
    Some(XxHash64::oneshot(0, datagram.get(COVERED..)?) as u32)
}

impl<'a> Datagram<'a> {
    /// The session's number.
    pub fn session(&self) -> u64 {
        match self {
            Datagram::Announcement { session, .. } | Datagram::Fragment { session, .. } => *session,
        }
    }

    /// Writes it in the place of what `into` holds.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(&BEGINS);
        match self {
            Datagram::Announcement { session, port } => {
                into.extend_from_slice(&[ANNOUNCEMENT, 0, 0, 0, 0]);
                into.extend_from_slice(&session.to_be_bytes());
                into.extend_from_slice(&port.to_be_bytes());
            }
            Datagram::Fragment { session, sequence, place: Place { file, block, fragment }, payload } => {
                into.extend_from_slice(&[DATA, 0, 0, 0, 0]);
                into.extend_from_slice(&session.to_be_bytes());
                into.extend_from_slice(&sequence.to_be_bytes());
                into.extend_from_slice(&file.to_be_bytes());
                into.extend_from_slice(&block.to_be_bytes());
                into.extend_from_slice(&fragment.to_be_bytes());
                into.extend_from_slice(payload);
            }
        }
        let sum = checksum(into).unwrap_or_default();
        into[4..COVERED].copy_from_slice(&sum.to_be_bytes());
    }

    /// Reads it; `None` if it is none, or is damaged.
    pub fn decode(bytes: &'a [u8]) -> Option<Datagram<'a>> {
        let (begins, rest) = bytes.split_first_chunk::<3>()?;
        let (kind, rest) = rest.split_first()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        if *begins != BEGINS || u32::from_be_bytes(*sum) != checksum(bytes)? {
            return None;
        }
        let (session, rest) = rest.split_first_chunk::<8>()?;
        let session = u64::from_be_bytes(*session);
        match *kind {
            ANNOUNCEMENT => {
                let port = u16::from_be_bytes(rest.try_into().ok()?);
                (port > 0).then_some(Datagram::Announcement { session, port })
            }
            DATA => {
                let (sequence, rest) = rest.split_first_chunk::<8>()?;
                let (file, rest) = rest.split_first_chunk::<4>()?;
                let (block, rest) = rest.split_first_chunk::<8>()?;
                let (fragment, payload) = rest.split_first_chunk::<2>()?;
                let place = Place {
                    file: u32::from_be_bytes(*file),
                    block: u64::from_be_bytes(*block),
                    fragment: u16::from_be_bytes(*fragment),
                };
                let sequence = u64::from_be_bytes(*sequence);
                let fits = (1..=FRAGMENT).contains(&payload.len());
                fits.then_some(Datagram::Fragment { session, sequence, place, payload })
            }
            _ => None,
        }
    }
}

/// The longest datagram.
pub(super) const LONGEST: usize = HEADER + FRAGMENT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_as_they_are_written_and_damaged_ones_are_not() {
        let place = Place { file: 3, block: 1 << 40, fragment: 4095 };
        let all = [
            Datagram::Announcement { session: 7, port: 40_000 },
            Datagram::Fragment { session: u64::MAX, sequence: 1 << 50, place, payload: &[5; FRAGMENT] },
            Datagram::Fragment { session: 1, sequence: 0, place, payload: b"x" },
        ];
        let mut bytes = vec![9; 3];
        for datagram in all {
            datagram.encode(&mut bytes);
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Datagram::decode(&bytes), Some(datagram));
            for at in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at / 8] ^= 1 << (at % 8);
                // A damaged bit in the kind makes it another datagram, or none: its length then tells.
                assert_ne!(Datagram::decode(&damaged), Some(datagram), "bit {at}");
            }
            (0..bytes.len()).for_each(|end| assert_eq!(Datagram::decode(&bytes[..end]), None, "{end} bytes"));
        }
        let long = Datagram::Fragment { session: 1, sequence: 0, place, payload: &[0; FRAGMENT + 1] };
        long.encode(&mut bytes);
        assert_eq!(Datagram::decode(&bytes), None);
    }
}
