//! The three trailers that the UDP proxy puts behind what an application sends (digest A 2.4). Numbers are big-endian.
//!
//! | trailer | bits | bytes |
//! |---|---|---|
//! | chunk | blob 1, packet 5, chunk 5, chunks 5 | 2 |
//! | repair | base 8, repairs 8, length of a symbol 16 | 4 |
//! | control | repair 1, in order 1, coded 1, slot 5, group 24; sequence 32; timed 1, bytes in all 63; priority 8; loss threshold 8; hold 16 | 20 |
//!
//! A datagram is payload, chunk, control; or a repair's symbol, repair, control. The digest gives the fields, not their order in a datagram,
//! which is this crate's. So are three things: in a blob each packet stands after its length (16 bits); a bit of the count of bytes says
//! whether packets of the flow are timed; and a timed packet ends with the time of its origin ([`super::release::Origin`]).

use crate::message::Malformed;
use weir_base::Span;

/// Bytes of an original's trailers.
pub const ORIGINAL: usize = 22;
const CONTROL: usize = 20;
const REPAIR: usize = 4;
/// Chunks of a packet, and slots of a group, at most: 5 bits.
pub const MOST: u8 = 31;
/// The bit beside the count of bytes.
const TIMED: u64 = 1 << 63;

/// Which part of a packet a datagram has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The packet's number, 5 bits.
    pub packet: u8,
    /// The chunk's number in the packet, below `chunks`.
    pub chunk: u8,
    /// How many the packet has, 1 to [`MOST`].
    pub chunks: u8,
    /// Whether it is a blob: several short packets, each after its length. It is a chunk by itself.
    pub is_blob: bool,
}

/// What a repair repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// Sources of the group, from 1.
    pub base: u8,
    /// Repairs of the group, from 1.
    pub repairs: u8,
    /// Bytes of each symbol.
    pub length: u16,
}

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A chunk of an application's packet.
    Original(Chunk),
    /// A repair of a group.
    Repair(Repair),
}

/// The trailers of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailers {
    /// What it is.
    pub kind: Kind,
    /// Whether packets are released in order.
    pub is_ordered: bool,
    /// Whether its group has repairs.
    pub is_coded: bool,
    /// Whether packets end with the time of their origin.
    pub is_timed: bool,
    /// Its place among the sources, or the repairs, of its group; at most [`MOST`].
    pub slot: u8,
    /// The number of its group, 24 bits.
    pub group: u32,
    /// The number of the datagram among originals; of a repair that of its group's first source.
    pub sequence: u32,
    /// Bytes of payload that the flow has sourced, this one's included: 63 bits.
    pub total: u64,
    /// Priority of the flow, whole.
    pub priority: u8,
    /// Loss at which the receiver reports at once, in percent.
    pub threshold: u8,
    /// How long a packet may be held for its predecessors: whole milliseconds, at most 65,535.
    pub hold: Span,
}

impl Trailers {
    /// Writes them behind what is there.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self.kind {
            Kind::Original(Chunk { packet, chunk, chunks, is_blob }) => {
                let bits = u16::from(is_blob) << 15
                    | u16::from(packet & MOST) << 10
                    | u16::from(chunk & MOST) << 5
                    | u16::from(chunks & MOST);
                bytes.extend_from_slice(&bits.to_be_bytes());
            }
            Kind::Repair(Repair { base, repairs, length }) => {
                bytes.extend_from_slice(&[base, repairs]);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        let is_repair = matches!(self.kind, Kind::Repair(_));
        let flags = [(is_repair, 31), (self.is_ordered, 30), (self.is_coded, 29)];
        let flags = flags.into_iter().fold(0, |all, (set, bit)| all | u32::from(set) << bit);
        let first = flags | u32::from(self.slot & MOST) << 24 | self.group & 0xff_ffff;
        bytes.extend_from_slice(&first.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        let total = self.total & !TIMED | if self.is_timed { TIMED } else { 0 };
        bytes.extend_from_slice(&total.to_be_bytes());
        bytes.extend_from_slice(&[self.priority, self.threshold]);
        bytes.extend_from_slice(&(self.hold.as_millis().min(0xffff) as u16).to_be_bytes());
    }

    /// Reads the trailers of a datagram; what is before them is its payload or symbol.
    ///
    /// # Errors
    /// [`Malformed`] if there are none, or they contradict themselves.
    pub fn decode(bytes: &[u8]) -> Result<(&[u8], Trailers), Malformed> {
        let (rest, control) = bytes.split_last_chunk::<CONTROL>().ok_or(Malformed)?;
        let [a, b, c, d, e, f, g, h, total @ .., priority, threshold, hold, low] = *control;
        let (first, sequence) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        let set = |bit: u32| first >> bit & 1 == 1;
        let (slot, group) = ((first >> 24) as u8 & MOST, first & 0xff_ffff);
        let (payload, kind) = if set(31) {
            let (symbol, [base, repairs, high, low]) = rest.split_last_chunk::<REPAIR>().ok_or(Malformed)?;
            let length = u16::from_be_bytes([*high, *low]);
            let (base, repairs) = (*base, *repairs);
            let is_sound =
                (1..=MOST).contains(&base) && slot < repairs && symbol.len() == usize::from(length);
            if !is_sound || !set(29) {
                return Err(Malformed);
            }
            (symbol, Kind::Repair(Repair { base, repairs, length }))
        } else {
            let (payload, bits) = rest.split_last_chunk::<2>().ok_or(Malformed)?;
            let bits = u16::from_be_bytes(*bits);
            let [packet, chunk, chunks] = [10, 5, 0].map(|shift| (bits >> shift) as u8 & MOST);
            let is_blob = bits >> 15 == 1;
            if chunk >= chunks || is_blob && chunks > 1 {
                return Err(Malformed);
            }
            (payload, Kind::Original(Chunk { packet, chunk, chunks, is_blob }))
        };
        let total = u64::from_be_bytes(total);
        let trailers = Trailers {
            kind,
            is_ordered: set(30),
            is_coded: set(29),
            is_timed: total & TIMED != 0,
            slot,
            group,
            sequence,
            total: total & !TIMED,
            priority,
            threshold,
            hold: Span::from_millis(u16::from_be_bytes([hold, low]).into()),
        };
        Ok((payload, trailers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = Kind> {
        let chunk =
            (0..=MOST, 1..=MOST, 0..=MOST, any::<bool>()).prop_map(|(packet, chunks, chunk, is_blob)| {
                let chunks = if is_blob { 1 } else { chunks };
                Kind::Original(Chunk { packet, chunk: chunk % chunks, chunks, is_blob })
            });
        let repair = (1..=MOST, 32u8.., 0u16..40)
            .prop_map(|(base, repairs, length)| Kind::Repair(Repair { base, repairs, length }));
        prop_oneof![chunk, repair]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in kind(),
            flags in any::<[bool; 3]>(),
            slot in 0..=MOST,
            numbers in (0u32..1 << 24, any::<u32>(), 0u64..1 << 63, any::<u8>(), any::<u8>(), any::<u16>()),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (group, sequence, total, priority, threshold, hold) = numbers;
            let [is_ordered, is_coded, is_timed] = flags;
            let is_coded = is_coded || matches!(kind, Kind::Repair(_));
            let hold = Span::from_millis(hold.into());
            let trailers = Trailers {
                kind, is_ordered, is_coded, is_timed, slot, group, sequence, total, priority, threshold, hold
            };
            let mut bytes = payload.clone();
            if let Kind::Repair(Repair { length, .. }) = kind {
                bytes.resize(length.into(), 0);
            }
            let expected = bytes.clone();
            trailers.encode(&mut bytes);
            prop_assert_eq!(Trailers::decode(&bytes), Ok((&expected[..], trailers)));
            let beside = if matches!(kind, Kind::Original(_)) { ORIGINAL } else { 24 };
            prop_assert_eq!(bytes.len(), expected.len() + beside);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok((payload, trailers)) = Trailers::decode(&bytes) {
                let mut again = payload.to_vec();
                trailers.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
