//! RUDP's packets (appendix C). Numbers are big-endian. The source does not give the codes of the types.
//!
//! | packet | bytes | fields |
//! |---|---|---|
//! | SYN, FIN, DATA | 9 | type (8), packet number (32), sequence number (32) |
//! | SYN-ACK | 9 | type (8), packet echo (32), acknowledgement number (32) |
//! | ACK | 13 | type (8), packet echo (32), acknowledgement number (32), hole number (32) |
//!
//! Sequence numbers count segments of data. The acknowledgement number is the next expected segment. The hole number is the same
//! segment if a later one has arrived, and [`NO_HOLE`] otherwise.

/// Hole number if no segment is missing below one that has arrived.
pub(crate) const NO_HOLE: u32 = u32::MAX;

/// A packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Syn { number: u32, sequence: u32 },
    SynAck { echo: u32, ack: u32 },
    Data { number: u32, sequence: u32 },
    Fin { number: u32, sequence: u32 },
    Ack { echo: u32, ack: u32, hole: u32 },
}

/// Length of a data packet's header.
pub(crate) const DATA_HEADER: usize = 9;

impl Header {
    /// Appends the header.
    pub(crate) fn write(self, to: &mut Vec<u8>) {
        let (kind, first, second, third) = match self {
            Header::Syn { number, sequence } => (1, number, sequence, None),
            Header::SynAck { echo, ack } => (2, echo, ack, None),
            Header::Data { number, sequence } => (3, number, sequence, None),
            Header::Fin { number, sequence } => (4, number, sequence, None),
            Header::Ack { echo, ack, hole } => (5, echo, ack, Some(hole)),
        };
        to.push(kind);
        for number in [Some(first), Some(second), third].into_iter().flatten() {
            to.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Reads a header; `None` if the bytes are no header.
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let (kind, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        let (first, second) = (u32::from_be_bytes(*first), u32::from_be_bytes(*second));
        Some(match kind {
            1 => Header::Syn { number: first, sequence: second },
            2 => Header::SynAck { echo: first, ack: second },
            3 => Header::Data { number: first, sequence: second },
            4 => Header::Fin { number: first, sequence: second },
            5 => Header::Ack { echo: first, ack: second, hole: u32::from_be_bytes(*rest.first_chunk()?) },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_read_back_and_have_the_published_lengths(a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
            for (header, length) in [
                (Header::Syn { number: a, sequence: b }, 9),
                (Header::SynAck { echo: a, ack: b }, 9),
                (Header::Data { number: a, sequence: b }, DATA_HEADER),
                (Header::Fin { number: a, sequence: b }, 9),
                (Header::Ack { echo: a, ack: b, hole: c }, 13),
            ] {
                let mut bytes = Vec::new();
                header.write(&mut bytes);
                prop_assert_eq!(bytes.len(), length);
                prop_assert_eq!(Header::read(&bytes), Some(header));
                prop_assert_eq!(Header::read(&bytes[..length - 1]), None);
            }
        }
    }
}
