//! The packets of rate-based flows. Numbers are big-endian. The first byte is the kind.
//!
//! | kind | bytes behind it |
//! |---|---|
//! | 1, data | flags (1: end of the stream), two zeros, number (32), timestamp in us (32), round trip time in us (32; 0 if unknown) |
//! | 2, report | the report of the transport's receiver |
//! | 3, end acknowledged | - |

/// Length of a data packet's header.
pub(crate) const HEADER: usize = 16;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data = 1,
    Report = 2,
    EndAcknowledged = 3,
}

/// The kind of a packet, and the bytes behind it; `None` if the bytes are no packet of this format.
pub(crate) fn reader(bytes: &[u8]) -> Option<(Kind, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let kind =
        [Kind::Data, Kind::Report, Kind::EndAcknowledged].into_iter().find(|kind| *kind as u8 == *first)?;
    Some((kind, rest))
}

/// The header of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Data {
    /// Number of the packet, its low 32 bits.
    pub(crate) sequence: u32,
    /// Departure time by the sender's clock, in microseconds.
    pub(crate) timestamp: u32,
    /// The sender's smoothed round trip time in microseconds; zero before the first sample.
    pub(crate) rtt: u32,
    /// Whether it is the end of the stream.
    pub(crate) end: bool,
}

impl Data {
    /// The header's bytes.
    pub(crate) fn encoded(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        (bytes[0], bytes[1]) = (Kind::Data as u8, self.end.into());
        for (at, number) in [(4, self.sequence), (8, self.timestamp), (12, self.rtt)] {
            bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Reads the header behind the kind; `None` if the bytes are too few.
    pub(crate) fn decoded(rest: &[u8]) -> Option<Data> {
        let rest: &[u8; HEADER - 1] = rest.first_chunk()?;
        let number = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        Some(Data { sequence: number(3), timestamp: number(7), rtt: number(11), end: rest[0] & 1 != 0 })
    }
}

/// Writes packets of any kind but data into a reused buffer.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Begins a packet of this kind.
    pub(crate) fn begin(&mut self, kind: Kind) {
        self.0.clear();
        self.0.push(kind as u8);
    }
    /// Appends bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    /// The bytes of the packet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn data_headers_read_back_as_they_were_written(
            sequence in any::<u32>(), timestamp in any::<u32>(), rtt in any::<u32>(), end in any::<bool>(),
        ) {
            let data = Data { sequence, timestamp, rtt, end };
            let bytes = data.encoded();
            let (kind, rest) = reader(&bytes).unwrap();
            prop_assert_eq!((kind, Data::decoded(rest)), (Kind::Data, Some(data)));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Some((_, rest)) = reader(&bytes) {
                let _ = Data::decoded(rest);
            }
        }
    }
}
